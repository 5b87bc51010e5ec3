package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// A Comparison is the result of comparing two samples of runs.
type Comparison struct {
	// Ratio is the first sample's median divided by the second's. Its interval is computed from
	// the intervals of the two medians.
	Ratio Estimate
	// P is the two-sided p-value of the Mann–Whitney U test that both samples come from the
	// same distribution; nil if it cannot be computed (see WhyNoP). It is exact up to 50
	// runs per sample, 25 with ties (go-moremath, which golang.org/x/perf/benchmath uses).
	P      *float64
	WhyNoP string
}

// Compare compares two samples of positive values. Confidence is the level of the interval;
// 0 means 0.95. At 95 %, the interval needs 6 runs per sample and the p-value 4, since
// fewer can never differ at that level.
func Compare(xs, ys []float64, confidence float64) (Comparison, error) {
	confidence, err := level(confidence)
	if err != nil {
		return Comparison{}, err
	}
	for _, sample := range [][]float64{xs, ys} {
		if len(sample) == 0 {
			return Comparison{}, fmt.Errorf("a comparison needs at least one run a side; there are %d and %d", len(xs), len(ys))
		}
		for _, x := range sample {
			if !isRate(x) {
				return Comparison{}, fmt.Errorf("%g cannot be compared as a ratio; values are positive and finite", x)
			}
		}
	}
	xs, ys = slices.Sorted(slices.Values(xs)), slices.Sorted(slices.Values(ys))
	c := Comparison{Ratio: Estimate{Value: middle(xs) / middle(ys), Runs: min(len(xs), len(ys))}}
	if !isRate(c.Ratio.Value) {
		return Comparison{}, fmt.Errorf("medians of %g and %g lie too far apart to be compared", middle(xs), middle(ys))
	}
	c.Ratio.Interval, c.Ratio.Why = ratioInterval(medianOf(xs, confidence), medianOf(ys, confidence))
	if need := minTestRuns(alpha(confidence)); min(len(xs), len(ys)) < need {
		c.WhyNoP = fmt.Sprintf("too few runs for a test (%d of %d needed)", min(len(xs), len(ys)), need)
		return c, nil
	}
	test, err := stats.MannWhitneyUTest(xs, ys, stats.LocationDiffers)
	if err != nil { // all values are equal
		c.WhyNoP = AllEqual
		return c, nil
	}
	c.P = new(math.Min(test.P, 1))
	return c, nil
}
