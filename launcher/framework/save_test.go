package framework

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// Only the native trainer saves its model; others refuse the key.
func TestSaveModel(t *testing.T) {
	for _, f := range All {
		p := study.Point{Workload: study.Workload{Kind: "train", Train: study.Train{Model: "cnn", Precision: "fp32", SaveModel: true}}}
		wrong := f.check(p)["workload.save_model"]
		if (wrong == "") != (f.Name == "native") || wrong != "" && !strings.Contains(wrong, `only framework = "native" saves its model`) {
			t.Errorf("%s: %q", f.Name, wrong)
		}
	}
}
