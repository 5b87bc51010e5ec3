package scaling

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A series in which only some runs had whole nodes has a warning, which says in which direction the
// speedups are biased.
func TestExclusiveWarning(t *testing.T) {
	whole := func(list []Observation) []Observation { return with(list, measure.ExclusiveKey, true) }
	shared := func(list []Observation) []Observation { return with(list, measure.ExclusiveKey, false) }
	one, two, four := runs(1, 100), runs(2, 190), runs(4, 300)
	for _, tt := range []struct {
		name string
		obs  []Observation
		want string // "": no warning
	}{
		{"all whole", join(whole(one), whole(two), whole(four)), ""},
		{"all shared", join(shared(one), shared(two)), ""},
		{"not recorded", join(one, two), ""},
		{"some not recorded", join(whole(one), two), ""},
		{"only the base whole", join(whole(one), shared(two), shared(four)),
			"1 worker ran on whole nodes, 2 and 4 workers on nodes that other jobs may share (resources.exclusive): on a busy cluster the base is too fast, and speedups are too low"},
		{"only the base shared", join(shared(one), whole(two), whole(four)),
			"2 and 4 workers ran on whole nodes, 1 worker on nodes that other jobs may share (resources.exclusive): on a busy cluster the base is too slow, and speedups are too high"},
		{"repeats of the base differ", join(whole(one), shared(runs(1, 90)), whole(two)),
			"1 and 2 workers ran on whole nodes, 1 worker on nodes that other jobs may share (resources.exclusive): on a busy cluster speedups are biased"},
	} {
		// Repeats of one point differ, as after editing the study between submissions.
		for i := range tt.obs {
			tt.obs[i].Point = strings.Split(tt.obs[i].Point, "+")[0]
		}
		curves := analyse(t, tt.obs, Options{})
		if len(curves) != 1 {
			t.Errorf("%s: %d curves, want 1", tt.name, len(curves))
			continue
		}
		var got string
		if i := slices.IndexFunc(curves[0].Warnings, func(w string) bool { return strings.Contains(w, "exclusive") }); i >= 0 {
			got = curves[0].Warnings[i]
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

// A point that did not record whether it had whole nodes is on the same curve as points that did.
func TestExclusiveUnrecordedDoesNotSeparate(t *testing.T) {
	one := runs(1, 100)
	if n := len(analyse(t, join(with(one, measure.ExclusiveKey, true), with(one, "global_batch", int64(1))), Options{})); n != 1 {
		t.Errorf("%d curves, want 1", n)
	}
	if n := len(analyse(t, join(with(one, measure.ExclusiveKey, true), with(one, measure.ExclusiveKey, false)), Options{})); n != 2 {
		t.Errorf("a sweep of the key: %d curves, want 2", n)
	}
}
