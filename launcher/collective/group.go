// Package collective lets the ranks of a run act together: sum an array over
// all of them, hand rank 0's values to everybody, wait for each other.
//
// A Group is a ring of TCP connections: every rank sends to the next rank and
// receives from the one before. Sums are made by ring reduce-scatter and
// all-gather, so that each element is added up once, in an order fixed by its
// place in the array, and then copied: all ranks end with the same bits, and
// equal inputs give equal bits in every run.
//
// Nothing waits for ever. When a rank dies, hangs or gives up, every other rank
// returns an error that names it, at the latest after Options.Timeout. There is
// no recovery: after its first error a Group is of no more use, since a sum over
// fewer ranks would be a wrong number.
//
// Connections are meant for one machine or the network inside a cluster. The
// nonce keeps apart runs and strangers that reach the same port; data is
// neither encrypted nor signed.
package collective

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Defaults of Options.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultJoinTimeout = 60 * time.Second
)

// Options adjusts a Group; the zero value is what a run wants.
type Options struct {
	// Timeout is how long a collective waits for a rank that says nothing,
	// and how long a send may take. It has to cover the difference between the
	// fastest and the slowest rank. 0: DefaultTimeout.
	Timeout time.Duration
	// JoinTimeout is how long Join waits for all ranks. 0: DefaultJoinTimeout.
	JoinTimeout time.Duration
	// Transport is what numbers travel over. "": whatever is fastest.
	Transport Transport
	// Listener is where rank 0 expects the others, instead of a listener that
	// Join opens on World.Address and World.Port. Join closes it.
	Listener net.Listener
}

// A Transport is what the ranks' numbers travel over.
type Transport string

// The transports that Options may ask for.
const (
	TCP          Transport = "tcp"
	SharedMemory Transport = "shm" // all ranks must be on one host
)

// A PeerError is a collective that could not finish because of one rank.
type PeerError struct {
	Rank  int    // that is to blame, which need not be a neighbour
	Phase string // what was going on: "rendezvous", "all-reduce 17", …
	Err   error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("%s: rank %d %v", e.Phase, e.Rank, e.Err)
}
func (e *PeerError) Unwrap() error { return e.Err }

// A Group is one rank's end of the ring. One goroutine at a time may use it,
// and all ranks must call the same collectives in the same order with the same
// lengths; where they do not, the Group says so.
type Group struct {
	rank, size int
	timeout    time.Duration
	grace      time.Duration // part of timeout kept for finding out who is to blame

	// nil when alone
	line   *line
	reader *bufio.Reader // from the rank before
	next   *sender       // to the next rank

	seq     uint32 // collectives begun
	op      op     // the one going on
	err     error  // the first failure; later calls return it
	closed  bool
	scratch []uint64
	work    []float32 // grown to the longest reduce-scatter
}

// scratchBytes is how much is received before it is added up: little enough to
// stay in a core's cache.
const scratchBytes = 64 << 10

func newGroup(rank, size int, timeout time.Duration, prev, next net.Conn) *Group {
	g := &Group{rank: rank, size: size, timeout: timeout, grace: min(timeout/6, 5*time.Second)}
	if size > 1 {
		g.line = &line{prev: prev, next: next}
		g.reader = bufio.NewReaderSize(prev, scratchBytes)
		g.next = newSender(g.line, timeout)
		g.scratch = make([]uint64, scratchBytes/8)
	}
	return g
}

// Rank is this process's place in the ring, 0-based.
func (g *Group) Rank() int { return g.rank }

// Size is how many ranks there are, as counted by a sum over the ring when it
// was joined.
func (g *Group) Size() int { return g.size }

// AllReduce replaces v on every rank by the sum of all ranks' v. All ranks get
// the same bits.
func (g *Group) AllReduce(ctx context.Context, v []float32) error {
	return allReduce(ctx, g, opAllReduce, v)
}

// AllReduceFloat64 is AllReduce in double precision, for a few statistics.
func (g *Group) AllReduceFloat64(ctx context.Context, v []float64) error {
	return allReduce(ctx, g, opAllReduce64, v)
}

// AllReduceInt64 is AllReduce for counts. A sum beyond an int64 wraps around.
func (g *Group) AllReduceInt64(ctx context.Context, v []int64) error {
	return allReduce(ctx, g, opAllReduceInt, v)
}

// Barrier returns when all ranks have called it.
func (g *Group) Barrier(ctx context.Context) error {
	return allReduce(ctx, g, opBarrier, []int64{1})
}

// Close ends this rank's part in an orderly way, after its last collective.
func (g *Group) Close() error {
	if g.err == nil {
		g.err = errors.New("the group is closed")
	}
	if g.size == 1 || g.closed {
		return nil
	}
	g.closed = true
	close(g.next.frames)
	return g.line.close() // wakes a write that hangs
}

// Abort ends this rank's part because it cannot go on, and tells the others
// why, so that they need not find out by waiting. Their error names this rank.
// It may be called instead of Close, not during a collective.
func (g *Group) Abort(reason error) {
	if g.err == nil {
		g.giveUp(&PeerError{Rank: g.rank, Phase: g.phase(), Err: fmt.Errorf("gave up: %w", reason)})
	}
}

// phase names the collective that is going on, or was the last.
func (g *Group) phase() string {
	if g.seq == 0 {
		return "rendezvous"
	}
	return fmt.Sprintf("%s %d", g.op, g.seq)
}

// do runs one collective under ctx: it takes care that cancelling it wakes
// every wait, and that the first failure is everybody's and final.
func (g *Group) do(ctx context.Context, op op, body func() error) error {
	if g.err != nil {
		return g.err
	}
	g.seq++
	g.op = op
	if g.size == 1 {
		return ctx.Err()
	}
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, g.line.interrupt)
	}
	err := body()
	if err == nil {
		err = g.next.wait()
	}
	if !stop() && err == nil {
		// Cancelled while the last bytes came in: the result is whole, but the
		// deadlines are spoilt.
		err = context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	var blamed *PeerError
	switch {
	case ctx.Err() != nil:
		blamed = &PeerError{g.rank, g.phase(), fmt.Errorf("was told to stop: %w", context.Cause(ctx))}
	case errors.As(err, &blamed):
	default:
		blamed = g.blameAfter(err)
	}
	return g.giveUp(blamed)
}
