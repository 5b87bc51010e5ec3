package scaling

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Six equal runs do not show how much they scatter. Neither their median nor a ratio to it has an
// interval, with any way of computing it, and the reason is the same.
func TestEqualRunsHaveNoInterval(t *testing.T) {
	obs := join(runs(1, 970, 970, 970, 970, 970, 970), runs(2, 1900, 1910, 1890, 1905, 1895, 1900))
	p := analyse(t, obs, Options{})[0].Points
	equal, varying := p[0].Of(measure.Throughput), p[1].Of(measure.Throughput)
	if m := equal.Median; m.Value != 970 || m.Interval != nil || m.Why != AllEqual || !equal.Constant() {
		t.Errorf("median %+v", m)
	}
	if m := varying.Median; m.Interval == nil || varying.Constant() {
		t.Errorf("runs that differ: %+v", m)
	}
	for _, r := range []*Ratio{varying.Ratio(equal), equal.Ratio(varying)} {
		if r.Refusal != Equal || r.Estimate.Interval != nil || r.Why != AllEqual {
			t.Errorf("ratio %+v, %+v", r, r.Estimate)
		}
	}
	if e := varying.Efficiency(); e.Interval != nil || e.Why != AllEqual {
		t.Errorf("efficiency %+v", e)
	}
	if row := Rows(analyse(t, obs, Options{}))[0]; row.ThroughputLow != nil || row.ThroughputHigh != nil {
		t.Errorf("row %+v", row)
	}
	if !slices.ContainsFunc(p[0].Warnings, func(w string) bool { return strings.Contains(w, "so there is no interval") }) {
		t.Errorf("warnings %q", p[0].Warnings)
	}
	c, err := Compare([]float64{970, 970, 970, 970, 970, 970}, []float64{960, 961, 962, 963, 964, 965}, 0)
	if err != nil || c.Ratio.Interval != nil || c.Ratio.Why != AllEqual {
		t.Errorf("%+v %v", c, err)
	}
	// Nor do 10 runs of which the middle 8 are equal, or four.
	if m := medianOf([]float64{1, 5, 5, 5, 5, 5, 5, 5, 5, 9}, 0.95); !m.Constant() {
		t.Errorf("equal in the middle: %+v", m)
	}
	few := join(runs(1, 970, 970, 970, 970), runs(2, 1900, 1910, 1890, 1905))
	p = analyse(t, few, Options{FewRuns: true})[0].Points
	if r := p[1].Of(measure.Throughput).Ratio(p[0].Of(measure.Throughput)); r.Estimate.Interval != nil {
		t.Errorf("four equal runs: %+v", r.Estimate.Interval)
	}
	// No errors in any run is exact.
	if m := medianOf([]float64{0, 0, 0, 0, 0, 0}, 0.95); m.Interval == nil {
		t.Errorf("zeros: %+v", m)
	}
}
