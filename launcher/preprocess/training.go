package preprocess

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Learner is a trainer that is given its batches. One goroutine uses it.
type Learner interface {
	// Agree reports whether all ranks have a batch, when all have said so.
	Agree(ctx context.Context, more bool) (bool, error)
	// Step learns from a batch, whose memory is the caller's again afterwards: images as
	// [sample][line][point][channel] and their classes. loss is the sum over them.
	Step(ctx context.Context, images []float32, classes []byte) (loss float64, err error)
}

// A Training is a consumer that really trains, on the same CPUs as the threads that prepare its samples. The
// threads fill batches, some of which are ready while one is used. An incomplete last batch is not used, nor
// are batches of a rank that has more of them than another.
type Training struct {
	learner Learner
	values  int // of a sample
	size    int // of a batch
	free    chan *batch
	full    chan *batch
	stop    context.CancelCauseFunc
	done    chan struct{}

	mutex   sync.Mutex
	filling *batch // nil: take one of free

	// What it has done, to be read after End.
	learnt Learnt
	err    error
}

// Learnt is what a training did with the samples of a pass.
type Learnt struct {
	Steps, Samples int
	Loss           float64 // sum over the samples, each before the step that learns from it
	// Took is from the start to the end of the last step, and Waited the part of it in
	// which a rank, this one or another, had no batch.
	Waited, Took float64 // seconds
	// The last batch.
	Images  []float32
	Classes []byte
}

// A batch holds some samples: taken of them have a thread that writes them, written are complete.
type batch struct {
	images  []float32
	classes []byte
	taken   int
	written atomic.Int64
}

// batchesAhead are how many batches may be ready or in the making while one is learnt
// from, before threads have to wait.
const batchesAhead = 2

// StartTraining begins to learn from batches of so many samples, of so many values each.
// The context that it returns is for the pass; it ends when learning fails.
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

// Take puts a sample into a batch, and waits while there is room in none.
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
		t.full <- b // which has room for all that there are
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
		t.stop(t.err) // threads that wait for room
	}
	for b := range t.full { // of a rank that has more than others
		t.recycle(b)
	}
}

func (t *Training) recycle(b *batch) {
	b.taken = 0
	b.written.Store(0)
	t.free <- b
}

// learn runs a step on each batch, until one rank has no more batches.
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
		// Free the buffers first, so that the threads continue during the step.
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

// End is called after the pass; it returns when all complete batches have been used.
func (t *Training) End() (Learnt, error) {
	close(t.full)
	<-t.done
	t.stop(errEnded)
	return t.learnt, t.err
}
