//go:build cgo

package gpu_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cublas"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/double"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/kernel"
	"github.com/scalebench/scalebench/launcher/native/train/model"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// job is what a rank, which is a process of its own, is given.
type job struct {
	Point         study.Point
	World         world.World
	Events, Model string        // files
	Timeout       time.Duration // 0: one for a busy machine
}

const jobVariable = "SCALEBENCH_TEST_GPU_JOB"

// TestMain makes this program one rank, if it was started as such.
func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := beRank([]byte(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Tests of results use the double, unless they are to run on a GPU; tests of faults
	// do in any case.
	os.Exit(double.During(kernel.Source(), func(path string) int {
		for _, variable := range []string{cuda.Variable, cublas.Variable, nccl.Variable} {
			doubles = append(doubles, variable+"="+path)
		}
		doubles = append(doubles, "CUDA_DOUBLE_GPUS=4")
		return m.Run()
	}))
}

func beRank(text []byte) error {
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	f, err := os.OpenFile(j.Events, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	if j.Timeout == 0 {
		j.Timeout = 3 * time.Minute
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return train.Run(ctx, j.Point, j.World, train.Options{
		Nonce: "n", Events: f, ModelFile: j.Model, Timeout: j.Timeout, JoinTimeout: 3 * time.Minute,
		OpenGPU: func(ctx context.Context, o cpu.Options, precision string, g *collective.Group, w world.World) (train.GPU, error) {
			e, err := gpu.Open(ctx, gpu.Options{Options: o, Precision: precision, Timeout: j.Timeout}, g, w, os.Getenv)
			if err != nil {
				return nil, err
			}
			return e, nil
		},
	})
}

// doubles is the environment in which the double is what is found of CUDA, cuBLAS and
// NCCL.
var doubles []string

// libraries is the environment of so many ranks in a test of results.
func libraries(t *testing.T, ranks int) []string {
	t.Helper()
	if !double.OnGPU() {
		return doubles
	}
	driver, err := cuda.Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	n, err := driver.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if n >= ranks {
		return nil
	}
	first, _, _ := strings.Cut(os.Getenv("CUDA_VISIBLE_DEVICES"), ",")
	return []string{"SCALEBENCH_SHARE_GPU=1", "CUDA_VISIBLE_DEVICES=" + cmp.Or(first, "0")}
}

// point is three steps of a model, in an epoch of three, with workers of batch each.
// The rate is small for the sake of ReLU: where its input is within rounding of zero,
// two engines may take different sides, and with a few images to a batch the steps
// that follow carry that far: ResNet-20 at a rate of 0.05 is 0.006 apart after three.
func point(name string, workers, batch int) study.Point {
	return study.Point{
		ID: "test", Study: "test", Framework: "native", Workers: workers,
		Workload: study.Workload{Kind: "train", Train: study.Train{
			Model: name, Precision: "fp32", Batch: batch, Scaling: "weak",
			LearningRate: 0.002, ReferenceBatch: batch * workers, ScaleLearningRate: "none",
			Decay: "none", Momentum: 0.9, WeightDecay: 1e-4, BatchNorm: "local", Augment: true, Epochs: 1, SaveModel: true,
		}},
		Data:      study.Data{Kind: "synthetic", TrainSamples: 3 * batch * workers, TestSamples: 21},
		Resources: study.Resources{Device: "gpu", CPUsPerWorker: 1},
		Repeat:    1, Seed: 42, Nodes: 1, WorkersPerNode: workers,
		WorkerBatch: batch, GlobalBatch: batch * workers, LearningRate: 0.002,
	}
}

// outcome is what one rank left.
type outcome struct {
	said   string // on standard error
	failed bool
	events []metrics.Event
}

// first is the first event of a kind.
func (o outcome) first(t *testing.T, kind string) metrics.Event {
	t.Helper()
	for _, e := range o.events {
		if e.Kind() == kind {
			return e
		}
	}
	t.Fatalf("no %s event: %s", kind, o.said)
	return metrics.Event{}
}

// run starts every rank of p as a process and waits for all. environment is added to
// that of all, and own to that of single ranks. during, if any, is called when all have
// been started.
func run(t *testing.T, p study.Point, timeout time.Duration, environment []string, own map[int][]string, during func(ranks []*exec.Cmd, files []string)) (list []outcome, trained *model.Trained) {
	t.Helper()
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	saved := filepath.Join(dir, "model.safetensors")
	var ranks []*exec.Cmd
	var files []string
	for r := range p.Workers {
		w := world.World{Rank: r, Size: p.Workers, LocalRank: r, LocalSize: p.Workers, Nodes: 1, Address: "127.0.0.1", Port: port}
		files = append(files, filepath.Join(dir, fmt.Sprintf("rank-%d.jsonl", r)))
		text, err := json.Marshal(job{p, w, files[r], saved, timeout})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Args[0])
		c.Env = slices.Concat(os.Environ(), []string{jobVariable + "=" + string(text)}, environment, own[r])
		c.Stderr = new(bytes.Buffer)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() }) // one that hangs
		ranks = append(ranks, c)
	}
	if during != nil {
		during(ranks, files)
	}
	for r, c := range ranks {
		o := outcome{failed: c.Wait() != nil, said: c.Stderr.(*bytes.Buffer).String()}
		f, err := os.Open(files[r])
		if err != nil {
			t.Fatalf("rank %d: %v; %s", r, err, o.said)
		}
		reader := metrics.NewReader(f, files[r], 0, 0)
		for {
			e, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			o.events = append(o.events, e)
		}
		f.Close()
		list = append(list, o)
	}
	if text, err := os.ReadFile(saved); err == nil {
		if trained, err = model.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	return list, trained
}

// difference is the largest between two models' parameters, and between all their
// numbers.
func difference(t *testing.T, a, b *model.Trained) (parameters, all float64) {
	t.Helper()
	if len(a.Tensors) != len(b.Tensors) {
		t.Fatalf("%d tensors and %d", len(a.Tensors), len(b.Tensors))
	}
	for i, x := range a.Tensors {
		y := b.Tensors[i]
		if x.Name != y.Name || len(x.Data) != len(y.Data) {
			t.Fatalf("%s of %d numbers and %s of %d", x.Name, len(x.Data), y.Name, len(y.Data))
		}
		for k := range x.Data {
			d := math.Abs(float64(x.Data[k]) - float64(y.Data[k]))
			if !(d <= all) { // NaN is no agreement
				all = d
			}
			if statistic := strings.HasSuffix(x.Name, ".mean") || strings.HasSuffix(x.Name, ".variance"); !statistic && !(d <= parameters) {
				parameters = d
			}
		}
	}
	return parameters, all
}

// near reports whether two figures are equal up to a part of them, or of 1.
func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) }

