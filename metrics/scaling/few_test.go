package scaling

import (
	"fmt"
	"math"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Four runs at each of two counts: the ratios of two runs range from 180/102 to 190/98. Two equal
// points are completely separated in 2 of 70 orders.
func TestRatioOfFewRuns(t *testing.T) {
	runs := func(n int, values ...float64) (list []Observation) {
		for i, x := range values {
			list = append(list, Observation{Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprint(n), Repeat: i + 1, Framework: "native",
				Workers: n, Nodes: n, BeganUnix: 1.79e9 + 600*float64(i) + float64(300*(n-1)),
				Parameters: map[string]any{"workers": int64(n)}, Values: map[string]float64{measure.Throughput: x}})
		}
		return list
	}
	obs := append(runs(1, 100, 98, 102, 100), runs(2, 180, 186, 190, 184)...)
	ratio := func(obs []Observation, o Options) *Ratio {
		curves, err := Analyse(obs, o)
		if err != nil {
			t.Fatal(err)
		}
		return curves[0].Points[1].Of(measure.Throughput).Ratio(curves[0].Points[0].Of(measure.Throughput))
	}
	if r := ratio(obs, Options{}); r.Refusal != FewRuns || r.Estimate.Interval != nil {
		t.Errorf("usually few runs have no interval: %+v", r)
	}
	r := ratio(obs, Options{FewRuns: true, Confidence: 0.96})
	if r.Refusal != "" || r.Why != "" || r.Estimate.Value != 1.85 {
		t.Fatalf("%+v, %+v", r, r.Estimate)
	}
	in := r.Estimate.Interval
	if math.Abs(in.Low-180.0/102) > 1e-12 || math.Abs(in.High-190.0/98) > 1e-12 || math.Abs(in.Level-(1-2.0/70)) > 1e-12 {
		t.Errorf("%+v", in)
	}
	if r := ratio(append(runs(1, 100, 98, 102), runs(2, 180, 186, 190, 184)...), Options{FewRuns: true}); r.Refusal != FewRuns || r.Estimate.Interval != nil {
		t.Errorf("3 runs are too few: %+v", r)
	}
}
