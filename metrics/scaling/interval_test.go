package scaling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Ranks come from tables of the sign test; levels are 1 − 2·Σ C(n,i)/2ⁿ, i < rank.
func TestMedianInterval(t *testing.T) {
	for _, tt := range []struct {
		n, low int // 1-based rank of the lower end; 0: no interval
		level  float64
	}{
		{1, 0, 0}, {5, 0, 0},
		{6, 1, 1 - 2.0/64},
		{8, 1, 1 - 2.0/256},
		{9, 2, 1 - 2*10.0/512},
		{10, 2, 1 - 2*11.0/1024},
		{20, 6, 1 - 2*21700.0/1048576}, // 1+20+190+1140+4845+15504
		{100, 40, 0.9647998},
	} {
		xs := make([]float64, tt.n)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		in, why := medianInterval(xs, 0.95)
		if tt.low == 0 {
			if in != nil || why == "" {
				t.Errorf("n = %d: interval %v, %q; want none and a reason", tt.n, in, why)
			}
			continue
		}
		if in == nil || in.Low != float64(tt.low) || in.High != float64(tt.n+1-tt.low) || math.Abs(in.Level-tt.level) > 1e-6 {
			t.Errorf("n = %d: %+v, want ranks %d to %d at %.7f", tt.n, in, tt.low, tt.n+1-tt.low, tt.level)
		}
	}
	// Each end alone must leave at most 3.85 %: (1+8)/256 = 3.5 % for the second of 8 runs, but (1+6)/64 = 10.9
	// % for the second of 6; (1+12+66)/4096 = 1.9 % for the third of 12.
	for n, low := range map[int]float64{6: 1, 8: 2, 12: 3} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		if in := medianOf(xs, 0.9615).OneSided; in == nil || in.Low != low || in.High != float64(n+1)-low {
			t.Errorf("n = %d: one-sided %+v, want from rank %g", n, in, low)
		}
	}
	if _, why := medianInterval([]float64{1, 2, 3}, 0.99); why != "too few runs for an interval (3 of 8 needed)" {
		t.Errorf("99 %%: %q", why) // 2/2⁷ = 1.6 %, 2/2⁸ = 0.8 %
	}
}

// By hand: two medians of 6 runs, whose intervals are the whole ranges: 8 [4, 16] divided by 2 [1,
// 8]. On the logarithmic scale, the ends are √(ln²2 + ln²4) = ln 2·√5 below the ratio 4, and √(ln²2
// + ln²2) = ln 2·√2 above it.
func TestRatioInterval(t *testing.T) {
	a := medianOf([]float64{4, 4, 8, 8, 16, 16}, 0.95)
	b := medianOf([]float64{1, 1, 2, 2, 8, 8}, 0.95)
	in, why := ratioInterval(a, b)
	want := Interval{Low: 4 * math.Pow(2, -math.Sqrt(5)), High: 4 * math.Pow(2, math.Sqrt2), Level: 1 - 2.0/64}
	if in == nil || cmp.Diff(want, *in, approx) != "" {
		t.Errorf("%+v %s, want %+v", in, why, want)
	}
	// The inverse ratio has the inverse interval.
	back, _ := ratioInterval(b, a)
	if back == nil || cmp.Diff(Interval{Low: 1 / want.High, High: 1 / want.Low, Level: want.Level}, *back, approx) != "" {
		t.Errorf("upside down %+v, want 1/%+v", back, want)
	}
	few := medianOf([]float64{1, 2, 3, 4, 5}, 0.95)
	if in, why := ratioInterval(a, few); in != nil || why != "too few runs for an interval (5 of 6 needed)" {
		t.Errorf("%v, %q", in, why)
	}
	if in, why := ratioInterval(&Estimate{Value: 1e300, Interval: &Interval{Low: 1e300, High: 1e300}}, &Estimate{Value: 1e-300, Interval: &Interval{Low: 1e-300, High: 1e-300}}); in != nil || why != farApart {
		t.Errorf("%v, %q", in, why)
	}
}

