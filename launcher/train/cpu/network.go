package cpu

import (
	"math"
	"math/rand/v2"
)

// A tensor is the activations of a batch at one place of the network, NHWC:
// data[((i*h+y)*w+x)*c+channel], and the gradient of the loss by them. Layers
// that can work in place share memory: two tensors may have the same grad.
type tensor struct {
	h, w, c    int
	data, grad []float32
}

// size is the elements of one image.
func (t *tensor) size() int { return t.h * t.w * t.c }

// A layer computes its output tensor from its input, and the input's gradient
// and its parameters' from the output's. n is how many images of the batch are
// in use. Only batch normalisation over several ranks can fail.
type layer interface {
	forward(n int, training bool) error
	backward(n int) error
}

// A parameter is a layer's slice of the flat parameter and gradient buffers.
// Each is used by one layer, whose backward sets all of its gradient.
type parameter struct {
	size int
	// fanIn is how many inputs each output sums over, for He initialisation;
	// 0 starts with the constant instead.
	fanIn    int
	constant float32

	w, g []float32
	at   int // where it begins in the flat buffers
}

// A network is layers in the order of the forward pass, ending in the logits.
type network struct {
	threads    *threads
	batch      int // most images at once
	input      *tensor
	logits     *tensor
	layers     []layer
	ends       []int // by layer: how many parameters there are up to its own
	norms      []*norm
	parameters []*parameter
	scratch    [][]float32 // by thread, for im2col
	partial    [][]float32 // by thread, for weight gradients

	reduce func([]float64) error // sums over ranks for synchronised batch norm; nil: statistics stay local
}

func newNetwork(batch, threadCount int, h, w, c int) *network {
	n := &network{threads: newThreads(threadCount), batch: batch}
	n.input = n.tensor(h, w, c, false)
	return n
}

// tensor makes activations, with a gradient of their own if asked for.
func (n *network) tensor(h, w, c int, grad bool) *tensor {
	t := &tensor{h: h, w: w, c: c, data: make([]float32, n.batch*h*w*c)}
	if grad {
		t.grad = make([]float32, len(t.data))
	}
	return t
}

func (n *network) parameter(size, fanIn int, constant float32) *parameter {
	p := &parameter{size: size, fanIn: fanIn, constant: constant}
	n.parameters = append(n.parameters, p)
	return p
}

// add appends a layer, whose parameters have been made since the one before.
func (n *network) add(l layer) {
	n.layers = append(n.layers, l)
	n.ends = append(n.ends, len(n.parameters))
}

// needScratch makes sure that every thread has that much memory for itself.
func (n *network) needScratch(scratch, partial int) {
	grow := func(list [][]float32, size int) [][]float32 {
		if len(list) == 0 || len(list[0]) < size {
			list = make([][]float32, n.threads.n)
			for i := range list {
				list[i] = make([]float32, size)
			}
		}
		return list
	}
	n.scratch = grow(n.scratch, scratch)
	n.partial = grow(n.partial, partial)
}

// bind lays all parameters into one buffer, and their gradients into another
// behind extra elements, and initialises them from the seed.
func (n *network) bind(seed int64, extra int) (values, gradients []float32) {
	size := 0
	for _, p := range n.parameters {
		size += p.size
	}
	values, gradients = make([]float32, size), make([]float32, size+extra)
	random := rand.New(rand.NewPCG(uint64(seed), 0x1217))
	at := 0
	for _, p := range n.parameters {
		p.w, p.g = values[at:at+p.size:at+p.size], gradients[extra+at:extra+at+p.size:extra+at+p.size]
		p.at = at
		at += p.size
		// He et al. 2015, equation 10: a normal distribution of variance
		// 2/fan-in keeps the variance of activations through ReLU layers.
		deviation := math.Sqrt(2 / float64(max(p.fanIn, 1)))
		for i := range p.w {
			p.w[i] = p.constant
			if p.fanIn > 0 {
				p.w[i] = float32(deviation * random.NormFloat64())
			}
		}
	}
	return values, gradients
}

func (n *network) forward(images int, training bool) error {
	for _, l := range n.layers {
		if err := l.forward(images, training); err != nil {
			return err
		}
	}
	return nil
}

// backward computes all gradients, from the last layer to the first. final is
// called as soon as the elements [from, to) of the flat gradient will not
// change any more in this pass: for each layer with parameters, in that order,
// so that the ranges adjoin and go down to 0. It runs on the calling goroutine,
// between layers; it may hand them on to be reduced, but should not wait.
func (n *network) backward(images int, final func(from, to int)) error {
	for i := len(n.layers) - 1; i >= 0; i-- {
		if err := n.layers[i].backward(images); err != nil {
			return err
		}
		first := 0
		if i > 0 {
			first = n.ends[i-1]
		}
		if own := n.parameters[first:n.ends[i]]; len(own) > 0 && final != nil {
			last := own[len(own)-1]
			final(own[0].at, last.at+last.size)
		}
	}
	return nil
}