// The same with products' factors rounded leads near it, by the steps' direction, and
// not as near as without.
func TestRounded(t *testing.T) {
	for _, test := range []struct {
		name, precision string
		workers         int
		most            float64 // of how far parameters moved
	}{
		{"cnn", "tf32", 1, 0.02},
		{"mlp", "tf32", 1, 0.02},
		{"cnn", "bf16", 2, 0.1},
		{"mlp", "bf16", 1, 0.1},
		{"resnet20", "tf32", 1, 0.1},
		{"resnet20", "bf16", 2, 0.1},
	} {
		t.Run(test.precision+" "+test.name, func(t *testing.T) {
			p := point(test.name, test.workers, 6)
			p.Workload.Train.Precision = test.precision
			onGPU, got := run(t, p, 0, libraries(t, test.workers), nil, nil)
			p.Resources.Device, p.Workload.Train.Precision = "cpu", "fp32"
			onCPU, want := run(t, p, 0, nil, nil, nil)
			if onGPU[0].failed || onCPU[0].failed || got == nil || want == nil {
				t.Fatalf("%s; on CPUs: %s", onGPU[0].said, onCPU[0].said)
			}
			before, err := cpu.Untrained(test.name, 10, 32, 32, 3, p.Seed)
			if err != nil {
				t.Fatal(err)
			}
			d, _ := difference(t, got, want)
			moved, _ := difference(t, before, want)
			a, b := onGPU[0].first(t, "epoch").Epoch, onCPU[0].first(t, "epoch").Epoch
			t.Logf("parameters that training moved by up to %.2g differ by up to %.2g; losses %v, %v", moved, d, *a.Loss, *b.Loss)
			if !(d <= test.most*moved) || d < moved/10000 || !near(*a.Loss, *b.Loss, test.most) {
				t.Errorf("want a difference between a ten-thousandth and %g of that", test.most)
			}
		})
	}
}

