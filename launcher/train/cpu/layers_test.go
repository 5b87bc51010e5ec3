package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// layerCase is a layer between an input and an output whose weighted sum is
// taken as the loss, so that the output's gradient is the weights.
type layerCase struct {
	name   string
	h, w   int
	c      int
	images int
	// build adds the layer, or layers, on in and returns the output.
	build func(n *network, in *tensor) *tensor
}

var layerCases = []layerCase{
	{"conv stride 1", 5, 6, 3, 3, func(n *network, in *tensor) *tensor { return n.conv(in, 4, 1, false).out }},
	{"conv stride 2", 6, 6, 2, 3, func(n *network, in *tensor) *tensor { return n.conv(in, 5, 2, false).out }},
	{"conv stride 2, odd", 7, 5, 2, 3, func(n *network, in *tensor) *tensor { return n.conv(in, 3, 2, false).out }},
	{"conv of one pixel", 1, 1, 2, 5, func(n *network, in *tensor) *tensor { return n.conv(in, 3, 1, false).out }},
	{"conv of several tiles", 12, 12, 2, 2, func(n *network, in *tensor) *tensor { return n.conv(in, 2, 1, false).out }},
	{"conv with many taps", 4, 4, 24, 2, func(n *network, in *tensor) *tensor { return n.conv(in, 3, 1, false).out }},
	{"norm", 3, 4, 3, 5, func(n *network, in *tensor) *tensor { return n.norm(in, false).out }},
	{"norm with ReLU", 3, 4, 3, 5, func(n *network, in *tensor) *tensor { return n.norm(in, true).out }},
	{"dense", 2, 3, 4, 5, func(n *network, in *tensor) *tensor { return n.dense(in, 7, false).out }},
	{"dense with ReLU", 2, 3, 4, 5, func(n *network, in *tensor) *tensor { return n.dense(in, 7, true).out }},
	{"dense of several tiles", 1, 1, 200, 70, func(n *network, in *tensor) *tensor { return n.dense(in, 3, false).out }},
	{"pool", 4, 3, 5, 3, func(n *network, in *tensor) *tensor { return n.pool(in).out }},
	{"residual", 4, 4, 2, 3, func(n *network, in *tensor) *tensor {
		return n.residual(in, n.conv(in, 2, 1, true).out).out
	}},
	{"residual that halves and widens", 6, 6, 2, 3, func(n *network, in *tensor) *tensor {
		return n.residual(in, n.conv(in, 4, 2, true).out).out
	}},
}

// rig is a layer with random input, parameters and output weights.
type rig struct {
	net               *network
	in, out           *tensor
	images            int
	values, gradients []float32
	weights           []float64 // of the output elements in the loss
}

func newRig(c layerCase, threads int) *rig {
	// One image more than is used: the rest of the batch must not matter.
	n := newNetwork(c.images+1, threads, c.h, c.w, c.c)
	n.input.grad = make([]float32, len(n.input.data))
	r := &rig{net: n, in: n.input, images: c.images}
	r.out = c.build(n, n.input)
	r.values, r.gradients = n.bind(7, 0)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range r.in.data {
		r.in.data[i] = float32(random.NormFloat64())
	}
	for i := range r.values {
		r.values[i] += float32(0.3 * random.NormFloat64())
	}
	r.weights = make([]float64, c.images*r.out.size())
	for i := range r.weights {
		r.weights[i] = random.NormFloat64()
	}
	return r
}

func (r *rig) loss(t testing.TB) (sum float64) {
	if err := r.net.forward(r.images, true); err != nil {
		t.Fatal(err)
	}
	for i, w := range r.weights {
		sum += w * float64(r.out.data[i])
	}
	return sum
}

// backward computes the gradients by the layer's own backward pass, starting
// from rubbish that it must overwrite.
func (r *rig) backward(t testing.TB) {
	r.loss(t)
	for _, g := range [][]float32{r.in.grad, r.gradients} {
		for i := range g {
			g[i] = 123
		}
	}
	for i, w := range r.weights {
		r.out.grad[i] = float32(w)
	}
	if err := r.net.backward(r.images, nil); err != nil {
		t.Fatal(err)
	}
}

// Every layer's gradients, by its input and by its parameters, agree with
// central differences.
func TestGradients(t *testing.T) {
	for _, c := range layerCases {
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d threads", c.name, threads), func(t *testing.T) {
				r := newRig(c, threads)
				defer r.net.threads.close()
				r.backward(t)
				used := c.images * r.in.size()
				inputs := append([]float32(nil), r.in.grad[:used]...)
				parameters := append([]float32(nil), r.gradients...)
				r.compare(t, "input", r.in.data[:used], inputs)
				r.compare(t, "parameter", r.values, parameters)
			})
		}
	}
}

