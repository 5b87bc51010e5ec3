package scaling

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A series' name contains what distinguishes it, fits on a line even if values are long, and is
// unique.
func TestNamesAreShort(t *testing.T) {
	long := strings.Repeat("a very long value ", 20)
	var list []*series
	for i := range 12 {
		list = append(list, &series{framework: "native", parameters: map[string]any{
			"parameters.note":  long + string(rune('a'+i)) + long, // these look equal when shortened
			"parameters.width": int64(1 << i),
			"parameters.depth": int64(i),
			"workload.model":   []string{"mlp", "mlp-with-" + long}[i%2],
			"workload.batch":   int64(32),
		}})
	}
	keys := name(list)
	if got := strings.Join(keys, " "); got != "parameters.depth parameters.note parameters.width workload.model" {
		t.Errorf("series differ in %s", got)
	}
	seen := map[string]bool{}
	for _, s := range list {
		if n := utf8.RuneCountInString(s.name); n > longName {
			t.Errorf("%d letters: %s", n, s.name)
		}
		if strings.Contains(s.name, "batch") || !strings.HasPrefix(s.name, "native ") || seen[s.name] {
			t.Errorf("name %q", s.name)
		}
		seen[s.name] = true
	}
	// Series that only differ in a long value.
	for i, s := range list {
		s.parameters = map[string]any{"parameters.note": long + string(rune('a'+i)) + long}
	}
	name(list)
	if a, b := list[0].name, list[11].name; a != "native note=a very long …long value #1" || b != "native note=a very long …long value #12" {
		t.Errorf("names %q, %q", a, b)
	}
	// Short names keep all parameters that differ, even those that depend on each other.
	list = list[:2]
	for i, s := range list {
		s.parameters = map[string]any{"workload.batch": int64(32 << i), "workload.learning_rate": 0.1 * float64(i+1)}
	}
	name(list)
	if got := list[1].name; got != "native batch=64 learning_rate=0.2" {
		t.Errorf("name %q", got)
	}
}

// A path is named by the end in which it differs from the other values.
func TestNamesOfPaths(t *testing.T) {
	for _, tt := range []struct{ values, want []string }{
		{[]string{"/models/a/qwen", "/models/b/llama"}, []string{"qwen", "llama"}},
		{[]string{"a/x/model.onnx", "b/x/model.onnx"}, []string{"a/x/model.onnx", "b/x/model.onnx"}},
		{[]string{"/srv/a/x/model.onnx", "/srv/b/x/model.onnx"}, []string{"a/x/model.onnx", "b/x/model.onnx"}},
		{[]string{"m/model", "model"}, []string{"m/model", "model"}},
		{[]string{"models/", "other/"}, []string{"models/", "other/"}},
		{[]string{"python3 a/b.py", "python3 a/c.py"}, []string{"python3 a/b.py", "python3 a/c.py"}},
	} {
		var list []*series
		for _, v := range tt.values {
			list = append(list, &series{parameters: map[string]any{"workload.model": v}})
		}
		name(list)
		for i, s := range list {
			if want := "model=" + tt.want[i]; s.name != want {
				t.Errorf("%q: %q, want %q", tt.values, s.name, want)
			}
		}
	}
}

// Equal remarks of many series share one line, with their number.
func TestLinesOfAKind(t *testing.T) {
	of := func(series, where, text string) Remark { return Remark{Series: series, Where: where, Text: text} }
	got := strings.Join(Lines([]Remark{
		of("a", "2 workers: ", "took 3 s"), of("b", "2 workers: ", "took 3 s"), of("c", "4 workers: ", "took 17.5 s"), of("d", "", "took 1e9 s"),
		of("a", "", "target 0.5: reached by 0 of 2 runs"), of("b", "", "target 0.7: reached by 1 of 2 runs"), of("c", "", "target 0.5: reached by 0 of 2 runs"),
		of("b", "", "alone"), of("d", "", "2 workers cost 5 points (of one run)"), of("d", "", "4 workers cost 7 points (of one run)"), of("", "", "of the study"),
	}, 4), "\n")
	want := strings.Join([]string{
		"all 4 series: 2 workers: took 3 s (and 2 like it)",
		"a and 1 other series: target 0.5: reached by 0 of 2 runs",
		"b: target 0.7: reached by 1 of 2 runs",
		"b: alone",
		"d: 2 workers cost 5 points (of one run; and 1 like it)",
		"of the study",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
