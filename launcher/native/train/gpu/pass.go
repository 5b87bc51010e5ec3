//go:build cgo

package gpu

import (
	"context"
	"errors"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// A piece is the part of a step between two moments at which buckets of gradients become final. The
// first piece begins with the forward pass and the loss.
//
// The models are small, and a GPU does much of their work faster than the host can launch it. So
// each piece is captured as a graph in its second step and then launched with one call.
type piece struct {
	first    bool
	from, to int // layers of its backward pass, a later one down to an earlier
	final    int // from this element on the gradient is then final
	graph    *cuda.Graph
}

// cut cuts a step up, for the reducer as it is.
func (e *Engine) cut() (list []piece) {
	last := len(e.net.layers) - 1
	list = []piece{{first: true, from: last}}
	for i, bucket := last, 0; i >= 0; i-- {
		p := &list[len(list)-1]
		p.to, p.final = i, e.net.final(i)
		due := false
		for ; e.reducer.due(bucket, p.final); bucket++ {
			due = true
		}
		if due && i > 0 {
			list = append(list, piece{from: i - 1})
		}
	}
	return list
}

// pass puts the computation of a step on the stream, and reductions on the
// communicator's as they become possible.
func (e *Engine) pass(ctx context.Context, n int) error {
	for i := range e.pieces {
		p := &e.pieces[i]
		if err := e.put(p, n); err != nil {
			return err
		}
		if err := e.reducer.final(ctx, p.final); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) put(p *piece, n int) (err error) {
	compute := func() error {
		if p.first {
			if err := e.forward(n, true); err != nil {
				return err
			}
		}
		return e.net.backward(n, p.from, p.to)
	}
	// In the first step libraries load what cannot be captured; a graph is of one
	// number of images.
	if !e.graphs || e.begun == 1 || n != e.o.Batch {
		return compute()
	}
	if p.graph == nil {
		if p.graph, err = e.seat.Device.Capture(e.stream, compute); err != nil {
			return err
		}
	}
	return p.graph.Launch(e.stream)
}

// forward puts the forward pass and the loss on the stream, after the samples.
func (e *Engine) forward(n int, training bool) error {
	if err := e.decode(n); err != nil {
		return err
	}
	if err := e.net.forward(n, training); err != nil {
		return err
	}
	loss := ptx.CrossEntropy{Logits: e.net.logits.data, Labels: e.samples + cuda.Pointer(labelsAt(e.o.Batch)), To: e.outcomes,
		Scale: 1 / float32(e.o.GlobalBatch), Images: int32(n), Classes: int32(e.o.Classes)}
	if training {
		loss.Gradient = e.net.logits.grad
	}
	return e.net.kernels.CrossEntropy(e.stream, loss)
}

// GraphsVariable set to 0 has each kernel launched by itself.
const GraphsVariable = "SCALEBENCH_CUDA_GRAPHS"

// canCapture reports whether the driver has graphs, by making one.
func (e *Engine) canCapture() (bool, error) {
	g, err := e.seat.Device.Capture(e.stream, func() error { return e.seat.Device.Fill(e.velocity, 0, e.GradientBytes(), e.stream) })
	if lacking := (*dl.MissingError)(nil); errors.As(err, &lacking) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, g.Destroy()
}
