package scaling

import (
	"math"
	"testing"
)

// The throughput doubles every 100 s. Two runs that began together have no slope, and a missed
// target has none either.
func TestSlopeOf(t *testing.T) {
	run := func(began, value float64) made { return made{value, &Observation{BeganUnix: began}} }
	want := math.Ln2 / 100
	for name, points := range map[string][][]made{
		"two runs":        {{run(0, 10), run(100, 20)}},
		"two points":      {{run(0, 10), run(100, 20)}, {run(50, 3), run(250, 12)}},
		"begun together":  {{run(0, 10), run(0, 11), run(0, 9)}, {run(50, 3), run(250, 12)}},
		"a missed target": {{run(0, 10), run(100, 20), run(200, math.Inf(1))}},
		"missed at first": {{run(0, math.Inf(1)), run(100, 20), run(200, 40)}},
	} {
		if got := slopeOf(points); !(math.Abs(got-want) < 1e-12) {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
}
