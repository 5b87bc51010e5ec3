//go:build python

package cpu

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
)

// The outputs and gradients of each layer equal PyTorch's for the same weights and images;
// PyTorch computes in double precision.
//
// Distances are relative to the layer's norm. In the deepest model, single precision's rounding
// changes the sign of some input of a ReLU, which affects all gradients before it. The error of
// a wrong layer is as large as its norm.
func TestLayersAsPyTorch(t *testing.T) {
	const batch, outputTolerance = 8, 1e-5
	for model, gradientTolerance := range map[string]float64{"resnet20": 1e-5, "resnet44": 2e-2, "cnn": 1e-5, "mlp": 1e-5} {
		var outputs, gradients []float32
		for _, kernels := range simd.Sets() {
			t.Run(model+"/"+kernels.Name(), func(t *testing.T) {
				e := newEngine(t, Options{Model: model, Batch: batch, Seed: 3, Threads: 2, Kernels: kernels.Name()})
				fill(e, 5)
				if outputs == nil {
					outputs, gradients = pytorchLayers(t, model, e)
				}
				if _, _, err := e.Gradient(context.Background(), batch); err != nil {
					t.Fatal(err)
				}
				rest, furthest := outputs, 0.0
				check := func(what string, got []float32) {
					t.Helper()
					d := relativeDistance(t, got, rest[:len(got)])
					if !(d <= outputTolerance) {
						t.Errorf("%s is off by %.2g of its norm", what, d)
					}
					rest, furthest = rest[len(got):], max(furthest, d)
				}
				for i, l := range e.net.layers {
					switch l := l.(type) {
					case *unit:
						check(fmt.Sprintf("layer %d, a convolution,", i), l.y)
					case *dense:
						if l.relu {
							for j, v := range rest[:len(l.out.data)] {
								rest[j] = max(v, 0) // PyTorch's is another layer
							}
						}
						check(fmt.Sprintf("layer %d, fully connected,", i), l.out.data)
					}
				}
				if len(rest) != 0 {
					t.Errorf("PyTorch has %d more outputs", len(rest))
				}
				worst := 0.0
				for i, p := range e.net.parameters {
					d := relativeDistance(t, p.g, gradients[p.at:p.at+p.size])
					if !(d <= gradientTolerance) {
						t.Errorf("the gradient by parameter %d of %d elements is off by %.2g of its norm", i, p.size, d)
					}
					worst = max(worst, d)
				}
				t.Logf("outputs differ by at most %.2g of their norm, gradients by %.2g", furthest, worst)
			})
		}
	}
}

// pytorchLayers runs PyTorch on the engine's weights and input.
func pytorchLayers(t *testing.T, model string, e *Engine) (outputs, gradients []float32) {
	t.Helper()
	dir := t.TempDir()
	images, labels := e.Input()
	writeNumbers(t, filepath.Join(dir, "weights.f32"), e.parameters)
	writeNumbers(t, filepath.Join(dir, "images.f32"), images)
	if err := os.WriteFile(filepath.Join(dir, "labels.u8"), labels, 0o600); err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Abs("../../../framework/programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/pytorch_gradients.py", model, dir)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readNumbers(t, filepath.Join(dir, "outputs.f32")), readNumbers(t, filepath.Join(dir, "gradients.f32"))
}

// relativeDistance returns the Euclidean distance divided by the norm of want.
func relativeDistance(t *testing.T, got, want []float32) float64 {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d numbers, PyTorch has %d", len(got), len(want))
	}
	var square, norm float64
	for i, v := range got {
		d := float64(v) - float64(want[i])
		square, norm = square+d*d, norm+float64(want[i])*float64(want[i])
	}
	return math.Sqrt(square / norm)
}
