package scaling

import (
	"slices"
	"testing"
)

func TestVarying(t *testing.T) {
	type point = map[string]any
	for _, c := range []struct {
		name   string
		points []point
		want   []string
	}{
		{"no points", nil, nil},
		{"one point", []point{{"batch": int64(8)}}, nil},
		{"equal", []point{{"batch": int64(8)}, {"batch": int64(8)}}, nil},
		{"another value", []point{{"batch": int64(8), "epochs": int64(1)}, {"batch": int64(16), "epochs": int64(1)}}, []string{"batch"}},
		{"two, in order", []point{{"b": int64(1), "a": "x"}, {"b": int64(2), "a": "y"}}, []string{"a", "b"}},
		{"only the first has it", []point{{"batch": int64(8)}, {}}, []string{"batch"}},
		{"only the second has it", []point{{}, {"batch": int64(8)}}, []string{"batch"}},
		{"only the last of three has it", []point{{}, {}, {"batch": int64(8)}}, []string{"batch"}},
		{"only the last differs", []point{{"batch": int64(8)}, {"batch": int64(8)}, {"batch": int64(4)}}, []string{"batch"}},
		{"a text is no number", []point{{"batch": int64(8)}, {"batch": "8"}}, []string{"batch"}},
		{"follows from the workers or the repeat", []point{
			{"workers": int64(1), "nodes": int64(1), "study.repeat": int64(1), "study.name": "a", "batch": int64(8)},
			{"workers": int64(2), "nodes": int64(2), "study.repeat": int64(2), "study.name": "b", "batch": int64(8)},
		}, nil},
	} {
		if got := varyingKeys(c.points); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A key only counts as varying if it varies within one study; a difference between studies is not
// enough.
func TestVaryingWithin(t *testing.T) {
	type point = map[string]any
	got := VaryingWithin(map[string][]point{
		"a": {{"batch": int64(8), "model": "x"}, {"batch": int64(16), "model": "x"}},
		"b": {{"batch": int64(8), "model": "y", "lr": 0.1}, {"batch": int64(8), "model": "y", "lr": 0.2}},
	})
	if want := []string{"batch", "lr"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShort(t *testing.T) {
	got := Short([]string{"train.batch", "serve.batch", "train.epochs", "workers"})
	if want := []string{"train.batch", "serve.batch", "epochs", "workers"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
