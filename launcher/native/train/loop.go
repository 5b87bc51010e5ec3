package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// loop is the state of the step loop.
type loop struct {
	data     *dataset.Data
	order    *order
	schedule schedule

	began time.Time // start of the training clock
	step  int       // steps done
	epoch int       // epochs done

	ahead           chan struct{} // closed when the next step's batch is ready; nil: none is being prepared
	evaluated       int           // step of the last evaluation; -1: none yet
	best            float64       // best accuracy so far
	least           float64       // lowest loss of an evaluation so far
	interruptedLate bool          // interrupted during the last evaluation
	votes           [3]float32
	norms           *metrics.GradientSums // sums of the present epoch
}

// Votes are summed over the ranks together with the gradients, so that all ranks make the same
// decision after the same step.
const (
	voteTimeUp    = iota // rank 0's clock has passed max_minutes
	voteInterrupt        // a rank was asked to stop
	voteDiverged         // a rank's loss is not a finite number
)

// errEnough ends the loop because the run has the length that the point specifies.
var errEnough = errors.New("the run has its whole length")

// epochs trains until a limit is met.
func (r *rank) epochs() error {
	r.evaluated, r.least = -1, math.Inf(1)
	for {
		err := r.oneEpoch()
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if r.evaluated != r.step {
			if e := r.evaluate(); e != nil {
				return e
			}
		}
		t := r.point.Workload.Train
		switch {
		case err != nil,
			t.Epochs > 0 && r.epoch >= t.Epochs,
			t.Until == "targets" && r.reached(t.Targets):
			return nil
		case r.interruptedLate:
			return r.interrupted()
		}
	}
}

func (r *rank) reached(targets []measure.Target) bool {
	for _, t := range targets {
		if x, ok := t.Judges(r.best, &r.least); !ok || !t.Reached(x) {
			return false
		}
	}
	return true
}

// oneEpoch trains for one pass over the training set. It returns errEnough if the run is complete,
// which may be before the end of the pass.
func (r *rank) oneEpoch() error {
	begin := time.Now()
	r.order.shuffle(r.epoch)
	var loss, rate float64
	var samples int64
	last := begin
	for k := range r.order.stepsPerEpoch() {
		rate = r.schedule.at(r.step)
		l, end, err := r.oneStep(k, rate, last)
		if err != nil {
			return err
		}
		loss, samples, last = loss+l, samples+int64(r.order.worker), end
		if r.options.afterStep != nil {
			r.options.afterStep(r.step, r.engine)
		}
		if k == r.order.stepsPerEpoch()-1 {
			if err := r.endEpoch(loss, rate, samples, last.Sub(begin)); err != nil {
				return err
			}
		}
		if err := r.decide(); err != nil {
			if e := r.reportNorms(r.epoch + 1); e != nil {
				return e
			}
			return err
		}
	}
	return nil
}

// reportNorms writes the squared gradient norms since the last report.
func (r *rank) reportNorms(epoch int) error {
	if g := r.norms.Take(epoch, r.step); g != nil {
		return r.events.Write(metrics.Event{Gradients: g})
	}
	return nil
}

func (r *rank) endEpoch(loss, rate float64, samples int64, d time.Duration) error {
	r.epoch++
	mean := loss / float64(samples)
	if err := r.events.Write(metrics.Event{Epoch: &metrics.Epoch{
		Epoch: r.epoch, Step: r.step, Samples: samples, Seconds: d.Seconds(), Loss: &mean, LearningRate: rate,
	}}); err != nil {
		return err
	}
	return r.reportNorms(r.epoch)
}

// oneStep makes step k of the epoch, which lasts from the end of the one before
// (last) to its own end. loss is the sum over this rank's samples.
func (r *rank) oneStep(k int, rate float64, last time.Time) (loss float64, end time.Time, err error) {
	ids := r.order.batch(k)
	if r.ahead == nil {
		r.load(ids)(r.engine.Input())
	}
	r.awaitAhead()
	haveData := time.Now()
	if r.gpu != nil && k+1 < r.order.stepsPerEpoch() {
		r.beginAhead(k + 1)
	}
	loss, within, err := r.engine.Gradient(r.ctx, len(ids))
	if err != nil {
		return 0, last, r.broken("train", err)
	}
	r.vote(loss)
	haveGradient := time.Now()
	busy, err := r.engine.Reduce(r.ctx, r.votes[:])
	if err != nil {
		return 0, last, r.broken("train", err)
	}
	reduced := time.Now()
	if r.votes[voteDiverged] > 0 {
		return 0, last, in("train", fmt.Errorf("training has diverged: the loss of step %d is not a finite number; lower workload.learning_rate (%g at this step) or lengthen workload.warmup_epochs", r.step+1, rate))
	}
	if own, averaged, ok := r.engine.SquaredNorms(); ok {
		r.norms.Add(own, averaged)
	}
	r.engine.Update(rate)
	end = time.Now()
	r.step++

	dataWait := haveData.Sub(last)
	// The part of the reduction that the backward pass did not hide does not count as computing
	// time.
	communication := busy + within
	compute := end.Sub(haveData) - reduced.Sub(haveGradient) - within
	return loss, end, r.events.Step(metrics.Step{
		Duration: end.Sub(last), Samples: int64(len(ids)),
		DataWait: &dataWait, Compute: &compute, Communication: &communication,
	})
}

