package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
)

// readout is a layer for tests: a unit's outcome without its margin, as a tensor.
type readout struct {
	in  *unit
	out *tensor
}

func (n *network) readout(in *unit) *tensor {
	r := &readout{in, n.tensor(in.out.Size(), true)}
	n.add(r)
	return r.out
}

// lines calls f with the start of each line of an image, with and without padding.
func (r *readout) lines(f func(padded, dense, length int)) {
	s := r.in.out
	_, line := padded(s)
	for y := range s.Lines {
		f((y+1)*line+s.Channels, y*s.Points*s.Channels, s.Points*s.Channels)
	}
}

func (r *readout) forward(n int, _ bool) error {
	for i := range n {
		x, out := r.in.outcome(0, i, true), image(r.out.data, i, r.out.size)
		r.lines(func(padded, dense, length int) { copy(out[dense:], x[padded:padded+length]) })
	}
	return nil
}

func (r *readout) backward(n int) error {
	for _, sums := range r.in.partial {
		clear(sums)
	}
	for i := range n {
		r.in.arrive(0, i, image(r.out.grad, i, r.out.size), r.in.outcome(0, i, false))
	}
	return nil
}

// A layerCase is a small network. The loss is a weighted sum of its output, so that the output's gradient is
// the weights.
type layerCase struct {
	name    string
	h, w, c int
	build   func(n *network) (out *tensor)
}

// withInput gives the images a gradient, as the output of another layer has it.
func withInput(n *network) *tensor {
	in := n.input()
	in.grad = make([]float32, len(in.data))
	return in
}

var layerCases = []layerCase{
	{"unit", 5, 6, 3, func(n *network) *tensor { return n.readout(n.unit(nil, 16, 1, nil)) }},
	{"unit of stride 2", 6, 6, 2, func(n *network) *tensor { return n.readout(n.unit(nil, 32, 2, nil)) }},
	{"unit of stride 2, odd", 7, 5, 1, func(n *network) *tensor { return n.readout(n.unit(nil, 16, 2, nil)) }},
	{"unit of one pixel", 1, 1, 3, func(n *network) *tensor { return n.readout(n.unit(nil, 16, 1, nil)) }},
	{"two units", 4, 3, 3, func(n *network) *tensor { return n.readout(n.unit(n.unit(nil, 16, 1, nil), 32, 1, nil)) }},
	{"two units, stride 2", 4, 4, 3, func(n *network) *tensor { return n.readout(n.unit(n.unit(nil, 32, 1, nil), 16, 2, nil)) }},
	{"two units, stride 2, odd", 5, 3, 3, func(n *network) *tensor { return n.readout(n.unit(n.unit(nil, 16, 1, nil), 16, 2, nil)) }},
	{"shortcut", 4, 4, 3, func(n *network) *tensor {
		x := n.unit(nil, 16, 1, nil)
		return n.readout(n.unit(n.unit(x, 16, 1, nil), 16, 1, x))
	}},
	{"two shortcuts", 3, 3, 3, func(n *network) *tensor {
		x := n.unit(nil, 16, 1, nil)
		x = n.unit(n.unit(x, 16, 1, nil), 16, 1, x)
		return n.readout(n.unit(n.unit(x, 16, 1, nil), 16, 1, x))
	}},
	{"shortcut that halves and widens", 6, 6, 3, func(n *network) *tensor {
		x := n.unit(nil, 16, 1, nil)
		return n.readout(n.unit(n.unit(x, 48, 2, nil), 48, 1, x))
	}},
	{"shortcut that halves and widens, odd", 3, 5, 3, func(n *network) *tensor {
		x := n.unit(nil, 16, 1, nil)
		return n.readout(n.unit(n.unit(x, 32, 2, nil), 32, 1, x))
	}},
	{"two shortcuts that halve and widen", 4, 3, 3, func(n *network) *tensor {
		x := n.unit(nil, 16, 1, nil)
		x = n.unit(n.unit(x, 32, 2, nil), 32, 1, x)
		return n.readout(n.unit(n.unit(x, 64, 2, nil), 64, 1, x))
	}},
	{"pool", 4, 3, 3, func(n *network) *tensor { return n.pool(n.unit(nil, 48, 1, nil)).out }},
	{"dense", 2, 4, 6, func(n *network) *tensor { return n.dense(withInput(n), 7, false).out }},
	{"dense with ReLU", 2, 4, 4, func(n *network) *tensor { return n.dense(withInput(n), 16, true).out }},
	{"two dense", 4, 4, 1, func(n *network) *tensor {
		return n.dense(n.dense(withInput(n), 48, true).out, 3, false).out
	}},
	{"dense of several pieces", 1, 1, 1040, func(n *network) *tensor { return n.dense(withInput(n), 5, false).out }},
}