// Three steps lead to the CPU engine's parameters, running averages and losses, up to
// rounding, and to equal bits on all ranks.
func TestAsOnCPUs(t *testing.T) {
	const tolerance = 1e-4
	for _, test := range []struct {
		name    string
		workers int
		batch   int
		what    string
		change  func(*study.Train)
	}{
		{"cnn", 1, 6, "", nil},
		{"mlp", 1, 6, "", nil},
		{"resnet20", 1, 3, "", nil},
		{"cnn", 2, 5, "", nil},
		{"mlp", 2, 5, "", nil},
		{"resnet20", 2, 3, "", nil},
		{"cnn", 4, 3, "", nil},
		{"mlp", 4, 2, "", nil},
		{"resnet20", 4, 2, "", nil},
		{"cnn", 2, 4, ", synchronised batch norm", func(w *study.Train) { w.BatchNorm = "sync" }},
		{"cnn", 2, 4, ", two steps", func(w *study.Train) { w.MaxSteps = 2 }}, // when the third batch is there already
		// With an epsilon that keeps rounding from deciding the way: docs/trainer.md.
		{"cnn", 1, 6, ", Adam", func(w *study.Train) { w.Optimizer, w.Beta1, w.Beta2, w.Epsilon = "adam", 0.9, 0.999, 0.2 }},
		{"cnn", 2, 4, ", AdamW", func(w *study.Train) { w.Optimizer, w.Beta1, w.Beta2, w.Epsilon = "adamw", 0.9, 0.999, 0.2 }},
	} {
		p := point(test.name, test.workers, test.batch)
		if test.change != nil {
			test.change(&p.Workload.Train)
		}
		t.Run(fmt.Sprintf("%s, %s%s", test.name, number.Count(test.workers, "rank"), test.what), func(t *testing.T) {
			onGPU, got := run(t, p, 0, libraries(t, test.workers), nil, nil)
			p.Resources.Device = "cpu"
			onCPU, want := run(t, p, 0, libraries(t, test.workers), nil, nil)
			for r := range onGPU {
				if onGPU[r].failed || onCPU[r].failed {
					t.Fatalf("rank %d: %s; on CPUs: %s", r, onGPU[r].said, onCPU[r].said)
				}
			}
			if got == nil || want == nil {
				t.Fatal("no model was saved")
			}
			before, err := cpu.Untrained(test.name, 10, 32, 32, 3, p.Seed)
			if err != nil {
				t.Fatal(err)
			}
			parameters, all := difference(t, got, want)
			moved, _ := difference(t, before, want)
			t.Logf("parameters that training moved by up to %.2g differ by up to %.2g, with running averages %.2g", moved, parameters, all)
			if !(all <= tolerance) || !(parameters <= moved/20) {
				t.Errorf("want at most %g, and a twentieth of how far parameters moved", tolerance)
			}
			steps := 3
			if w := p.Workload.Train; w.MaxSteps > 0 {
				steps = w.MaxSteps
			}
			for r := range onGPU {
				if steps == 3 {
					a, b := onGPU[r].first(t, "epoch").Epoch, onCPU[r].first(t, "epoch").Epoch
					if !near(*a.Loss, *b.Loss, tolerance) {
						t.Errorf("rank %d: losses of %v and %v", r, *a.Loss, *b.Loss)
					}
				}
				first, last := onGPU[r].first(t, "train").Train, onGPU[r].first(t, "stop").Stop
				if want := onGPU[0].first(t, "stop").Stop; last.ParameterSHA256 != want.ParameterSHA256 || last.Steps != steps {
					t.Errorf("rank %d ended after %d steps with %s, rank 0 with %s", r, last.Steps, last.ParameterSHA256, want.ParameterSHA256)
				}
				if want := onCPU[r].first(t, "train").Train; first.ParameterSHA256 != want.ParameterSHA256 || first.Parameters != want.Parameters {
					t.Errorf("rank %d began with other parameters: %+v, %+v", r, first, want)
				}
			}
			a, b := onGPU[0].first(t, "evaluation").Evaluation, onCPU[0].first(t, "evaluation").Evaluation
			if !near(*a.Loss, *b.Loss, tolerance) || a.Accuracy != b.Accuracy || a.Samples != b.Samples {
				t.Errorf("evaluation: loss %v, accuracy %v of %d; on CPUs %v, %v of %d", *a.Loss, a.Accuracy, a.Samples, *b.Loss, b.Accuracy, b.Samples)
			}
			if test.workers == 1 || p.Workload.Train.BatchNorm == "sync" {
				return
			}
			x, y := onGPU[0].first(t, "gradients").Gradients, onCPU[0].first(t, "gradients").Gradients
			for i := range y.Own {
				if !near(x.Own[i], y.Own[i], 1e-3) || !near(x.Averaged[i], y.Averaged[i], 1e-3) {
					t.Errorf("squared norms of gradients %v and %v; on CPUs %v and %v", x.Own, x.Averaged, y.Own, y.Averaged)
				}
			}
		})
	}
}

