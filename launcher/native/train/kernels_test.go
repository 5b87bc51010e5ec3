package train

import (
	"context"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

// Ranks with different kernels and numbers of threads, as on different machines, still have equal
// parameters; each records the kernels that it used.
func TestRanksWithDifferentKernelsStayIdentical(t *testing.T) {
	sets := simd.Sets()
	size := max(len(sets), 2)
	p := point("cnn", size, 4)
	p.Workload.Train.MaxSteps = 6
	list := runRanks(t, p, size, func(r int, p *study.Point, _ *world.World, o *Options) context.Context {
		o.Kernels = sets[r%len(sets)].Name()
		p.Resources.CPUsPerWorker = 1 + r%2
		return nil
	})
	noErrors(t, list)
	first := list[0].last().Stop.ParameterSHA256
	for r, o := range list {
		if got := o.last().Stop.ParameterSHA256; got != first {
			t.Errorf("rank %d ends with parameters %s, rank 0 with %s", r, got, first)
		}
		if got, want := o.of("environment")[0].Environment.Versions["kernels"], sets[r%len(sets)].Name(); got != want {
			t.Errorf("rank %d records the kernels %q, want %q", r, got, want)
		}
	}
	if first == list[0].of("train")[0].Train.ParameterSHA256 {
		t.Error("nothing was trained")
	}
}

func TestUnknownKernels(t *testing.T) {
	o := runRanks(t, point("cnn", 1, 8), 1, func(_ int, _ *study.Point, _ *world.World, o *Options) context.Context {
		o.Kernels = "sse9"
		return nil
	})[0]
	for _, want := range []string{KernelsVariable, `"sse9"`, "portable"} {
		if o.err == nil || !strings.Contains(o.err.Error(), want) {
			t.Errorf("%v, want %s in it", o.err, want)
		}
	}
}