// load returns a function that fills a batch with these training samples.
func (r *rank) load(ids []int32) func(dataset.Batch) {
	return func(to dataset.Batch) {
		for i, id := range ids {
			t := dataset.Identity
			if r.point.Workload.Train.Augment {
				t = augmentation(r.point.Seed, r.epoch, id)
			}
			to.Put(i, r.data.Train.Image(int(id)), t, r.data.Train.Labels[id])
		}
	}
}

// beginAhead starts to prepare the batch of step k of this epoch while the GPU computes the
// previous one. On CPUs it does nothing, because it would slow down the computation.
func (r *rank) beginAhead(k int) {
	to, load, done := r.gpu.Ahead(), r.load(r.order.batch(k)), make(chan struct{})
	r.ahead = done
	go func() {
		defer close(done)
		load(to)
	}()
}

// awaitAhead waits until no goroutine writes to the engine's memory.
func (r *rank) awaitAhead() {
	if r.ahead != nil {
		<-r.ahead
		r.ahead = nil
	}
}

// broken returns the error for a failed collective. If this rank was asked to stop and could not
// finish the step, the error says so.
func (r *rank) broken(where string, err error) error {
	if r.ctx.Err() != nil {
		return &InterruptedError{r.step, context.Cause(r.ctx)}
	}
	return in(where, err)
}

// vote sets this rank's votes on whether to continue after this step.
func (r *rank) vote(loss float64) {
	r.votes = [3]float32{}
	if limit := r.point.Workload.Train.MaxMinutes; r.world.Rank == 0 && limit > 0 && time.Since(r.began).Minutes() >= limit {
		r.votes[voteTimeUp] = 1
	}
	if r.stopped.Err() != nil {
		r.votes[voteInterrupt] = 1
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		r.votes[voteDiverged] = 1
	}
}

// decide decides whether the run continues after the step just made. It uses only values that are
// equal on all ranks.
func (r *rank) decide() error {
	limit := r.point.Workload.Train.MaxSteps
	switch {
	case r.votes[voteTimeUp] > 0, limit > 0 && r.step >= limit:
		return errEnough
	case r.votes[voteInterrupt] > 0:
		return r.interrupted()
	}
	return nil
}

func (r *rank) interrupted() error {
	cause := context.Cause(r.stopped)
	if cause == nil {
		cause = errors.New("another rank was told to stop")
	}
	return &InterruptedError{r.step, cause}
}

// evaluate measures the accuracy on the test split, of which every rank evaluates a share. Its time
// counts as training time.
func (r *rank) evaluate() error {
	begin := time.Now()
	if err := r.engine.AverageStatistics(r.ctx); err != nil {
		return r.broken("evaluate", err)
	}
	test := r.data.Test
	from, to := share(test.Len(), r.world.Rank, r.group.Size())
	r.awaitAhead() // the batch that is being prepared is no longer needed
	var loss float64
	// Numbers of correct classifications, of samples, and of ranks that were asked to stop.
	counts := make([]int64, 3)
	for at := from; at < to; at += r.order.worker {
		if r.ctx.Err() != nil {
			return r.broken("evaluate", r.ctx.Err())
		}
		n := min(r.order.worker, to-at)
		to := r.engine.Input()
		for i := range n {
			to.Put(i, test.Image(at+i), dataset.Identity, test.Labels[at+i])
		}
		l, correct, err := r.engine.Evaluate(n)
		if err != nil {
			return in("evaluate", err)
		}
		loss += l
		counts[0] += int64(correct)
		counts[1] += int64(n)
	}
	if r.stopped.Err() != nil {
		counts[2] = 1
	}
	if err := r.group.AllReduceInt64(r.ctx, counts); err != nil {
		return r.broken("evaluate", err)
	}
	losses := []float64{loss}
	if err := r.group.AllReduceFloat64(r.ctx, losses); err != nil {
		return r.broken("evaluate", err)
	}
	r.evaluated = r.step
	mean := losses[0] / float64(counts[1])
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return in("evaluate", fmt.Errorf("training has diverged: the loss on the test split after step %d is not a finite number; lower workload.learning_rate or lengthen workload.warmup_epochs", r.step))
	}
	accuracy := float64(counts[0]) / float64(counts[1])
	r.best, r.least = max(r.best, accuracy), min(r.least, mean)
	if r.world.Rank == 0 {
		seconds := time.Since(begin).Seconds()
		if err := r.events.Write(metrics.Event{Evaluation: &metrics.Evaluation{
			Epoch: r.epoch, Step: r.step, Accuracy: accuracy, Loss: &mean, Samples: counts[1], Seconds: seconds,
		}}); err != nil {
			return err
		}
		r.logf("epoch %d, step %d, %.1f s: accuracy %.4f, loss %.4f", r.epoch, r.step, time.Since(r.began).Seconds(), accuracy, mean)
	}
	r.interruptedLate = counts[2] > 0
	return nil
}
