//go:build cgo

// Package gpu trains networks on a GPU: the models, formulas, layouts and initial parameters of
// package cpu. cuBLAS computes the matrix products, the kernels of package ptx everything else. A
// node needs only the driver, cuBLAS and, for several ranks, NCCL; all are loaded at run time.
//
// A step enqueues its work on two streams, mostly as graphs, and waits only at its end. One stream
// computes. The other one belongs to the communicator: as soon as an event shows that the backward
// pass has finished a bucket of gradients, NCCL sums it over the ranks while the pass continues.
// All device memory is allocated before the first step.
//
// Only the worker's GPU variant links this package.
package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/metrics/number"
)

// Options configure an Engine.
type Options struct {
	cpu.Options // Threads and Kernels are ignored

	// Precision is the precision of the factors of products: "fp32", "tf32" with 10 bits of
	// mantissa, or "bf16" with 7. Everything else is in fp32, including sums and weights.
	Precision string
	// Timeout is the longest wait of a rank for another rank or for its GPU; 0: the default of package
	// nccl.
	Timeout time.Duration
}

// Precisions are the valid values of Options.Precision.
var Precisions = []string{"fp32", "tf32", "bf16"}

// An Engine is one rank's copy of a model on its GPU. Only the goroutine that opened it may use it;
// that goroutine is locked to its thread.
type Engine struct {
	o       Options
	rank    *gpurank.Rank
	group   *collective.Group
	library *cuda.BLAS
	net     *network
	reducer *reducer
	stream  cuda.Stream // for computations

	parameters cuda.Pointer
	velocity   cuda.Pointer // SGD's velocity, or Adam's mean of gradients
	squares    cuda.Pointer // Adam's mean of squared gradients; 0 for SGD
	statistics cuda.Pointer // running averages of batch normalisation, see bindStatistics
	averages   int          // number of running averages
	samples    cuda.Pointer // input of a batch, see type input
	values     cuda.Pointer // dataset.Values
	outcomes   cuda.Pointer // float64: for each image its loss, and 1 if it is classified correctly

	inputs       [2]input // used in turn
	turn         int      // index of the current input
	hostOutcomes *cuda.Pinned

	pieces []piece
	graphs bool // whether pieces are captured as graphs

	done  cuda.Event // end of the pass
	norms []bucket   // events of synchronised batch normalisation's sums over the ranks

	initial    *netspec.Trained
	updates    int   // steps so far
	begun      int   // gradients so far
	images     int   // number of images in the last Gradient
	normsBegun int   // sums of synchronised batch normalisation in the running pass
	failed     error // error of an update that the caller does not know yet
	ended      error // why the ranks were disconnected; nil: they are connected, or left normally
	ctx        context.Context
}

// bytesOf returns the numbers' memory. The device uses the same layout: both are little-endian.
func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// GPU describes the GPU that trains the model.
func (e *Engine) GPU() string {
	return fmt.Sprintf("%s in %s, %s of its memory", e.rank.GPU(), e.o.Precision, number.Bytes(float64(e.net.arena.bytes)))
}

// Versions returns the versions of the libraries that compute and reduce.
func (e *Engine) Versions() map[string]string {
	list := maps.Clone(e.rank.Versions())
	list["cublas"] = e.library.Version()
	if e.library.IsFake() {
		list["cublas"] = e.library.String()
	}
	if !e.graphs {
		list["cuda-graphs"] = "none"
	}
	return list
}

// TimingCaveats returns why the timings do not reflect the hardware.
func (e *Engine) TimingCaveats() []string {
	list := e.rank.TimingCaveats()
	if e.library.IsFake() {
		list = append(list, "products by a DOUBLE, not cuBLAS")
	}
	return list
}

// Parameters returns the number of trainable scalars of the model.
func (e *Engine) Parameters() int { return e.net.size() }

// GradientBytes returns how many bytes of a step's reduction are gradients.
func (e *Engine) GradientBytes() int64 { return 4 * int64(e.net.size()) }

// Input returns the buffer for the batch of the next Gradient or Evaluate: pinned memory, one of
// two buffers in turn.
func (e *Engine) Input() dataset.Batch { return e.inputs[e.turn] }

// Ahead returns what Input will return after the next Gradient or Evaluate.
func (e *Engine) Ahead() dataset.Batch { return e.inputs[1-e.turn] }

// Broadcast copies rank 0's parameters to all ranks.
func (e *Engine) Broadcast(ctx context.Context) error {
	if e.rank.Comm == nil {
		return nil
	}
	at := uintptr(e.parameters)
	if err := e.rank.Comm.Enqueue(ctx, nccl.Operation{Kind: nccl.Broadcast, Type: nccl.Float32, Count: int64(e.net.size()), Send: at, Recv: at}); err != nil {
		return err
	}
	return e.rank.Comm.Wait(ctx)
}

