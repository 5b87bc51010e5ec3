package cpu

import (
	"math"
	"math/rand/v2"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
)

// A tensor is the activations of a batch at one place of the network, size
// numbers an image, and the gradient of the loss by them.
type tensor struct {
	size       int
	data, grad []float32
}

// A layer computes its output from its input in the forward pass. In the backward pass it computes
// the gradients by its input and its parameters from that by its output. n is how many images of
// the batch are in use. Only batch normalisation over several ranks can fail.
type layer interface {
	forward(n int, training bool) error
	backward(n int) error
}

// A parameter is a layer's slice of the flat parameter and gradient buffers.
// Each is used by one layer, whose backward sets all of its gradient.
type parameter struct {
	size int
	// fanIn is how many inputs each output sums, for He initialisation; 0: every value starts as
	// constant.
	fanIn    int
	constant float32

	w, g []float32
	at   int // where it begins in the flat buffers
}

// A network is layers in the order of the forward pass, ending in the logits.
type network struct {
	kernels     *simd.Set
	threads     *threads
	batch       int        // most images at once
	forwardOnly bool       // no gradients; parameters are final once frozen
	image       simd.Shape // of an image
	images      []float32  // the batch, NHWC
	logits      *tensor
	layers      []layer
	ends        []int // by layer: how many parameters there are up to its own
	norms       []*norm
	parameters  []*parameter

	rooms     map[room][][]float32
	partial   [][]float32 // by thread, for weight gradients
	gradients map[chain][]float32

	err error // why this network cannot be, from its making

	reduce func([]float64) error // sums over ranks for synchronised batch norm; nil: statistics stay local
}

func newNetwork(kernels *simd.Set, batch, threadCount int, image simd.Shape) *network {
	n := &network{kernels: kernels, threads: newThreads(threadCount), batch: batch, image: image,
		rooms: map[room][][]float32{}, gradients: map[chain][]float32{}}
	n.images = make([]float32, batch*image.Size())
	return n
}

// input returns the images as a tensor.
func (n *network) input() *tensor { return &tensor{size: n.image.Size(), data: n.images} }

// tensor makes activations, with a gradient of their own if asked for.
func (n *network) tensor(size int, grad bool) *tensor {
	t := &tensor{size: size, data: make([]float32, n.batch*size)}
	if grad && !n.forwardOnly {
		t.grad = make([]float32, len(t.data))
	}
	return t
}

// A room is memory for one padded image of a shape, for every thread. Layers share it; the margins
// are never written and stay zero.
type room struct {
	shape simd.Shape
	use   int
}

const (
	roomInput    = iota // what a convolution reads
	roomGradient        // gradient by a convolution's output
	roomOutcome         // gradient by an outcome; without margin
	roomShortcut        // what a shortcut takes of an image; without margin
)

func (n *network) needRoom(shape simd.Shape) {
	for use := roomInput; use <= roomShortcut; use++ {
		if n.forwardOnly && (use == roomGradient || use == roomOutcome) {
			continue
		}
		if n.rooms[room{shape, use}] == nil {
			size, _ := padded(shape)
			n.rooms[room{shape, use}] = n.byThread(size)
		}
	}
}

func (n *network) roomFor(shape simd.Shape, use int) [][]float32 { return n.rooms[room{shape, use}] }

// byThread makes memory for each thread.
func (n *network) byThread(size int) [][]float32 {
	list := make([][]float32, n.threads.n)
	for i := range list {
		list[i] = make([]float32, size)
	}
	return list
}

// A chain holds gradients that take turns in shared memory. The backward pass goes from unit to
// unit. For each image it reads one unit's gradient before it writes that of the unit before. It
// reads a shortcut's gradient before it writes, in the same memory, that of the unit two before. So
// units of one shape need two buffers, which fit a cache better than one for each unit.
type chain struct {
	shape simd.Shape
	odd   bool
}

// gradient returns the memory for the gradient of a unit, by its place.
func (n *network) gradient(place int, shape simd.Shape) []float32 {
	if n.forwardOnly {
		return nil
	}
	c := chain{shape, place%2 == 1}
	if n.gradients[c] == nil {
		n.gradients[c] = make([]float32, n.batch*shape.Size())
	}
	return n.gradients[c]
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

// needPartial makes sure that every thread has so much memory for the gradient
// by a layer's weights.
func (n *network) needPartial(size int) {
	if n.forwardOnly {
		return
	}
	if len(n.partial) == 0 || len(n.partial[0]) < size {
		n.partial = n.byThread(size)
	}
}

// size returns the number of parameters, in scalars.
func (n *network) size() (size int) {
	for _, p := range n.parameters {
		size += p.size
	}
	return size
}

// bind places all parameters in one buffer and their gradients in another; nil: no gradients.
func (n *network) bind(values, gradients []float32) {
	at := 0
	for _, p := range n.parameters {
		p.at = at
		at += p.size
		p.w = values[p.at:at:at]
		if gradients != nil {
			p.g = gradients[p.at:at:at]
		}
	}
}

// initialise draws the parameters from the seed.
func (n *network) initialise(seed int64) {
	random := rand.New(rand.NewPCG(uint64(seed), 0x1217))
	for _, p := range n.parameters {
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
