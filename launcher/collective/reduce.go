package collective

import (
	"context"
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

// allReduce is the ring all-reduce of Patarasuk and Yuan (2009): v is cut into
// as many chunks as there are ranks. In size−1 steps every rank passes on the
// chunk it has just added its own share to, so that chunk c, which started on
// rank c, ends as the whole sum on rank c−1; in size−1 more steps the sums go
// round. Each rank sends 2(size−1)/size of the bytes of v.
func allReduce[T number](ctx context.Context, g *Group, op op, v []T) error {
	return g.do(ctx, op, func() error {
		chunk := func(i int) []T {
			i = (i%g.size + g.size) % g.size
			return v[i*len(v)/g.size : (i+1)*len(v)/g.size]
		}
		for s := range g.size - 1 {
			if err := g.post(bytesOf(chunk(g.rank - s))); err != nil {
				return err
			}
			if err := receiveSum(g, chunk(g.rank-s-1)); err != nil {
				return err
			}
		}
		for s := range g.size - 1 {
			if err := g.post(bytesOf(chunk(g.rank + 1 - s))); err != nil {
				return err
			}
			if err := g.receive(bytesOf(chunk(g.rank - s))); err != nil {
				return err
			}
		}
		return nil
	})
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
