// Package train is the native data-parallel trainer. Every rank holds a copy of the model, computes
// the gradient on its share of each global batch, and applies the sum of all ranks' gradients, so
// that the copies stay identical to the last bit.
//
// It is primarily a measuring instrument. Every rank reports its work as events. The parts of a
// step are timed separately. The clock of the time to accuracy starts before the first sample is
// read and continues during evaluations. Every decision that ends a run (limits, targets, signals)
// is made by a reduction over the ranks, so that all stop after the same step.
//
// ServeHandler and Local answer inference requests (version 2 of the Open Inference Protocol) with a
// trained model: ServeHandler over HTTP, Local within the process. A model has one input, "images", of normalised images as
// NHWC, and one output, "logits".
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/cpu/simd"
	"github.com/scalebench/scalebench/launcher/native/train/netspec"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Options configure a rank, in addition to the point and its place in the world.
type Options struct {
	Nonce  string    // identifies the ranks of this attempt
	Events io.Writer // this rank's event file
	Log    io.Writer // receives a few lines for people; nil: none

	Version string // scalebench's version

	// Timeout is the maximum time that a rank waits for a silent rank, JoinTimeout the maximum time
	// until all ranks have joined; 0: the defaults of package collective.
	Timeout, JoinTimeout time.Duration

	// Began is the start of the events' clock and of the initialisation, usually
	// metrics.ProcessStart. The zero time means the present.
	Began time.Time

	// ModelFile is the path to which rank 0 writes the model at the end of a successful run, if the
	// point sets workload.save_model.
	ModelFile string

	// Kernels are the inner loops of the CPU engine: "avx512", "avx2" or
	// "portable"; "": the fastest that this processor can run.
	Kernels string

	// OpenGPU opens this rank's engine on its GPU, with the study's precision. It ignores the
	// Threads and Kernels of cpu.Options, and does not close g. All ranks must call it, on the
	// goroutine that then uses the engine. nil: this program has no GPU support.
	OpenGPU func(ctx context.Context, o cpu.Options, precision string, g *collective.Group, w world.World) (GPU, error)

	// For tests: the listener of rank 0, a wrapper of the engine, and a hook after every step.
	listener  net.Listener
	wrap      func(engine) engine
	afterStep func(step int, e engine)
}

// KernelsVariable is the environment variable from which the worker sets Options.Kernels.
const KernelsVariable = "SCALEBENCH_KERNELS"

// Models lists the models that can be trained.
func Models() []string { return netspec.Names() }

// An InterruptedError reports that a run was asked to stop and did so properly.
type InterruptedError struct {
	Steps int   // number of complete steps
	Cause error // the reason, if this rank knows it
}

func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted after step %d: %v", e.Steps, e.Cause)
}
func (e *InterruptedError) Unwrap() error { return e.Cause }

// A phaseError is an error with the phase in which it occurred, which the error event states.
type phaseError struct {
	where string
	err   error
}

func (e *phaseError) Error() string { return e.where + ": " + e.err.Error() }
func (e *phaseError) Unwrap() error { return e.err }

func in(where string, err error) error {
	if err == nil {
		return nil
	}
	return &phaseError{where, err}
}

// interruptGrace is the maximum time that a step may take after the run was asked to stop. By
// default Slurm sends SIGKILL 30 s after SIGTERM.
const interruptGrace = 15 * time.Second

