//go:build cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/world"
)

// Open opens this rank's GPU, connects it with the GPUs of the other ranks of g, and builds the model.
// All ranks must call it. w is this rank's place in the world. getenv (os.Getenv) is used to find
// the libraries. The caller must still close g; the engine uses it to exchange NCCL's identifier
// and for averages of statistics.
func Open(ctx context.Context, o Options, g *collective.Group, w world.World, getenv func(string) string) (*Engine, error) {
	if o.Timeout <= 0 {
		o.Timeout = nccl.DefaultTimeout
	}
	e := &Engine{o: o, group: g, ctx: ctx}
	if err := e.describe(); err != nil {
		return nil, err
	}
	var err error
	if e.library, err = cuda.OpenBLAS(getenv); err != nil {
		return nil, err
	}
	if g.Size() == 1 {
		e.rank, err = gpurank.OpenAlone(w, getenv)
	} else {
		e.rank, err = gpurank.Open(ctx, g, w, o.Timeout, getenv)
	}
	if err != nil {
		return nil, err
	}
	e.graphs = getenv(GraphsVariable) != "0"
	if err := e.prepare(); err != nil {
		err = e.End(ctx, err) // the other ranks wait for this one
		e.Close()
		return nil, err
	}
	return e, nil
}

// describe plans the model; it needs no GPU.
func (e *Engine) describe() error {
	o := e.o
	switch {
	case o.Batch < 1 || o.GlobalBatch < o.Batch:
		return fmt.Errorf("a batch of %d on this rank and %d over all; want 1 or more, and no less over all", o.Batch, o.GlobalBatch)
	case o.Height != dataset.Height || o.Width != dataset.Width || o.Channels != dataset.Channels:
		return fmt.Errorf("images of %d×%d pixels and %d channels; the GPU engine supports only %d×%d and %d",
			o.Height, o.Width, o.Channels, dataset.Height, dataset.Width, dataset.Channels)
	case !slices.Contains(Precisions, o.Precision):
		return fmt.Errorf("precision %q; on GPUs the native trainer has %s", o.Precision, strings.Join(Precisions, ", "))
	}
	layers, err := netspec.Find(o.Model, o.Classes)
	if err != nil {
		return err
	}
	if e.initial, err = cpu.Untrained(o.Model, o.Classes, o.Height, o.Width, o.Channels, o.Seed); err != nil {
		return err
	}
	image := ptx.Shape{Lines: int32(o.Height), Points: int32(o.Width), Channels: int32(o.Channels)}
	if e.net, err = newNetwork(layers, o.Batch, image, o.Precision == "bf16"); err != nil {
		return err
	}
	a, size := &e.net.arena, int64(e.net.size())
	e.reducer = &reducer{}
	e.reducer.plan(a, e.net.size())
	a.floats(size, &e.parameters)
	a.floats(size, &e.velocity)
	switch o.Optimizer {
	case "", "sgd":
	case "adam", "adamw":
		a.floats(size, &e.squares)
	default:
		return fmt.Errorf(`optimizer %q is not known; want "sgd", "adam" or "adamw"`, o.Optimizer)
	}
	for _, u := range e.net.units {
		e.averages += 2 * u.channels()
	}
	a.floats(int64(e.averages), &e.statistics)
	a.reserve(inputBytes(o.Batch), &e.samples)
	a.floats(dataset.Channels*256, &e.values)
	a.doubles(2*int64(o.Batch), &e.outcomes)
	if a.largest > ptx.MostElements {
		return fmt.Errorf("with a batch of %d per rank, %s has %d elements, and kernels support up to %d: use a smaller batch or more workers", o.Batch, o.Model, a.largest, ptx.MostElements)
	}
	return nil
}

