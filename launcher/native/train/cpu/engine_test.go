package cpu

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/world"
)

func alone(t testing.TB) *collective.Group {
	t.Helper()
	g, err := collective.Join(context.Background(), world.World{Size: 1}, "", collective.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newEngine(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Height == 0 {
		o.Height, o.Width = 32, 32
	}
	o.Channels, o.Classes, o.GlobalBatch = 3, 10, max(o.GlobalBatch, o.Batch)
	e, err := New(o, alone(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// fill puts random images into the engine's input.
func fill(e *Engine, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 9))
	images, labels := e.Input()
	for i := range images {
		images[i] = float32(random.NormFloat64())
	}
	for i := range labels {
		labels[i] = byte(random.IntN(e.o.Classes))
	}
}

// The counts of He et al. 2016, table 6 (0.27, 0.46, 0.66, 0.85 million), to
// the last parameter.
func TestParameterCounts(t *testing.T) {
	resnet := func(blocks int) int {
		conv := func(in, out int) int { return 9*in*out + 2*out } // with its batch norm
		count := conv(3, 16) + 64*10 + 10
		for _, stage := range [][2]int{{16, 16}, {16, 32}, {32, 64}} {
			count += conv(stage[0], stage[1]) + (2*blocks-1)*conv(stage[1], stage[1])
		}
		return count
	}
	for model, want := range map[string]int{
		"resnet20": resnet(3), "resnet32": resnet(5), "resnet44": 658_586, "resnet56": resnet(9),
		"cnn": 9*(3*16+16*32+32*64) + 2*(16+32+64) + 64*10 + 10, "mlp": 3072*1024 + 1024 + 1024*512 + 512 + 512*10 + 10,
	} {
		if got := newEngine(t, Options{Model: model, Batch: 1}).Parameters(); got != want {
			t.Errorf("%s has %d parameters, want %d", model, got, want)
		}
	}
	if resnet(7) != 658_586 {
		t.Errorf("the formula gives %d for resnet44", resnet(7))
	}
}

func TestUnknownKernels(t *testing.T) {
	_, err := New(Options{Model: "cnn", Batch: 1, GlobalBatch: 1, Height: 8, Width: 8, Channels: 3, Classes: 2, Kernels: "sse9"}, alone(t))
	if err == nil || !strings.Contains(err.Error(), `"sse9"`) || !strings.Contains(err.Error(), "portable") {
		t.Errorf("%v, want the kernels listed", err)
	}
}

// An image size that the dense kernels do not support is refused.
func TestInputsThatAreNotAMultiple(t *testing.T) {
	_, err := New(Options{Model: "mlp", Batch: 1, GlobalBatch: 1, Height: 5, Width: 5, Channels: 3, Classes: 2}, alone(t))
	if err == nil || !strings.Contains(err.Error(), "5×5×3") || !strings.Contains(err.Error(), "multiple of 16") {
		t.Errorf("%v, want what would be valid", err)
	}
}

func TestUnknownModel(t *testing.T) {
	_, err := New(Options{Model: "vgg"}, alone(t))
	if err == nil || !strings.Contains(err.Error(), `"vgg"`) || !strings.Contains(err.Error(), "cnn, mlp, resnet20, resnet32, resnet44, resnet56") {
		t.Errorf("%v, want the models listed", err)
	}
}

// The gradient of a whole model: along random directions within each
// parameter, and along the gradient itself, the loss changes as it says.
// Directions average over the kinks of ReLU.
func TestModelGradient(t *testing.T) {
	for _, o := range []Options{
		{Model: "resnet20", Batch: 4, Height: 8, Width: 8, Threads: 2},
		{Model: "resnet20", Batch: 4, Height: 8, Width: 8, Kernels: "portable"},
		{Model: "cnn", Batch: 8, Height: 16, Width: 16},
		{Model: "mlp", Batch: 4, Height: 4, Width: 4},
	} {
		t.Run(o.Model+o.Kernels, func(t *testing.T) {
			e := newEngine(t, o)
			fill(e, 1)
			loss := func() float64 {
				l, _, err := e.forward(context.Background(), o.Batch, true)
				if err != nil {
					t.Fatal(err)
				}
				return l / float64(o.Batch)
			}
			if _, _, err := e.Gradient(context.Background(), o.Batch); err != nil {
				t.Fatal(err)
			}
			gradient := append([]float32(nil), e.gradients[:len(e.parameters)]...)
			initial := append([]float32(nil), e.parameters...)
			slope := func(direction []float32, step float64) (want, got float64) {
				var norm float64
				for i, d := range direction {
					norm += float64(d) * float64(d)
					want += float64(d) * float64(gradient[i])
				}
				norm = math.Sqrt(norm)
				at := func(sign float64) float64 {
					for i, d := range direction {
						e.parameters[i] = initial[i] + float32(sign*step/norm*float64(d))
					}
					return loss()
				}
				got = (at(1) - at(-1)) / (2 * step)
				copy(e.parameters, initial)
				return want / norm, got
			}
			want, got := slope(gradient, 1e-3)
			if math.Abs(got-want) > 0.02*want {
				t.Errorf("along the gradient the loss rises by %v, want %v", got, want)
			}
			at := 0
			for i, p := range e.net.parameters {
				direction := make([]float32, len(gradient))
				copy(direction[at:at+p.size], gradient[at:at+p.size])
				at += p.size
				want, got := slope(direction, 1e-3)
				if math.Abs(got-want) > 0.05*want+1e-3 {
					t.Errorf("along the gradient of parameter %d of %d elements the loss rises by %v, want %v", i, p.size, got, want)
				}
			}
		})
	}
}

// The backward pass reports final gradients from the end of the flat buffer to its beginning,
// and does not change them afterwards.
func TestBackwardNamesFinalGradients(t *testing.T) {
	for _, name := range netspec.Names() {
		e := newEngine(t, Options{Model: name, Batch: 2, Height: 8, Width: 8, Threads: 2})
		fill(e, 1)
		if _, _, err := e.forward(context.Background(), 2, true); err != nil {
			t.Fatal(err)
		}
		count, seen := len(e.parameters), make([]float32, len(e.parameters))
		down, ranges := count, 0
		if err := e.net.backward(2, func(from, to int) {
			if to != down || from >= to {
				t.Errorf("%s: range %d to %d after %d", name, from, to, down)
			}
			copy(seen[from:to], e.gradients[from:to])
			down = from
			ranges++
		}); err != nil {
			t.Fatal(err)
		}
		if down != 0 || ranges < 3 {
			t.Errorf("%s: %d ranges, down to %d", name, ranges, down)
		}
		if diff := cmp.Diff(e.gradients[:count], seen); diff != "" {
			t.Errorf("%s: gradients changed after they were final (-at the end +when named):\n%s", name, diff)
		}
	}
}

// SGD by PyTorch's formulas, by hand for two steps.
func TestUpdate(t *testing.T) {
	e := newEngine(t, Options{Model: "cnn", Batch: 1, Momentum: 0.9, WeightDecay: 0.1})
	e.parameters[0] = 2
	e.gradients[0] = 0.5
	e.Update(0.1) // v = 0.5 + 0.2 = 0.7; w = 2 - 0.07
	if got := e.parameters[0]; math.Abs(float64(got)-1.93) > 1e-6 {
		t.Errorf("after one step %v, want 1.93", got)
	}
	e.gradients[0] = -0.3
	e.Update(0.2) // v = 0.63 - 0.3 + 0.193 = 0.523; w = 1.93 - 0.1046
	if got := e.parameters[0]; math.Abs(float64(got)-1.8254) > 1e-6 {
		t.Errorf("after two steps %v, want 1.8254", got)
	}
}

// steps trains for a few steps on random images and returns the parameters' hash.
func steps(t *testing.T, o Options, count int) string {
	e := newEngine(t, o)
	for i := range count {
		fill(e, uint64(i))
		if _, _, err := e.Gradient(context.Background(), o.Batch); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Reduce(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		e.Update(0.05)
	}
	h := sha256.New()
	if err := e.WriteParameters(h); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// The same work gives the same bits, with any fixed number of threads.
func TestDeterministic(t *testing.T) {
	for _, kernels := range simd.Sets() {
		for _, threads := range []int{1, 3} {
			o := Options{Model: "resnet20", Batch: 5, Height: 8, Width: 8, Threads: threads, Kernels: kernels.Name(), Momentum: 0.9}
			if a, b := steps(t, o, 3), steps(t, o, 3); a != b {
				t.Errorf("%s, %d threads: two runs end with parameters %s and %s", kernels.Name(), threads, a, b)
			}
		}
	}
}

// All memory is allocated before the first step.
func TestStepDoesNotAllocate(t *testing.T) {
	for _, model := range []string{"resnet20", "cnn", "mlp"} {
		for _, threads := range []int{1, 2} {
			e := newEngine(t, Options{Model: model, Batch: 4, Height: 16, Width: 16, Threads: threads})
			fill(e, 1)
			votes := []float32{0}
			allocations := testing.AllocsPerRun(5, func() {
				if _, _, err := e.Gradient(context.Background(), 4); err != nil {
					t.Fatal(err)
				}
				if _, err := e.Reduce(context.Background(), votes); err != nil {
					t.Fatal(err)
				}
				e.Update(0.1)
			})
			if allocations > 0 {
				t.Errorf("%s with %d threads: %v allocations a step", model, threads, allocations)
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		model string
		batch int
	}{{"resnet20", 128}, {"cnn", 32}, {"mlp", 128}} {
		b.Run(fmt.Sprintf("%s/batch=%d", c.model, c.batch), func(b *testing.B) {
			e := newEngine(b, Options{Model: c.model, Batch: c.batch, Threads: 1, Momentum: 0.9})
			fill(e, 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := e.Gradient(context.Background(), c.batch); err != nil {
					b.Fatal(err)
				}
				e.Update(0.01)
			}
			b.ReportMetric(float64(c.batch*b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