// Run trains the point p as one rank. It reports everything to o.Events, including failures. If ctx
// is cancelled, it finishes the step and returns an *InterruptedError with the context's cause; so
// do all other ranks.
func Run(ctx context.Context, p study.Point, w world.World, o Options) error {
	began := o.Began
	if began.IsZero() {
		began = time.Now()
	}
	// The ranks use a collective to agree on when to stop, so a cancelled ctx must not interrupt
	// it. Only a step that takes too long is interrupted.
	working, abandon := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abandon(nil)
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(interruptGrace):
			abandon(context.Cause(ctx))
		case <-working.Done():
		}
	})
	defer stop()

	r := &rank{stopped: ctx, ctx: working, point: p, world: w, options: o}
	joinError := r.join()
	host, _ := os.Hostname()         // "" means unknown
	size := max(w.Size, w.Rank+1, 1) // as requested, if the ranks have not joined
	if r.group != nil {
		size = r.group.Size()
	}
	events, err := metrics.NewWriterSince(o.Events, metrics.Start{
		Writer: "rank", Framework: p.Framework, Rank: w.Rank, WorldSize: size, LocalRank: w.LocalRank,
		Restart: w.Restart, Host: host, PID: os.Getpid(),
	}, began)
	if err != nil {
		r.leave(err)
		return fmt.Errorf("writing events: %w", err)
	}
	r.events = events
	err = joinError
	if err == nil {
		err = r.train()
	}
	return r.finish(err)
}

// rank is one rank's run.
type rank struct {
	stopped context.Context // the caller's context: cancelled when the run should stop
	ctx     context.Context // context of the work: cancelled when stopping takes too long
	point   study.Point
	world   world.World
	options Options

	group  *collective.Group
	events *metrics.Writer
	engine engine
	gpu    GPU    // the engine if it is a GPU, else nil
	on     string // name of the device, for people
	loop          // state of the step loop
}

func (r *rank) logf(format string, args ...any) {
	if r.options.Log != nil {
		fmt.Fprintf(r.options.Log, format+"\n", args...)
	}
}

func (r *rank) join() error {
	o := r.options
	// Before the first step there is nothing to finish: stop at once.
	g, err := collective.Join(r.stopped, r.world, o.Nonce, collective.Options{
		Timeout: o.Timeout, JoinTimeout: o.JoinTimeout, Build: o.Version, Listener: o.listener,
	})
	if err != nil && r.stopped.Err() != nil {
		return &InterruptedError{0, context.Cause(r.stopped)}
	}
	r.group = g
	if err == nil && g.Rank() == 0 {
		transport, why := g.Transport()
		if why != "" {
			why = ": " + why
		}
		r.logf("ranks: %d, reducing over %s%s", g.Size(), transport, why)
	}
	return in("rendezvous", err)
}

// leave leaves the group: normally, or by telling the other ranks why this one cannot continue.
func (r *rank) leave(err error) {
	if r.group == nil {
		return
	}
	var interrupted *InterruptedError
	if err != nil && !errors.As(err, &interrupted) {
		r.group.Abort(err)
	}
	_ = r.group.Close() // all important data have arrived
}

// finish writes how the run ended and leaves the group.
func (r *rank) finish(err error) error {
	r.leave(err)
	r.awaitAhead()
	stop := metrics.Stop{Status: metrics.StopDone, Steps: r.step, Epochs: r.epoch}
	var interrupted *InterruptedError
	if r.gpu != nil {
		reason := err
		if errors.As(err, &interrupted) && r.ctx.Err() == nil {
			reason = nil // all ranks stop after the same step
		}
		if e := r.gpu.End(r.ctx, reason); err == nil {
			err = e
		}
	}
	if r.engine != nil {
		sum, e := parameterSHA256(r.engine)
		if err == nil {
			err = e // after a failure, the parameters may not be readable
		}
		stop.ParameterSHA256 = sum
		r.engine.Close()
	}
	var failed *phaseError
	switch {
	case errors.As(err, &interrupted):
		stop.Status, stop.Cause = metrics.StopInterrupted, interrupted.Cause.Error()
	case err != nil:
		where, message := "train", err.Error()
		if errors.As(err, &failed) {
			where, message = failed.where, failed.err.Error()
		}
		stop.Status, stop.Cause = metrics.StopFailed, err.Error()
		// An error of this write is returned by the next one.
		_ = r.events.Write(metrics.Event{Error: &metrics.Error{Where: where, Message: message}})
	}
	if e := r.events.Write(metrics.Event{Stop: &stop}); e != nil {
		return errors.Join(err, fmt.Errorf("writing events: %w", e))
	}
	return err
}

