// Package cpu trains networks on the processor: single precision, NHWC, inner loops of package
// simd, hand-written backward passes. The models are few and fixed, so a graph is unnecessary: a layer
// does as much as it can with an image while that is in the cache (see unit).
//
// An Engine owns a model's parameters, their gradients, and the reduction of gradients over the
// ranks. Parameters and gradients each have one flat buffer, so that a reduction is a few
// all-reduces of large pieces during the backward pass (see reducer). Gradients are of the mean
// loss over the global batch: every rank scales its images' losses by 1/GlobalBatch, so the sum
// over ranks is the gradient and is not divided again.
package cpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
)

// Options configure an Engine.
type Options struct {
	Model   string
	Classes int
	// Height, Width and Channels are the shape of an image.
	Height, Width, Channels int

	Batch       int   // maximum number of images of this rank
	GlobalBatch int   // images per step over all ranks; the loss is their mean
	Seed        int64 // of the initial parameters
	Threads     int
	// Kernels is the name of a simd.Set; "" is the fastest.
	Kernels string

	// Optimizer is "sgd", "adam" or "adamw"; "" is "sgd". See Update for the following values.
	Optimizer             string
	Momentum, WeightDecay float64
	Beta1, Beta2, Epsilon float64
	// SyncBatchNorm takes batch normalisation's statistics over all ranks'
	// batches instead of each rank's own.
	SyncBatchNorm bool
	// NormsEvery is the number of steps from one measurement of SquaredNorms to the next; 0: never.
	NormsEvery int
}

// MaxVotes is the largest number of votes that Reduce sums: a cache line of them, so that the
// gradients after them start on a cache line.
const MaxVotes = 16

// An Engine is one rank's copy of a model. One goroutine at a time may use it.
type Engine struct {
	o       Options
	net     *network
	group   *collective.Group
	reducer *reducer

	parameters []float32
	gradients  []float32 // as parameters
	velocity   []float32 // SGD's velocity, or Adam's mean of gradients
	squares    []float32 // Adam's mean of squared gradients
	updates    int       // steps so far

	labels  []byte
	losses  []float64
	correct []bool

	// State of the running call, for the functions doLoss and doUpdate.
	training         bool
	rate             float32
	adam             Adam
	doLoss, doUpdate work

	ctx           context.Context // of the running call, for synchronised batch norm
	communication time.Duration   // time that it took in the running call
	images        int             // number of images in the last Gradient
	begun         int             // steps
}

// New builds the model, with parameters from the seed. It does not close the group.
func New(o Options, group *collective.Group) (*Engine, error) {
	layers, err := netspec.Find(o.Model, o.Classes)
	switch {
	case err != nil:
		return nil, err
	case o.Batch < 1 || o.GlobalBatch < o.Batch:
		return nil, fmt.Errorf("a batch of %d on this rank and %d over all; want 1 or more, and no less over all", o.Batch, o.GlobalBatch)
	case o.Height < 1 || o.Width < 1 || o.Channels < 1 || o.Classes < 2:
		return nil, fmt.Errorf("images of %d×%d×%d in %d classes; want 1 or more, and at least 2 classes", o.Height, o.Width, o.Channels, o.Classes)
	}
	kernels, err := simd.Choose(o.Kernels)
	if err != nil {
		return nil, err
	}
	e := &Engine{o: o, group: group}
	e.net = newNetwork(kernels, o.Batch, o.Threads, simd.Shape{Lines: o.Height, Points: o.Width, Channels: o.Channels})
	if e.net.logits = e.net.build(layers); e.net.err != nil {
		e.net.threads.close()
		return nil, fmt.Errorf("images of %d×%d×%d: %w", o.Height, o.Width, o.Channels, e.net.err)
	}
	if o.SyncBatchNorm {
		e.net.reduce = e.reduceStatistics
	}
	size := e.net.size()
	reduced := make([]float32, MaxVotes+size)
	e.parameters, e.gradients = make([]float32, size), reduced[MaxVotes:]
	e.net.bind(e.parameters, e.gradients)
	e.net.initialise(o.Seed)
	// Synchronised batch normalisation needs the group in the backward pass.
	e.reducer = newReducer(group, reduced, MaxVotes, Cuts(len(reduced)), !o.SyncBatchNorm)
	e.velocity = make([]float32, len(e.parameters))
	switch o.Optimizer {
	case "", "sgd":
	case "adam", "adamw":
		e.squares = make([]float32, len(e.parameters))
	default:
		e.Close()
		return nil, fmt.Errorf("optimizer %q is not known; want \"sgd\", \"adam\" or \"adamw\"", o.Optimizer)
	}
	e.doLoss, e.doUpdate = e.lossPart, e.updatePart
	e.labels, e.losses, e.correct = make([]byte, o.Batch), make([]float64, o.Batch), make([]bool, o.Batch)
	return e, nil
}

