//go:build python

package framework

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// Keys that the MXNet framework does not support are refused when the study is read.
func TestMXNetRefuses(t *testing.T) {
	for path, change := range map[string]func(*study.Point){
		"resources.device":    func(p *study.Point) { p.Resources.Device = "gpu" },
		"workload.batch_norm": func(p *study.Point) { p.Workload.Train.BatchNorm = "sync" },
		"workload.precision":  func(p *study.Point) { p.Workload.Train.Precision = "fp16" },
	} {
		p := point(t, 2)
		if wrong := mxnet.Check(p); len(wrong) != 0 {
			t.Fatalf("a point that it can do: %v", wrong)
		}
		change(&p)
		if wrong := mxnet.Check(p); len(wrong) != 1 || !strings.Contains(wrong[path], "mxnet") {
			t.Errorf("%v, want one on %s", wrong, path)
		}
	}
}