// What cannot be trained is said before a GPU is looked for.
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
		{"size", func(o *gpu.Options) { o.Batch, o.GlobalBatch = 14564, 14564 }, "an array of 2147549184 numbers"},
	} {
		o := gpu.Options{Precision: "fp32", Options: cpu.Options{Model: "resnet20", Classes: 10, Height: 32, Width: 32, Channels: 3, Batch: 2, GlobalBatch: 2}}
		test.change(&o)
		if _, err := gpu.Open(t.Context(), o, nil, world.World{}, os.Getenv); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// With graphs and without, and where the driver has none, training ends with the same
// bits; what was without says so.
func TestGraphs(t *testing.T) {
	without, err := double.BuildKernels(t.TempDir(), "libgpu-double-old.so", kernel.Source(), "cuGraphLaunch")
	if err != nil {
		t.Fatal(err)
	}
	p := point("cnn", 2, 4)
	var want string
	for _, test := range []struct {
		name        string
		environment []string
		graphs      string // among the versions
	}{
		{"graphs", nil, ""},
		{"turned off", []string{gpu.GraphsVariable + "=0"}, "none"},
		{"an old driver", []string{cuda.Variable + "=" + without, cublas.Variable + "=" + without, nccl.Variable + "=" + without}, "none"},
	} {
		list, _ := run(t, p, 0, slices.Concat(doubles, test.environment), nil, nil)
		for r, o := range list {
			if o.failed {
				t.Fatalf("%s: rank %d: %s", test.name, r, o.said)
			}
			stop := o.first(t, "stop").Stop
			if want == "" {
				want = stop.ParameterSHA256
			}
			if got := o.first(t, "environment").Environment.Versions["cuda-graphs"]; stop.ParameterSHA256 != want || want == "" || got != test.graphs {
				t.Errorf("%s: rank %d ended with %s, want %s; graphs %q, want %q", test.name, r, stop.ParameterSHA256, want, got, test.graphs)
			}
		}
	}
}

// A run through the double says so, in its versions and beside its figures.
func TestDoubtsAreKept(t *testing.T) {
	list, _ := run(t, point("cnn", 2, 2), 0, append(slices.Clone(doubles), "CUDA_DOUBLE_GPUS=1", "SCALEBENCH_SHARE_GPU=1"), nil, nil)
	var notes []string
	for r, o := range list {
		if o.failed {
			t.Fatalf("rank %d: %s", r, o.said)
		}
		versions := o.first(t, "environment").Environment.Versions
		for _, name := range []string{"nccl", "cublas"} {
			if !strings.HasPrefix(versions[name], "DOUBLE of ") {
				t.Errorf("rank %d: %s is %q", r, name, versions[name])
			}
		}
		for _, e := range o.events {
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
	p := point("cnn", 2, 2)
	p.Workload.Train.Epochs = 1_000_000
	list, _ := run(t, p, 0, doubles, nil, func(ranks []*exec.Cmd, files []string) {
		steps(t, files[1])
		if err := ranks[1].Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	first := list[0].first(t, "stop").Stop
	for r, o := range list {
		stop := o.first(t, "stop").Stop
		if stop.Status != metrics.StopInterrupted || stop.Steps != first.Steps || stop.Steps == 0 || stop.ParameterSHA256 != first.ParameterSHA256 || stop.ParameterSHA256 == "" {
			t.Errorf("rank %d: %+v; %s", r, stop, o.said)
		}
	}
}

// What fails on rank 1 ends all ranks, and each says why.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		name        string
		environment string // of rank 1
		own         string // what rank 1 says; "": nothing that it could
		others      string // what rank 0 says
	}{
		{"out of memory", "CUDA_DOUBLE_OUT_OF_MEMORY=1", "of the GPU's memory", "of the GPU's memory"},
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
			p := point("cnn", 2, 2)
			p.Workload.Train.Epochs = 1_000_000
			timeout := time.Duration(0)
			if strings.HasSuffix(test.name, "hangs") {
				timeout = 5 * time.Second
			}
			list, trained := run(t, p, timeout, doubles, map[int][]string{1: {test.environment}}, func(ranks []*exec.Cmd, files []string) {
				if test.name == "killed" {
					steps(t, files[1])
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
				if !o.failed || !strings.Contains(o.said, want) {
					t.Errorf("rank %d ended with an error: %v; it says %q, want %q", r, o.failed, o.said, want)
				}
				t.Logf("rank %d: %s", r, o.said)
				if r == 1 && test.name == "killed" {
					continue
				}
				if stop := o.first(t, "stop").Stop; stop.Status != metrics.StopFailed || stop.Cause == "" {
					t.Errorf("rank %d: %+v", r, stop)
				}
			}
		})
	}
}

// steps waits until a rank has reported some.
func steps(t *testing.T, file string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(`"steps"`)) {
			return
		}
	}
	t.Fatalf("no steps in %s", file)
}