// Gradient computes this rank's share of the gradient from the first n images of the input, and
// starts to reduce it. It returns when the backward pass has ended, so that the time of Reduce is
// the part the pass did not hide. communication is the time that synchronised batch normalisation
// spent between the ranks.
func (e *Engine) Gradient(ctx context.Context, n int) (loss float64, communication time.Duration, err error) {
	e.reducer.begin(e.o.NormsEvery > 0 && e.begun%e.o.NormsEvery == 0 && e.rank.Comm != nil && !e.o.SyncBatchNorm)
	e.begun++
	e.images, e.normsBegun, e.ctx = n, 0, ctx
	if err := e.upload(n); err != nil {
		return 0, 0, err
	}
	if err := e.pass(ctx, n); err != nil {
		return 0, 0, err
	}
	if err := e.download(ctx, n); err != nil {
		return 0, 0, err
	}
	for _, b := range e.norms[:e.normsBegun] {
		d, err := e.rank.Device.Elapsed(b.begin, b.end)
		if err != nil {
			return 0, 0, err
		}
		communication += d
	}
	loss, _ = e.outcome(n)
	return loss, communication, nil
}

// Evaluate classifies the first n images of the input, with the running averages of batch
// normalisation. It returns the sum of their losses and the number of correct ones.
func (e *Engine) Evaluate(n int) (loss float64, correct int, err error) {
	if err := e.upload(n); err != nil {
		return 0, 0, err
	}
	if err := e.forward(n, false); err != nil {
		return 0, 0, err
	}
	if err := e.download(context.Background(), n); err != nil {
		return 0, 0, err
	}
	loss, correct = e.outcome(n)
	return loss, correct, nil
}

// upload enqueues the copy of the next input to the device.
func (e *Engine) upload(n int) error {
	switch {
	case n < 1 || n > e.o.Batch:
		return fmt.Errorf("a batch of %d images, the engine was made for 1 to %d", n, e.o.Batch)
	case e.failed != nil:
		return e.failed
	}
	in := e.inputs[e.turn]
	e.turn = 1 - e.turn
	return e.rank.Device.EnqueueUpload(e.samples, in.pinned, 0, inputBytes(e.o.Batch), e.stream)
}

// download copies the outcomes of n images to the host, and waits for them.
func (e *Engine) download(ctx context.Context, n int) error {
	if err := e.rank.Device.EnqueueDownload(e.hostOutcomes, 0, 16*int64(n), e.outcomes, e.stream); err != nil {
		return err
	}
	return e.await(ctx)
}

// outcome returns the loss and the number of correct images of the last pass.
func (e *Engine) outcome(n int) (loss float64, correct int) {
	found := cuda.View[float64](e.hostOutcomes)
	for i := range n {
		loss += found[2*i]
		correct += int(found[2*i+1])
	}
	return loss, correct
}

// await waits until the computing stream is idle. It returns an error if another rank gives up or
// the GPU hangs.
func (e *Engine) await(ctx context.Context) error {
	device := e.rank.Device
	if err := device.Record(e.done, e.stream); err != nil {
		return err
	}
	for begin := time.Now(); ; {
		done, err := device.Reached(e.done)
		if done {
			return nil
		}
		waited := time.Since(begin)
		switch {
		case err != nil:
		case ctx.Err() != nil:
			err = fmt.Errorf("told to stop: %w", context.Cause(ctx))
		case waited > e.o.Timeout:
			err = fmt.Errorf("%s has not done its part of step %d for %v", e.rank.GPU(), e.updates+1, waited.Round(time.Second))
		}
		if err != nil {
			e.rank.Abort(err)
			return err
		}
		if err := e.rank.Others(); err != nil {
			return err
		}
		nccl.Pause(waited)
	}
}

// sumOverRanks sums statistics of batch normalisation over the ranks, between two kernels.
func (e *Engine) sumOverRanks(at cuda.Pointer, count int) error {
	device, stream, b := e.rank.Device, e.rank.Stream, e.norms[e.normsBegun]
	e.normsBegun++
	if err := errors.Join(device.Record(b.final, e.stream), device.Wait(stream, b.final), device.Record(b.begin, stream)); err != nil {
		return err
	}
	if err := e.rank.Comm.Enqueue(e.ctx, nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float64, Reduction: nccl.Sum,
		Count: int64(count), Send: uintptr(at), Recv: uintptr(at)}); err != nil {
		return err
	}
	return errors.Join(device.Record(b.end, stream), device.Wait(e.stream, b.end))
}

// Reduce returns when the gradient and up to cpu.MaxVotes votes are summed over all ranks. busy is
// how long all-reduces of gradients have been running since Gradient began, by the GPU's clock.
func (e *Engine) Reduce(ctx context.Context, votes []float32) (busy time.Duration, err error) {
	if e.rank.Comm == nil {
		return 0, nil // a single rank's values are the sums
	}
	return e.reducer.finish(ctx, votes)
}

