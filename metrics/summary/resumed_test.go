package summary

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// A run that resumed from a checkpoint keeps the results of its own steps. Times since the
// start of the training are unknown, so targets are neither reached nor missed.
func TestResumed(t *testing.T) {
	at := func(s float64) *float64 { return &s }
	in := Input{Kind: "train", Workers: 1, Targets: []measure.Target{measure.Accuracy(0.5), measure.Accuracy(0.9)},
		Ranks:       []Rank{{TrainTime: at(1), StepsTime: at(21)}},
		Evaluations: []Evaluation{{Time: 21, Epoch: 1, Step: 20, Accuracy: 0.75}},
		Figures: []metrics.Figure{{Name: metrics.FigureRunSeconds, Value: 22, Unit: "s"}, {Name: metrics.FigureToTarget, Value: 20, Unit: "s"},
			{Name: "time_to_train", Value: 20, Unit: "s"}, {Name: "images", Value: 7}}}
	for i := range 20 {
		in.Steps = append(in.Steps, Step{Index: i, Duration: 1, Mean: 1, Samples: 8})
	}
	whole := Summarize(in)
	in.Figures = append(in.Figures, metrics.Figure{Name: metrics.FigureResumed, Value: 1})
	r := Summarize(in)
	for _, name := range []string{"train_seconds", "init_seconds", "run_seconds", "to_target", "to_0.5", "to_0.9", "time_to_train"} {
		if _, had := whole.Values[name]; !had {
			t.Errorf("%s is not even there without a checkpoint", name)
		}
		if v, has := r.Values[name]; has || r.Why[name] != measure.WhyResumed {
			t.Errorf("%s is %v, why %q", name, v, r.Why[name])
		}
	}
	for _, name := range []string{"throughput", "step_p50", "final_accuracy", "images"} {
		if r.Values[name] != whole.Values[name] || r.Values[name] == 0 {
			t.Errorf("%s is %v, want %v", name, r.Values[name], whole.Values[name])
		}
	}
	if len(r.Evaluations) > 0 || len(whole.Evaluations) != 1 || !strings.Contains(strings.Join(r.Warnings, "\n"), "resumed: ") || len(r.Reported) != 2 {
		t.Errorf("%+v", r)
	}
}
