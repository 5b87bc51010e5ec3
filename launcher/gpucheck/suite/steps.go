//go:build cgo

// Package suite has the checks of everything that touches a GPU: kernels, products of
// matrices, three-step trainings. Tests run them with the fake libraries, the GPU check
// on a GPU.
package suite

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/study"
)

// This file checks three-step trainings on a GPU against the engine on CPUs, and
// against PyTorch.

// StepChecks returns the checks of three-step trainings. command starts a program that
// calls Rank. Where there are fewer GPUs than ranks, the ranks share one.
func StepChecks(command []string) []gpucheck.Check {
	var list []gpucheck.Check
	add := func(name string, ranks int, run func(gpucheck.T)) {
		list = append(list, gpucheck.Check{Name: "steps/" + name, Estimate: time.Duration(4+2*ranks) * time.Second, NCCL: ranks > 1, Run: run})
	}
	for _, test := range []struct {
		name    string
		model   string
		workers int
		batch   int
		change  func(*study.Train)
	}{
		{"cnn-1", "cnn", 1, 6, nil},
		{"mlp-1", "mlp", 1, 6, nil},
		{"resnet20-1", "resnet20", 1, 3, nil},
		{"cnn-2", "cnn", 2, 5, nil},
		{"mlp-2", "mlp", 2, 5, nil},
		{"resnet20-2", "resnet20", 2, 3, nil},
		{"cnn-4", "cnn", 4, 3, nil},
		{"mlp-4", "mlp", 4, 2, nil},
		{"resnet20-4", "resnet20", 4, 2, nil},
		{"sync-norm-2", "cnn", 2, 4, func(w *study.Train) { w.BatchNorm = "sync" }},
		{"two-steps-2", "cnn", 2, 4, func(w *study.Train) { w.MaxSteps = 2 }}, // the third batch is already prepared at the end
		// With an epsilon that keeps rounding from deciding the way: docs/trainer.md.
		{"adam-1", "cnn", 1, 6, func(w *study.Train) { w.Optimizer, w.Beta1, w.Beta2, w.Epsilon = "adam", 0.9, 0.999, 0.2 }},
		{"adamw-2", "cnn", 2, 4, func(w *study.Train) { w.Optimizer, w.Beta1, w.Beta2, w.Epsilon = "adamw", 0.9, 0.999, 0.2 }},
	} {
		p := Point(test.model, test.workers, test.batch)
		if test.change != nil {
			test.change(&p.Workload.Train)
		}
		add(test.name, test.workers, func(t gpucheck.T) { asOnCPUs(t, command, p) })
	}
	for _, test := range []struct {
		precision, model string
		workers          int
		most             float64 // difference, as a part of how far parameters moved
	}{
		{"tf32", "cnn", 1, 0.02},
		{"tf32", "mlp", 1, 0.02},
		{"bf16", "cnn", 2, 0.1},
		{"bf16", "mlp", 1, 0.1},
		{"tf32", "resnet20", 1, 0.1},
		{"bf16", "resnet20", 2, 0.1},
	} {
		p := Point(test.model, test.workers, 6)
		p.Workload.Train.Precision = test.precision
		add(fmt.Sprintf("%s-%s-%d", test.precision, test.model, test.workers), test.workers, func(t gpucheck.T) { rounded(t, command, p, test.most) })
	}
	for _, model := range []string{"cnn", "mlp", "resnet20"} {
		list = append(list, gpucheck.Check{Name: "steps/pytorch-" + model, Estimate: 15 * time.Second, PyTorch: true, Run: func(t gpucheck.T) { asPyTorch(t, model) }})
	}
	return list
}

// sharing returns the environment variables for this number of ranks on this host's GPUs.
func sharing(t gpucheck.T, ranks int) []string {
	t.Helper()
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

// Point returns three steps of a model, in an epoch of three, with workers of batch each. The learning rate is
// small because of ReLU: if its input is close to zero, rounding can put two engines on different sides, and
// with a few images per batch the difference grows: for ResNet-20 at a rate of 0.05 to 0.006 after three steps.
func Point(name string, workers, batch int) study.Point {
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

// Difference returns the largest difference between two models' parameters, and
// between all their numbers.
func Difference(t gpucheck.T, a, b *netspec.Trained) (parameters, all float64) {
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
			if !(d <= all) { // NaN is a difference
				all = d
			}
			if statistic := strings.HasSuffix(x.Name, ".mean") || strings.HasSuffix(x.Name, ".variance"); !statistic && !(d <= parameters) {
				parameters = d
			}
		}
	}
	return parameters, all
}

// stepsNear reports whether two figures are equal up to a part of them, or of 1.
func stepsNear(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) }

