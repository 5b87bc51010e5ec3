//go:build cgo

package suite

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/world"
)

//go:embed pytorch_steps.py
var pytorchSteps []byte

// A recipe is the training that both sides perform. Its learning rates are small for the reason given in
// package cpu's test.
type recipe struct {
	Device      string    `json:"device"`
	Model       string    `json:"model"`
	Rates       []float64 `json:"rates"` // of each step
	Momentum    float64   `json:"momentum"`
	WeightDecay float64   `json:"weight_decay"`
}

// asPyTorch makes three steps by this engine and by PyTorch, in fp32 from the same
// weights on the same batches, which lead to the same parameters, running averages
// and losses. Both compute on the GPU; if that is a fake, PyTorch computes on the CPU.
func asPyTorch(t gpucheck.T, model string) {
	const tolerance, batch = 1e-4, 16
	driver, err := cuda.Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	r := recipe{"cuda", model, []float64{0.0005, 0.0025, 0.001}, 0.9, 0.5}
	if driver.IsFake() {
		r.Device = "cpu"
	}
	dir := t.TempDir()
	start, parameters, statistics, losses := threeSteps(t, r, batch, dir)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "weights.f32", start)
	programs := t.TempDir()
	pytorch, err := framework.Find("pytorch-ddp")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.CopyFS(programs, pytorch.Programs), os.WriteFile(filepath.Join(programs, "pytorch_steps.py"), pytorchSteps, 0o600)); err != nil {
		t.Fatal(err)
	}
	python := exec.Command(cmp.Or(os.Getenv(gpucheck.PythonVariable), "python3"), "-B", filepath.Join(programs, "pytorch_steps.py"), dir)
	if out, err := python.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	moved := 0.0
	for i, v := range parameters {
		moved = max(moved, math.Abs(float64(v)-float64(start[i])))
	}
	if moved < 30*tolerance {
		t.Errorf("training moved parameters by %g, want at least 30 times the tolerance of %g", moved, tolerance)
	}
	gpucheck.Near(t, gpucheck.Difference{What: "parameters after three steps, PyTorch's expected"}, parameters, read(t, dir, "parameters.f32"), tolerance)
	gpucheck.Near(t, gpucheck.Difference{What: "running averages after three steps, PyTorch's expected"}, statistics, read(t, dir, "statistics.f32"), tolerance)
	gpucheck.Near(t, gpucheck.Difference{What: "losses of three steps, PyTorch's expected"}, losses, read(t, dir, "losses.f32"), tolerance)
	t.Logf("within %g of PyTorch's (losses, too); moved by %.2g", tolerance, moved)
}

// threeSteps makes the steps by this engine, and writes the batches to dir as PyTorch takes
// them: NCHW, normalised.
func threeSteps(t gpucheck.T, r recipe, batch int, dir string) (start, parameters, statistics []float32, losses []float64) {
	t.Helper()
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1"}
	group, err := collective.Join(context.Background(), w, "", collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	e, err := gpu.Open(context.Background(), gpu.Options{Precision: "fp32", Options: cpu.Options{Model: r.Model, Classes: 10, Height: 32, Width: 32, Channels: 3,
		Batch: batch, GlobalBatch: batch, Seed: 7, Momentum: r.Momentum, WeightDecay: r.WeightDecay}}, group, w, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	numbers := func() (parameters, statistics []float32) {
		trained, err := e.Trained()
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range trained.Tensors {
			if strings.HasSuffix(tensor.Name, ".norm.mean") || strings.HasSuffix(tensor.Name, ".norm.variance") {
				statistics = append(statistics, tensor.Data...)
			} else {
				parameters = append(parameters, tensor.Data...)
			}
		}
		return parameters, statistics
	}
	start, _ = numbers()
	random := rand.New(rand.NewPCG(3, 4))
	var images []float32
	var labels []byte
	for _, rate := range r.Rates {
		input := e.Input()
		for i := range batch {
			image := make([]byte, dataset.ImageBytes)
			for k := range image {
				image[k] = byte(random.IntN(256))
				images = append(images, dataset.Values[k/(dataset.ImageBytes/dataset.Channels)][image[k]])
			}
			label := byte(random.IntN(10))
			labels = append(labels, label)
			input.Put(i, image, dataset.Identity, label)
		}
		loss, _, err := e.Gradient(context.Background(), batch)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss/float64(batch))
		if _, err := e.Reduce(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		e.Update(rate)
	}
	parameters, statistics = numbers()
	write(t, dir, "images.f32", images)
	if err := os.WriteFile(filepath.Join(dir, "labels.u8"), labels, 0o600); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(start), parameters, statistics, losses
}

func write(t gpucheck.T, dir, name string, list []float32) {
	t.Helper()
	var text bytes.Buffer
	if err := binary.Write(&text, binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t gpucheck.T, dir, name string) []float32 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]float32, len(text)/4)
	if err := binary.Read(bytes.NewReader(text), binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	return list
}
