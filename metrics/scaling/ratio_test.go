package scaling

import (
	"fmt"
	"math"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// timed returns runs at a worker count, one per hour from begin on. They take these seconds to an
// accuracy of 0.75, after 10 s of initialisation.
func timed(workers int, begin float64, seconds ...float64) []Observation {
	var list []Observation
	for i, x := range seconds {
		list = append(list, Observation{
			Run: fmt.Sprintf("s/w%d-r%d-a1", workers, i+1), Study: "s", Point: fmt.Sprint("w", workers), Repeat: i + 1,
			Framework: "native", Workers: workers, Nodes: workers, BeganUnix: begin + 3600*float64(i),
			Values: map[string]float64{"to_0.75": x, measure.InitSeconds: 10},
		})
	}
	return list
}

func TestRatio(t *testing.T) {
	inf := math.Inf(1)
	one := func(workers int, begin float64) []Observation {
		return timed(workers, begin, 90, 90.9, 89.1, 89.1, 90.9, 90)
	}
	for name, c := range map[string]struct {
		a, b    []Observation // at 1 and 2 workers
		measure string
		value   float64 // 0: none
		refusal Refusal
		order   Order
	}{
		// 90 s over 40 s; with 10 s of initialisation each, 100 over 50.
		"training clock": {one(1, 1000), timed(2, 1600, 40, 40.4, 39.6, 39.6, 40.4, 40), "to_0.75", 2.25, "", Interleaved},
		"from the start": {one(1, 1000), timed(2, 1600, 40, 40.4, 39.6, 39.6, 40.4, 40), "start_to_0.75", 2, "", Interleaved},
		"half miss":      {one(1, 1000), timed(2, 1600, 40, 40, 40, inf, inf, inf), "to_0.75", 0, HalfMiss, Interleaved},
		"no runs":        {one(1, 1000), timed(2, 1600), "to_0.75", 0, NoRuns, ""},
		"plan order":     {one(1, 1000), timed(2, 1e6, 40, 40.4, 39.6, 39.6, 40.4, 40), "to_0.75", 2.25, PlanOrder, MadeApart},
		"unknown order":  {one(1, -3600), timed(2, 1600, 40, 40.4, 39.6, 39.6, 40.4, 40), "to_0.75", 2.25, "", OrderUnknown},
		"equal runs":     {one(1, 1000), timed(2, 1600, 40, 40, 40, 40, 40, 40), "to_0.75", 2.25, Equal, Interleaved},
		"few runs":       {one(1, 1000), timed(2, 1600, 40, 40.4, 39.6, 40), "to_0.75", 2.25, FewRuns, ""},
	} {
		curves, _ := Analyse(append(c.a, c.b...), Options{})
		points := curves[0].Points
		of := func(workers int) *Summary {
			for i := range points {
				if p := &points[i]; p.Workers == workers {
					if c.measure == "to_0.75" {
						return p.Of(c.measure)
					}
					return p.FromStart("to_0.75")
				}
			}
			return &Summary{}
		}
		r := of(2).Ratio(of(1))
		if value := r.Estimate.at(); math.Abs(value-c.value) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, value, c.value)
		}
		if r.Refusal != c.refusal || (r.Refusal == "") != (r.Why == "") || c.order != "" && r.Order != c.order {
			t.Errorf("%s: refused for %q (%s), order %s; want %q, %s", name, r.Refusal, r.Why, r.Order, c.refusal, c.order)
		}
	}
}

func (e *Estimate) at() float64 {
	if e == nil {
		return 0
	}
	return e.Value
}

func TestScatter(t *testing.T) {
	for _, test := range []struct {
		xs   []float64
		want float64
	}{
		{[]float64{5}, 0},
		{[]float64{1, 2, 6}, 14}, // about 3: 4 + 1 + 9
	} {
		if got := scatter(test.xs); got != test.want {
			t.Errorf("scatter of %v is %v, want %v", test.xs, got, test.want)
		}
	}
}
