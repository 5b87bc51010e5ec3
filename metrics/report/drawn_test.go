package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Figures that are missing for the same reason share one entry.
func TestNotDrawn(t *testing.T) {
	var r Report
	notDrawn(&r, "Speedup", "no run has a throughput")
	notDrawn(&r, "Accuracy", "no run has an evaluation")
	notDrawn(&r, "Efficiency", "no run has a throughput")
	want := []Fact{{Name: "Speedup; Efficiency", Values: []string{"no run has a throughput"}}, {Name: "Accuracy", Values: []string{"no run has an evaluation"}}}
	if diff := cmp.Diff(want, r.NotDrawn); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
