package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// median of an ascending, non-empty sample. The mean of the middle two cannot
// overflow, nor vanish; with +Inf for one of them it is +Inf.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	a, b := sorted[n/2-1], sorted[n/2]
	if math.IsInf(b, 1) {
		return b
	}
	return a + (b-a)/2
}

// alpha is what may lie outside the interval. 1 − 0.9 in floating point is a
// hair below a tenth, which must not cost an interval that attains exactly 0.9.
func alpha(confidence float64) float64 { return (1 - confidence) * (1 + 1e-12) }

func insufficient(have, need int) string {
	return fmt.Sprintf("insufficient runs for an interval (%d of %d)", have, need)
}

// medianInterval is the exact, distribution-free confidence interval of a
// median: the order statistics X(l) and X(n+1−l) with the largest l whose
// binomial tails, 2·P(B ≤ l−1) with B ~ Bin(n, ½), leave at least the level
// asked for (David & Nagaraja, Order Statistics, 7.1). 95 % needs 6 runs; it
// attains 96.9, 97.9 and 95.9 % at 6, 10 and 20.
//
// It is worked out here rather than by stats.QuantileCI, which leaves the
// exact distribution for the normal one above 30 runs and trims one side where
// that is enough: an interval that names the level attained should be central
// and exact.
func (an *analysis) medianInterval(sorted []float64) (*Interval, string) {
	n := len(sorted)
	alpha := alpha(an.confidence)
	below := stats.BinomialDist{N: n, P: 0.5}
	l := 0 // 1-based order statistic of the lower end
	for l < n/2 && 2*below.CDF(float64(l)) <= alpha {
		l++
	}
	if l == 0 {
		// Even the whole range leaves 2·½ⁿ outside.
		return nil, insufficient(n, int(math.Ceil(1-math.Log2(alpha)-1e-9)))
	}
	return &Interval{Low: sorted[l-1], High: sorted[n-l], Level: 1 - 2*below.CDF(float64(l-1))}, ""
}

// exactRuns is the largest sample for which the exact distribution of the
// Mann–Whitney U is used; golang.org/x/perf draws the line at the same size.
const exactRuns = 50

// cut says where to cut the ordered ratios of two samples of given sizes.
type cut struct {
	rank  int     // 1-based rank of the lower end; 0: too few runs at this level
	level float64 // attained
}

// ratioInterval is a confidence interval for the factor between two samples,
// xs over ys: all n·m ratios in order, cut where the two-sided Mann–Whitney
// test would begin to reject that factor (Hodges & Lehmann 1963; Hollander &
// Wolfe, Nonparametric Statistical Methods, 4.3, on the logarithms). It
// supposes that the two samples are alike but for the factor, which is weaker
// than normal noise and kind to outliers. With ties it is conservative.
//
// Each side needs as many runs as two equal samples would: 4 at 95 %.
func (an *analysis) ratioInterval(xs, ys []float64) (*Interval, string) {
	n, m := len(xs), len(ys)
	if need := minRatioRuns(alpha(an.confidence)); min(n, m) < need {
		return nil, insufficient(min(n, m), need)
	}
	c, ok := an.tests[[2]int{n, m}]
	if !ok {
		c = mannWhitneyCut(n, m, an.confidence)
		an.tests[[2]int{n, m}] = c
	}
	ratios := make([]float64, 0, n*m)
	for _, x := range xs {
		for _, y := range ys {
			ratios = append(ratios, x/y)
		}
	}
	slices.Sort(ratios)
	low, high := ratios[c.rank-1], ratios[n*m-c.rank]
	if low == 0 || math.IsInf(high, 1) {
		return nil, "throughputs lie too far apart for an interval"
	}
	return &Interval{Low: low, High: high, Level: c.level}, ""
}

// minRatioRuns is the smallest n for which two samples of n can reject at
// alpha at all: 2/C(2n, n) ≤ alpha.
func minRatioRuns(alpha float64) int {
	n, arrangements := 1, 2.0
	for 2/arrangements > alpha {
		n++
		arrangements *= 2 * float64(2*n-1) / float64(n)
	}
	return n
}

// mannWhitneyCut finds the largest k with P(U ≤ k) ≤ α/2; the interval is then
// bounded by the ratios of rank k+1 from either end.
func mannWhitneyCut(n, m int, confidence float64) cut {
	tail := alpha(confidence) / 2
	mu := float64(n) * float64(m) / 2
	sigma := math.Sqrt(mu * float64(n+m+1) / 6)
	// The normal approximation with continuity correction; for small samples
	// only where the search begins.
	normal := stats.NormalDist{Mu: mu, Sigma: sigma}
	k := math.Floor(normal.InvCDF(tail) - 0.5)
	cdf := func(u float64) float64 { return normal.CDF(u + 0.5) }
	if n <= exactRuns && m <= exactRuns {
		cdf = stats.UDist{N1: n, N2: m}.CDF
		k = max(k, 0)
		for k >= 0 && cdf(k) > tail {
			k--
		}
		for cdf(k+1) <= tail {
			k++
		}
	}
	return cut{rank: int(k) + 1, level: 1 - 2*cdf(k)}
}
