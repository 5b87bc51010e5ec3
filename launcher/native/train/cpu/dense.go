package cpu

import (
	"fmt"
	"math"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
)

// dense is a fully connected layer, y = W·x + b, optionally followed by a ReLU. Its weights are
// w[output][input].
type dense struct {
	net          *network
	in, out      *tensor
	relu         bool
	weight, bias *parameter

	images  int
	sums    [][]float64 // by thread: sums of the gradient by each output
	neutral []float32   // coefficients that normalise nothing, but shift by the bias
	columns [][]float32 // by thread: panel columns of the weights, and of the inputs

	doProducts, doReLU, doMask, doGradients work
}

// panel is the number of inputs that the backward pass processes at once.
const panel = 2 * simd.Group

func (n *network) dense(in *tensor, outputs int, relu bool) *dense {
	if in.size%simd.Group != 0 && n.err == nil {
		n.err = fmt.Errorf("a fully connected layer of %d inputs; want a multiple of %d", in.size, simd.Group)
	}
	d := &dense{net: n, in: in, out: n.tensor(outputs, true), relu: relu}
	d.weight, d.bias = n.parameter(outputs*in.size, in.size, 0), n.parameter(outputs, 0, 0)
	for range n.threads.n {
		d.sums = append(d.sums, make([]float64, 2*outputs))
	}
	d.neutral = make([]float32, 3*outputs)
	for i := range outputs {
		d.neutral[outputs+i] = 1
	}
	d.columns = n.byThread(panel * max(outputs, n.batch))
	d.doProducts, d.doReLU, d.doMask, d.doGradients = d.productsPart, d.reluPart, d.maskPart, d.gradientsPart
	n.add(d)
	return d
}

func (d *dense) forward(n int, _ bool) error {
	d.images = n
	d.net.threads.each(d.out.size, d.doProducts)
	if d.relu {
		copy(d.neutral[2*d.out.size:], d.bias.w)
		d.net.threads.each(n, d.doReLU)
	}
	return nil
}

// productsPart computes some of the outputs, so that a thread reads only their weights. It
// processes the inputs in pieces so small that those of all images fit into a cache.
func (d *dense) productsPart(_, from, to int) {
	const piece = 1024
	m, k := d.out.size, d.in.size
	for i := range d.images {
		row := d.out.data[i*m+from : i*m+to]
		clear(row)
		if !d.relu {
			copy(row, d.bias.w[from:to])
		}
	}
	if from == to {
		return
	}
	for at := 0; at < k; at += piece {
		d.net.kernels.Dot(simd.Line{Data: d.out.data[from:], Step: m}, d.images, to-from, min(piece, k-at),
			simd.Line{Data: d.in.data[at:], Step: k}, simd.Line{Data: d.weight.w[from*k+at:], Step: k})
	}
}

// reluPart adds the bias and applies the ReLU.
func (d *dense) reluPart(_, from, to int) {
	if m := d.out.size; from < to {
		rows := d.out.data[from*m : to*m]
		d.net.kernels.Normalise(simd.Image{Data: rows}, rows, simd.Image{}, d.neutral, simd.Shape{Lines: 1, Points: to - from, Channels: m})
	}
}

func (d *dense) backward(n int) error {
	d.images = n
	d.net.threads.each(n, d.doMask)
	for i := range d.bias.g {
		sum := 0.0
		for _, sums := range d.sums {
			sum += sums[i]
		}
		d.bias.g[i] = float32(sum)
	}
	d.net.threads.each(d.in.size/simd.Group, d.doGradients)
	return nil
}

// maskPart applies the ReLU to the gradient by the outputs, and sums it for the
// bias.
func (d *dense) maskPart(part, from, to int) {
	m, sums := d.out.size, d.sums[part]
	clear(sums)
	if from == to {
		return
	}
	grad, rows := d.out.grad[from*m:to*m], d.out.data[from*m:to*m]
	if d.relu {
		d.net.kernels.Rectify(grad, grad, nil, simd.Image{Data: rows}, rows, d.neutral[:m], sums, simd.Shape{Lines: 1, Points: to - from, Channels: m})
		return
	}
	for i, v := range grad {
		sums[i%m] += float64(v)
	}
}

// gradientsPart computes the gradients by some groups of inputs and by their weights. Columns of a matrix are
// far apart in memory, often in cache sets that hold few of them, so they are first copied next to each other.
func (d *dense) gradientsPart(part, from, to int) {
	m, k := d.out.size, d.in.size
	for at := from * simd.Group; at < to*simd.Group; at += panel {
		width := min(panel, to*simd.Group-at)
		columns := d.columns[part][:d.images*width]
		for i := range d.images {
			copy(columns[i*width:(i+1)*width], d.in.data[i*k+at:])
		}
		for o := range m {
			clear(d.weight.g[o*k+at : o*k+at+width])
		}
		d.net.kernels.Outer(simd.Matrix{Data: d.weight.g[at:], Step: k, Block: simd.Group}, m, width,
			simd.Points{Data: d.out.grad, Step: m}, simd.Points{Data: columns, Step: width}, 1, d.images)
		if d.in.grad == nil {
			continue
		}
		columns = d.columns[part][:m*width]
		for o := range m {
			copy(columns[o*width:(o+1)*width], d.weight.w[o*k+at:])
		}
		d.net.kernels.Correlate(simd.Line{Data: d.in.grad[at:], Step: k}, simd.Line{Data: d.out.grad, Step: m}, d.images, width,
			simd.Window{Runs: 1, Run: m}, simd.Matrix{Data: columns, Step: width, Block: simd.Group})
	}
}

// crossEntropy returns the softmax cross-entropy of image i's logits: −log of the probability of its label.
// correct reports that no other class is likelier. If grad is not nil, it is set to scale times the gradient by
// the logits.
func crossEntropy(logits []float32, label byte, grad []float32, scale float32) (loss float64, correct bool) {
	largest := float32(math.Inf(-1))
	for _, v := range logits {
		largest = max(largest, v)
	}
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v - largest))
	}
	for i := range grad {
		p := math.Exp(float64(logits[i]-largest)) / sum
		if i == int(label) {
			p--
		}
		grad[i] = scale * float32(p)
	}
	own := logits[label]
	correct = own == largest // never for NaN
	for i, v := range logits[:label] {
		correct = correct && (v != own || i == int(label)) // of equal classes, the first one counts
	}
	return math.Log(sum) - float64(own-largest), correct
}
