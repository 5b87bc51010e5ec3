package cpu

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// trained returns an engine after some steps, so that its statistics differ from the initial
// ones.
func trained(t *testing.T, name, kernels string, batch int) *Engine {
	t.Helper()
	e := newEngine(t, Options{Model: name, Batch: batch, Seed: 3, Threads: 2, Kernels: kernels})
	for step := range uint64(3) {
		fill(e, step)
		if _, _, err := e.Gradient(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Reduce(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		e.Update(0.01)
	}
	return e
}

// A classifier gives the same results as the engine's evaluation, to the last bit: for many images
// at once, for each alone, and from several goroutines.
func TestClassifierAsEvaluation(t *testing.T) {
	const batch = piece + 3
	for _, kernels := range simd.Sets() {
		for _, name := range []string{"resnet20", "cnn", "mlp"} {
			t.Run(name+"/"+kernels.Name(), func(t *testing.T) {
				e := trained(t, name, kernels.Name(), batch)
				trained, err := e.Trained()
				if err != nil {
					t.Fatal(err)
				}
				c, err := NewClassifier(trained, 3, kernels.Name())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				fill(e, 9)
				if _, _, err := e.Evaluate(batch); err != nil {
					t.Fatal(err)
				}
				images, _ := e.Input()
				want := e.net.logits.data
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() {
						if got := c.Logits(images); !slices.Equal(got, want) {
							t.Errorf("all at once: %v, want %v", got, want)
						}
					})
				}
				for i := range batch {
					calls.Go(func() {
						if got := c.Logits(image(images, i, c.inputs)); !slices.Equal(got, image(want, i, 10)) {
							t.Errorf("image %d alone: %v, want %v", i, got, image(want, i, 10))
						}
					})
				}
				calls.Wait()
			})
		}
	}
}

// An untrained model has the initial parameters of a training.
func TestUntrained(t *testing.T) {
	for _, name := range netspec.Names() {
		e := newEngine(t, Options{Model: name, Batch: 1, Seed: 5})
		got, err := Untrained(name, 10, 32, 32, 3, 5)
		if err != nil {
			t.Fatal(err)
		}
		want, err := e.Trained()
		if err != nil {
			t.Fatal(err)
		}
		same := func(a, b netspec.Tensor) bool {
			return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Data, b.Data)
		}
		if !slices.EqualFunc(want.Tensors, got.Tensors, same) {
			t.Errorf("%s: tensors differ", name)
		}
		if own := *got; own.Model != want.Model || own.Classes != want.Classes || own.Height != want.Height || own.Width != want.Width || own.Channels != want.Channels {
			t.Errorf("%s: %s of %d×%d×%d in %d", name, own.Model, own.Height, own.Width, own.Channels, own.Classes)
		}
		size := 0
		for _, tensor := range got.Tensors {
			if !strings.Contains(tensor.Name, "norm.mean") && !strings.Contains(tensor.Name, "norm.variance") {
				size += len(tensor.Data)
			}
		}
		if size != e.Parameters() {
			t.Errorf("%s: %d parameters in its tensors, %d in the engine", name, size, e.Parameters())
		}
	}
}

// A model that does not fit its own description is refused.
func TestClassifierRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(m *netspec.Trained)
		want   string
	}{
		{"unknown", func(m *netspec.Trained) { m.Model = "vgg" }, `unknown model "vgg"`},
		{"another", func(m *netspec.Trained) { m.Model = "resnet20" }, "17 tensors; resnet20 has 97"},
		{"classes", func(m *netspec.Trained) { m.Classes = 11 }, "tensor 16 is layer5.weight [10 64] of 640 numbers; that of cnn is layer5.weight [11 64] of 704"},
		{"no image", func(m *netspec.Trained) { m.Height = 0 }, "images of 0×32×3 in 10 classes"},
		{"a huge image", func(m *netspec.Trained) { m.Width = 1 << 20 }, "want 1 to 4096"},
		{"short", func(m *netspec.Trained) { m.Tensors[3].Data = m.Tensors[3].Data[1:] }, "tensor 4 is layer1.norm.mean [16] of 15 numbers"},
		{"name", func(m *netspec.Trained) { m.Tensors[0].Name = "x" }, "tensor 1 is x"},
	} {
		m, err := Untrained("cnn", 10, 32, 32, 3, 1)
		if err != nil {
			t.Fatal(err)
		}
		test.change(m)
		if _, err := NewClassifier(m, 2, ""); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}
