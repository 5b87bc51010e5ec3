// Package collective lets the ranks of a run act together: sum an array over all
// of them, each its share of it or everybody the whole, gather shares, hand rank
// 0's values to everybody, wait for each other.
//
// Ranks on one host exchange numbers through shared memory (see node), hosts
// through a ring of TCP connections between the first rank of each (see ring). A
// collective over several hosts is one within each host, one between the hosts,
// and one more within each. Which ranks share memory is found out by sharing it,
// not by names (see place.go).
//
// Sums are made in a fixed order: on a node in the order of its ranks, between
// nodes in an order fixed by an element's place in the array. Each is either made
// once and then copied, or made by everybody from the same numbers in the same
// order. So all ranks end with the same bits, and equal inputs on equally placed
// ranks give equal bits in every run.
//
// Nothing waits for ever. When a rank dies, hangs or gives up, every other rank
// returns an error that names it, at once if its process has ended, else at the
// latest after Options.Timeout. It is rank 0 that decides who is to blame, over
// connections of its own, so that all say the same (see control). There is no
// recovery: after its first error a Group is of no more use, since a sum over
// fewer ranks would be a wrong number.
//
// Connections are meant for one machine or the network inside a cluster. Both
// ends of each prove that they know the run's nonce before anything else is said
// (see handshake), which keeps apart runs, and strangers out. What travels
// afterwards is neither encrypted nor signed: who can alter packets between two
// hosts can alter it.
package collective

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// Defaults of Options.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultJoinTimeout = 60 * time.Second
)

// A Transport is what the ranks' numbers travel over.
type Transport string

// The transports that Options may ask for, and the mixture that is the outcome
// where hosts have several ranks each.
const (
	TCP          Transport = "tcp"
	SharedMemory Transport = "shm" // all ranks must be on one host
	Mixed        Transport = "shm+tcp"
)

// Options adjusts a Group; the zero value is what a run wants.
type Options struct {
	// Timeout is how long a collective waits for a rank that says nothing,
	// and how long a send may take. It has to cover the difference between the
	// fastest and the slowest rank. 0: DefaultTimeout.
	Timeout time.Duration
	// JoinTimeout is how long Join waits for all ranks. 0: DefaultJoinTimeout.
	JoinTimeout time.Duration
	// Transport is what numbers travel over. "": shared memory where ranks have
	// it, TCP between them where not.
	Transport Transport
	// Build says which build of the program this is. All ranks must say the same.
	Build string
	// Listener is where rank 0 expects the others, instead of a listener that
	// Join opens on World.Address and World.Port. Join closes it.
	Listener net.Listener

	host       string // for tests: ranks share memory if this is equal
	failMemory error  // for tests: why this rank has no shared memory
}

// A PeerError is a collective that could not finish because of one rank.
type PeerError struct {
	Rank  int    // that is to blame, which need not be a neighbour
	Phase string // what was going on: "rendezvous", "all-reduce 17", …
	Err   error
}

func (e *PeerError) Error() string {
	if e.Phase == "" {
		return fmt.Sprintf("rank %d %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("%s: rank %d %v", e.Phase, e.Rank, e.Err)
}
func (e *PeerError) Unwrap() error { return e.Err }

// A Group is one rank's part in the collectives. One goroutine at a time may use
// it, and all ranks must call the same collectives in the same order with the
// same lengths; where they do not, the Group says so.
type Group struct {
	rank, size int
	transport  Transport
	why        string

	// nil when alone
	control *control
	node    *node // nil: no other rank shares memory
	ring    *ring // nil: there are no other nodes, or another rank leads this one

	order   []int // the ranks, node by node
	firsts  []int // where in order each node's begin, and the end
	place   int   // this rank's in order
	nodeAt  int   // this rank's node, an index into firsts
	inOrder bool  // order is 0, 1, 2, …

	at      position // the collective going on, or the last
	err     error    // the first failure; later calls return it
	closed  bool
	watched atomic.Pointer[watch]

	// kept from call to call
	work             []float32
	ofRanks, ofNodes parts
	one              [1]int64

	mu          sync.Mutex // between attach and interrupt
	interrupted bool
}

// A watch ends a collective when a context does. It is kept as long as calls come
// with the same context, since starting one allocates.
type watch struct {
	done <-chan struct{}
	stop func() bool
}

// alone is the group of a single rank.
func alone(w world.World, o Options) *Group {
	g := &Group{rank: w.Rank, size: 1, transport: o.Transport, why: "there is only one rank"}
	if g.transport == "" {
		g.transport = SharedMemory
	}
	return g
}

func newGroup(rank int, p plan, s *segment, c *control) *Group {
	g := &Group{rank: rank, size: len(p.node), why: p.why, control: c}
	leaders := p.leaders()
	switch len(leaders) {
	case 1:
		g.transport = SharedMemory
	case g.size:
		g.transport = TCP
	default:
		g.transport = Mixed
	}
	for i, leader := range leaders {
		g.firsts = append(g.firsts, len(g.order))
		g.order = append(g.order, p.on(leader)...)
		if leader == p.node[rank] {
			g.nodeAt = i
		}
	}
	g.firsts = append(g.firsts, g.size)
	g.inOrder = slices.IsSorted(g.order)
	ranks := g.order[g.firsts[g.nodeAt]:g.firsts[g.nodeAt+1]]
	for i, r := range ranks {
		if r == rank {
			g.place = g.firsts[g.nodeAt] + i
		}
	}
	switch {
	case s != nil && len(ranks) > 1:
		_ = s.file.Close() // who wanted it has it
		g.node = newNode(ranks, g.place-g.firsts[g.nodeAt], s, c)
	case s != nil:
		_ = s.unmap() // the plan is TCP
	}
	return g
}

// attach gives the group its ring.
func (g *Group) attach(r *ring) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ring = r
	if g.interrupted {
		r.line.interrupt()
	}
}

// interrupt ends what this rank waits for: there is a verdict.
func (g *Group) interrupt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupted = true
	if g.ring != nil {
		g.ring.line.interrupt()
	}
	if g.node != nil {
		g.node.wake()
	}
}

