package scaling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// trial counts the results for the speedup at the largest count over many studies.
type trial struct {
	asked  int
	enough int // studies with 6 runs at both counts
	given  int // studies with an interval
	inside int // intervals that contain the true value
	said   int // studies with a warning
	silent int // studies whose interval misses the true value, without a warning
}

func (c *trial) judge(curves []Curve, s *simulate.Study) {
	last := len(s.Counts) - 1
	curve := curves[0]
	p := curve.Points[last]
	g := p.Of(measure.Throughput).Gain()
	said := slices.ContainsFunc(curve.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "drift:") || strings.HasPrefix(w, "runs on node")
	})
	c.asked++
	if min(s.Runs[0], s.Runs[last]) >= 6 {
		c.enough++
	}
	if said {
		c.said++
	}
	if g.Interval == nil {
		return
	}
	c.given++
	if truth := s.Truth(s.Counts[last]); g.Interval.Low <= truth && truth <= g.Interval.High {
		c.inside++
	} else if !said {
		c.silent++
	}
}

func observed(made []simulate.Made) []Observation {
	var list []Observation
	for _, m := range made {
		list = append(list, Observation{
			Run: fmt.Sprintf("s/w%d-r%d-a1", m.Workers, m.Repeat), Study: "s", Point: fmt.Sprint("w", m.Workers), Repeat: m.Repeat,
			Framework: "native", Workers: m.Workers, Nodes: m.Workers, Parameters: map[string]any{"workload.scaling": "weak"},
			BeganUnix: m.Began, Hosts: m.Nodes, Values: map[string]float64{measure.Throughput: m.Throughput},
		})
	}
	return list
}

// On machines that drift, have slow nodes, or are disturbed, a speedup's interval contains the true
// value in 95 % of the studies that have one. This holds for any order, number and scatter of the
// runs. If the order of the runs cannot distinguish a drift from a speedup, there is no interval.
// On a stable machine with runs in blocks, every study with enough runs has an interval, and few
// have warnings.
//
// With -short, a tenth of the studies is simulated, and the limits allow for the smaller
// number.
func TestTruth(t *testing.T) {
	studies := 1000
	if testing.Short() {
		studies /= 10
	}
	percent := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
	for i, f := range simulate.Families() {
		t.Run(f.Name(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2026))
			var c trial
			for range studies {
				s := f.Draw(r)
				curves, err := Analyse(observed(s.Draw(r)), Options{})
				if err != nil {
					t.Fatal(err)
				}
				c.judge(curves, s)
			}
			t.Logf("runs enough in %.1f %%, interval in %.1f %%, of these inside %.1f %%; warned in %.1f %%; silently wrong in %.1f %%",
				percent(c.enough, c.asked), percent(c.given, c.asked), percent(c.inside, c.given), percent(c.said, c.asked), percent(c.silent, c.asked))
			// Three standard errors below 95 %.
			least := func(n int) float64 { return 0.95*float64(n) - 3*math.Sqrt(0.05*0.95*float64(n)) }
			if float64(c.inside) < least(c.given) {
				t.Errorf("inside in %d of %d", c.inside, c.given)
			}
			ordered := f.Order == simulate.Planned || f.Order == simulate.Appended
			if ordered && float64(c.asked-c.given) < least(c.asked) {
				t.Errorf("%d of %d have an interval although their order tells nothing", c.given, c.asked)
			}
			if !ordered && f.Machine == "even machine" {
				if float64(c.given) < least(c.enough) {
					t.Errorf("an interval in %d of %d that have runs enough", c.given, c.enough)
				}
				if float64(c.asked-c.said) < least(c.asked) {
					t.Errorf("warned in %d of %d", c.said, c.asked)
				}
			}
		})
	}
}