// compare checks the gradient by x. A ReLU has a kink; one within the step can
// falsify the difference quotient by half of what its two sides differ by. Where
// they differ much the element is left out, but most must remain.
func (r *rig) compare(t *testing.T, what string, x, gradient []float32) {
	t.Helper()
	const h = 1.0 / 256
	var scale float64
	for _, g := range gradient {
		scale = max(scale, math.Abs(float64(g)))
	}
	middle := r.loss(t)
	kinks := 0
	for i := range x {
		was := x[i]
		x[i] = was + h
		up := r.loss(t)
		x[i] = was - h
		down := r.loss(t)
		x[i] = was
		bend := math.Abs(up-2*middle+down) / h
		if bend > 0.02*scale {
			kinks++
			continue
		}
		want := (up - down) / (2 * h)
		if got := float64(gradient[i]); math.Abs(got-want) > 2e-3*scale+bend/2 {
			t.Errorf("%s %d: gradient %.6f, difference quotient %.6f (largest %.3f)", what, i, got, want, scale)
		}
	}
	if kinks > len(x)/4 {
		t.Errorf("%d of %d %s elements could not be compared", kinks, len(x), what)
	}
}

// Convolution against its definition, in double precision.
func TestConvDefinition(t *testing.T) {
	for _, c := range layerCases[:6] {
		r := newRig(c, 2)
		l := r.net.layers[0].(*conv)
		r.loss(t)
		for image := range c.images {
			for y := range l.out.h {
				for x := range l.out.w {
					for o := range l.out.c {
						var want float64
						for ty := range 3 {
							for tx := range 3 {
								iy, ix := y*l.stride+ty-1, x*l.stride+tx-1
								if iy < 0 || ix < 0 || iy >= c.h || ix >= c.w {
									continue
								}
								for i := range c.c {
									want += float64(l.in.data[((image*c.h+iy)*c.w+ix)*c.c+i]) * float64(l.weight.w[((o*3+ty)*3+tx)*c.c+i])
								}
							}
						}
						got := float64(l.out.data[((image*l.out.h+y)*l.out.w+x)*l.out.c+o])
						if math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
							t.Fatalf("%s: image %d, pixel %d,%d, channel %d: %v, want %v", c.name, image, y, x, o, got, want)
						}
					}
				}
			}
		}
		r.net.threads.close()
	}
}

// Normalised values have mean 0 and variance 1, the running averages move a
// tenth of the way to the batch's statistics, and evaluation uses them.
func TestNormStatistics(t *testing.T) {
	r := newRig(layerCase{h: 4, w: 4, c: 2, images: 8, build: func(n *network, in *tensor) *tensor { return n.norm(in, false).out }}, 2)
	defer r.net.threads.close()
	copy(r.values, []float32{1, 1, 0, 0}) // scale, shift
	for i := range r.in.data {
		r.in.data[i] = 100 + 3*r.in.data[i]
	}
	r.loss(t)
	l := r.net.norms[0]
	values := 8 * 16
	for channel := range 2 {
		var mean, square, inMean, inSquare float64
		for i := range values {
			y, x := float64(r.out.data[2*i+channel]), float64(r.in.data[2*i+channel])
			mean, square, inMean, inSquare = mean+y, square+y*y, inMean+x, inSquare+x*x
		}
		n := float64(values)
		mean, square, inMean = mean/n, square/n, inMean/n
		if math.Abs(mean) > 1e-4 || math.Abs(square-1) > 1e-4 {
			t.Errorf("channel %d: mean %v and mean square %v after normalising", channel, mean, square)
		}
		unbiased := (inSquare - n*inMean*inMean) / (n - 1)
		if got, want := float64(l.runningMean[channel]), 0.1*inMean; math.Abs(got-want) > 1e-3 {
			t.Errorf("channel %d: running mean %v, want %v", channel, got, want)
		}
		if got, want := float64(l.runningVariance[channel]), 0.9+0.1*unbiased; math.Abs(got-want) > 1e-3*want {
			t.Errorf("channel %d: running variance %v, want %v", channel, got, want)
		}
	}
	if err := r.net.forward(1, false); err != nil {
		t.Fatal(err)
	}
	want := (float64(r.in.data[0]) - float64(l.runningMean[0])) / math.Sqrt(float64(l.runningVariance[0])+1e-5)
	if got := float64(r.out.data[0]); math.Abs(got-want) > 1e-3*math.Abs(want) {
		t.Errorf("evaluation gives %v, want %v", got, want)
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