// train does everything between joining and stopping.
func (r *rank) train() error {
	p, o := r.point, r.options
	if n := r.group.Size(); n != p.Workers {
		return in("rendezvous", fmt.Errorf("ranks met: %d, but the point has %d workers; check how many were started, and that all have the same point", n, p.Workers))
	}
	if err := check(p, o.OpenGPU != nil); err != nil {
		return in("configuration", err)
	}
	source, err := openData(p)
	if err != nil {
		return in("data", err)
	}
	r.order = newOrder(p.Seed, source.TrainSamples, r.world.Rank, p.WorkerBatch, p.GlobalBatch)
	steps := r.order.stepsPerEpoch()
	if steps == 0 {
		return in("configuration", fmt.Errorf("the training set has %d samples, fewer than one global batch of %d", source.TrainSamples, p.GlobalBatch))
	}
	r.norms = metrics.NewGradientSums(steps, p.WorkerBatch, p.GlobalBatch)
	if err := r.open(); err != nil {
		return err
	}
	if o.wrap != nil {
		r.engine = o.wrap(r.engine)
	}
	if r.schedule, err = newSchedule(p, steps); err != nil {
		return in("configuration", err)
	}
	if err := r.engine.Broadcast(r.ctx); err != nil {
		return in("rendezvous", err)
	}
	sum, err := parameterSHA256(r.engine)
	if err != nil {
		return err
	}
	start := metrics.Train{
		Parameters: int64(r.engine.Parameters()), GradientBytes: r.engine.GradientBytes(),
		TrainSamples: int64(source.TrainSamples), TestSamples: int64(source.TestSamples),
		GlobalBatch: p.GlobalBatch, StepsPerEpoch: steps, ParameterSHA256: sum,
	}
	// The training clock starts when all are ready.
	if err := r.group.Barrier(r.ctx); err != nil {
		return in("rendezvous", err)
	}
	r.began = time.Now()
	if err := r.events.Write(metrics.Event{Train: &start}); err != nil {
		return err
	}
	r.logf("rank %d of %d: %s, %d parameters, %d samples, global batch %d, %s",
		r.world.Rank, r.group.Size(), p.Workload.Train.Model, start.Parameters, start.TrainSamples, p.GlobalBatch, r.on)
	if r.data, err = source.Load(); err != nil {
		return in("data", err)
	}
	if err := r.epochs(); err != nil {
		return err
	}
	return in("save", r.save())
}

// open creates the engine, and reports its device and libraries.
func (r *rank) open() error {
	p, o := r.point, r.options
	threads := min(world.CPUs(), max(p.Resources.CPUsPerWorker, 1))
	t := p.Workload.Train
	made := cpu.Options{
		Model: t.Model, Classes: dataset.Classes, Height: dataset.Height, Width: dataset.Width, Channels: dataset.Channels,
		Batch: p.WorkerBatch, GlobalBatch: p.GlobalBatch, Seed: p.Seed, Threads: threads,
		Optimizer: t.Optimizer, Beta1: t.Beta1, Beta2: t.Beta2, Epsilon: t.Epsilon,
		Momentum: t.Momentum, WeightDecay: t.WeightDecay, SyncBatchNorm: t.BatchNorm == "sync",
		NormsEvery: r.norms.Every(),
	}
	environment := metrics.Environment{Threads: threads, Versions: versions(o.Version)}
	var doubts []string
	if p.Resources.Device == "gpu" {
		g, err := o.OpenGPU(r.ctx, made, t.Precision, r.group, r.world)
		if err != nil {
			return in("gpu", err)
		}
		r.engine, r.gpu, r.on = g, g, g.GPU()
		maps.Copy(environment.Versions, g.Versions())
		doubts = g.TimingCaveats()
	} else {
		kernels, err := simd.Choose(o.Kernels)
		if err != nil {
			return in("configuration", fmt.Errorf("%s: %w", KernelsVariable, err))
		}
		made.Kernels = kernels.Name()
		environment.Versions["kernels"] = made.Kernels
		e, err := cpu.New(made, r.group)
		if err != nil {
			return in("configuration", fmt.Errorf("workload.model: %w", err))
		}
		r.engine, r.on = onCPU{e}, fmt.Sprintf("threads %d", threads)
	}
	if err := r.events.Write(metrics.Event{Environment: &environment}); err != nil {
		return err
	}
	if r.world.Rank != 0 {
		return nil // the warnings belong to the run
	}
	for _, text := range doubts {
		if err := r.events.Write(metrics.Event{Note: &metrics.Note{Text: text}}); err != nil {
			return err
		}
	}
	return nil
}