// SquaredNorms returns the squared norms of the step's gradients: see cpu.Engine.
func (e *Engine) SquaredNorms() (own, averaged float64, ok bool) {
	if !e.reducer.measure || e.images == 0 {
		return 0, 0, false
	}
	share := float64(e.images) / float64(e.o.GlobalBatch)
	return e.reducer.own / (share * share), e.reducer.total, true
}

// Update makes a step of the optimiser: see cpu.Engine. It returns before the step is complete; the
// next step waits for it.
func (e *Engine) Update(learningRate float64) {
	e.updates++
	o, size, gradients := e.o, int32(e.net.size()), e.reducer.at(cpu.MaxVotes)
	if e.squares == 0 {
		e.failed = e.net.kernels.SGD(e.stream, ptx.SGD{Weights: e.parameters, Velocity: e.velocity, Gradients: gradients,
			Count: size, Rate: float32(learningRate), Momentum: float32(o.Momentum), Decay: float32(o.WeightDecay)})
		return
	}
	a := cpu.NewAdam(o.Options, learningRate, e.updates)
	e.failed = e.net.kernels.Adam(e.stream, ptx.Adam{Weights: e.parameters, Mean: e.velocity, Squares: e.squares, Gradients: gradients, Count: size,
		Beta1: a.Beta1, Rest1: a.Rest1, Beta2: a.Beta2, Rest2: a.Rest2, Coupled: a.Coupled, Keep: a.Keep, Size: a.Size, Root: a.Root, Epsilon: a.Epsilon})
}

// AverageStatistics replaces the running averages of batch normalisation by their mean
// over all ranks: see cpu.Engine.
func (e *Engine) AverageStatistics(ctx context.Context) error {
	if e.failed != nil {
		return e.failed
	}
	if err := e.await(ctx); err != nil || e.averages == 0 {
		return err
	}
	all, err := e.read(e.statistics, e.averages)
	if err != nil {
		return err
	}
	if err := e.group.AllReduce(ctx, all); err != nil {
		return err
	}
	for i := range all {
		all[i] /= float32(e.group.Size())
	}
	return e.rank.Device.Upload(e.statistics, bytesOf(all), e.stream)
}

// read copies numbers from the device after the work on the stream. If the ranks were disconnected
// by a failure, that work may never end; read then only works if the stream is idle.
func (e *Engine) read(from cuda.Pointer, n int) ([]float32, error) {
	if e.ended != nil && !e.idle() {
		return nil, fmt.Errorf("the GPU does not answer after: %w", e.ended)
	}
	list := make([]float32, n)
	return list, e.rank.Device.Download(bytesOf(list), from, e.stream)
}

// idle reports whether both streams are idle.
func (e *Engine) idle() bool {
	for _, s := range []cuda.Stream{e.stream, e.rank.Stream} {
		if s == 0 {
			continue
		}
		if done, err := e.rank.Device.Done(s); !done || err != nil {
			return false
		}
	}
	return true
}

// Trained returns the model in the form that Evaluate uses.
func (e *Engine) Trained() (*netspec.Trained, error) {
	parameters, err := e.read(e.parameters, e.net.size())
	if err != nil {
		return nil, err
	}
	statistics, err := e.read(e.statistics, e.averages)
	if err != nil {
		return nil, err
	}
	t := *e.initial
	t.Tensors = slices.Clone(t.Tensors)
	for i := range t.Tensors {
		from := &parameters
		if isStatistic(t.Tensors[i]) {
			from = &statistics
		}
		n := len(t.Tensors[i].Data)
		t.Tensors[i].Data, *from = (*from)[:n:n], (*from)[n:]
	}
	return &t, nil
}

// WriteParameters writes all parameters as little-endian IEEE 754.
func (e *Engine) WriteParameters(w io.Writer) error {
	list, err := e.read(e.parameters, e.net.size())
	if err != nil {
		return err
	}
	buffer := make([]byte, 0, 4*len(list))
	for _, v := range list {
		buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
	}
	_, err = w.Write(buffer)
	return err
}

// End leaves the group normally, or tells the other ranks why this one cannot continue and returns
// that reason.
func (e *Engine) End(ctx context.Context, reason error) error {
	err := e.rank.Leave(ctx, reason)
	e.ended = err
	return err
}

// Close frees all resources if the GPU still responds. Otherwise the end of the process frees them.
func (e *Engine) Close() {
	device := e.rank.Device
	defer device.Release()
	if !e.idle() {
		return
	}
	if e.net.blas != nil {
		_ = e.net.blas.Destroy()
	}
	e.reducer.close(device)
	for _, p := range e.pieces {
		if p.graph != nil {
			_ = p.graph.Destroy()
		}
	}
	freePinned(e.inputs[0].pinned, e.inputs[1].pinned, e.hostOutcomes)
	destroyEvents(device, e.norms, e.done)
	e.net.arena.free(device)
	if e.stream != 0 {
		_ = device.DestroyStream(e.stream)
	}
}
