package sensitivity

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Six blocks of the reference and two others, with the reference first in odd blocks and last in
// even ones, as the launcher orders them. In each of three pairs, the reference drops by 10 %, from
// 100 to 90.
func TestCourse(t *testing.T) {
	course := func(reverse bool) []scaling.Observation {
		full := runs(map[string]any{coresKey: int64(8)}, 100)
		four, two := runs(map[string]any{coresKey: int64(4)}, 99), runs(map[string]any{coresKey: int64(2)}, 60)
		for i := range full {
			began := 1000 * float64(i+1)
			four[i].BeganUnix, two[i].BeganUnix = began+10, began+20
			full[i].BeganUnix = began
			full[i].Values = map[string]float64{"throughput": 100}
			if i%2 == 1 {
				full[i].Values = map[string]float64{"throughput": 90}
				full[i].BeganUnix = began + 30
			}
			if reverse {
				full[i].BeganUnix = began + 15 // in between
			}
		}
		return slices.Concat(full, four, two)
	}
	a := ask(t, Options{Factors: []string{coresKey}}, course(false))
	if len(a.Course) != 3 || a.Course[0] < -0.1001 || a.Course[2] > -0.0999 {
		t.Errorf("changes %v, want -10 %% three times", a.Course)
	}
	warned := func(a Answer) bool {
		return slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, "became 10.0 % worse between two blocks") })
	}
	if !warned(a) {
		t.Errorf("warnings %q", a.Warnings)
	}
	// With a permitted loss of 20 %, a drift of 10 % causes no warning.
	if a := ask(t, Options{Factors: []string{coresKey}, Epsilon: 0.2}, course(false)); warned(a) || len(a.Course) != 3 {
		t.Errorf("with 20 %% to lose: %v, warnings %q", a.Course, a.Warnings)
	}
	// In earlier studies, the reference can be anywhere in a block.
	if a := ask(t, Options{Factors: []string{coresKey}}, course(true)); a.Course != nil {
		t.Errorf("in another order: %v", a.Course)
	}
	// One rise and one fall are not a drift.
	mixed := course(false)
	mixed[1].Values["throughput"] = 111
	if a := ask(t, Options{Factors: []string{coresKey}}, mixed); len(a.Course) != 3 || warned(a) {
		t.Errorf("both ways: %v, warnings %q", a.Course, a.Warnings)
	}
	// A block without a partner shows nothing: five blocks have two pairs.
	odd := slices.DeleteFunc(course(false), func(o scaling.Observation) bool { return o.Repeat == 6 })
	if a := ask(t, Options{Factors: []string{coresKey}}, odd); len(a.Course) != 2 {
		t.Errorf("of five blocks: %v, want two changes", a.Course)
	}
	// A pair in which one block has only the reference shows nothing either.
	alone := slices.DeleteFunc(course(false), func(o scaling.Observation) bool {
		return o.Repeat == 2 && o.Parameters[coresKey] != int64(8)
	})
	if a := ask(t, Options{Factors: []string{coresKey}}, alone); len(a.Course) != 2 {
		t.Errorf("with a block of the reference alone: %v, want two changes", a.Course)
	}
	// Nor does a pair in which the second block lacks the reference.
	without := slices.DeleteFunc(course(false), func(o scaling.Observation) bool {
		return o.Repeat == 6 && o.Parameters[coresKey] == int64(8)
	})
	if a := ask(t, Options{Factors: []string{coresKey}}, without); len(a.Course) != 2 {
		t.Errorf("without the last reference: %v, want two changes", a.Course)
	}
	// Runs without start times show nothing.
	if a := ask(t, Options{Factors: []string{coresKey}}, runs(map[string]any{coresKey: int64(8)}, 100), runs(map[string]any{coresKey: int64(4)}, 99)); a.Course != nil {
		t.Errorf("without times: %v", a.Course)
	}
}
