package collective

import (
	"context"
	"fmt"
)

// NewHostTransport returns the transport that uses CPUs and host memory, over the medium the Group
// was joined with. name is its display name.
func NewHostTransport(name string, g *Group) BenchTransport { return &host{name: name, group: g} }

type host struct {
	name    string
	group   *Group
	buffers [2][]float32
}

func (h *host) Name() string { return h.name }

func (h *host) Allocate(elements int) error {
	for i := range h.buffers {
		h.buffers[i] = make([]float32, elements)
	}
	return nil
}

func (h *host) Write(b Buffer, offset int, values []float32) error {
	copy(h.buffers[b][offset:], values)
	return nil
}

func (h *host) Read(b Buffer, offset int, values []float32) error {
	copy(values, h.buffers[b][offset:])
	return nil
}

// at returns count elements from a region's start.
func (h *host) at(r Region, count int) []float32 {
	return h.buffers[r.Buffer][r.Offset : r.Offset+count]
}

// Do copies the input first where the Group only works in place. The copy counts, because a program
// that keeps its input has to make it as well.
func (h *host) Do(ctx context.Context, c Call) error {
	switch c.Op {
	case AllReduce:
		v := h.at(c.Receive, c.Count)
		if c.Send != c.Receive {
			copy(v, h.at(c.Send, c.Count))
		}
		return h.group.AllReduce(ctx, v)
	case Broadcast:
		v := h.at(c.Receive, c.Count)
		if c.Send != c.Receive && h.group.Rank() == 0 {
			copy(v, h.at(c.Send, c.Count))
		}
		return h.group.Broadcast(ctx, v)
	case ReduceScatter:
		return h.group.ReduceScatter(ctx, h.at(c.Receive, c.Count), h.at(c.Send, c.Count*h.group.Size()))
	case AllGather:
		return h.group.AllGather(ctx, h.at(c.Receive, c.Count*h.group.Size()), h.at(c.Send, c.Count))
	}
	return fmt.Errorf("%s has no %s", h.name, c.Op)
}
