//go:build cgo

package gpu_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu"
)

// A call is the fake's record of one call.
type call struct {
	name   string
	stream int
	event  string
}

func callsOf(t *testing.T, file string) (list []call) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var c call
		if _, err := fmt.Sscan(line, &c.name, &c.stream, &c.event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, c)
	}
	return list
}

// stepsOf splits the calls of a training before each batch's copy to the device, which is an
// asynchronous copy on the computing stream.
func stepsOf(list []call, compute int) (steps [][]call) {
	for i, c := range list {
		begins := c.name == "cuMemcpyHtoDAsync_v2" && c.stream == compute && i+1 < len(list) && list[i+1].name != "cuStreamSynchronize"
		if begins {
			steps = append(steps, nil)
		}
		if n := len(steps); n > 0 {
			steps[n-1] = append(steps[n-1], c)
		}
	}
	return steps
}

// A step allocates nothing, and does not wait before the whole pass is enqueued. Buckets of
// gradients are reduced on a separate stream, each after an event of the computing stream. The
// first reduction is enqueued long before the end of the backward pass, and no computation waits
// for a reduction.
func TestCallsOfAStep(t *testing.T) {
	allowed := []string{"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cublasGemmEx", "cuGraphLaunch",
		"cuEventRecord", "cuStreamWaitEvent", "cuEventQuery", "cuStreamQuery", "cuEventElapsedTime", "ncclAllReduce"}
	for _, test := range []struct {
		name, model, environment string
		ranks, buckets           int
	}{
		// Of 14.7 MB and of 1.1 MB: docs/trainer.md.
		{"graphs", "mlp", "", 2, 5},
		{"kernel by kernel", "mlp", gpu.GraphsVariable + "=0", 2, 5},
		{"a deep network", "resnet20", "", 2, 2},
		{"alone", "cnn", "", 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := suite.Point(test.model, test.ranks, 1)
			p.Data.TrainSamples = 6 * test.ranks
			dir, own := t.TempDir(), map[int][]string{}
			for r := range test.ranks {
				own[r] = []string{"CUDA_DOUBLE_CALLS=" + filepath.Join(dir, fmt.Sprint(r)), test.environment}
			}
			list, _ := run(t, p, 0, doubles, own, nil)
			for r, o := range list {
				if o.Failed {
					t.Fatalf("rank %d: %s", r, o.Said)
				}
				all := callsOf(t, filepath.Join(dir, fmt.Sprint(r)))
				compute := all[slices.IndexFunc(all, func(c call) bool { return c.name == "cublasSetStream_v2" })].stream
				steps := stepsOf(all, compute)
				if len(steps) < 6 {
					t.Fatalf("rank %d: %d steps", r, len(steps))
				}
				// The first two steps also load libraries and create graphs; the last one is followed by
				// the end of the epoch.
				for i, s := range steps[2:5] {
					if err := checkStep(s, compute, test.buckets, allowed); err != nil {
						t.Errorf("rank %d, step %d: %v\n%v", r, i+3, err, s)
					}
				}
			}
			if n := test.buckets; n > 0 {
				if cuts := cpu.Cuts(cpu.MaxVotes + int(list[0].First(t, "train").Train.Parameters)); len(cuts)-1 != n {
					t.Errorf("%d buckets, want %d", len(cuts)-1, n)
				}
			}
		})
	}
}

func checkStep(s []call, compute, buckets int, allowed []string) error {
	for _, c := range s {
		if !slices.Contains(allowed, c.name) {
			return fmt.Errorf("it calls %s", c.name)
		}
	}
	computes := func(c call) bool {
		return c.stream == compute && (c.name == "cuLaunchKernel" || c.name == "cublasGemmEx" || c.name == "cuGraphLaunch")
	}
	waits := slices.IndexFunc(s, func(c call) bool { return c.name == "cuEventQuery" || c.name == "cuStreamQuery" })
	if waits < 0 {
		return fmt.Errorf("it waits for nothing")
	}
	lastOfPass := -1
	for i, c := range s[:waits] {
		if computes(c) {
			lastOfPass = i
		}
	}
	// After the pass, the host only waits and enqueues the optimiser's step.
	after := slices.DeleteFunc(slices.Clone(s[waits:]), func(c call) bool { return !computes(c) })
	if last := s[len(s)-1]; lastOfPass < 0 || len(after) != 1 || after[0] != last || last.name != "cuLaunchKernel" {
		return fmt.Errorf("after it began to wait it computes %v; want one kernel, at its end", after)
	}
	reductions, before, previous := 0, 0, 0
	for i, c := range s {
		switch {
		case c.name == "cuStreamWaitEvent" && c.stream == compute:
			return fmt.Errorf("what computes waits for another stream")
		case c.name != "ncclAllReduce":
			continue
		case c.stream == compute:
			return fmt.Errorf("a reduction is on the stream that computes")
		}
		reductions++
		if i < lastOfPass {
			before++
		}
		wait := slices.IndexFunc(s[previous:i], func(d call) bool { return d.name == "cuStreamWaitEvent" && d.stream == c.stream }) + previous
		previous = i
		if wait < 1 || s[wait].name != "cuStreamWaitEvent" || s[wait-1] != (call{"cuEventRecord", compute, s[wait].event}) {
			return fmt.Errorf("reduction %d waits for no event of what computes", reductions)
		}
		// It is timed on the device, by an event before and one after it.
		if left, right := s[i-1], s[i+1]; left.name != "cuEventRecord" || right.name != "cuEventRecord" || left.stream != c.stream || right.stream != c.stream {
			return fmt.Errorf("reduction %d is between %v and %v", reductions, left, right)
		}
	}
	if reductions != buckets || buckets > 0 && before == 0 {
		return fmt.Errorf("%d reductions, %d of them asked for before the end of the pass; want %d and 1 or more", reductions, before, buckets)
	}
	return nil
}

// Slow reductions count as communication, measured on the device. The part of the last one that
// exceeds the pass counts neither as computing nor as waiting for data. Only minimum times are
// checked, because a busy machine makes all of them longer.
func TestSlowReductionIsCommunication(t *testing.T) {
	const delay, buckets = 0.03, 5 // s, of each reduction; of mlp
	p := suite.Point("mlp", 2, 1)
	p.Data.TrainSamples = 8
	list, _ := run(t, p, 0, append(slices.Clone(doubles), fmt.Sprintf("NCCL_DOUBLE_DELAY_US=%d", int(1e6*delay))), nil, nil)
	for r, o := range list {
		if o.Failed {
			t.Fatalf("rank %d: %s", r, o.Said)
		}
		steps := 0
		for _, e := range o.Events {
			s := e.Steps
			if s == nil {
				continue
			}
			for k, d := range s.Duration {
				steps++
				communication := float64(s.Communication[k]) * s.Tick
				exposed := float64(d-s.DataWait[k]-s.Compute[k]) * s.Tick
				if rounding := 4 * s.Tick; communication < buckets*delay-rounding || exposed < delay-rounding {
					t.Errorf("rank %d, step %d: communication of %.4f s, %.4f s of it after the pass; want %g s and %g s, or more", r, steps, communication, exposed, buckets*delay, delay)
				}
			}
		}
		if steps != 4 {
			t.Errorf("rank %d: %d steps", r, steps)
		}
	}
}