// The smallest samples that a test can distinguish: 2/C(2n,n) is 10, 2.9 and 0.8 %.
func TestMinTestRuns(t *testing.T) {
	for confidence, want := range map[float64]int{0.9: 3, 0.95: 4, 0.99: 5} {
		if got := minTestRuns(alpha(confidence)); got != want {
			t.Errorf("%g: %d runs a side, want %d", confidence, got, want)
		}
	}
}

// For a skewed distribution, the intervals contain the true value as often as they state. For a
// median, the coverage is within four standard errors of the attained level, so that an error of
// one rank in either direction fails. For a ratio, whose two intervals have more than the requested
// level, it is at least that, and errors are at least half as frequent as requested. Unequal
// scatter and unequal numbers of runs do not matter.
func TestCoverage(t *testing.T) {
	const trials = 20000
	r := rand.New(rand.NewPCG(7, 8))
	sample := func(n int, median, spread float64) *Estimate {
		xs := lognormal(r, n, median, spread)
		slices.Sort(xs)
		return medianOf(xs, 0.95)
	}
	covers := func(in *Interval, x float64) int {
		if in.Low <= x && x <= in.High {
			return 1
		}
		return 0
	}
	for _, n := range []int{6, 10, 20} {
		covered, level := 0, 0.0
		for range trials {
			in := sample(n, 100, 0.3).Interval
			covered, level = covered+covers(in, 100), in.Level
		}
		got := float64(covered) / trials
		if tolerance := 4 * math.Sqrt(level*(1-level)/trials); math.Abs(got-level) > tolerance || level < 0.95 {
			t.Errorf("median, n = %d: covers %.4f, says %.4f (tolerance %.4f)", n, got, level, tolerance)
		}
	}
	for _, c := range []struct {
		n, m           int
		spreadN, other float64
	}{{6, 6, 0.3, 0.3}, {10, 10, 0.3, 0.3}, {20, 20, 0.3, 0.3}, {20, 6, 0.3, 0.3}, {20, 6, 0.05, 0.3}, {6, 20, 0.05, 0.3}} {
		covered, level := 0, 0.0
		for range trials {
			in, why := ratioInterval(sample(c.n, 180, c.spreadN), sample(c.m, 100, c.other))
			if in == nil {
				t.Fatal(why)
			}
			covered, level = covered+covers(in, 1.8), in.Level
		}
		got := float64(covered) / trials
		t.Logf("ratio, %d runs of spread %g beside %d of %g: covers %.4f, says %.4f", c.n, c.spreadN, c.m, c.other, got, level)
		if got < 0.95 || got > (1+max(level, 0.979))/2+0.005 {
			t.Errorf("ratio, %d runs of spread %g beside %d of %g: covers %.4f, says %.4f", c.n, c.spreadN, c.m, c.other, got, level)
		}
	}
}

// Of twenty runs, two have no value. The interval's ends are the 6th and 15th of twenty (95.9 %).
// If both missing values are the lowest, the 6th is the 4th of the eighteen known; if both are the
// highest, the 15th is the 15th of these. The median of twenty is the mean of the 10th and 11th:
// 10.5 if the two are the highest, and 8.5 if they are the lowest.
func TestCensoredMedian(t *testing.T) {
	var xs []float64
	for i := range 18 {
		xs = append(xs, float64(i+1))
	}
	for better, want := range map[measure.Direction]float64{measure.Lower: 10.5, measure.Higher: 8.5} {
		r, err := ReachOf(xs, nil, 2, better, false, 0)
		e := r.Median
		if err != nil || e == nil || e.Interval == nil || e.Interval.Low != 4 || e.Interval.High != 15 || math.Abs(e.Interval.Level-0.9586) > 1e-4 || e.Value != want || e.Runs != 18 {
			t.Errorf("%v: %+v %v", better, e, err)
		}
	}
}

