//go:build cgo

package gpu

import (
	"context"
	"fmt"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/gpurank"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// A reducer sums a flat buffer of votes and gradients over the ranks, in buckets from its end to
// its beginning, the order in which the backward pass finishes them. Each bucket is one all-reduce
// on the communicator's stream; it waits for an event of the computing stream, so the pass
// continues meanwhile. finish reduces the last bucket, which has the votes. The buckets are cut as
// in the engine on CPUs.
type reducer struct {
	rank    *gpurank.Rank
	kernels *ptx.Set
	compute cuda.Stream
	overlap bool // reduce during the backward pass

	buffer  cuda.Pointer // float32; the first cpu.MaxVotes are votes
	cuts    []int        // descending: bucket i is elements cuts[i+1] to cuts[i]
	buckets []bucket

	norms     cuda.Pointer // float64, see normParts
	hostVotes *cuda.Pinned
	hostNorms *cuda.Pinned

	// State of the running step.
	next       int  // first bucket whose reduction has not started
	measure    bool // compute squared norms of the gradients, before and after the sum over ranks
	own, total float64
}

// bucket has the events of a bucket: its gradients are final, its all-reduce starts, and ends.
type bucket struct{ final, begin, end cuda.Event }

func newBuckets(device *cuda.Device, n int) (list []bucket, err error) {
	list = make([]bucket, n)
	for i := range list {
		b := &list[i]
		for _, e := range []*cuda.Event{&b.final, &b.begin, &b.end} {
			if *e, err = device.NewEvent(); err != nil {
				return list, err
			}
		}
	}
	return list, nil
}

// destroyEvents frees the existing events. It ignores errors, since the end of the process frees
// them, too.
func destroyEvents(device *cuda.Device, buckets []bucket, others ...cuda.Event) {
	for _, b := range buckets {
		others = append(others, b.final, b.begin, b.end)
	}
	for _, e := range others {
		if e != 0 {
			_ = device.DestroyEvent(e)
		}
	}
}

// normParts is the number of partial sums of a bucket's squared norm. Those of bucket i before it
// is summed start at 2·i·normParts; those after it follow them.
const normParts = 2048

// plan reserves the reducer's memory for this number of gradients.
func (r *reducer) plan(a *arena, gradients int) {
	n := cpu.MaxVotes + gradients
	r.cuts = cpu.Cuts(n)
	a.floats(int64(n), &r.buffer)
	a.doubles(r.normsBytes()/8, &r.norms)
}

func (r *reducer) normsBytes() int64 { return 8 * 2 * normParts * int64(len(r.cuts)-1) }

// prepare allocates everything outside the arena.
func (r *reducer) prepare() (err error) {
	device := r.rank.Device
	if r.hostVotes, err = device.AllocPinned(4 * cpu.MaxVotes); err != nil {
		return err
	}
	if r.hostNorms, err = device.AllocPinned(r.normsBytes()); err != nil {
		return err
	}
	r.buckets, err = newBuckets(device, len(r.cuts)-1)
	return err
}

// at returns the address of an element.
func (r *reducer) at(element int) cuda.Pointer { return r.buffer + cuda.Pointer(4*element) }

// begin starts a step.
func (r *reducer) begin(measure bool) { r.next, r.measure, r.own, r.total = 0, measure, 0, 0 }

// final marks the gradients from an index on as final after the present work of the stream, and
// starts the reductions that this allows.
func (r *reducer) final(ctx context.Context, from int) error {
	for ; r.due(r.next, from); r.next++ {
		if err := r.reduce(ctx, r.next); err != nil {
			return err
		}
	}
	return nil
}

// due reports whether a bucket can be reduced if the gradients from an index on are final. The last
// bucket waits for the votes.
func (r *reducer) due(bucket, from int) bool {
	return r.overlap && bucket < len(r.buckets)-1 && r.cuts[bucket+1] >= cpu.MaxVotes+from
}

// reduce starts a bucket's all-reduce.
func (r *reducer) reduce(ctx context.Context, i int) error {
	device, stream, b := r.rank.Device, r.rank.Stream, r.buckets[i]
	from, to := r.cuts[i+1], r.cuts[i]
	if err := device.Record(b.final, r.compute); err != nil {
		return err
	}
	if err := device.Wait(stream, b.final); err != nil {
		return err
	}
	if err := r.norm(i, 0); err != nil {
		return err
	}
	if err := device.Record(b.begin, stream); err != nil {
		return err
	}
	if err := r.rank.Comm.Enqueue(ctx, nccl.Operation{Kind: nccl.AllReduce, Type: nccl.Float32, Reduction: nccl.Sum,
		Count: int64(to - from), Send: uintptr(r.at(from)), Recv: uintptr(r.at(from))}); err != nil {
		return err
	}
	if err := device.Record(b.end, stream); err != nil {
		return err
	}
	return r.norm(i, 1)
}

// norm computes the squared norm of a bucket, before (0) or after (1) the sum over ranks.
func (r *reducer) norm(i, after int) error {
	if !r.measure {
		return nil
	}
	from := max(r.cuts[i+1], cpu.MaxVotes)
	return r.kernels.SquaredNorm(r.rank.Stream, ptx.SquaredNorm{From: r.at(from), Count: int32(r.cuts[i] - from),
		To: r.norms + cuda.Pointer(8*normParts*(2*i+after)), Parts: normParts})
}

// finish returns when the whole buffer and the votes are summed over the ranks. busy is how long
// all-reduces were running, by the device's clock.
func (r *reducer) finish(ctx context.Context, votes []float32) (busy time.Duration, err error) {
	if len(votes) > cpu.MaxVotes {
		return 0, fmt.Errorf("%d votes, want at most %d", len(votes), cpu.MaxVotes)
	}
	device, stream := r.rank.Device, r.rank.Stream
	host := cuda.View[float32](r.hostVotes)
	clear(host)
	copy(host, votes)
	if err := device.EnqueueUpload(r.buffer, r.hostVotes, 0, 4*cpu.MaxVotes, stream); err != nil {
		return 0, err
	}
	for ; r.next < len(r.buckets); r.next++ {
		if err := r.reduce(ctx, r.next); err != nil {
			return 0, err
		}
	}
	if err := device.EnqueueDownload(r.hostVotes, 0, 4*cpu.MaxVotes, r.buffer, stream); err != nil {
		return 0, err
	}
	if r.measure {
		if err := device.EnqueueDownload(r.hostNorms, 0, r.normsBytes(), r.norms, stream); err != nil {
			return 0, err
		}
	}
	if err := r.rank.Comm.Wait(ctx); err != nil {
		return 0, err
	}
	copy(votes, host)
	if r.measure {
		parts := cuda.View[float64](r.hostNorms)
		for i := range r.buckets {
			for k := range normParts {
				r.own += parts[2*i*normParts+k]
				r.total += parts[(2*i+1)*normParts+k]
			}
		}
	}
	for _, b := range r.buckets {
		d, err := device.Elapsed(b.begin, b.end)
		if err != nil {
			return 0, err
		}
		busy += d
	}
	return busy, nil
}

// close frees everything outside the arena. The streams must be idle.
func (r *reducer) close(device *cuda.Device) {
	freePinned(r.hostVotes, r.hostNorms)
	destroyEvents(device, r.buckets)
}

// freePinned frees the existing buffers. It ignores errors, since the end of the process frees
// them, too.
func freePinned(list ...*cuda.Pinned) {
	for _, p := range list {
		if p != nil {
			_ = p.Free()
		}
	}
}
