//go:build cgo

package gpu_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
)

// One rank trains without NCCL and gets the CPU engine's parameters; its results are marked as
// the fake's. Two ranks cannot train, and report what is missing.
func TestAloneWithoutNCCL(t *testing.T) {
	without := append(slices.Clone(doubles), nccl.Variable+"=/nowhere/libnccl.so.2")
	p := suite.Point("cnn", 1, 6)
	list, got := run(t, p, 0, without, nil, nil)
	if list[0].Failed || got == nil {
		t.Fatal(list[0].Said)
	}
	p.Resources.Device = "cpu"
	_, want := run(t, p, 0, nil, nil, nil)
	if _, all := suite.Difference(t, got, want); !(all <= 1e-4) {
		t.Errorf("parameters or running averages differ by %g from the CPU engine's", all)
	}
	if v, there := list[0].First(t, "environment").Environment.Versions["nccl"]; there {
		t.Errorf("NCCL %q is among the versions", v)
	}
	if note := list[0].First(t, "note").Note.Text; note != "DOUBLE, not a GPU" {
		t.Errorf("the first doubt is %q", note)
	}
	list, _ = run(t, suite.Point("cnn", 2, 3), 0, without, nil, nil)
	for r, o := range list {
		if !o.Failed || !strings.Contains(o.Said, "NCCL cannot be loaded: /nowhere/libnccl.so.2") {
			t.Errorf("rank %d of 2: %s", r, o.Said)
		}
	}
}
