//go:build cgo && python

package gpu_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/double"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu"
	"github.com/scalebench/scalebench/launcher/world"
)

// pythonVariable names an interpreter with PyTorch, for its GPU where tests run on one.
const pythonVariable = "SCALEBENCH_TEST_PYTHON"

// recipe is what both sides do. Why its rates are small: see the test of package cpu.
type recipe struct {
	Device      string    `json:"device"`
	Model       string    `json:"model"`
	Rates       []float64 `json:"rates"` // of each step
	Momentum    float64   `json:"momentum"`
	WeightDecay float64   `json:"weight_decay"`
}

// Three steps of this engine and of PyTorch, in fp32 from the same weights on the same
// batches, lead to the same parameters, running averages and losses. Both compute on
// the GPU, or on the double and on this machine.
func TestStepsAsPyTorch(t *testing.T) {
	const tolerance, batch = 1e-4, 16
	for _, model := range []string{"cnn", "mlp", "resnet20"} {
		t.Run(model, func(t *testing.T) {
			r := recipe{"cpu", model, []float64{0.0005, 0.0025, 0.001}, 0.9, 0.5}
			if double.OnGPU() {
				r.Device = "cuda"
			}
			dir := t.TempDir()
			start, parameters, statistics, losses := steps3(t, r, batch, dir)
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "job.json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "weights.f32", start)
			programs, err := filepath.Abs("../../../framework/programs")
			if err != nil {
				t.Fatal(err)
			}
			python := exec.Command(cmp.Or(os.Getenv(pythonVariable), "/usr/bin/python3"), "-B", "testdata/pytorch_steps.py", dir)
			python.Env = append(os.Environ(), "PYTHONPATH="+programs)
			if out, err := python.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			moved := apart(t, start, parameters)
			d, e := apart(t, parameters, read(t, dir, "parameters.f32")), apart(t, statistics, read(t, dir, "statistics.f32"))
			t.Logf("parameters that training moved by up to %.2g differ by up to %.2g, running averages by %.2g", moved, d, e)
			if !(d <= tolerance) || !(e <= tolerance) || moved < 30*tolerance {
				t.Errorf("want at most %g, and parameters that moved by 30 times that", tolerance)
			}
			for i, loss := range read(t, dir, "losses.f32") {
				if !near(losses[i], float64(loss), tolerance) {
					t.Errorf("step %d: a loss of %v, PyTorch's is %v", i+1, losses[i], loss)
				}
			}
		})
	}
}

// steps3 makes the steps by this engine, and writes the batches to dir as PyTorch takes
// them: NCHW, normalised.
func steps3(t *testing.T, r recipe, batch int, dir string) (start, parameters, statistics []float32, losses []float64) {
	t.Helper()
	getenv := os.Getenv
	if !double.OnGPU() {
		getenv = func(name string) string {
			for _, s := range doubles {
				if value, ok := strings.CutPrefix(s, name+"="); ok {
					return value
				}
			}
			return ""
		}
	}
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1"}
	group, err := collective.Join(t.Context(), w, "", collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	e, err := gpu.Open(t.Context(), gpu.Options{Precision: "fp32", Options: cpu.Options{Model: r.Model, Classes: 10, Height: 32, Width: 32, Channels: 3,
		Batch: batch, GlobalBatch: batch, Seed: 7, Momentum: r.Momentum, WeightDecay: r.WeightDecay}}, group, w, getenv)
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
		loss, _, err := e.Gradient(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		losses = append(losses, loss/float64(batch))
		if _, err := e.Reduce(t.Context(), nil); err != nil {
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

func write(t *testing.T, dir, name string, list []float32) {
	t.Helper()
	var text bytes.Buffer
	if err := binary.Write(&text, binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) []float32 {
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

// apart is the largest difference between two lists of numbers; NaN if there is one
// among them.
func apart(t *testing.T, a, b []float32) (d float64) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%d numbers and %d", len(a), len(b))
	}
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}