// Rank is this process's place in the group, 0-based.
func (g *Group) Rank() int { return g.rank }

// Size is how many ranks there are, as counted by a sum over them when the group
// was joined.
func (g *Group) Size() int { return g.size }

// Transport is what numbers travel over, and why not all of them through shared
// memory; why is "" if they do.
func (g *Group) Transport() (t Transport, why string) { return g.transport, g.why }

// Close ends this rank's part in an orderly way, after its last collective.
func (g *Group) Close() error {
	if g.err == nil {
		g.err = errors.New("the group is closed")
	}
	if g.size == 1 || g.closed {
		return nil
	}
	g.closed = true
	if w := g.watched.Swap(nil); w != nil {
		w.stop()
	}
	g.control.close(g.at)
	if g.ring != nil {
		g.ring.close()
	}
	if g.node != nil {
		return g.node.close()
	}
	return nil
}

// Abort ends this rank's part because it cannot go on, and tells the others
// why, so that they need not find out by waiting. Their error names this rank.
// It may be called instead of Close, not during a collective.
func (g *Group) Abort(reason error) {
	if g.err != nil {
		return
	}
	v := &PeerError{Rank: g.rank, Err: fmt.Errorf("gave up: %w", reason)}
	if g.size > 1 {
		v = g.control.blame(v)
	}
	_ = g.giveUp(v)
}

// phase names the collective that is going on, or was the last.
func (g *Group) phase() string {
	if g.at.seq <= 1 { // the first is the count of Join
		return "rendezvous"
	}
	return g.at.String()
}

// do runs one collective under ctx: it takes care that cancelling it wakes every
// wait, and that the first failure is everybody's and final. A group of one has
// nothing to do.
func (g *Group) do(ctx context.Context, op op, bytes int, body func() error) error {
	if g.err != nil {
		return g.err
	}
	g.at = position{op: op, seq: g.at.seq + 1}
	if g.size == 1 {
		return ctx.Err()
	}
	if g.node != nil {
		g.node.begin(op, g.at.seq, bytes)
	}
	if g.ring != nil {
		g.ring.begin(op, g.at.seq)
	}
	// In this order: the end of the last collective's context, which may be told late,
	// is not to end this one.
	g.watch(ctx)
	err := g.control.enter(g.at)
	if err == nil && ctx.Err() != nil { // between two collectives
		err = toldToStop(g.rank, ctx)
	}
	if err == nil {
		err = body()
	}
	if err == nil && g.ring != nil {
		err = g.ring.end()
	}
	g.control.leave(g.at)
	if err == nil {
		return nil // whole, even if there is a verdict by now: the next call returns it
	}
	v := g.control.verdict.Load()
	if v == nil {
		var blamed *PeerError
		if !errors.As(err, &blamed) {
			blamed = &PeerError{Rank: g.rank, Err: err}
		}
		v = g.control.blame(blamed)
	}
	return g.giveUp(v)
}

// giveUp keeps the verdict as this group's error, and closes.
func (g *Group) giveUp(v *PeerError) error {
	g.err = &PeerError{Rank: v.Rank, Phase: g.phase(), Err: v.Err}
	_ = g.Close()
	return g.err
}

// watch lets the end of ctx, and of no earlier one, end the collective that begins.
func (g *Group) watch(ctx context.Context) {
	done := ctx.Done()
	old := g.watched.Load()
	if done == nil {
		if old != nil {
			g.watched.Store(nil)
			old.stop()
		}
		return
	}
	if old == nil || old.done != done {
		if old != nil {
			old.stop()
		}
		w := &watch{done: done}
		g.watched.Store(w)
		w.stop = context.AfterFunc(ctx, func() {
			// Inside first: a collective that is then going on is of this watch.
			if unpack(g.control.position.Load()).inside && g.watched.Load() == w {
				g.control.blame(toldToStop(g.rank, ctx))
			}
		})
	}
}

func toldToStop(rank int, ctx context.Context) *PeerError {
	return &PeerError{Rank: rank, Err: fmt.Errorf("was told to stop: %w", context.Cause(ctx))}
}
