//go:build cgo

package gpu

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// A network is a list of layers in the order of the forward pass, ending with the logits. Its
// methods enqueue work on the stream and do not wait.
type network struct {
	arena   arena
	kernels *ptx.Set
	blas    *cuda.BLASHandle
	stream  cuda.Stream
	batch   int // maximum number of images

	images     cuda.Pointer // the batch, NHWC
	logits     *tensor
	layers     []layer
	ends       []int // by layer: number of parameters up to and including the layer
	units      []*unit
	parameters []*parameter
	gradients  map[chain]*reservation

	// Memory that the layers use in turn. No layer needs the content that another one left.
	columns  workspace // for im2col and its gradient
	delta    workspace // gradient by a convolution's output
	arriving workspace // gradient by an outcome
	partial  workspace // float64: sums over chunks
	sums     workspace // float64: sums over partial

	// Used if products are in bfloat16: rounded copies of their factors.
	narrow  bool
	weights cuda.Pointer // all parameters, rounded
	rounded [2]workspace // rounded factors of a product: see factor

	// sumOverRanks sums float64 values over the ranks in place, for batch normalisation over all
	// ranks' batches; nil: statistics are over this rank's batch.
	sumOverRanks func(at cuda.Pointer, count int) error
	ranks        int // number of ranks whose batches the statistics cover

	multiplied func() // called after each product, if not nil
	failed     error  // the first error of the running pass
}

// A tensor is a batch of activations after the convolutions, and the gradient by them; 0: not
// needed.
type tensor struct {
	size       int
	data, grad cuda.Pointer
}

// A layer computes its output from its input, and the gradients by its input and parameters from
// the gradient by its output. Errors are passed to network.do.
type layer interface {
	forward(images int32, training bool)
	backward(images int32)
}

// A parameter is a part of the flat parameter and gradient buffers.
type parameter struct {
	at, size int // in elements
	w, g     cuda.Pointer
}

// A workspace is as large as the largest of its uses.
type workspace struct {
	elements int64
	at       cuda.Pointer
}

func (w *workspace) need(elements int64) { w.elements = max(w.elements, elements) }

// A chain has gradients that share memory: see package cpu.
type chain struct {
	shape ptx.Shape
	odd   bool
}

// newNetwork plans the layers of a description that package cpu has checked. If narrow is true,
// products use bfloat16.
func newNetwork(layers []netspec.Layer, batch int, image ptx.Shape, narrow bool) (*network, error) {
	n := &network{batch: batch, gradients: map[chain]*reservation{}, ranks: 1, narrow: narrow}
	n.arena.floats(elements(n.whole(image)), &n.images)
	flat := &tensor{size: int(image.Lines * image.Points * image.Channels)} // before the first pool, the images
	input := flat
	for i, l := range layers {
		switch {
		case l.Form == netspec.Convolution && flat == input:
			n.addUnit(image, l)
		case l.Form == netspec.AveragePool && len(n.units) > 0:
			flat = n.addPool(n.units[len(n.units)-1])
		case l.Form == netspec.Dense:
			flat = n.addDense(flat, l.Outputs, l.ReLU)
		default:
			return nil, fmt.Errorf("layer %d of the model is of a kind that cannot follow the one before it", i+1)
		}
		n.ends = append(n.ends, len(n.parameters))
	}
	n.logits = flat
	for _, w := range []*workspace{&n.columns, &n.delta, &n.arriving} {
		n.arena.floats(w.elements, &w.at)
	}
	for _, w := range []*workspace{&n.partial, &n.sums} {
		n.arena.doubles(w.elements, &w.at)
	}
	if narrow {
		n.arena.reserve(2*int64(n.size()), &n.weights)
		for i := range n.rounded {
			n.arena.reserve(2*n.rounded[i].elements, &n.rounded[i].at)
		}
	}
	return n, nil
}

// whole returns the shape with the maximum number of images.
func (n *network) whole(s ptx.Shape) ptx.Shape {
	s.Images = int32(n.batch)
	return s
}

func elements(s ptx.Shape) int64 { return rows(s) * int64(s.Channels) }

// rows returns the number of pixels in all images.
func rows(s ptx.Shape) int64 { return int64(s.Images) * int64(s.Lines) * int64(s.Points) }

// tensor plans memory for activations and their gradient.
func (n *network) tensor(size int) *tensor {
	t := &tensor{size: size}
	n.arena.floats(int64(n.batch)*int64(size), &t.data)
	n.arena.floats(int64(n.batch)*int64(size), &t.grad)
	return t
}

func (n *network) parameter(size int) *parameter {
	p := &parameter{size: size}
	if last := len(n.parameters) - 1; last >= 0 {
		p.at = n.parameters[last].at + n.parameters[last].size
	}
	n.parameters = append(n.parameters, p)
	return p
}