// Close ends the engine's threads.
func (e *Engine) Close() {
	e.reducer.close()
	e.net.threads.close()
}

// Parameters returns the number of trainable scalars of the model.
func (e *Engine) Parameters() int { return len(e.parameters) }

// GradientBytes returns how many bytes of a step's reduction are gradients.
func (e *Engine) GradientBytes() int64 { return 4 * int64(len(e.parameters)) }

// Input returns the memory for the batch of the next Gradient or Evaluate: images as
// [Batch][Height][Width][Channels], and a label for each.
func (e *Engine) Input() (images []float32, labels []byte) { return e.net.images, e.labels }

// Broadcast copies rank 0's parameters to all ranks.
func (e *Engine) Broadcast(ctx context.Context) error { return e.group.Broadcast(ctx, e.parameters) }

// Gradient computes this rank's share of the gradient from the first n images of the input, and
// begins to reduce it. loss is the sum of the images' losses. communication is the part of the call
// spent in synchronised batch normalisation, 0 without it.
func (e *Engine) Gradient(ctx context.Context, n int) (loss float64, communication time.Duration, err error) {
	e.reducer.begin(ctx)
	// A single rank has no gradient to compare with the global one, and with synchronised batch
	// normalisation no rank has the gradient of its own samples alone.
	e.reducer.measure = e.o.NormsEvery > 0 && e.begun%e.o.NormsEvery == 0 && e.group.Size() > 1 && !e.o.SyncBatchNorm
	e.begun++
	e.images = n
	if loss, _, err = e.forward(ctx, n, true); err != nil {
		return 0, 0, err
	}
	if err := e.net.backward(n, e.reducer.final); err != nil {
		e.reducer.wait()
		return 0, 0, err
	}
	return loss, e.communication, nil
}

// Evaluate classifies the first n images of the input, with the running averages of batch
// normalisation. It returns the sum of their losses and the number of correct ones.
func (e *Engine) Evaluate(n int) (loss float64, correct int, err error) {
	return e.forward(context.Background(), n, false)
}

func (e *Engine) forward(ctx context.Context, n int, training bool) (loss float64, correct int, err error) {
	if n < 1 || n > e.o.Batch {
		return 0, 0, fmt.Errorf("a batch of %d images, the engine was made for 1 to %d", n, e.o.Batch)
	}
	e.ctx, e.communication = ctx, 0
	if err := e.net.forward(n, training); err != nil {
		return 0, 0, err
	}
	e.training = training
	e.net.threads.each(n, e.doLoss)
	for i := range n {
		loss += e.losses[i]
		if e.correct[i] {
			correct++
		}
	}
	return loss, correct, nil
}

func (e *Engine) lossPart(_, from, to int) {
	logits := e.net.logits
	for i := from; i < to; i++ {
		var grad []float32
		if e.training {
			grad = image(logits.grad, i, logits.size)
		}
		e.losses[i], e.correct[i] = crossEntropy(image(logits.data, i, logits.size), e.labels[i], grad, 1/float32(e.o.GlobalBatch))
	}
}

