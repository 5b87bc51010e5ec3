package framework

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// Only the Python frameworks accept the user's models and data in Python; the others refuse them when the study
// is read.
func TestFrameworksWithOwnModelAndData(t *testing.T) {
	p := study.Point{Workers: 2, Nodes: 1, WorkersPerNode: 2}
	p.Workload.Kind, p.Workload.Train.Model, p.Workload.Train.Precision = "train", "my_model.py:build", "fp32"
	p.Data.Kind, p.Resources.Device = "my_data.py:load", "cpu"
	for _, f := range All {
		if f.UserProgram || f.Server {
			continue // it runs the user's program, or does not train
		}
		wrong := f.Check(p)
		switch {
		case f.Name == jaxName: // it accepts the user's data, but only its own models
			if len(wrong) != 1 || !strings.Contains(wrong["workload.model"], "trains language models only") {
				t.Errorf("jax: %v", wrong)
			}
		case f.Imports != nil:
			if len(wrong) > 0 {
				t.Errorf("%s refuses them: %v", f.Name, wrong)
			}
		case len(wrong) != 2 || !strings.Contains(wrong["workload.model"], "valid: resnet20") || !strings.Contains(wrong["data.kind"], "is Python, which the native trainer does not run"):
			t.Errorf("%s: %v", f.Name, wrong)
		}
	}
}
