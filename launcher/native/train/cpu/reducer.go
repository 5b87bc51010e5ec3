package cpu

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gonum.org/v1/gonum/blas/gonum"

	"github.com/scalebench/scalebench/launcher/native/collective"
)

// Bytes of a bucket of gradients. The first is small, so that the ranks start to communicate early
// in the backward pass. The others are so large that a reduction's latency (tens of microseconds
// per rank) is small relative to its milliseconds. Larger buckets would have left
// the processor's cache when they are summed: here the cores that compute also move the data.
// (PyTorch's 25 MB suit devices on which starting a reduction is expensive.)
const (
	firstBucketBytes = 1 << 20
	bucketBytes      = 4 << 20
)

// A reducer sums a flat buffer of votes and gradients over the ranks, in buckets from its end to
// its beginning, the order in which the backward pass finishes them. During the pass, the reducer's
// goroutine reduces each bucket once it is final. finish reduces the last bucket, which has the
// votes.
//
// The cuts depend only on the buffer's length, never on time, so equal inputs give equal bits in
// every run. Other cuts may give other bits: the order in which an element is summed can depend on
// its position in its bucket.
type reducer struct {
	group  *collective.Group
	buffer []float32
	votes  int   // elements before the gradients
	cuts   []int // descending: bucket i is buffer[cuts[i+1]:cuts[i]]

	work     chan int // final buckets; nil: the caller reduces all
	inFlight sync.WaitGroup
	next     int // first bucket that was not passed to work

	// State of the running step. It belongs to the goroutine while buckets are being reduced.
	ctx  context.Context
	busy time.Duration
	err  error
	// If measure is set: squared norms of the gradients before and after the sum over ranks, for
	// the buckets reduced so far.
	measure    bool
	own, total float64
}

// newReducer returns a reducer of buffer, whose first elements are votes. Without overlap, only
// finish uses the group.
func newReducer(group *collective.Group, buffer []float32, votes int, cuts []int, overlap bool) *reducer {
	r := &reducer{group: group, buffer: buffer, votes: votes, cuts: cuts}
	if overlap && group.Size() > 1 && len(cuts) > 2 {
		r.work = make(chan int, len(cuts))
		go r.run()
	}
	return r
}

// Cuts returns the positions at which a buffer of n votes and gradients is cut into buckets, from
// its end to 0: bucket i extends from the (i+1)th cut to the ith.
func Cuts(n int) []int { return bucketCuts(n, firstBucketBytes/4, bucketBytes/4) }

// bucketCuts divides n elements, from the end: one bucket of first elements, then buckets of each
// elements, down to 0.
func bucketCuts(n, first, each int) []int {
	list := []int{n}
	for at := n - first; at > 0; at -= each {
		list = append(list, at)
	}
	return append(list, 0)
}

// run reduces buckets as they arrive.
func (r *reducer) run() {
	for i := range r.work {
		r.reduce(i)
		r.inFlight.Done()
	}
}

// reduce sums one bucket over the ranks. The first failure becomes the step's error; the group is
// unusable afterwards.
func (r *reducer) reduce(i int) {
	if r.err != nil {
		return
	}
	bucket := r.buffer[r.cuts[i+1]:r.cuts[i]]
	gradients := r.buffer[max(r.cuts[i+1], r.votes):r.cuts[i]]
	if r.measure {
		r.own += squaredNorm(gradients)
	}
	begin := time.Now()
	r.err = r.group.AllReduce(r.ctx, bucket)
	r.busy += time.Since(begin)
	if r.measure {
		r.total += squaredNorm(gradients)
	}
}

// squaredNorm returns the sum of the squares of v in double precision. If v was just written or summed and is
// still in the cache, it costs almost nothing.
func squaredNorm(v []float32) float64 { return gonum.Implementation{}.Dsdot(len(v), v, 1, v, 1) }

// begin starts a step.
func (r *reducer) begin(ctx context.Context) {
	r.wait()
	r.next, r.ctx, r.busy, r.err = 0, ctx, 0, nil
	r.own, r.total = 0, 0
}

// final marks the gradients from an index on as final. It does not wait.
func (r *reducer) final(from, _ int) {
	if r.work == nil {
		return
	}
	for last := len(r.cuts) - 2; r.next < last && r.cuts[r.next+1] >= r.votes+from; r.next++ {
		r.inFlight.Add(1)
		r.work <- r.next // never blocks: the channel has capacity for all buckets
	}
}

// wait waits until the goroutine no longer uses the group.
func (r *reducer) wait() { r.inFlight.Wait() }

// finish returns when the whole buffer, including the votes, is summed over the ranks. busy is the
// time during which buckets were being reduced since begin, during the backward pass and here.
func (r *reducer) finish(ctx context.Context, votes []float32) (busy time.Duration, err error) {
	if len(votes) > r.votes {
		return 0, fmt.Errorf("%d votes, want at most %d", len(votes), r.votes)
	}
	r.wait()
	clear(r.buffer[:r.votes])
	copy(r.buffer, votes)
	for r.ctx = ctx; r.next < len(r.cuts)-1; r.next++ {
		r.reduce(r.next)
	}
	copy(votes, r.buffer)
	return r.busy, r.err
}

func (r *reducer) close() {
	r.wait()
	if r.work != nil {
		close(r.work)
	}
}