// size returns the number of parameters, in scalars.
func (n *network) size() int {
	last := n.parameters[len(n.parameters)-1]
	return last.at + last.size
}

// bind sets the addresses of the parameters within one buffer, and of their gradients within
// another.
func (n *network) bind(values, gradients cuda.Pointer) {
	for _, p := range n.parameters {
		p.w, p.g = values+cuda.Pointer(4*p.at), gradients+cuda.Pointer(4*p.at)
	}
}

// needSums plans memory for sums over up to this number of rows and columns. With chunks of the
// cube root of the rows, the first step has at most the square of the cube root rows of sums, and
// the second one at most the cube root.
func (n *network) needSums(rows int64, columns int) {
	root := int64(ptx.Chunk(int32(rows)))
	n.partial.need(root * root * int64(columns))
	n.sums.need((root + 1 + 2) * int64(columns)) // plus two rows for sumOfRanks
}

// sumUp reduces the sums over chunks in n.partial to a few rows, and returns their number. The
// kernel that uses the sums adds up these rows.
func (n *network) sumUp(rows int64, columns int) (left int32) {
	chunk := ptx.Chunk(int32(rows))
	first := ptx.Chunks(int32(rows), chunk)
	n.do(n.kernels.SumRows(n.stream, ptx.SumRows{From: n.partial.at, To: n.sums.at, Rows: first, Columns: int32(columns), Chunk: chunk}))
	return ptx.Chunks(first, chunk)
}

// sumOfRanks adds up the rows that sumUp computed, on this rank (own) and over all ranks (all).
func (n *network) sumOfRanks(left int32, columns int) (own, all cuda.Pointer) {
	own = n.sums.at + cuda.Pointer(8*int64(left)*int64(columns))
	all = own + cuda.Pointer(8*columns)
	n.do(n.kernels.SumRows(n.stream, ptx.SumRows{From: n.sums.at, To: own, Rows: left, Columns: int32(columns), Chunk: left}))
	n.do(n.kernels.SumRows(n.stream, ptx.SumRows{From: own, To: all, Rows: 1, Columns: int32(columns), Chunk: 1}))
	n.do(n.sumOverRanks(all, columns))
	return own, all
}

// do keeps the first error of a pass.
func (n *network) do(err error) {
	if n.failed == nil {
		n.failed = err
	}
}

// product computes c = a·b.
func (n *network) product(c, a, b cuda.Matrix) {
	n.do(n.blas.Product(c, a, b, 1, 0))
	if n.multiplied != nil {
		n.multiplied()
	}
}

// matrix returns a matrix without gaps between its rows.
func matrix(at cuda.Pointer, rows int64, columns int) cuda.Matrix {
	return cuda.Matrix{At: at, Rows: int(rows), Columns: columns}
}

// transposed returns the transposed matrix.
func transposed(m cuda.Matrix) cuda.Matrix {
	m.Transposed = !m.Transposed
	return m
}

// factor returns a matrix in the precision of products. If that is bfloat16, it is rounded into one
// of two buffers, chosen by place.
func (n *network) factor(m cuda.Matrix, place int) cuda.Matrix {
	if !n.narrow {
		return m
	}
	to := n.rounded[place].at
	n.do(n.kernels.ToBfloat16(n.stream, ptx.ToBfloat16{From: m.At, To: to, Count: int32(m.Rows * m.Columns)}))
	m.At, m.Type = to, cuda.BFloat16
	return m
}

// weight returns a parameter in the precision of products, as a matrix with this number of columns.
func (n *network) weight(p *parameter, columns int) cuda.Matrix {
	m := matrix(p.w, int64(p.size/columns), columns)
	if n.narrow {
		m.At, m.Type = n.weights+cuda.Pointer(2*p.at), cuda.BFloat16
	}
	return m
}

// forward computes the logits.
func (n *network) forward(images int, training bool) error {
	n.failed = nil
	if n.narrow { // the backward pass uses them as well
		n.do(n.kernels.ToBfloat16(n.stream, ptx.ToBfloat16{From: n.parameters[0].w, To: n.weights, Count: int32(n.size())}))
	}
	for _, l := range n.layers {
		if l.forward(int32(images), training); n.failed != nil {
			return n.failed
		}
	}
	return nil
}

// backward computes the gradients of the layers from index from down to index to.
func (n *network) backward(images, from, to int) error {
	n.failed = nil
	for i := from; i >= to; i-- {
		if n.layers[i].backward(int32(images)); n.failed != nil {
			return n.failed
		}
	}
	return nil
}

// final returns the index from which on the flat gradient is final when the backward pass has
// finished layer i.
func (n *network) final(i int) int {
	first := 0
	if i > 0 {
		first = n.ends[i-1]
	}
	if first == len(n.parameters) {
		return n.size()
	}
	return n.parameters[first].at
}
