package query

import (
	"math"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
)

// A failed attempt counts, one that runs does not: 1800 s on 1 node and 900 s on 3 and an auxiliary one are 0.5 and 1
// node-hours.
func TestNodeHours(t *testing.T) {
	small, large := attempt("w1", 1, 1, metrics.Done, 1000, 1800), attempt("w4", 1, 1, metrics.Failed, 1000, 900)
	small.Point.Nodes, large.Point.Nodes, large.Point.AuxNodes = 1, 3, 1
	got := NodeHours([]launcher.State{small, large, attempt("w1", 2, 1, metrics.Running, 1000, 0)})
	if math.Abs(got-1.5) > 1e-12 {
		t.Errorf("%g node-hours, want 1.5", got)
	}
}
