package advice

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// The samples to the target can be given in three forms: recorded at each evaluation; steps and a
// global batch, as in a table; or rate and time of a whole training that ended at its own target,
// as in MLPerf. All give the same times, also beyond the data.
func TestSamplesInEveryForm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 77))
	c, counts := simulate.Scenarios[0].Draw(r)
	if c.Strong {
		t.Fatal("the first scenario is weak scaling no longer")
	}
	tr := &training{c: c, least: 1e9, critical: float64(c.Batch * counts[len(counts)-1])}
	recorded := tr.observe(r, counts)
	forms := map[string]func(*scaling.Observation){
		"recorded": func(*scaling.Observation) {},
		"steps": func(o *scaling.Observation) {
			e := o.Evaluations[0]
			e.Step, e.Samples = int(math.Round(float64(e.Samples)/float64(tr.batch(o.Workers)))), -1
			o.Evaluations = []scaling.Evaluation{e}
		},
		"whole": func(o *scaling.Observation) {
			seconds := o.Values["to_0.75"]
			o.Values = map[string]float64{"throughput": o.Values["throughput"], "to_target": seconds,
				"train_seconds": seconds, "end_to_end": float64(o.Evaluations[0].Samples) / seconds}
			o.Evaluations = nil
		},
	}
	got := map[string]*Advice{}
	for name, change := range forms {
		list := make([]scaling.Observation, len(recorded))
		for i, o := range recorded {
			o.Parameters = map[string]any{"workload.scaling": "weak", "global_batch": o.Parameters["global_batch"], "workers": int64(o.Workers)}
			change(&o)
			list[i] = o
		}
		curves, err := scaling.Analyse(list, scaling.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got[name], err = Advise(curves[0], list, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	beyond := 0
	for i, want := range got["recorded"].Candidates {
		for name, a := range got {
			c := a.Candidates[i]
			if c.Workers != want.Workers || (c.Training == nil) != (want.Training == nil) {
				t.Errorf("%s, %d workers: %+v, want %+v", name, c.Workers, c.Training, want.Training)
				continue
			}
			if c.Training != nil && math.Abs(c.Training.Value/want.Training.Value-1) > 1e-3 {
				t.Errorf("%s, %d workers: %g s, want %g s", name, c.Workers, c.Training.Value, want.Training.Value)
			}
			if c.Samples == nil || math.Abs(c.Samples.Value/want.Samples.Value-1) > 1e-3 {
				t.Errorf("%s, %d workers: samples %+v, want %+v", name, c.Workers, c.Samples, want.Samples)
			}
			if c.Training != nil && c.Basis != Measured {
				beyond++
			}
		}
	}
	if beyond == 0 {
		t.Error("no time beyond the data, whose samples decide it")
	}
}