// compare compares two models, tensor by tensor, and reports by how much parameters
// differ and how far training moved them.
func compare(t gpucheck.T, p study.Point, got, want *netspec.Trained, tolerance float64) (parameters, moved float64) {
	t.Helper()
	before, err := cpu.Untrained(p.Workload.Train.Model, 10, 32, 32, 3, p.Seed)
	if err != nil {
		t.Fatal(err)
	}
	parameters, all := Difference(t, got, want)
	moved, _ = Difference(t, before, want)
	t.Logf("moved by %.2g, differ by %.2g (running averages: %.2g)", moved, parameters, all)
	if all <= tolerance {
		return parameters, moved
	}
	for i, x := range want.Tensors {
		gpucheck.Near(t, gpucheck.Difference{What: x.Name + " after three steps", Shape: fmt.Sprint(x.Shape)}, got.Tensors[i].Data, x.Data, tolerance)
	}
	t.Errorf("numbers differ by up to %g, want at most %g", all, tolerance)
	return parameters, moved
}

// both trains p on GPUs, and in fp32 on CPUs.
func both(t gpucheck.T, command []string, p study.Point) (onGPU, onCPU []Outcome, got, want *netspec.Trained) {
	t.Helper()
	onGPU, got = Start{Command: command, Environment: sharing(t, p.Workers)}.Run(t, p)
	p.Resources.Device, p.Workload.Train.Precision = "cpu", "fp32"
	onCPU, want = Start{Command: command}.Run(t, p)
	for r := range onGPU {
		if onGPU[r].Failed || onCPU[r].Failed {
			t.Fatalf("rank %d: %s; on CPUs: %s", r, onGPU[r].Said, onCPU[r].Said)
		}
	}
	if got == nil || want == nil {
		t.Fatal("no model was saved")
	}
	return onGPU, onCPU, got, want
}

// rounded trains with rounded factors, which leads near the same parameters, by the
// steps' direction, but not as near as without rounding.
func rounded(t gpucheck.T, command []string, p study.Point, most float64) {
	onGPU, onCPU, got, want := both(t, command, p)
	d, moved := compare(t, p, got, want, math.Inf(1))
	a, b := onGPU[0].First(t, "epoch").Epoch, onCPU[0].First(t, "epoch").Epoch
	if !(d <= most*moved) || d < moved/10000 || !stepsNear(*a.Loss, *b.Loss, most) {
		t.Errorf("parameters differ by %g, want between a ten-thousandth and %g of the %g that training moved them; losses %v, %v", d, most, moved, *a.Loss, *b.Loss)
	}
}

// asOnCPUs trains to the CPU engine's parameters, running averages and losses, up to
// rounding, and to equal bits on all ranks.
func asOnCPUs(t gpucheck.T, command []string, p study.Point) {
	const tolerance = 1e-4
	onGPU, onCPU, got, want := both(t, command, p)
	if parameters, moved := compare(t, p, got, want, tolerance); !(parameters <= moved/20) {
		t.Errorf("parameters differ by %g, want at most a twentieth of the %g that training moved them", parameters, moved)
	}
	steps := 3
	if w := p.Workload.Train; w.MaxSteps > 0 {
		steps = w.MaxSteps
	}
	for r := range onGPU {
		if steps == 3 {
			a, b := onGPU[r].First(t, "epoch").Epoch, onCPU[r].First(t, "epoch").Epoch
			if !stepsNear(*a.Loss, *b.Loss, tolerance) {
				t.Errorf("rank %d: losses of %v and %v", r, *a.Loss, *b.Loss)
			}
		}
		first, last := onGPU[r].First(t, "train").Train, onGPU[r].First(t, "stop").Stop
		if want := onGPU[0].First(t, "stop").Stop; last.ParameterSHA256 != want.ParameterSHA256 || last.Steps != steps {
			t.Errorf("rank %d ended after %d steps with %s, rank 0 with %s", r, last.Steps, last.ParameterSHA256, want.ParameterSHA256)
		}
		if want := onCPU[r].First(t, "train").Train; first.ParameterSHA256 != want.ParameterSHA256 || first.Parameters != want.Parameters {
			t.Errorf("rank %d began with other parameters: %+v, %+v", r, first, want)
		}
	}
	a, b := onGPU[0].First(t, "evaluation").Evaluation, onCPU[0].First(t, "evaluation").Evaluation
	if !stepsNear(*a.Loss, *b.Loss, tolerance) || a.Accuracy != b.Accuracy || a.Samples != b.Samples {
		t.Errorf("evaluation: loss %v, accuracy %v of %d; on CPUs %v, %v of %d", *a.Loss, a.Accuracy, a.Samples, *b.Loss, b.Accuracy, b.Samples)
	}
	if p.Workers == 1 || p.Workload.Train.BatchNorm == "sync" {
		return
	}
	x, y := onGPU[0].First(t, "gradients").Gradients, onCPU[0].First(t, "gradients").Gradients
	for i := range y.Own {
		if !stepsNear(x.Own[i], y.Own[i], 1e-3) || !stepsNear(x.Averaged[i], y.Averaged[i], 1e-3) {
			t.Errorf("squared norms of gradients %v and %v; on CPUs %v and %v", x.Own, x.Averaged, y.Own, y.Averaged)
		}
	}
}