// For six or eight runs, the ends are the smallest and the largest value, so no value may be
// missing. Otherwise the median is unknown; for a time, it is at least the smallest value.
func TestTooManyMissingValues(t *testing.T) {
	one := 1.0
	for _, tt := range []struct {
		runs, lacking int
		better        measure.Direction
		byNode        bool
		atLeast       *float64
		why           string
	}{
		{7, 1, measure.Lower, false, &one, "1 of 8 runs lack it, too many to leave out: they may be the slow ones"},
		{7, 1, measure.Higher, false, nil, "1 of 8 runs lack it, too many to leave out: they may be the slow ones"},
		{2, 4, measure.Lower, false, &one, "4 of 6 runs lack it, too many to leave out: they may be the slow ones"},
		{18, 2, measure.Lower, true, nil, "2 of 20 runs lack it, too many to leave out: they may be the slow ones"},
		{2, 1, measure.Lower, false, nil, "too few runs for an interval (3 of 6 needed)"},
	} {
		var xs []float64
		for i := range tt.runs {
			xs = append(xs, float64(i+1))
		}
		r, err := ReachOf(xs, nil, tt.lacking, tt.better, tt.byNode, 0)
		if err != nil || r.Median != nil || r.Why != tt.why || (r.AtLeast == nil) != (tt.atLeast == nil) || r.AtLeast != nil && *r.AtLeast != *tt.atLeast {
			t.Errorf("%+v: %+v %v", tt, r, err)
		}
	}
	if r, err := ReachOf([]float64{1, 2, 3, 4, 5, 6}, nil, 0, measure.Lower, false, 0); err != nil || r.Median.Interval == nil || r.Median.Interval.Low != 1 || r.Median.Interval.High != 6 {
		t.Errorf("%+v %v", r, err)
	}
}

// Six copies of one row of a table are not six measurements. Their interval of zero width must not
// look like precision.
func TestEqualFiguresHaveNoInterval(t *testing.T) {
	const doubt = "all runs have exactly the same throughput"
	for _, x := range []float64{100, 101} { // value of the sixth run
		var obs []Observation
		for i := range 6 {
			v := 100.0
			if i == 5 {
				v = x
			}
			obs = append(obs, Observation{Study: "s", Run: fmt.Sprint("s/r", i), Framework: "csv", Workers: 1, Nodes: 1,
				Values: map[string]float64{measure.Throughput: v}})
		}
		curves, err := Analyse(obs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		doubted := slices.ContainsFunc(curves[0].Points[0].Warnings, func(w string) bool { return strings.HasPrefix(w, doubt) })
		if doubted != (x == 100) {
			t.Errorf("sixth run of %g: %q", x, curves[0].Points[0].Warnings)
		}
	}
}

// Of 12 runs, only the middle ones are equal: the 95 % interval of their median is from the 3rd to the 10th value.
func TestEqualMiddle(t *testing.T) {
	var obs []Observation
	for i, v := range []float64{98, 99, 100, 100, 100, 100, 100, 100, 100, 100, 101, 102} {
		obs = append(obs, Observation{Study: "s", Run: fmt.Sprint("s/r", i), Framework: "csv", Workers: 1, Nodes: 1, Values: map[string]float64{measure.Throughput: v}})
	}
	curves, err := Analyse(obs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p := curves[0].Points[0]; !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, "the middle runs have exactly the same throughput") }) {
		t.Errorf("%q", p.Warnings)
	}
}

// A share of errors that is 0 in every run has no ratio to a base, and no drift.
func TestZerosWithoutWarnings(t *testing.T) {
	errors := measure.Measure{Name: "errors", Title: "errors", Better: measure.Lower, Show: measure.Percent}
	var obs []Observation
	for i := range 12 {
		obs = append(obs, Observation{Study: "s", Run: fmt.Sprint("s/r", i), Framework: "csv", Workers: 1 + i/6, Nodes: 1, Reported: []measure.Measure{errors},
			Parameters: map[string]any{"import.format": "csv"}, Values: map[string]float64{"errors": 0}})
	}
	curves, err := Analyse(obs, Options{Measure: errors})
	if err != nil {
		t.Fatal(err)
	}
	c := curves[0]
	for _, p := range c.Points {
		c.Warnings = append(c.Warnings, p.Warnings...)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("%q", c.Warnings)
	}
}