const caseImages = 5

// A rig is a case with random input, parameters and output weights.
type rig struct {
	net               *network
	in                []float32
	inGrad            []float32 // or nil
	out               *tensor
	values, gradients []float32
	weights           []float64 // of the output elements in the loss
}

func newRig(t *testing.T, c layerCase, kernels *simd.Set, threads int) *rig {
	// One image more than is used: the rest of the batch must not matter.
	n := newNetwork(kernels, caseImages+1, threads, simd.Shape{Lines: c.h, Points: c.w, Channels: c.c})
	t.Cleanup(n.threads.close)
	r := &rig{net: n, in: n.images[:caseImages*n.image.Size()]}
	r.out = c.build(n)
	if n.err != nil {
		t.Fatal(n.err)
	}
	if d, ok := n.layers[0].(*dense); ok {
		r.inGrad = d.in.grad
	}
	r.values, r.gradients = make([]float32, n.size()), make([]float32, n.size())
	n.bind(r.values, r.gradients)
	n.initialise(7)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range n.images {
		n.images[i] = float32(random.NormFloat64())
	}
	for i := range r.values {
		r.values[i] += float32(0.3 * random.NormFloat64())
	}
	r.weights = make([]float64, caseImages*r.out.size)
	for i := range r.weights {
		r.weights[i] = random.NormFloat64()
	}
	return r
}

func (r *rig) loss(t testing.TB) (sum float64) {
	if err := r.net.forward(caseImages, true); err != nil {
		t.Fatal(err)
	}
	for i, w := range r.weights {
		sum += w * float64(r.out.data[i])
	}
	return sum
}

// backward computes the gradients by the layers' own backward pass: twice, because a pass must not
// depend on the previous one, each time with memory full of arbitrary values.
func (r *rig) backward(t testing.TB) {
	rubbish := [][]float32{r.inGrad, r.gradients}
	for _, g := range r.net.gradients {
		rubbish = append(rubbish, g)
	}
	for range 2 {
		r.loss(t)
		for _, g := range rubbish {
			for i := range g {
				g[i] = 123
			}
		}
		for i, w := range r.weights {
			r.out.grad[i] = float32(w)
		}
		if err := r.net.backward(caseImages, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Every layer's gradients, by its parameters and by its input, agree with central
// differences. A convolution's gradient by its input is seen in the units before
// it.
func TestGradients(t *testing.T) {
	for _, kernels := range simd.Sets() {
		for _, c := range layerCases {
			for _, threads := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s/%s/%d threads", kernels.Name(), c.name, threads), func(t *testing.T) {
					r := newRig(t, c, kernels, threads)
					r.backward(t)
					gradients := append([]float32(nil), r.gradients...)
					if r.inGrad != nil {
						r.compare(t, "input", r.in, append([]float32(nil), r.inGrad...))
					}
					for i, p := range r.net.parameters {
						r.compare(t, fmt.Sprintf("parameter %d", i), p.w, gradients[p.at:p.at+p.size])
					}
				})
			}
		}
	}
}

// compare checks the gradient by x, by some of its elements if there are many. A ReLU has a kink;
// one within a step falsifies the difference quotient by half of what its two sides differ by.
// Several kinks can cancel, but a shorter step has fewer of them: a gradient that agrees at no step
// is wrong. Elements whose two sides differ a lot are left out, but most must remain.
func (r *rig) compare(t *testing.T, what string, x, gradient []float32) {
	t.Helper()
	var scale float64
	for _, g := range gradient {
		scale = max(scale, math.Abs(float64(g)))
	}
	scale = max(scale, 0.1)
	step, elements, kinks := 1, 0, 0
	if len(x) > 100 {
		step = len(x)/100 | 1
	}
	middle := r.loss(t)
	for i := 0; i < len(x); i += step {
		elements++
		got, was := float64(gradient[i]), x[i]
		var quotients []float64
		agrees := false
		steps := []float32{1.0 / 256, 1.0 / 1024, 1.0 / 4096}
		for _, h := range steps {
			x[i] = was + h
			up := r.loss(t)
			x[i] = was - h
			down := r.loss(t)
			quotient, bend := (up-down)/(2*float64(h)), math.Abs(up-2*middle+down)/float64(h)
			if bend > 0.03*scale {
				continue
			}
			quotients = append(quotients, quotient)
			if agrees = math.Abs(got-quotient) <= 3e-3*scale+bend/2; agrees {
				break
			}
		}
		x[i] = was
		switch {
		case agrees:
		case len(quotients) < len(steps):
			kinks++
		default:
			t.Errorf("%s %d: gradient %.6f, difference quotients %.6f (largest %.3f)", what, i, got, quotients, scale)
		}
	}
	if kinks > elements/4 {
		t.Errorf("%d of %d %s elements could not be compared", kinks, elements, what)
	}
}