// prepare allocates the memory and copies the model to the GPU.
func (e *Engine) prepare() (err error) {
	device, n := e.rank.Device, e.net
	if e.stream, err = device.NewStream(); err != nil {
		return err
	}
	if n.kernels, err = ptx.Load(device); err != nil {
		return err
	}
	major, minor, err := device.Capability()
	switch {
	case err != nil:
		return err
	case e.o.Precision == "bf16" && major < 8:
		return fmt.Errorf("bf16 needs a GPU of compute capability 8.0 or later; %s has %d.%d: use fp32", e.rank.GPU(), major, minor)
	}
	var workspace cuda.Pointer
	n.arena.reserve(cuda.BLASWorkspace(major), &workspace)
	if err := n.arena.place(device); err != nil {
		return err
	}
	if n.blas, err = e.library.New(device, cuda.BLASOptions{Stream: e.stream, Workspace: workspace, WorkspaceBytes: cuda.BLASWorkspace(major), TF32: e.o.Precision == "tf32"}); err != nil {
		return err
	}
	n.stream = e.stream
	r := e.reducer
	r.rank, r.kernels, r.compute, r.overlap = e.rank, n.kernels, e.stream, !e.o.SyncBatchNorm && e.rank.Comm != nil
	n.bind(e.parameters, r.at(cpu.MaxVotes))
	e.bindStatistics()
	if err := r.prepare(); err != nil {
		return err
	}
	for _, p := range []struct {
		to    **cuda.Pinned
		bytes int64
	}{
		{&e.inputs[0].pinned, inputBytes(e.o.Batch)},
		{&e.inputs[1].pinned, inputBytes(e.o.Batch)},
		{&e.hostOutcomes, 16 * int64(e.o.Batch)},
	} {
		if *p.to, err = device.AllocPinned(p.bytes); err != nil {
			return err
		}
	}
	for i := range e.inputs {
		e.inputs[i].batch = e.o.Batch
	}
	if e.done, err = device.NewEvent(); err != nil {
		return err
	}
	if e.o.SyncBatchNorm && e.rank.Comm != nil {
		n.ranks, n.sumOverRanks = e.rank.Comm.Size(), e.sumOverRanks
		if e.norms, err = newBuckets(device, 2*len(n.units)); err != nil {
			return err
		}
	}
	e.pieces = e.cut()
	if n.sumOverRanks != nil {
		e.graphs = false // NCCL would be called within a piece
	}
	if e.graphs {
		if e.graphs, err = e.canCapture(); err != nil {
			return err
		}
	}
	return e.initialise()
}

// initialise copies the model to the GPU and clears the optimizer's state.
func (e *Engine) initialise() error {
	device := e.rank.Device
	for _, p := range []cuda.Pointer{e.velocity, e.squares} {
		if p == 0 {
			continue
		}
		if err := device.Fill(p, 0, e.GradientBytes(), e.stream); err != nil {
			return err
		}
	}
	parameters, statistics := e.split(e.initial)
	var values []float32
	for _, channel := range dataset.Values {
		values = append(values, channel[:]...)
	}
	return errors.Join(device.Upload(e.values, bytesOf(values), e.stream),
		device.Upload(e.parameters, bytesOf(parameters), e.stream), device.Upload(e.statistics, bytesOf(statistics), e.stream))
}

// bindStatistics sets the addresses of all units' running averages within one buffer: for each unit
// the means, then the variances.
func (e *Engine) bindStatistics() {
	at := e.statistics
	for _, u := range e.net.units {
		u.runningMean = at
		u.runningVariance = at + cuda.Pointer(4*u.channels())
		at += cuda.Pointer(8 * u.channels())
	}
}

// isStatistic reports whether a tensor of a trained model is a statistic, not a parameter.
func isStatistic(t netspec.Tensor) bool {
	return strings.HasSuffix(t.Name, ".norm.mean") || strings.HasSuffix(t.Name, ".norm.variance")
}

// split arranges the tensors of a model in the layout of this engine.
func (e *Engine) split(t *netspec.Trained) (parameters, statistics []float32) {
	for _, tensor := range t.Tensors {
		if isStatistic(tensor) {
			statistics = append(statistics, tensor.Data...)
		} else {
			parameters = append(parameters, tensor.Data...)
		}
	}
	return parameters, statistics
}