// save writes the model of the last evaluation, with which every run ends.
func (r *rank) save() error {
	path := r.options.ModelFile
	if !r.point.Workload.Train.SaveModel || r.world.Rank != 0 {
		return nil
	}
	if path == "" {
		return errors.New("workload.save_model: no file was given to save to")
	}
	trained, err := r.engine.Trained()
	if err != nil {
		return err
	}
	if err := sharedfs.Replace(path, sharedfs.ModeOpen, trained.Write); err != nil {
		return err
	}
	r.logf("the model is in %s", path)
	return nil
}

// check returns an error for a point that this trainer cannot run. Studies are checked before, but
// point.json may come from elsewhere. gpus is true if this program supports GPUs.
func check(p study.Point, gpus bool) error {
	t := p.Workload.Train
	switch {
	case p.Resources.Device != "cpu" && p.Resources.Device != "gpu":
		return fmt.Errorf(`resources.device is %q; want "cpu" or "gpu"`, p.Resources.Device)
	case p.Resources.Device == "gpu" && !gpus:
		return errors.New(`resources.device is "gpu", and this program has no engine for GPUs`)
	case p.Resources.Device == "cpu" && t.Precision != "fp32":
		return fmt.Errorf(`workload.precision is %q; on CPUs the native trainer has "fp32" only`, t.Precision)
	case t.BatchNorm != "local" && t.BatchNorm != "sync":
		return fmt.Errorf(`workload.batch_norm is %q; want "local" or "sync"`, t.BatchNorm)
	case p.WorkerBatch < 1 || p.WorkerBatch*p.Workers != p.GlobalBatch:
		return fmt.Errorf("worker_batch %d times %d workers is not global_batch %d", p.WorkerBatch, p.Workers, p.GlobalBatch)
	case t.Epochs < 0 || t.MaxSteps < 0 || !(t.MaxMinutes >= 0):
		return fmt.Errorf("workload.epochs, max_steps and max_minutes are %d, %d and %g; want 0 or more", t.Epochs, t.MaxSteps, t.MaxMinutes)
	case t.Until != "" && t.Until != "targets":
		return fmt.Errorf(`workload.until is %q; want "targets" or ""`, t.Until)
	case t.Until == "targets" && len(t.Targets) == 0:
		return errors.New(`workload.until = "targets" needs workload.targets`)
	case t.Until == "" && t.Epochs == 0 && t.MaxSteps == 0 && t.MaxMinutes == 0:
		return errors.New(`nothing ends this run; give workload.epochs, max_steps, max_minutes or until = "targets"`)
	}
	return nil
}

// openData finds the data without reading it.
func openData(p study.Point) (*dataset.Source, error) {
	d := p.Data
	switch d.Kind {
	case "cifar10":
		return dataset.OpenCIFAR10(d.Path, d.TrainSamples, d.TestSamples)
	case "synthetic":
		return dataset.OpenSynthetic(dataset.SyntheticOptions{TrainSamples: d.TrainSamples, TestSamples: d.TestSamples})
	}
	return nil, fmt.Errorf(`data.kind is %q; want "cifar10" or "synthetic"`, d.Kind)
}

// versions returns the versions that determine speed and results.
func versions(scalebench string) map[string]string {
	list := map[string]string{"go": runtime.Version()}
	if scalebench != "" {
		list["scalebench"] = scalebench
	}
	return list
}
