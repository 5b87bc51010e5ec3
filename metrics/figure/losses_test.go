package figure

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// learning returns a run whose loss is 3, 2 and 1 after 0, 100 and 200 sequences, one
// second apart. The last one reaches loss 1.5.
func learning(t *testing.T, tokens float64) ([]scaling.Curve, []scaling.Observation) {
	t.Helper()
	o := scaling.Observation{Run: "s/p-r1-a1", Study: "s", Point: "p", Repeat: 1, Kind: "train", Framework: "jax", Workers: 2, Nodes: 1,
		Values: map[string]float64{"throughput": 100, "to_loss_1.5": 2, "to_perplexity_2": math.Inf(1)}}
	if tokens > 0 {
		o.Values["tokens_per_sample"] = tokens
	}
	for i, loss := range []float64{3, 2, 1} {
		o.Evaluations = append(o.Evaluations, scaling.Evaluation{Seconds: float64(i), Epoch: i, Samples: int64(100 * i), Accuracy: 0.3, Loss: &loss})
	}
	obs := []scaling.Observation{o}
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return curves, obs
}

func TestLosses(t *testing.T) {
	for name, c := range map[string]struct {
		tokens float64
		line   []XY
		x, y   string
		target float64
		end    MarkKind
	}{
		"loss-time":          {128, []XY{{0, 3}, {1, 2}, {2, 1}}, "training time (s)", "test loss", 1.5, End},
		"loss-samples":       {0, []XY{{0, 3}, {100, 2}, {200, 1}}, "samples trained on", "test loss", 1.5, End},
		"perplexity-time":    {128, []XY{{0, math.Exp(3)}, {1, math.Exp(2)}, {2, math.E}}, "training time (s)", "test perplexity", 2, Missed},
		"perplexity-samples": {128, []XY{{0, math.Exp(3)}, {12800, math.Exp(2)}, {25600, math.E}}, "tokens trained on", "test perplexity", 2, Missed},
	} {
		t.Run(name, func(t *testing.T) {
			curves, obs := learning(t, c.tokens)
			f, err := Draw(name, Data{Curves: curves, Observations: obs}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			ch := f.panels[0].chart
			if ch.x.title != c.x || ch.y.title != c.y || ch.y.log != strings.HasPrefix(name, "perplexity") {
				t.Errorf("axes %q, %q, log %v", ch.x.title, ch.y.title, ch.y.log)
			}
			found := map[MarkKind]int{}
			for _, m := range f.Marks() {
				found[m.Kind]++
				switch m.Kind {
				case Trace:
					for i, p := range m.Points {
						if len(m.Points) != 3 || math.Abs(p.X-c.line[i].X) > 1e-9 || math.Abs(p.Y-c.line[i].Y) > 1e-9 {
							t.Errorf("line %v, want %v", m.Points, c.line)
							break
						}
					}
				case Target:
					if m.Points[0].Y != c.target {
						t.Errorf("target at %v, want %g", m.Points, c.target)
					}
				}
			}
			if found[Trace] != 1 || found[Target] != 1 || found[c.end] != 1 {
				t.Errorf("marks %v, want a line, a target and its end as %s", found, c.end)
			}
		})
	}
}

func TestNoLosses(t *testing.T) {
	curves, obs := learning(t, 0)
	for i := range obs[0].Evaluations {
		obs[0].Evaluations[i].Loss = nil
	}
	if _, err := Draw("loss-time", Data{Curves: curves, Observations: obs}, Options{}); err == nil || !strings.Contains(err.Error(), "no run has an evaluation with a loss") {
		t.Errorf("error %v", err)
	}
}
