package gpucheck

import (
	"math"
	"strings"
	"testing"
)

// Run keeps what a failure needs, ends a check at Fatal or a panic, and runs every
// cleanup, the last first.
func TestRun(t *testing.T) {
	var order string
	for name, test := range map[string]struct {
		run         func(T)
		said        string // "": the check passes
		differences int
		order       string
	}{
		"passes": {func(t T) { t.Logf("%d numbers", 3) }, "", 0, ""},
		"differs": {func(t T) {
			Near(t, Difference{What: "sums", Shape: "2×2", Launch: &Launch{Kernel: "sum", Blocks: 2, Threads: 256}}, []float32{1, 2, 3, float32(math.NaN())}, []float64{1, 2.5, 3, 4}, 0.1)
			Same(t, Difference{What: "bits"}, []int{1}, []int{2})
		}, "sums: 2 of 4 elements are wrong (shape 2×2, tolerance 0.1 of the larger of 1 and the expected magnitude); element 1 is 2, want 2.5; element 3 is NaN, want 4; written by sum<<<2, 256>>> ", 2, ""},
		"fatal": {func(t T) {
			t.Cleanup(func() { order += "1" })
			t.Cleanup(func() { order += "2"; t.Fatal("in a cleanup") })
			t.Fatalf("no %s", "GPU")
		}, "no GPU", 0, "21"},
		"panics":         {func(t T) { t.Cleanup(func() { order += "1" }); panic("at the disco") }, "panic: at the disco", 0, "1"},
		"another length": {func(t T) { Same(t, Difference{What: "bits"}, []int{1}, nil) }, "bits: 1 elements, want 0", 0, ""},
		"many": {func(t T) {
			for range 100 {
				Same(t, Difference{What: "bits"}, make([]int, 9), []int{1, 1, 1, 1, 1, 1, 1, 1, 1})
			}
		}, "bits: 9 of 9 elements are wrong", mostSaid, ""},
	} {
		order = ""
		r := Run(Check{Name: name, Run: test.run})
		switch {
		case order != test.order:
			t.Errorf("%s: cleanups %q, want %q", name, order, test.order)
		case test.said == "" && (r.Failure != nil || len(r.Log) != 1 || r.Log[0] != "3 numbers"):
			t.Errorf("%s: %+v", name, r)
		case test.said != "" && (r.Failure == nil || !strings.HasPrefix(r.Failure.Said[0], strings.TrimSpace(test.said)) || len(r.Failure.Differences) != test.differences || len(r.Failure.Said) > mostSaid):
			t.Errorf("%s: %+v", name, r.Failure)
		}
		if r.Failure != nil {
			for _, d := range r.Failure.Differences {
				if len(d.First) == 0 || len(d.First) > mostValues {
					t.Errorf("%s: %+v", name, d)
				}
			}
		}
	}
}

// A test can be a T.
var _ T = (*testing.T)(nil)