// Reduce returns when the gradient and up to MaxVotes votes are summed over all ranks. busy is the
// time during which gradients were being reduced since the start of Gradient; the backward pass hid
// the part before this call.
func (e *Engine) Reduce(ctx context.Context, votes []float32) (busy time.Duration, err error) {
	return e.reducer.finish(ctx, votes)
}

// SquaredNorms returns the squared norms of the gradients of the step just reduced: own of the mean
// loss over this rank's images, averaged of the mean loss over the global batch. ok is false if
// they were not measured: with one rank, with synchronised batch normalisation, and in steps that
// Options.NormsEvery skips.
func (e *Engine) SquaredNorms() (own, averaged float64, ok bool) {
	if !e.reducer.measure || e.images == 0 {
		return 0, 0, false
	}
	share := float64(e.images) / float64(e.o.GlobalBatch) // sum of the weights of this rank's images
	return e.reducer.own / (share * share), e.reducer.total, true
}

// Update makes a step of the optimiser, in the form that PyTorch uses: for a
// parameter w of gradient g, stochastic gradient descent with momentum
//
//	v ← momentum·v + g + weight decay·w
//	w ← w − learning rate·v
//
// and, in step t from 1, Adam (Kingma and Ba 2015, arXiv:1412.6980)
//
//	g ← g + weight decay·w
//	m ← β₁·m + (1−β₁)·g,  v ← β₂·v + (1−β₂)·g²
//	w ← w − learning rate/(1−β₁ᵗ) · m/(√v/√(1−β₂ᵗ) + ε)
//
// or AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101), which does not change g, and starts with
// w ← w − learning rate·weight decay·w.
//
// Weight decay applies to all parameters, including biases and batch normalisation's.
func (e *Engine) Update(learningRate float64) {
	e.updates++
	e.rate = float32(learningRate)
	if e.squares != nil {
		e.adam = NewAdam(e.o, learningRate, e.updates)
	}
	e.net.threads.each(len(e.parameters), e.doUpdate)
}

func (e *Engine) updatePart(_, from, to int) {
	if e.squares != nil {
		e.adam.step(e.parameters[from:to], e.velocity[from:to], e.squares[from:to], e.gradients[from:to])
		return
	}
	e.net.kernels.SGD(e.parameters[from:to], e.velocity[from:to], e.gradients[from:to], e.rate, float32(e.o.Momentum), float32(e.o.WeightDecay))
}

// AverageStatistics replaces the running averages of batch normalisation by their mean over all
// ranks, so that all ranks evaluate the same model. Without synchronised statistics, ranks differ
// in these averages, but in nothing else.
func (e *Engine) AverageStatistics(ctx context.Context) error {
	var all []float32
	for _, l := range e.net.norms {
		all = append(append(all, l.runningMean...), l.runningVariance...)
	}
	if len(all) == 0 {
		return nil
	}
	if err := e.group.AllReduce(ctx, all); err != nil {
		return err
	}
	for i := range all {
		all[i] /= float32(e.group.Size())
	}
	for _, l := range e.net.norms {
		all = all[copy(l.runningMean, all):]
		all = all[copy(l.runningVariance, all):]
	}
	return nil
}

// reduceStatistics sums batch normalisation's statistics over all ranks.
func (e *Engine) reduceStatistics(sums []float64) error {
	begin := time.Now()
	err := e.group.AllReduceFloat64(e.ctx, sums)
	e.communication += time.Since(begin)
	return err
}

// WriteParameters writes all parameters as little-endian IEEE 754.
func (e *Engine) WriteParameters(w io.Writer) error {
	buffer := make([]byte, 0, 64<<10)
	for i, v := range e.parameters {
		buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
		if len(buffer) == cap(buffer) || i == len(e.parameters)-1 {
			if _, err := w.Write(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	return nil
}
