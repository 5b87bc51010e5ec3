package framework

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// The native trainer's precisions depend on the device.
func TestNativePrecision(t *testing.T) {
	for _, test := range []struct{ device, precision, want string }{
		{"cpu", "fp32", ""},
		{"gpu", "fp32", ""},
		{"gpu", "tf32", ""},
		{"gpu", "bf16", ""},
		{"cpu", "tf32", "in tf32 on GPUs only"},
		{"cpu", "bf16", "in bf16 on GPUs only"},
		{"gpu", "fp16", "not in fp16"},
	} {
		p := study.Point{
			Workload:  study.Workload{Kind: "train", Train: study.Train{Model: "cnn", Precision: test.precision}},
			Data:      study.Data{Kind: "synthetic"},
			Resources: study.Resources{Device: test.device},
		}
		wrong := native.Check(p)
		if got := wrong["workload.precision"]; (got == "") != (test.want == "") || !strings.Contains(got, test.want) || (test.want == "" && len(wrong) > 0) {
			t.Errorf("%s on %s: %q, want %q", test.precision, test.device, wrong, test.want)
		}
	}
}
