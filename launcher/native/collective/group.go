// Package collective provides the collective operations of a run's ranks: all-reduce,
// reduce-scatter, all-gather, broadcast from rank 0, and barrier.
//
// Ranks on one host exchange numbers through shared memory (see node). Hosts exchange them over a
// ring of TCP connections between the first rank of each host (see ring). A collective over several
// hosts runs within each host, then between hosts, then within each host again. Ranks find out by
// trying whether they share memory, not by comparing host names (see place.go).
//
// Sums have a fixed order: on a node the order of its ranks, between nodes an order that depends on
// an element's position in the array. All ranks therefore get the same bits, and the same inputs
// with the same placement give the same bits in every run.
//
// No wait is endless. When a rank dies, hangs or gives up, every other rank returns an error that
// names it: at once if its process has ended, otherwise within Options.Timeout. Rank 0 decides who
// is to blame, over separate connections, so that all ranks report the same cause (see control). A
// Group cannot recover: after its first error it is unusable, because a sum over fewer ranks would
// be wrong.
//
// Connections are meant for one machine or a cluster's internal network. Both ends of a connection
// first prove that they know the run's nonce (see handshake), which separates runs and rejects
// strangers. The data that follows is neither encrypted nor signed: anyone who can alter packets
// between two hosts can alter it.
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

// A Transport is the medium that carries the ranks' data.
type Transport string

// The transports. Options may ask for TCP or SharedMemory; Mixed is the result when there are
// several hosts with several ranks each.
const (
	TCP          Transport = "tcp"
	SharedMemory Transport = "shm" // requires all ranks on one host
	Mixed        Transport = "shm+tcp"
)

// Options configure a Group. The zero value suits most runs.
type Options struct {
	// Timeout is the maximum time that a collective waits for a silent rank, and that a send may
	// take. It must exceed the time difference between the fastest and the slowest rank. 0:
	// DefaultTimeout.
	Timeout time.Duration
	// JoinTimeout is the maximum time that Join waits for all ranks. 0: DefaultJoinTimeout.
	JoinTimeout time.Duration
	// Transport selects the transport. "": shared memory between ranks that have it, TCP between
	// the others.
	Transport Transport
	// Build identifies the build of the program. It must be the same on all ranks.
	Build string
	// Listener accepts the other ranks' connections on rank 0. nil: Join listens on World.Address
	// and World.Port. Join closes it.
	Listener net.Listener

	host       string // for tests: ranks with equal values share memory
	failMemory error  // for tests: why this rank has no shared memory
}

// A PeerError is the failure of a collective because of one rank.
type PeerError struct {
	Rank  int    // the rank to blame; it need not be a neighbour
	Phase string // what was running: "rendezvous", "all-reduce 17", …
	Err   error
}

func (e *PeerError) Error() string {
	if e.Phase == "" {
		return fmt.Sprintf("rank %d %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("%s: rank %d %v", e.Phase, e.Rank, e.Err)
}
func (e *PeerError) Unwrap() error { return e.Err }

// A Group is one rank's part in the collectives. Only one goroutine at a time may use it. All ranks
// must call the same collectives in the same order with the same lengths; otherwise the Group
// returns an error.
type Group struct {
	rank, size int
	transport  Transport
	why        string

	// nil for a single rank
	control *control
	node    *node // nil: no other rank shares memory
	ring    *ring // nil: there is one node, or another rank leads this one

	order   []int // the ranks, node by node
	firsts  []int // where each node begins in order, and the end
	place   int   // this rank's index in order
	nodeAt  int   // this rank's node, an index into firsts
	inOrder bool  // order is 0, 1, 2, …

	at      position // the current or last collective
	err     error    // the first failure; later calls return it
	closed  bool
	watched atomic.Pointer[watch]

	// buffers reused by every call
	work             []float32
	ofRanks, ofNodes parts
	one              [1]int64

	mu          sync.Mutex // serialises attach and interrupt
	interrupted bool
}

// A watch ends a collective when its context ends. It is reused while calls pass the same context,
// because starting one allocates.
type watch struct {
	done <-chan struct{}
	stop func() bool
}

// alone returns the group of a single rank.
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
		_ = s.file.Close() // all ranks that need the file have it
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

// interrupt ends this rank's waits after a verdict.
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

// Rank returns this process's rank, from 0.
func (g *Group) Rank() int { return g.rank }

// Size returns the number of ranks, which Join has checked with a sum over them.
func (g *Group) Size() int { return g.size }

// Transport returns the transport in use, and why not all data uses shared memory; why is "" if it
// does.
func (g *Group) Transport() (t Transport, why string) { return g.transport, g.why }

// Close leaves the group normally, after this rank's last collective.
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

// Abort leaves the group because this rank cannot continue. The other ranks' errors name this rank
// and the reason at once. Call it instead of Close, not during a collective.
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

// phase names the current or last collective.
func (g *Group) phase() string {
	if g.at.seq <= 1 { // the first collective is the count in Join
		return "rendezvous"
	}
	return g.at.String()
}

// do runs one collective under ctx. Cancelling ctx wakes every wait, and the first failure becomes
// the permanent error of all ranks. A group of one rank only checks ctx.
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
	// Keep this order: the end of the previous collective's context, which may be reported late,
	// must not end this one.
	g.watch(ctx)
	err := g.control.enter(g.at)
	if err == nil && ctx.Err() != nil { // ctx ended between two collectives
		err = stopError(g.rank, ctx)
	}
	if err == nil {
		err = body()
	}
	if err == nil && g.ring != nil {
		err = g.ring.end()
	}
	g.control.leave(g.at)
	if err == nil {
		return nil // complete; if there is a verdict by now, the next call returns it
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

// giveUp stores the verdict as this group's error, and closes it.
func (g *Group) giveUp(v *PeerError) error {
	g.err = &PeerError{Rank: v.Rank, Phase: g.phase(), Err: v.Err}
	_ = g.Close()
	return g.err
}

// watch makes the end of ctx, and of no earlier context, end the collective that begins.
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
			// Check inside first: a collective running then belongs to this watch.
			if unpack(g.control.position.Load()).inside && g.watched.Load() == w {
				g.control.blame(stopError(g.rank, ctx))
			}
		})
	}
}

func stopError(rank int, ctx context.Context) *PeerError {
	return &PeerError{Rank: rank, Err: fmt.Errorf("was told to stop: %w", context.Cause(ctx))}
}
