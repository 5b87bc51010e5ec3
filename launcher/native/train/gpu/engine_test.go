//go:build cgo

package gpu_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// TestMain makes this program one rank, if it was started as such.
func TestMain(m *testing.M) {
	if os.Getenv(suite.JobVariable) != "" {
		if err := suite.Rank(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(gputest.During(ptx.Source(), func(path string) int {
		for _, variable := range []string{cuda.Variable, cuda.BLASVariable, nccl.Variable} {
			doubles = append(doubles, variable+"="+path)
		}
		doubles = append(doubles, "CUDA_DOUBLE_GPUS=4")
		return m.Run()
	}))
}

// doubles is an environment in which the fakes are found as CUDA, cuBLAS and NCCL.
var doubles []string

// run starts every rank of p with environment, and adds own for single ranks.
func run(t *testing.T, p study.Point, timeout time.Duration, environment []string, own map[int][]string, during func(ranks []*exec.Cmd, files []string)) ([]suite.Outcome, *netspec.Trained) {
	t.Helper()
	return suite.Start{Command: os.Args[:1], Timeout: timeout, Environment: environment, Own: own, During: during}.Run(t, p)
}

// The checks that run on a GPU pass on the fakes.
func TestChecks(t *testing.T) {
	for _, variable := range doubles {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	for _, c := range suite.StepChecks(os.Args[:1]) {
		if !c.PyTorch {
			t.Run(strings.TrimPrefix(c.Name, "steps/"), func(t *testing.T) { c.Run(t) })
		}
	}
}

// A point that cannot be trained is refused before GPUs are searched.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*gpu.Options)
		want   string
	}{
		{"model", func(o *gpu.Options) { o.Model = "vgg" }, "unknown model"},
		{"no batch", func(o *gpu.Options) { o.Batch = 0 }, "a batch of 0"},
		{"precision", func(o *gpu.Options) { o.Precision = "fp16" }, "fp32, tf32, bf16"},
		{"optimizer", func(o *gpu.Options) { o.Optimizer = "lamb" }, `"adamw"`},
		// 32·32 pixels of 9·16 numbers: 2³¹ of them are in 14,564 images.
		{"size", func(o *gpu.Options) { o.Batch, o.GlobalBatch = 14564, 14564 }, "resnet20 has 2147549184 elements"},
	} {
		o := gpu.Options{Precision: "fp32", Options: cpu.Options{Model: "resnet20", Classes: 10, Height: 32, Width: 32, Channels: 3, Batch: 2, GlobalBatch: 2}}
		test.change(&o)
		if _, err := gpu.Open(t.Context(), o, nil, world.World{}, os.Getenv); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// Training ends with the same bits with graphs, without them, and with a driver that lacks them; a
// run without graphs says so.
func TestGraphs(t *testing.T) {
	without, err := gputest.BuildKernels(t.TempDir(), "libgpu-double-old.so", ptx.Source(), "cuGraphLaunch")
	if err != nil {
		t.Fatal(err)
	}
	p := suite.Point("cnn", 2, 4)
	var want string
	for _, test := range []struct {
		name        string
		environment []string
		graphs      string // among the versions
	}{
		{"graphs", nil, ""},
		{"turned off", []string{gpu.GraphsVariable + "=0"}, "none"},
		{"an old driver", []string{cuda.Variable + "=" + without, cuda.BLASVariable + "=" + without, nccl.Variable + "=" + without}, "none"},
	} {
		list, _ := run(t, p, 0, slices.Concat(doubles, test.environment), nil, nil)
		for r, o := range list {
			if o.Failed {
				t.Fatalf("%s: rank %d: %s", test.name, r, o.Said)
			}
			stop := o.First(t, "stop").Stop
			if want == "" {
				want = stop.ParameterSHA256
			}
			if got := o.First(t, "environment").Environment.Versions["cuda-graphs"]; stop.ParameterSHA256 != want || want == "" || got != test.graphs {
				t.Errorf("%s: rank %d ended with %s, want %s; graphs %q, want %q", test.name, r, stop.ParameterSHA256, want, got, test.graphs)
			}
		}
	}
}

// A run with the fake libraries says so in its versions and its notes.
func TestTimingCaveatsAreStored(t *testing.T) {
	list, _ := run(t, suite.Point("cnn", 2, 2), 0, append(slices.Clone(doubles), "CUDA_DOUBLE_GPUS=1", "SCALEBENCH_SHARE_GPU=1"), nil, nil)
	var notes []string
	for r, o := range list {
		if o.Failed {
			t.Fatalf("rank %d: %s", r, o.Said)
		}
		versions := o.First(t, "environment").Environment.Versions
		for _, name := range []string{"nccl", "cublas"} {
			if !strings.HasPrefix(versions[name], "DOUBLE of ") {
				t.Errorf("rank %d: %s is %q", r, name, versions[name])
			}
		}
		for _, e := range o.Events {
			if e.Note != nil {
				notes = append(notes, e.Note.Text)
			}
		}
	}
	if want := "DOUBLE, not a GPU|ranks share a GPU, not performance|products by a DOUBLE, not cuBLAS"; strings.Join(notes, "|") != want {
		t.Errorf("notes %q, want %q", notes, want)
	}
}

// A signal to one rank stops all after the same step, in order.
func TestInterrupted(t *testing.T) {
	p := suite.Point("cnn", 2, 2)
	p.Workload.Train.Epochs = 1_000_000
	list, _ := run(t, p, 0, doubles, nil, func(ranks []*exec.Cmd, files []string) {
		awaitSteps(t, files[1])
		if err := ranks[1].Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	first := list[0].First(t, "stop").Stop
	for r, o := range list {
		stop := o.First(t, "stop").Stop
		if stop.Status != metrics.StopInterrupted || stop.Steps != first.Steps || stop.Steps == 0 || stop.ParameterSHA256 != first.ParameterSHA256 || stop.ParameterSHA256 == "" {
			t.Errorf("rank %d: %+v; %s", r, stop, o.Said)
		}
	}
}

// What fails on rank 1 ends all ranks, and each says why.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name        string
		environment string // of rank 1
		own         string // text in rank 1's error; "": rank 1 cannot report one
		others      string // text in rank 0's error
	}{
		{"out of memory", "CUDA_DOUBLE_OUT_OF_MEMORY=1", "of GPU memory", "of GPU memory"},
		{"a launch", "CUDA_DOUBLE_LAUNCH_ERROR=60", "kernel ", "rank 1 gave up: "},
		{"an illegal address", "CUDA_DOUBLE_ILLEGAL_ADDRESS=60", "CUDA error 700", "CUDA error 700"},
		{"a product", "CUBLAS_DOUBLE_ERROR=20", "cublasGemmEx", "cublasGemmEx"},
		{"a graph", "CUDA_DOUBLE_GRAPH_ERROR=1", "cuGraphLaunch", "cuGraphLaunch"},
		{"a reduction", "NCCL_DOUBLE_ERROR=3", "ncclRemoteError", "ncclRemoteError"},
		{"a reduction that hangs", "NCCL_DOUBLE_HANG=3", "timed out", "timed out"},
		{"a kernel that hangs", "CUDA_DOUBLE_HANG=60", "", ""},
		{"killed", "", "", "rank 1 is gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := suite.Point("cnn", 2, 2)
			p.Workload.Train.Epochs = 1_000_000
			timeout := time.Duration(0)
			if strings.HasSuffix(test.name, "hangs") {
				timeout = 5 * time.Second
			}
			list, trained := run(t, p, timeout, doubles, map[int][]string{1: {test.environment}}, func(ranks []*exec.Cmd, files []string) {
				if test.name == "killed" {
					awaitSteps(t, files[1])
					_ = ranks[1].Process.Kill()
				}
			})
			if trained != nil {
				t.Error("a run that failed has saved a model")
			}
			for r, o := range list {
				want := test.others
				if r == 1 {
					want = test.own
				}
				if !o.Failed || !strings.Contains(o.Said, want) {
					t.Errorf("rank %d ended with an error: %v; it says %q, want %q", r, o.Failed, o.Said, want)
				}
				t.Logf("rank %d: %s", r, o.Said)
				if r == 1 && test.name == "killed" {
					continue
				}
				if stop := o.First(t, "stop").Stop; stop.Status != metrics.StopFailed || stop.Cause == "" {
					t.Errorf("rank %d: %+v", r, stop)
				}
			}
		})
	}
}

// awaitSteps waits until a rank has reported steps.
func awaitSteps(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(`"steps"`)) {
			return
		}
	}
	t.Fatalf("no steps in %s", file)
}
