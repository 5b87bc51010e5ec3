package collective

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A node is the group of ranks that share memory, seen from one of them.
//
// They work in rounds. In a round a rank fills its slot, posts, waits until all others have posted,
// and reads their slots. A rank posts only after it has finished reading the previous round. So
// when all have posted round r, the slots read in round r−1 may be filled again: two slots for each
// rank, used in turn, and one counter are all the synchronisation needed. Each slot names its
// collective, so that ranks that run different ones detect it in the first round.
type node struct {
	ranks   []int // the world ranks that share memory, ascending
	me      int   // index into ranks
	round   uint32
	segment *segment
	control *control

	most, yields int // limits on spins and yields before sleeping
	spins        int // current number of spins, adapted to what has helped lately
	waits        uint

	op  op     // the current collective
	seq uint32 // number of the collective
	all int    // length of the array in bytes

	bounds parts // buffer reused by every call

	mu     sync.Mutex // guards the segment against wake after close
	closed bool
}

// A waiting rank first reads the flag in a loop for some microseconds, then yields the core between
// reads, then sleeps. Most waits within a collective are shorter than the time to wake a sleeper.
// Where spinning does not help, because the other rank needs the same core, it is reduced step by
// step and tried again now and then.
const (
	spinsAlone  = 1000
	spinsLeast  = 8
	yieldsAlone = 200
	tryAgain    = 64
	// Used if there are fewer cores than ranks: a spinning rank may occupy the core of the rank it
	// waits for.
	spinsCrowded  = 8
	yieldsCrowded = 4
	// nap limits a sleep as a safeguard; normally the rank that posts wakes the sleepers.
	nap = 100 * time.Millisecond
)

func newNode(ranks []int, me int, s *segment, c *control) *node {
	n := &node{ranks: ranks, me: me, segment: s, control: c, most: spinsCrowded, yields: yieldsCrowded}
	if s.processors() >= len(ranks) {
		n.most, n.yields = spinsAlone, yieldsAlone
	}
	n.spins = n.most
	return n
}

// showProcessors records which processors this rank may use.
func (s *segment) showProcessors(i int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return // an empty mask: then no rank spins
	}
	for p := range 1024 {
		if set.IsSet(p) {
			s.flag(i).cpus[p/64] |= 1 << (p % 64)
		}
	}
}

// processors returns how many processors the ranks together may use.
func (s *segment) processors() (n int) {
	for word := range s.flag(0).cpus {
		var union uint64
		for i := range s.ranks {
			union |= s.flag(i).cpus[word]
		}
		n += bits.OnesCount64(union)
	}
	return n
}

func (n *node) leader() bool { return n.me == 0 }

// begin starts a collective on an array of that many bytes.
func (n *node) begin(op op, seq uint32, bytes int) { n.op, n.seq, n.all = op, seq, bytes }

// slot returns local rank i's slot of the current round, without its header.
func (n *node) slot(i int) []byte { return n.segment.slot(i, n.round)[slotHeader:] }

// nextSlot returns this rank's slot of the next round, which may be written once all others have
// posted the current round.
func (n *node) nextSlot() []byte { return n.segment.slot(n.me, n.round+1)[slotHeader:] }

// post publishes this rank's filled slot.
func (n *node) post() {
	head := n.segment.slot(n.me, n.round)
	binary.NativeEndian.PutUint32(head, uint32(n.op))
	binary.NativeEndian.PutUint32(head[4:], n.seq)
	binary.NativeEndian.PutUint64(head[8:], uint64(n.all))
	f := n.segment.flag(n.me)
	f.posted.Store(n.round + 1)
	if f.sleepers.Load() > 0 {
		futexWake(&f.posted)
	}
}

// await returns when local rank i has posted the current round, and checks that it runs the same
// collective.
func (n *node) await(i int) error {
	f := n.segment.flag(i)
	if !n.posted(f) {
		if err := n.wait(i, f); err != nil {
			return err
		}
	}
	head := n.segment.slot(i, n.round)
	op, seq, all := op(binary.NativeEndian.Uint32(head)), binary.NativeEndian.Uint32(head[4:]), binary.NativeEndian.Uint64(head[8:])
	if op != n.op || seq != n.seq || all != uint64(n.all) {
		return different(n.ranks[i], op, seq, int(all), n.ranks[n.me], n.op, n.seq, n.all)
	}
	return nil
}

// different returns the verdict on two ranks that run different collectives.
func different(rank int, op op, seq uint32, bytes int, self int, ownOp op, ownSeq uint32, ownBytes int) *PeerError {
	return &PeerError{Rank: rank, Err: fmt.Errorf("is in %s %d on %d bytes, rank %d in %s %d on %d; all ranks must do the same steps on arrays of the same length",
		op, seq, bytes, self, ownOp, ownSeq, ownBytes)}
}

// awaitAll awaits every other rank, and ends the round.
func (n *node) awaitAll() error {
	for i := range n.ranks {
		if i != n.me {
			if err := n.await(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// end ends the round: the other ranks' slots have been read.
func (n *node) end() { n.round++ }

// posted reports whether a flag's rank has posted the current round. Round numbers wrap around.
func (n *node) posted(f *flag) bool { return int32(f.posted.Load()-n.round) > 0 }

func (n *node) wait(i int, f *flag) error {
	if n.spin(f) {
		return nil
	}
	begin := time.Now()
	for range n.yields {
		if n.posted(f) {
			return nil
		}
		if v := n.control.verdict.Load(); v != nil {
			return v
		}
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	reported := false
	for {
		f.sleepers.Add(1)
		if seen := f.posted.Load(); int32(seen-n.round) <= 0 && n.control.verdict.Load() == nil {
			futexWait(&f.posted, seen, nap)
		}
		f.sleepers.Add(^uint32(0))
		waited := time.Since(begin)
		switch v := n.control.verdict.Load(); {
		case n.posted(f):
			return nil
		case v != nil:
			return v
		case !reported && waited > n.control.patience():
			n.control.stuck(position{op: n.op, seq: n.seq}, n.ranks[i])
			reported = true
		}
	}
}

// spin reads the flag for as long as that has lately helped, and reports whether it was posted.
func (n *node) spin(f *flag) bool {
	if n.waits++; n.waits%tryAgain == 0 {
		n.spins = n.most
	}
	for range n.spins {
		if n.posted(f) {
			n.spins = min(2*n.spins, n.most)
			return true
		}
		pause()
	}
	n.spins = max(n.spins/2, spinsLeast)
	return false
}

// wake ends this rank's sleep. It also wakes the others that sleep on these flags; they sleep
// again.
func (n *node) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for i := range n.ranks {
		futexWake(&n.segment.flag(i).posted)
	}
}

func (n *node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	return n.segment.unmap()
}

const (
	futexOpWait = 0 // FUTEX_WAIT, not private: the word is in shared memory
	futexOpWake = 1
)

// futexWait sleeps until the word is woken, differs from seen, or d has passed.
func futexWait(word *atomic.Uint32, seen uint32, d time.Duration) {
	limit := unix.NsecToTimespec(d.Nanoseconds())
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(seen), uintptr(unsafe.Pointer(&limit)), 0, 0)
}

// futexWake wakes all sleepers on the word.
func futexWake(word *atomic.Uint32) {
	const all = 1<<31 - 1
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, all, 0, 0, 0)
}