// Normalised values have mean 0 and variance 1, also if the inputs are far from 0. The running
// averages move by a tenth towards the batch's statistics, and evaluation
// uses them.
func TestNormStatistics(t *testing.T) {
	for _, kernels := range simd.Sets() {
		t.Run(kernels.Name(), func(t *testing.T) {
			const images, channels = 8, 16
			n := newNetwork(kernels, images, 1, simd.Shape{Lines: 4, Points: 4, Channels: 3})
			u := n.unit(nil, channels, 1, nil)
			n.bind(make([]float32, n.size()), nil)
			n.initialise(1)
			random := rand.New(rand.NewPCG(3, 4))
			for i := range u.y {
				u.y[i] = 100 + 3*float32(random.NormFloat64())
			}
			values := images * 16
			kernels.Moments(u.y, u.partial[0], values, channels)
			if err := u.useBatch(values); err != nil {
				t.Fatal(err)
			}
			// What is normalised by the ReLU's input: half of it is cut off, so
			// the shift lifts all of it above zero.
			for c := range channels {
				u.coefficients[2*channels+c] = 50
			}
			for c := range channels {
				var mean, square, inMean, inSquare float64
				for i := range images {
					out := u.outcome(0, i, true)
					for p := range 16 {
						y := float64(out[((p/4+1)*6+p%4+1)*channels+c]) - 50
						x := float64(u.y[(i*16+p)*channels+c])
						mean, square, inMean, inSquare = mean+y, square+y*y, inMean+x, inSquare+x*x
					}
				}
				n := float64(values)
				mean, square, inMean = mean/n, square/n, inMean/n
				if math.Abs(mean) > 1e-5 || math.Abs(square-1) > 1e-4 {
					t.Errorf("channel %d: mean %v and mean square %v after normalising", c, mean, square)
				}
				unbiased := (inSquare - n*inMean*inMean) / (n - 1)
				if got, want := float64(u.runningMean[c]), 0.1*inMean; math.Abs(got-want) > 1e-5*want {
					t.Errorf("channel %d: running mean %v, want %v", c, got, want)
				}
				if got, want := float64(u.runningVariance[c]), 0.9+0.1*unbiased; math.Abs(got-want) > 1e-5*want {
					t.Errorf("channel %d: running variance %v, want %v", c, got, want)
				}
			}
			u.useAverages()
			want := (float64(u.y[0]) - float64(u.runningMean[0])) / math.Sqrt(float64(u.runningVariance[0])+1e-5)
			if got := float64(u.outcome(0, 0, true)[(6+1)*channels]); math.Abs(got-want) > 1e-5*math.Abs(want) {
				t.Errorf("evaluation gives %v, want %v", got, want)
			}
		})
	}
}

func TestCrossEntropy(t *testing.T) {
	logits := []float32{1, 2, 0.5}
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	grad := make([]float32, 3)
	for label := range logits {
		loss, correct := crossEntropy(logits, byte(label), grad, 0.25)
		if want := -math.Log(math.Exp(float64(logits[label])) / sum); math.Abs(loss-want) > 1e-6 {
			t.Errorf("label %d: loss %v, want %v", label, loss, want)
		}
		if correct != (label == 1) {
			t.Errorf("label %d: correct = %v", label, correct)
		}
		for i := range logits {
			const h = 1e-2
			up, down := append([]float32(nil), logits...), append([]float32(nil), logits...)
			up[i], down[i] = up[i]+h, down[i]-h
			lossUp, _ := crossEntropy(up, byte(label), nil, 0)
			lossDown, _ := crossEntropy(down, byte(label), nil, 0)
			if want := 0.25 * (lossUp - lossDown) / (2 * h); math.Abs(float64(grad[i])-want) > 1e-5 {
				t.Errorf("label %d: gradient %v by logit %d, want %v", label, grad[i], i, want)
			}
		}
	}
	if loss, _ := crossEntropy([]float32{1000, 0}, 1, nil, 0); loss != 1000 {
		t.Errorf("large logits: loss %v, want 1000", loss)
	}
	nan := float32(math.NaN())
	if loss, correct := crossEntropy([]float32{nan, nan}, 0, nil, 0); correct || !math.IsNaN(loss) {
		t.Errorf("not a number: loss %v, correct %v", loss, correct)
	}
	if _, correct := crossEntropy([]float32{1, 1}, 1, nil, 0); correct {
		t.Error("of two equal logits the second counts as chosen")
	}
}
