package train

import (
	"context"
	"fmt"
	"math"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
)

// A Learner is a trainer without data sets, epochs and events: a model that makes one step for each
// batch, on CPUs.
type Learner struct {
	engine *cpu.Engine
	group  *collective.Group
	size   int
	rate   float64
	steps  int
}

// NewLearner returns a Learner with rank 0's parameters; every rank of the group must call it. Each
// rank's batches have o.Batch samples.
func NewLearner(ctx context.Context, o cpu.Options, learningRate float64, g *collective.Group) (*Learner, error) {
	o.GlobalBatch = o.Batch * g.Size()
	e, err := cpu.New(o, g)
	if err != nil {
		return nil, err
	}
	if err := e.Broadcast(ctx); err != nil {
		e.Close()
		return nil, err
	}
	return &Learner{engine: e, group: g, size: o.Batch, rate: learningRate}, nil
}

// Agree reports whether all ranks have another batch. All ranks must call it.
func (l *Learner) Agree(ctx context.Context, more bool) (bool, error) {
	have := []int64{0}
	if more {
		have[0] = 1
	}
	err := l.group.AllReduceInt64(ctx, have)
	return have[0] == int64(l.group.Size()), err
}

// Step learns from a batch, on all ranks at once: images as [sample][line][point][channel]
// and their classes. loss is the sum over this rank's samples, before the step.
func (l *Learner) Step(ctx context.Context, images []float32, classes []byte) (loss float64, err error) {
	to, labels := l.engine.Input()
	if len(images) != len(to) || len(classes) != len(labels) {
		return 0, fmt.Errorf("a batch of %d values and %d classes; want %d and %d", len(images), len(classes), len(to), len(labels))
	}
	copy(to, images)
	copy(labels, classes)
	if loss, _, err = l.engine.Gradient(ctx, l.size); err != nil {
		return 0, err
	}
	diverged := []float32{0}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		diverged[0] = 1
	}
	if _, err := l.engine.Reduce(ctx, diverged); err != nil {
		return 0, err
	}
	if l.steps++; diverged[0] > 0 {
		return 0, fmt.Errorf("training has diverged: the loss of step %d is not a finite number; lower workload.learning_rate (%g)", l.steps, l.rate)
	}
	l.engine.Update(l.rate)
	return loss, nil
}

// ParameterSHA256 returns the hash of the parameters, which is equal only for equal bits.
func (l *Learner) ParameterSHA256() (string, error) { return parameterSHA256(onCPU{l.engine}) }

// Close ends the computing threads. It does not close the group.
func (l *Learner) Close() { l.engine.Close() }
