package cpu

import (
	"math"
	"math/rand/v2"

	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
)

// A tensor holds the activations of a batch after one layer (data), and the gradient of the loss with
// respect to them (grad). Both have size numbers per image.
type tensor struct {
	size       int
	data, grad []float32
}

// A layer computes its output from its input in the forward pass, and the gradients by its input
// and parameters from the gradient by its output in the backward pass. n is the number of images in
// use. Only batch normalisation over several ranks can fail.
type layer interface {
	forward(n int, training bool) error
	backward(n int) error
}

// A parameter is a layer's slice of the flat parameter and gradient buffers.
// Each is used by one layer, whose backward sets all of its gradient.
type parameter struct {
	size int
	// fanIn is the number of inputs that each output sums, for He initialisation; 0: every value
	// starts as constant.
	fanIn    int
	constant float32

	w, g []float32
	at   int // its start in the flat buffers
}

// A network is a list of layers in the order of the forward pass, ending with the logits.
type network struct {
	kernels     *simd.Set
	threads     *threads
	batch       int        // maximum number of images
	forwardOnly bool       // no gradients; parameters are final once frozen
	image       simd.Shape // of an image
	images      []float32  // the batch, NHWC
	logits      *tensor
	layers      []layer
	ends        []int // by layer: number of parameters up to and including the layer
	norms       []*norm
	parameters  []*parameter

	rooms     map[room][][]float32
	partial   [][]float32 // by thread, for weight gradients
	gradients map[chain][]float32

	err error // first error while building the network

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

// tensor returns new activations; with grad, also their gradient.
func (n *network) tensor(size int, grad bool) *tensor {
	t := &tensor{size: size, data: make([]float32, n.batch*size)}
	if grad && !n.forwardOnly {
		t.grad = make([]float32, len(t.data))
	}
	return t
}

// A room has memory for one padded image of a shape, for every thread. Layers share it; the margins
// are never written and stay zero.
type room struct {
	shape simd.Shape
	use   int
}

const (
	roomInput    = iota // input of a convolution
	roomGradient        // gradient by a convolution's output
	roomOutcome         // gradient by an outcome; without margin
	roomShortcut        // the part of an image that a shortcut uses; without margin
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

// byThread allocates memory for each thread.
func (n *network) byThread(size int) [][]float32 {
	list := make([][]float32, n.threads.n)
	for i := range list {
		list[i] = make([]float32, size)
	}
	return list
}

// A chain has the gradients of several units, which share memory. The backward pass goes from unit
// to unit. For each image, it reads one unit's gradient before it writes the previous unit's. It
// also reads a shortcut's gradient before it writes, into the same memory, the gradient of the unit
// two before. So all units of one shape need only two buffers, which fit into a cache better than
// one for each unit.
type chain struct {
	shape simd.Shape
	odd   bool
}

// gradient returns the memory for the gradient of a unit, by its index in the chain.
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

// add appends a layer. Its parameters are those created since the previous layer.
func (n *network) add(l layer) {
	n.layers = append(n.layers, l)
	n.ends = append(n.ends, len(n.parameters))
}

// needPartial ensures that every thread has memory of this size for the gradient by a layer's
// weights.
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

// backward computes all gradients, from the last layer to the first. final is called as soon as the
// elements [from, to) of the flat gradient are final: once for each layer with parameters, in that
// order, so that the ranges are adjacent and end at 0. It runs between layers on the calling
// goroutine. It may start a reduction, but should not wait.
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
