package summary

import (
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A figure reported during training is kept if a target refers to it and it belongs to one step or epoch.
func TestState(t *testing.T) {
	loss := measure.Target{Of: measure.OfLoss, Value: 1}
	for _, c := range []struct {
		name    string
		targets []measure.Target
		figure  metrics.Figure
		kept    bool
	}{
		{"at a step", []measure.Target{loss}, metrics.Figure{Name: metrics.FigureLoss, At: map[string]any{"step": 1.0}}, true},
		{"at an epoch", []measure.Target{loss}, metrics.Figure{Name: metrics.FigureEvalLoss, At: map[string]any{"epoch": 1.0}}, true},
		{"of the run", []measure.Target{loss}, metrics.Figure{Name: metrics.FigureLoss}, false},
		{"at something else", []measure.Target{loss}, metrics.Figure{Name: metrics.FigureLoss, At: map[string]any{"samples": 1.0}}, false},
		{"at two things", []measure.Target{loss}, metrics.Figure{Name: metrics.FigureLoss, At: map[string]any{"step": 1.0, "epoch": 1.0}}, false},
		{"no target of it", []measure.Target{{Of: measure.OfAccuracy, Value: 0.5}}, metrics.Figure{Name: metrics.FigureLoss, At: map[string]any{"step": 1.0}}, false},
		{"no target", nil, metrics.Figure{Name: metrics.FigureLoss, At: map[string]any{"step": 1.0}}, false},
		{"a perplexity", []measure.Target{{Of: measure.OfPerplexity, Value: 20}}, metrics.Figure{Name: measure.OfPerplexity, At: map[string]any{"step": 1.0}}, true},
		{"a loss for a perplexity", []measure.Target{{Of: measure.OfPerplexity, Value: 20}}, metrics.Figure{Name: metrics.FigureEvalLoss, At: map[string]any{"step": 1.0}}, true},
		{"a user's figure", []measure.Target{{Of: "bleu", Value: 20}}, metrics.Figure{Name: "bleu", At: map[string]any{"epoch": 2.0}}, true},
	} {
		in := Input{Targets: c.targets}
		c.figure.Value = 7
		in.State(12, c.figure)
		if c.kept != (len(in.Stated) == 1) || c.kept && in.Stated[0] != (Stated{12, c.figure.Name, 7}) {
			t.Errorf("%s: %+v, want kept: %v", c.name, in.Stated, c.kept)
		}
	}
}
