package preprocess

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Learner is a trainer whose caller provides the batches. Only one goroutine uses it.
type Learner interface {
	// Agree reports whether every rank has another batch. more says whether this rank has one.
	// Agree waits until all ranks have called it.
	Agree(ctx context.Context, more bool) (bool, error)
	// Step trains on a batch of images, laid out as [sample][row][column][channel], and their
	// classes. loss is the sum over the samples. The caller may reuse the memory afterwards.
	Step(ctx context.Context, images []float32, classes []byte) (loss float64, err error)
}

// A Training is a consumer that trains a model, on the same CPUs as the threads that prepare its
// samples. The threads fill further batches while the model is trained on one. An incomplete last
// batch is not used. If one rank has more batches than another, its additional batches are not used
// either.
type Training struct {
	learner Learner
	values  int // number of values of a sample
	size    int // number of samples of a batch
	free    chan *batch
	full    chan *batch
	stop    context.CancelCauseFunc
	done    chan struct{}

	mutex   sync.Mutex
	filling *batch // nil: the next one is taken from free

	// Results, to be read after End.
	learnt Learnt
	err    error
}

// Learnt is the result of a training on the samples of a pass.
type Learnt struct {
	Steps, Samples int
	Loss           float64 // sum over the samples of the loss before the step that trains on the sample
	// Took is the time from the start to the end of the last step. Waited is the part of it in
	// which this or another rank had no batch.
	Waited, Took float64 // seconds
	// Images and Classes are the last batch.
	Images  []float32
	Classes []byte
}

// A batch is a buffer for samples. taken is how many of its places threads have reserved, and
// written how many are complete.
type batch struct {
	images  []float32
	classes []byte
	taken   int
	written atomic.Int64
}

// batchesAhead is the number of batches that may be ready or partly filled while the model is
// trained on another. With more, threads wait.
const batchesAhead = 2

// StartTraining starts a training on batches of size samples with the given number of values each.
// The pass must use the context that it returns, which is cancelled if the training fails.
func StartTraining(ctx context.Context, learner Learner, values, size int) (*Training, context.Context) {
	t := &Training{learner: learner, values: values, size: size, done: make(chan struct{}),
		free: make(chan *batch, batchesAhead), full: make(chan *batch, batchesAhead)}
	for range batchesAhead {
		t.free <- &batch{images: make([]float32, size*values), classes: make([]byte, size)}
	}
	t.learnt.Images, t.learnt.Classes = make([]float32, size*values), make([]byte, size)
	ctx, t.stop = context.WithCancelCause(ctx)
	go t.run(ctx)
	return t, ctx
}

// Take copies a sample into a batch. It waits while no batch has room.
func (t *Training) Take(ctx context.Context, s Sample) error {
	t.mutex.Lock()
	if t.filling == nil {
		select {
		case t.filling = <-t.free:
		case <-ctx.Done():
			t.mutex.Unlock()
			return context.Cause(ctx)
		}
	}
	b, i := t.filling, t.filling.taken
	if b.taken++; b.taken == t.size {
		t.filling = nil
	}
	t.mutex.Unlock()
	interleave(s.Values, b.images[i*t.values:(i+1)*t.values])
	b.classes[i] = s.Class
	if b.written.Add(1) == int64(t.size) {
		t.full <- b // does not block: the channel has room for all batches
	}
	return nil
}

// interleave converts three channel planes to pixels with their three channels together.
func interleave(planes, out []float32) {
	points := len(planes) / 3
	for c := range 3 {
		for i, x := range planes[c*points : (c+1)*points] {
			out[3*i+c] = x
		}
	}
}

func (t *Training) run(ctx context.Context) {
	defer close(t.done)
	if t.err = t.learn(ctx); t.err != nil {
		t.stop(t.err) // stop threads that wait for room
	}
	for b := range t.full { // batches that are not used, because another rank has fewer
		t.recycle(b)
	}
}

func (t *Training) recycle(b *batch) {
	b.taken = 0
	b.written.Store(0)
	t.free <- b
}

// learn runs a training step on each batch, until one of the ranks has no more batches.
func (t *Training) learn(ctx context.Context) error {
	begun := time.Now()
	last := begun
	for {
		b, more := <-t.full
		all, err := t.learner.Agree(ctx, more)
		if err != nil || !all {
			if more {
				t.recycle(b)
			}
			return err
		}
		ready := time.Now()
		// Swap the buffers and release the batch first, so that threads can fill it during the
		// step.
		t.learnt.Images, b.images = b.images, t.learnt.Images
		t.learnt.Classes, b.classes = b.classes, t.learnt.Classes
		t.recycle(b)
		loss, err := t.learner.Step(ctx, t.learnt.Images, t.learnt.Classes)
		if err != nil {
			return err
		}
		t.learnt.Steps++
		t.learnt.Samples += t.size
		t.learnt.Loss += loss
		t.learnt.Waited += ready.Sub(last).Seconds()
		last = time.Now()
		t.learnt.Took = last.Sub(begun).Seconds()
	}
}

// errEnded ends the threads that still wait for room; it is never reported.
var errEnded = errors.New("the training has ended")

// End must be called after the pass. It waits until all complete batches have been used, and
// returns what the training did.
func (t *Training) End() (Learnt, error) {
	close(t.full)
	<-t.done
	t.stop(errEnded)
	return t.learnt, t.err
}
