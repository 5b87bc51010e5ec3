//go:build python

package cpu

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// A classifier gives the logits that PyTorch gives in double precision, from the file
// that the model is saved in.
func TestClassifierAsPyTorch(t *testing.T) {
	const images = 11
	for _, name := range netspec.Names() {
		m, err := Untrained(name, 10, 32, 32, 3, 3)
		if err != nil {
			t.Fatal(err)
		}
		normalRandom(m, 7)
		input := make([]float32, images*32*32*3)
		random := rand.New(rand.NewPCG(5, 6))
		for i := range input {
			input[i] = float32(random.NormFloat64())
		}
		want := pytorchLogits(t, m, input)
		for _, kernels := range simd.Sets() {
			c, err := NewClassifier(m, 2, kernels.Name())
			if err != nil {
				t.Fatal(err)
			}
			got := c.Logits(input)
			c.Close()
			d := relativeDistance(t, got, want)
			t.Logf("%s, %s: off by %.2g of the norm", name, kernels.Name(), d)
			if !(d <= 1e-5) {
				t.Errorf("%s, %s: off by %g of the norm", name, kernels.Name(), d)
			}
		}
	}
}

// pytorchLogits runs PyTorch on a model and images.
func pytorchLogits(t *testing.T, m *netspec.Trained, input []float32) []float32 {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err == nil {
		err = errors.Join(m.Write(file), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	writeNumbers(t, filepath.Join(dir, "images.f32"), input)
	programs, err := filepath.Abs("../../../framework/programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/pytorch_logits.py", dir)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return readNumbers(t, filepath.Join(dir, "logits.f32"))
}

// normalRandom fills a model's statistics with numbers that no training begins with.
func normalRandom(m *netspec.Trained, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for _, tensor := range m.Tensors {
		for i := range tensor.Data {
			switch {
			case strings.HasSuffix(tensor.Name, "norm.variance"):
				tensor.Data[i] = 0.5 + random.Float32()
			case strings.HasSuffix(tensor.Name, "norm.scale"):
				tensor.Data[i] = 0.3 + 0.4*random.Float32()
			case !strings.HasSuffix(tensor.Name, "weight"):
				tensor.Data[i] = float32(0.3 * random.NormFloat64())
			}
		}
	}
}
