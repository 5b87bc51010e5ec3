package store

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Runs with equal parameters share one map, which saves memory with a million runs. A text
// never equals a number.
func TestAlikeParameters(t *testing.T) {
	a := newAlike()
	of := func(workers int64, rows ...storedParameter) map[string]any {
		t.Helper()
		all, err := a.of(append(rows, storedParameter{"workers", "integer", workers}))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	same := func(a, b map[string]any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	integer := storedParameter{"k", "integer", int64(1)}
	first := of(2, integer)
	if d := cmp.Diff(map[string]any{"k": int64(1), "workers": int64(2)}, first); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !same(first, of(2, integer)) {
		t.Error("equal parameters are held twice")
	}
	for name, other := range map[string]map[string]any{
		"other workers": of(4, integer),
		"a text":        of(2, storedParameter{"k", "text", "1"}),
		"a number":      of(2, storedParameter{"k", "real", 1.0}),
		"a boolean":     of(2, storedParameter{"k", "boolean", int64(1)}),
		"another key":   of(2, storedParameter{"kk", "integer", int64(1)}),
		"one more":      of(2, integer, storedParameter{"l", "integer", int64(1)}),
		"none":          of(2),
	} {
		if same(first, other) {
			t.Errorf("%s: taken for equal", name)
		}
	}
}
