//go:build cgo

package gpu

import (
	"context"
	"errors"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// A piece is a part of a step, which ends when a bucket of gradients becomes final. The first piece
// starts with the forward pass and the loss.
//
// The models are small, and a GPU does much of their work faster than the host can launch it. So
// each piece is captured as a graph in its second step and then launched with one call.
type piece struct {
	first    bool
	from, to int // layers of its backward pass, from the last to the first
	final    int // index from which on the gradient is final at its end
	graph    *cuda.Graph
}

// cut divides a step into pieces that match the reducer's buckets.
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

// pass enqueues the computation of a step, and the reduction of each bucket when it is final.
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
	// The first step cannot be captured, because libraries initialise in it. A graph is only valid
	// for one number of images.
	if !e.graphs || e.begun == 1 || n != e.o.Batch {
		return compute()
	}
	if p.graph == nil {
		if p.graph, err = e.rank.Device.Capture(e.stream, compute); err != nil {
			return err
		}
	}
	return p.graph.Launch(e.stream)
}

// forward enqueues the forward pass and the loss.
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

// GraphsVariable is an environment variable; the value 0 disables graphs, so that each kernel is
// launched separately.
const GraphsVariable = "SCALEBENCH_CUDA_GRAPHS"

// canCapture reports whether the driver supports graphs, by making one.
func (e *Engine) canCapture() (bool, error) {
	g, err := e.rank.Device.Capture(e.stream, func() error { return e.rank.Device.Fill(e.velocity, 0, e.GradientBytes(), e.stream) })
	if lacking := (*dl.MissingError)(nil); errors.As(err, &lacking) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, g.Destroy()
}
