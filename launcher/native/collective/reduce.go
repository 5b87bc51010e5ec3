package collective

import (
	"context"
	"fmt"
)

// An op is a kind of collective, as numbered in the protocol.
type op uint8

const (
	opAllReduce op = iota + 1
	opAllReduce64
	opAllReduceInt
	opReduceScatter
	opAllGather
	opBroadcast
	opBarrier
)

func (o op) String() string {
	switch o {
	case opAllReduce:
		return "all-reduce"
	case opAllReduce64:
		return "all-reduce of float64"
	case opAllReduceInt:
		return "all-reduce of int64"
	case opReduceScatter:
		return "reduce-scatter"
	case opAllGather:
		return "all-gather"
	case opBroadcast:
		return "broadcast"
	case opBarrier:
		return "barrier"
	}
	return fmt.Sprintf("unknown collective %d", uint8(o))
}

// AllReduce replaces v on every rank by the sum of all ranks' v. All ranks get the same bits.
func (g *Group) AllReduce(ctx context.Context, v []float32) error {
	return allReduce(ctx, g, opAllReduce, sumFloat32, v)
}

// AllReduceFloat64 is AllReduce in double precision, for a few statistics.
func (g *Group) AllReduceFloat64(ctx context.Context, v []float64) error {
	return allReduce(ctx, g, opAllReduce64, sumFloat64, v)
}

// AllReduceInt64 is AllReduce for counts. A sum beyond an int64 wraps around.
func (g *Group) AllReduceInt64(ctx context.Context, v []int64) error {
	return allReduce(ctx, g, opAllReduceInt, sumInt64, v)
}

func allReduce[T number](ctx context.Context, g *Group, op op, add adder[T], v []T) error {
	return g.do(ctx, op, len(bytesOf(v)), func() error {
		if g.node != nil {
			if err := nodeAllReduce(g.node, add, v); err != nil {
				return err
			}
		}
		if g.ring != nil {
			if err := ringAllReduce(g.ring, add, v); err != nil {
				return err
			}
		}
		return g.spread(bytesOf(v))
	})
}

// spread broadcasts the leader's result from the other nodes to the ranks of its node.
func (g *Group) spread(b []byte) error {
	if g.node == nil || g.transport == SharedMemory {
		return nil
	}
	return g.node.broadcast(b)
}

// ReduceScatter sums src over all ranks and puts each rank's share of the sums (see shareOf) in its
// dst. src has the same length on all ranks; dst has the length of the rank's share. dst may be
// this share of src itself; otherwise src is unchanged.
func (g *Group) ReduceScatter(ctx context.Context, dst, src []float32) error {
	from, to := shareOf(g.rank, g.size, len(src))
	if len(dst) != to-from {
		return fmt.Errorf("reduce-scatter of %d elements: rank %d of %d gets %d of them, not %d", len(src), g.rank, g.size, to-from, len(dst))
	}
	err := g.do(ctx, opReduceScatter, len(bytesOf(src)), func() error {
		g.cut(len(src))
		if g.transport == SharedMemory {
			return nodeReduceScatter(g.node, sumFloat32, dst, src, g.ofRanks)
		}
		work := g.workspace(len(src))
		for i, r := range g.order {
			from, to := shareOf(r, g.size, len(src))
			copy(work[g.ofRanks[i]:], src[from:to])
		}
		if g.node != nil {
			if err := nodeAllReduce(g.node, sumFloat32, work); err != nil {
				return err
			}
		}
		if g.ring != nil {
			if err := ringReduceScatter(g.ring, sumFloat32, work, g.ofNodes); err != nil {
				return err
			}
		}
		if err := g.spread(bytesOf(work[g.ofNodes[g.nodeAt]:g.ofNodes[g.nodeAt+1]])); err != nil {
			return err
		}
		copy(dst, work[g.ofRanks[g.place]:])
		return nil
	})
	if err == nil && g.size == 1 {
		copy(dst, src)
	}
	return err
}

// AllGather puts every rank's src at that rank's share of dst (see shareOf), on all ranks. dst has
// the same length on all ranks; src has the length of the rank's share. src may be this share of
// dst itself.
func (g *Group) AllGather(ctx context.Context, dst, src []float32) error {
	from, to := shareOf(g.rank, g.size, len(dst))
	if len(src) != to-from {
		return fmt.Errorf("all-gather of %d elements: rank %d of %d brings %d of them, not %d", len(dst), g.rank, g.size, to-from, len(src))
	}
	err := g.do(ctx, opAllGather, len(bytesOf(dst)), func() error {
		g.cut(len(dst))
		work := dst
		if !g.inOrder {
			work = g.workspace(len(dst))
		}
		copy(work[g.ofRanks[g.place]:], src)
		if g.node != nil {
			if err := nodeAllGather(g.node, work, g.ofRanks[g.firsts[g.nodeAt]:g.firsts[g.nodeAt+1]+1]); err != nil {
				return err
			}
		}
		if g.ring != nil {
			if err := ringAllGather(g.ring, work, g.ofNodes); err != nil {
				return err
			}
		}
		if err := g.spread(bytesOf(work)); err != nil {
			return err
		}
		if !g.inOrder {
			for i, r := range g.order {
				from, to := shareOf(r, g.size, len(dst))
				copy(dst[from:to], work[g.ofRanks[i]:])
			}
		}
		return nil
	})
	if err == nil && g.size == 1 {
		copy(dst, src)
	}
	return err
}

// cut sets ofRanks and ofNodes for an array of n elements in which the ranks' shares are in the
// order of g.order, so that a node's shares are contiguous.
func (g *Group) cut(n int) {
	g.ofRanks, g.ofNodes = append(g.ofRanks[:0], 0), g.ofNodes[:0]
	for i, r := range g.order {
		from, to := shareOf(r, g.size, n)
		g.ofRanks = append(g.ofRanks, g.ofRanks[i]+to-from)
	}
	for _, first := range g.firsts {
		g.ofNodes = append(g.ofNodes, g.ofRanks[first])
	}
}

// workspace returns an array of n elements that is reused by every call.
func (g *Group) workspace(n int) []float32 {
	if cap(g.work) < n {
		g.work = make([]float32, n)
	}
	return g.work[:n]
}

// Broadcast replaces v on every rank by rank 0's.
func (g *Group) Broadcast(ctx context.Context, v []float32) error {
	return g.do(ctx, opBroadcast, len(bytesOf(v)), func() error {
		if g.ring != nil {
			if err := g.ring.broadcast(bytesOf(v)); err != nil {
				return err
			}
		}
		if g.node == nil {
			return nil
		}
		return g.node.broadcast(bytesOf(v))
	})
}

// Barrier returns when all ranks have called it.
func (g *Group) Barrier(ctx context.Context) error {
	g.one = [1]int64{1}
	return allReduce(ctx, g, opBarrier, sumInt64, g.one[:])
}
