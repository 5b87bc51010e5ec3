package scaling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// drawn returns the observations of a simulated study: times to a target, and the throughputs of
// runs that reach it.
func drawn(d *simulate.Drawn) []Observation {
	var list []Observation
	for _, r := range d.Runs {
		o := Observation{
			Run: fmt.Sprintf("s/w%d-r%d-a1", r.Count, r.Repeat+1), Study: "s", Point: fmt.Sprint("w", r.Count), Repeat: r.Repeat + 1,
			Framework: "native", Workers: simulate.SampleCounts[r.Count], Nodes: 1, BeganUnix: r.Began,
			Parameters: map[string]any{"workload.scaling": "weak"}, Values: map[string]float64{"to_0.75": r.Seconds},
		}
		if !math.IsInf(r.Seconds, 1) {
			o.Values[measure.Throughput] = 1000 / r.Seconds
		}
		list = append(list, o)
	}
	return list
}

// found counts the results for a ratio over many studies of one family.
type found struct {
	asked, refused, inside int
	why                    map[Refusal]int
	errors, widths         []float64
}

// The ratio of times to a target at two worker counts is right within 2 % in the median. Its
// interval contains the true ratio in 95 % of the studies that have one. The studies vary in the
// runs' scatter, misses, changes of the machine and order of runs. There is no interval if the
// ratio cannot be determined: plan order, medians between two groups of runs, too few runs, or too
// many misses.
//
// With -short, a tenth of the studies is simulated, and the limits allow for the smaller number.
func TestTruthOfRatios(t *testing.T) {
	studies := 1000
	if testing.Short() {
		studies /= 10
	}
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	for i, f := range simulate.SampleFamilies {
		t.Run(f.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 34))
			pairs := [][2]int{{3, 0}, {3, 2}, {2, 0}, {1, 0}}
			of := make([]found, len(pairs))
			for range studies {
				d := f.Draw(r)
				curves, err := Analyse(drawn(d), Options{})
				if err != nil && len(curves) == 0 {
					t.Fatal(err)
				}
				at := map[int]*Summary{}
				for i := range curves[0].Points {
					p := &curves[0].Points[i]
					at[p.Workers] = p.Of("to_0.75")
				}
				for k, pair := range pairs {
					c, truth := &of[k], d.Truth(pair[0], pair[1])
					a, b := at[simulate.SampleCounts[pair[0]]], at[simulate.SampleCounts[pair[1]]]
					ratio := a.Ratio(b)
					c.asked++
					if ratio.Refusal != "" {
						c.refused++
						if c.why == nil {
							c.why = map[Refusal]int{}
						}
						c.why[ratio.Refusal]++
					}
					if ratio.Estimate == nil || ratio.Refusal != "" && ratio.Refusal != FewRuns && ratio.Refusal != Missing {
						continue
					}
					c.errors = append(c.errors, math.Log(ratio.Estimate.Value/truth))
					if in := ratio.Estimate.Interval; in != nil {
						c.widths = append(c.widths, math.Log(in.High/in.Low)/2)
						if in.Low <= truth && truth <= in.High {
							c.inside++
						}
					}
				}
			}
			for k, pair := range pairs {
				c := &of[k]
				given := c.asked - c.refused
				bias, width := 0.0, 0.0
				if len(c.errors) > 0 {
					bias = Middle(c.errors)
				}
				if given > 0 {
					width = Middle(c.widths)
				}
				t.Logf("%d over %d workers: %5.1f %% have an interval, ± %4.1f %%, of these inside %5.1f %%; median error %+4.1f %%; refused %v",
					simulate.SampleCounts[pair[0]], simulate.SampleCounts[pair[1]], percent(given, c.asked), 100*width, percent(c.inside, given), 100*bias, c.why)
				// Three standard errors.
				if least := 0.95*float64(given) - 3*math.Sqrt(0.05*0.95*float64(given)); float64(c.inside) < least {
					t.Errorf("%v: inside in %d of %d", pair, c.inside, given)
				}
				error3 := 0.0
				if n := len(c.errors); n > 0 {
					var off []float64
					for _, e := range c.errors {
						off = append(off, math.Abs(e-bias))
					}
					error3 = 3 * 1.4826 * 1.2533 * Middle(off) / math.Sqrt(float64(n))
				}
				if math.Abs(bias) > 0.02+error3 {
					t.Errorf("%v: the median error is %.1f %%", pair, 100*bias)
				}
			}
		})
	}
}
