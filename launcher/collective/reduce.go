package collective

import (
	"context"
	"fmt"
	"unsafe"
)

// number is what can be summed.
type number interface{ float32 | float64 | int64 }

// bytesOf is v's memory. Ranks send numbers as they lie in memory: Join makes
// sure that all have the same byte order.
func bytesOf[T number](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// Share is the part [from, to) of an array of n elements that belongs to a rank
// in ReduceScatter and AllGather: as near to n/size elements as can be.
func Share(rank, size, n int) (from, to int) { return rank * n / size, (rank + 1) * n / size }

// allReduce is the ring all-reduce of Patarasuk and Yuan (2009): a
// reduce-scatter and an all-gather. Each rank sends 2(size−1)/size of the bytes
// of v.
func allReduce[T number](ctx context.Context, g *Group, op op, v []T) error {
	return g.do(ctx, op, func() error {
		if err := scatterSums(g, v); err != nil {
			return err
		}
		return gather(g, v)
	})
}

// scatterSums cuts v into the ranks' shares. In size−1 steps every rank passes
// on the share that it has just added its own numbers to, so that rank r's,
// which started on rank r+1, ends as the whole sum on rank r. The other shares
// are left as partial sums.
func scatterSums[T number](g *Group, v []T) error {
	for s := range g.size - 1 {
		if err := g.post(bytesOf(shareOf(g, v, g.rank-1-s))); err != nil {
			return err
		}
		if err := receiveSum(g, shareOf(g, v, g.rank-2-s)); err != nil {
			return err
		}
	}
	return nil
}

// gather lets every rank's share of v go round.
func gather[T number](g *Group, v []T) error {
	for s := range g.size - 1 {
		if err := g.post(bytesOf(shareOf(g, v, g.rank-s))); err != nil {
			return err
		}
		if err := g.receive(bytesOf(shareOf(g, v, g.rank-1-s))); err != nil {
			return err
		}
	}
	return nil
}

// shareOf is rank's share of v; rank is taken modulo the size.
func shareOf[T number](g *Group, v []T, rank int) []T {
	from, to := Share((rank%g.size+g.size)%g.size, g.size, len(v))
	return v[from:to]
}

// ReduceScatter sums src over all ranks and gives each rank its Share of the
// sums, in dst. All ranks' src have the same length, dst that of the rank's
// share. dst may be that share of src itself; else src is left as it is.
func (g *Group) ReduceScatter(ctx context.Context, dst, src []float32) error {
	from, to := Share(g.rank, g.size, len(src))
	if len(dst) != to-from {
		return fmt.Errorf("reduce-scatter of %d elements: rank %d of %d gets %d of them, not %d", len(src), g.rank, g.size, to-from, len(dst))
	}
	if cap(g.work) < len(src) {
		g.work = make([]float32, len(src))
	}
	work := g.work[:len(src)]
	copy(work, src)
	if err := g.do(ctx, opReduceScatter, func() error { return scatterSums(g, work) }); err != nil {
		return err
	}
	copy(dst, work[from:to])
	return nil
}

// AllGather puts every rank's src at that rank's Share of dst, on all ranks. All
// ranks' dst have the same length, src that of the rank's share. src may be that
// share of dst itself.
func (g *Group) AllGather(ctx context.Context, dst, src []float32) error {
	from, to := Share(g.rank, g.size, len(dst))
	if len(src) != to-from {
		return fmt.Errorf("all-gather of %d elements: rank %d of %d brings %d of them, not %d", len(dst), g.rank, g.size, to-from, len(src))
	}
	copy(dst[from:to], src)
	return g.do(ctx, opAllGather, func() error { return gather(g, dst) })
}

// receiveSum adds what the rank before sends to v.
func receiveSum[T number](g *Group, v []T) error {
	var zero T
	if err := g.receiveHeader(len(v) * int(unsafe.Sizeof(zero))); err != nil {
		return err
	}
	scratch := unsafe.Slice((*T)(unsafe.Pointer(&g.scratch[0])), scratchBytes/int(unsafe.Sizeof(zero)))
	for len(v) > 0 {
		part := scratch[:min(len(scratch), len(v))]
		if err := g.receivePayload(bytesOf(part)); err != nil {
			return err
		}
		for i, x := range part {
			v[i] += x
		}
		v = v[len(part):]
	}
	return nil
}

// segmentBytes is how much of a broadcast a rank takes in before it passes it
// on.
const segmentBytes = 256 << 10

// Broadcast replaces v on every rank by rank 0's.
func (g *Group) Broadcast(ctx context.Context, v []float32) error {
	return g.do(ctx, opBroadcast, func() error {
		for rest := bytesOf(v); len(rest) > 0; {
			part := rest[:min(segmentBytes, len(rest))]
			rest = rest[len(part):]
			if g.rank > 0 {
				if err := g.receive(part); err != nil {
					return err
				}
			}
			if g.rank < g.size-1 {
				if err := g.post(part); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
