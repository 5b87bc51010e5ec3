//go:build !training

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/metrics/number"
)

// openLearner creates the trainer that uses the samples, if the study names a model. The ranks
// train it together, each on the samples that its threads prepare.
func (r *preprocessing) openLearner(ctx context.Context) (err error) {
	if r.asked.Model == "" {
		return nil
	}
	if r.classes, err = preprocess.FindClasses(r.asked.Format, r.all); err != nil {
		return fmt.Errorf("workload.source: %s: %w", r.asked.Source, err)
	}
	// Let the kernel schedule the threads, since it counts their waiting, and not Go's
	// runtime.
	runtime.GOMAXPROCS(r.threads + r.cpus + 1)
	side := preprocess.Side(r.asked.Format, r.asked.Crop)
	r.learner, err = train.NewLearner(ctx, cpu.Options{
		Model: r.asked.Model, Classes: len(r.classes.Names), Height: side, Width: side, Channels: 3, Batch: r.asked.Batch,
		Seed: r.point.Seed, Threads: r.cpus, Kernels: r.kernels, Momentum: 0.9,
	}, r.asked.LearningRate, r.group)
	if err != nil {
		return fmt.Errorf("workload.model: %w", err)
	}
	return r.phase(fmt.Sprintf("training %s on %s of %d × %d pixels in %d classes, batches of %d on each worker", r.asked.Model, r.asked.Format, side, side, len(r.classes.Names), r.asked.Batch))
}

// learn passes the samples of a pass to the trainer; end is called after it, and adds the trainer's work.
func (r *preprocessing) learn(ctx context.Context, o *preprocess.Options, part *tally) (within context.Context, end func() error) {
	side := preprocess.Side(r.asked.Format, r.asked.Crop)
	training, within := preprocess.StartTraining(ctx, r.learner, 3*side*side, r.asked.Batch)
	o.Take, o.Classes = training.Take, r.classes
	part.cpus = float64(r.cpus) // the trainer uses CPUs that the threads leave
	return within, func() (err error) {
		r.last, err = training.End()
		part.waited, part.took = r.last.Waited, r.last.Took
		part.steps, part.trained, part.loss = float64(r.last.Steps), float64(r.last.Samples), r.last.Loss
		return err
	}
}

// learnt reports the training results of a pass.
func (r *preprocessing) learnt(pass int, all *tally) error {
	if r.learner == nil {
		return nil
	}
	if all.steps == 0 {
		return fmt.Errorf("a pass has %s over %s, and a worker had fewer than one batch of %d; lower workload.batch, or give more samples", number.Count(int(all.samples), "sample"), number.Count(r.world.Size, "worker"), r.asked.Batch)
	}
	r.losses = append(r.losses, all.loss/all.trained)
	return r.phase(fmt.Sprintf("pass %d: %d of %s trained on, in %s; loss %s; waited for samples for %s of the time", pass+1,
		int(all.trained), number.Count(int(all.samples), "sample"), number.Count(int(all.steps)/r.world.Size, "step"),
		number.Significant(all.loss/all.trained), number.Percent(all.waited/all.took)))
}

// stepsAlone limits the steps that measure the trainer alone.
const stepsAlone = 50

// trainAlone measures the trainer with its last batch in memory, without preparing threads.
func (r *preprocessing) trainAlone(ctx context.Context, steps int) (ceiling, error) {
	if err := r.phase("training alone"); err != nil {
		return ceiling{}, err
	}
	if err := r.group.Barrier(ctx); err != nil {
		return ceiling{}, err
	}
	steps = min(steps, stepsAlone)
	begun := time.Now()
	for range steps {
		if _, err := r.learner.Step(ctx, r.last.Images, r.last.Classes); err != nil {
			return ceiling{}, err
		}
	}
	each := time.Since(begun).Seconds() / float64(steps)
	return ceiling{"training", float64(r.asked.Batch*r.world.Size) / each,
		fmt.Sprintf("training alone at %s a step of %d samples on %s", number.Seconds(each), r.asked.Batch*r.world.Size, number.Count(r.world.Size, "worker"))}, nil
}
