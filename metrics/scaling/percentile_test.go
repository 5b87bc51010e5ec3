package scaling

import (
	"math"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// The logarithms of 20 runs are equally far apart: their standard deviation is 5.916 times the distance.
// At 0.03 it is 0.1775, and a run lies below the true percentile with Φ(0.1775) = 0.5704. Then 15 or
// more of 20 do in 7.9 % of studies, 16 or more in 2.9 %, and 5 or fewer in 0.4 %: the upper end is the
// 16th instead of the 15th, and the level for a median 1 - 2.07 % - 0.59 %. At 0.001 they are 2.2 and
// 2.0 %, as before. With 6 runs, the upper end is the largest.
func TestAllowForSkew(t *testing.T) {
	for _, c := range []struct {
		runs, lacking int
		apart         float64
		low, high     int // ranks; 0: no interval
		level         float64
	}{
		{20, 0, 0.03, 6, 16, 0.9734},
		{20, 0, 0.001, 6, 15, 0.9586},
		{6, 0, 0.03, 1, 6, 0.9688},
		{15, 5, 0.03, 1, 0, 0}, // too many lack it: the 16th of 20 is one of them
	} {
		xs := make([]float64, c.runs)
		for i := range xs {
			xs[i] = 100 * math.Exp(c.apart*float64(i))
		}
		r, err := ReachOf(xs, nil, c.lacking, measure.Lower, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := slices.Clone(xs)
		slices.Reverse(shuffled)
		r.AllowForSkew(shuffled, c.lacking, 0)
		in := r.Median.Interval
		if c.high == 0 {
			if in != nil || r.AtLeast == nil || *r.AtLeast != xs[c.low-1] || r.Median.Why == "" {
				t.Errorf("%+v: %+v, %+v", c, r, in)
			}
			continue
		}
		if in == nil || in.Low != xs[c.low-1] || in.High != xs[c.high-1] || math.Abs(in.Level-c.level) > 1e-4 {
			t.Errorf("%+v: %+v", c, in)
		}
	}
}
