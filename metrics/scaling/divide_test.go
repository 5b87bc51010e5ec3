package scaling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/worktest"
)

// The combinations equal those from comparing every run with every other. Two sets of facts agree
// if no fact that both have differs; of two that agree, the one with more facts is kept.
func TestCombined(t *testing.T) {
	fits := func(have, want []string) bool {
		for i := range have {
			if have[i] != "" && have[i] != want[i] {
				return false
			}
		}
		return true
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		mixed := []fingerprint.Varying{{Field: "a"}, {Field: "b"}, {Field: "c"}}
		s := series{parameters: map[string]any{}}
		var have []facts
		var want [][]string
		for range 1 + r.IntN(12) {
			p := fingerprint.Print{}
			for _, v := range mixed {
				switch n := r.IntN(5); n {
				case 0:
				case 1, 2:
					p[v.Field] = ""
				default:
					p[v.Field] = fmt.Sprint(n)
				}
			}
			f := factsOf(p, mixed)
			have, s.runs = append(have, f), append(s.runs, &Observation{Fingerprint: p})
			if !slices.ContainsFunc(want, func(c []string) bool { return fits(f.values, c) }) {
				want = slices.DeleteFunc(want, func(c []string) bool { return fits(c, f.values) })
				want = append(want, f.values)
			}
		}
		var got [][]string
		for _, c := range combined(have) {
			got = append(got, c.values)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", have, diff)
		}
		for _, part := range s.divide() {
			if part.divided == nil {
				continue
			}
			var c []string
			varying, _ := fingerprint.Vary(printsOf(s.runs))
			for _, v := range varying {
				c = append(c, part.parameters[ranOn+v.Field].(string))
			}
			var runs []*Observation
			for _, o := range s.runs {
				if fits(factsOf(o.Fingerprint, varying).values, c) {
					runs = append(runs, o)
				}
			}
			if !slices.Equal(runs, part.runs) {
				t.Fatalf("%v: %d runs, want %d", c, len(part.runs), len(runs))
			}
		}
	}
}

func printsOf(runs []*Observation) []fingerprint.Print {
	var list []fingerprint.Print
	for _, o := range runs {
		list = append(list, o.Fingerprint)
	}
	return list
}

// The work to divide runs is proportional to their number, even if every run has another
// fingerprint.
func TestDivideIsLinear(t *testing.T) {
	worktest.New(t).Linear(t, 200, func(n int) {
		s := series{parameters: map[string]any{}}
		for i := range n {
			p := fingerprint.Print{"commit": fmt.Sprint(i), "driver": fmt.Sprint(i % 3)}
			if i%4 == 0 {
				p["driver"] = ""
			}
			s.runs = append(s.runs, &Observation{Fingerprint: p})
		}
		if parts := s.divide(); len(parts) != n {
			t.Errorf("%d parts of %d runs", len(parts), n)
		}
	})
}

// Twice the workers can double a rate or halve the time of a run, so these have an efficiency.
// Shares and values of a single step have no efficiency: a constant step time is not an efficiency of 50 %.
func TestWhatHasAnEfficiency(t *testing.T) {
	var obs []Observation
	for _, workers := range []int{1, 2} {
		obs = append(obs, Observation{Run: fmt.Sprint(workers), Point: fmt.Sprint(workers), Repeat: 1, Kind: "train", Framework: "native", Workers: workers, Nodes: 1,
			Values:   map[string]float64{measure.Throughput: 100 * float64(workers), measure.FinalAccuracy: 0.8, measure.RunSeconds: 60 / float64(workers), measure.DataWait: 0.1, measure.StepP50: 0.1, measure.InitSeconds: 5, "score": 9, "loss": 2, "tokens": 10 * float64(workers)},
			Reported: []measure.Measure{measure.Reported("score", "J", measure.Higher), measure.Reported("loss", "", measure.Lower), measure.Reported("tokens", "", measure.Higher)}})
	}
	curves, err := Analyse(obs, Options{})
	if err != nil || len(curves) != 1 {
		t.Fatal(err, len(curves))
	}
	at := &curves[0].Points[1]
	for name, want := range map[string]bool{measure.Throughput: true, measure.RunSeconds: true, measure.FinalAccuracy: false, measure.DataWait: false, measure.StepP50: false, measure.InitSeconds: false,
		"score": false, "loss": false, "tokens": true} {
		s := at.Of(name)
		if e := s.Efficiency(); (e != nil) != want || want && e.Value != 1 {
			t.Errorf("efficiency of %s: %+v", name, e)
		}
		if serial, _ := s.KarpFlatt(); (serial != nil) != want {
			t.Errorf("serial fraction of %s: %v", name, serial)
		}
		if s.Gain() == nil {
			t.Errorf("%s has no ratio to the base", name)
		}
	}
}
