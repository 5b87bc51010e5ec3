package collective

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
	"unsafe"
)

// A ring connects the nodes, seen from one node's leader: a TCP connection to the next leader and
// one from the previous leader. A rank that shares memory with no other is its node's leader.
//
// It carries a sequence of frames, each a header and numbers.
type ring struct {
	leaders []int // world ranks, in the order of the ring
	me      int   // index into leaders
	control *control

	line    *line
	reader  *bufio.Reader         // from the previous leader
	next    *sender               // to the next leader
	head    [ringHeaderBytes]byte // header of the last frame received
	scratch []uint64
	bounds  parts // buffer reused by every call

	op  op     // the current collective
	seq uint32 // number of the collective
}

const (
	// ringHeaderBytes is the size of a header: op, three zero bytes, the collective's number and
	// the payload's length (8 bytes), big-endian.
	ringHeaderBytes = 16
	// scratchBytes is the number of bytes that are received before they are added to the sum. It
	// fits into a core's cache.
	scratchBytes = 64 << 10
	// segmentBytes is the number of bytes of a broadcast that a leader receives before it forwards
	// them.
	segmentBytes = 256 << 10
)

func newRing(leaders []int, me int, c *control, prev, next net.Conn) *ring {
	l := &line{prev: prev, next: next}
	return &ring{
		leaders: leaders, me: me, control: c, line: l,
		reader:  bufio.NewReaderSize(prev, scratchBytes),
		next:    newSender(l, c.patience()),
		scratch: make([]uint64, scratchBytes/8),
	}
}

func (r *ring) size() int   { return len(r.leaders) }
func (r *ring) before() int { return r.leaders[(r.me-1+r.size())%r.size()] }
func (r *ring) after() int  { return r.leaders[(r.me+1)%r.size()] }

// begin starts a collective.
func (r *ring) begin(op op, seq uint32) { r.op, r.seq = op, seq }

// end returns when everything has been sent.
func (r *ring) end() error { return r.sent(r.next.wait()) }

func (r *ring) close() {
	close(r.next.frames)
	_ = r.line.close() // wakes a blocked write
}

func putRingHeader(b []byte, op op, seq uint32, length int) {
	b[0], b[1], b[2], b[3] = byte(op), 0, 0, 0
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint64(b[8:], uint64(length))
}

// post sends payload to the next leader. payload must not change until the next post or end.
func (r *ring) post(payload []byte) error {
	return r.sent(r.next.post(frame{r.op, r.seq, payload}))
}

// sent returns the verdict if sending to the next leader failed.
func (r *ring) sent(err error) error {
	if err == nil {
		return nil
	}
	if v := r.control.verdict.Load(); v != nil {
		return v
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.control.stuck(position{op: r.op, seq: r.seq}, r.after())
		<-r.control.decided
		return r.control.verdict.Load()
	}
	return r.control.suspect(&PeerError{Rank: r.after(), Err: fmt.Errorf("accepts no more data: %w", err)})
}

// receive fills payload from the previous leader.
func (r *ring) receive(payload []byte) error {
	if err := r.receiveHeader(len(payload)); err != nil {
		return err
	}
	return r.fill(payload)
}

// receiveHeader waits for the current collective's frame.
func (r *ring) receiveHeader(length int) error {
	head := r.head[:]
	if err := r.fill(head); err != nil {
		return err
	}
	op, seq, got := op(head[0]), binary.BigEndian.Uint32(head[4:]), int(binary.BigEndian.Uint64(head[8:]))
	if op != r.op || seq != r.seq || got != length {
		return different(r.before(), op, seq, got, r.leaders[r.me], r.op, r.seq, length)
	}
	return nil
}

// fill reads all of b. After a long wait it reports that this rank is stuck, then waits for the
// verdict or the rest of b.
func (r *ring) fill(b []byte) error {
	reported := false
	r.line.readWithin(r.control.patience())
	for len(b) > 0 {
		n, err := r.reader.Read(b)
		b = b[n:]
		if err == nil {
			continue
		}
		switch v := r.control.verdict.Load(); {
		case v != nil:
			return v
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return r.control.suspect(&PeerError{Rank: r.before(), Err: gone(err)})
		case !reported:
			r.control.stuck(position{op: r.op, seq: r.seq}, r.before())
			reported = true
		}
		r.line.readWithin(r.control.timeout)
	}
	return nil
}

// modulo returns i modulo the ring's size.
func (r *ring) modulo(i int) int { return (i%r.size() + r.size()) % r.size() }

// evenParts cuts an array of n elements for the nodes of the ring.
func (r *ring) evenParts(n int) parts {
	r.bounds = r.bounds.even(r.size(), n)
	return r.bounds
}

// blockBytes is the size of the blocks of each node's part in an all-reduce. It finishes a block
// before it starts the next one, so that received data are still in the processor's cache when they
// are forwarded.
const blockBytes = 1 << 20

// ringAllReduce is the ring all-reduce of Patarasuk and Yuan (2009): a
// reduce-scatter and an all-gather. Each leader sends 2(n−1)/n of the bytes of v.
func ringAllReduce[T number](r *ring, add adder[T], v []T) error {
	var zero T
	for first := true; first || len(v) > 0; first = false {
		block := v[:min(len(v), r.size()*blockBytes/int(unsafe.Sizeof(zero)))]
		v = v[len(block):]
		p := r.evenParts(len(block))
		if err := ringReduceScatter(r, add, block, p); err != nil {
			return err
		}
		if err := ringAllGather(r, block, p); err != nil {
			return err
		}
	}
	return nil
}

// ringReduceScatter sums v over the nodes and leaves each node its part of the sums; the other
// parts hold partial sums. In n−1 steps every leader forwards the part to which it has just added
// its own numbers. Node i's part starts on node i+1 and is complete on node i.
func ringReduceScatter[T number](r *ring, add adder[T], v []T, p parts) error {
	for s := range r.size() - 1 {
		out, in := r.modulo(r.me-1-s), r.modulo(r.me-2-s)
		if err := r.post(bytesOf(v[p[out]:p[out+1]])); err != nil {
			return err
		}
		if err := receiveSum(r, add, v[p[in]:p[in+1]]); err != nil {
			return err
		}
	}
	return nil
}

// ringAllGather sends every node's part of v around the ring.
func ringAllGather[T number](r *ring, v []T, p parts) error {
	for s := range r.size() - 1 {
		out, in := r.modulo(r.me-s), r.modulo(r.me-1-s)
		if err := r.post(bytesOf(v[p[out]:p[out+1]])); err != nil {
			return err
		}
		if err := r.receive(bytesOf(v[p[in]:p[in+1]])); err != nil {
			return err
		}
	}
	return nil
}

// receiveSum adds the previous leader's numbers to v.
func receiveSum[T number](r *ring, add adder[T], v []T) error {
	var zero T
	if err := r.receiveHeader(len(v) * int(unsafe.Sizeof(zero))); err != nil {
		return err
	}
	scratch := unsafe.Slice((*T)(unsafe.Pointer(&r.scratch[0])), scratchBytes/int(unsafe.Sizeof(zero)))
	for len(v) > 0 {
		part := scratch[:min(len(scratch), len(v))]
		if err := r.fill(bytesOf(part)); err != nil {
			return err
		}
		add(v[:len(part)], v, part)
		v = v[len(part):]
	}
	return nil
}

// broadcast forwards the first leader's b.
func (r *ring) broadcast(b []byte) error {
	for first := true; first || len(b) > 0; first = false {
		part := b[:min(segmentBytes, len(b))]
		b = b[len(part):]
		if r.me > 0 {
			if err := r.receive(part); err != nil {
				return err
			}
		}
		if r.me < r.size()-1 {
			if err := r.post(part); err != nil {
				return err
			}
		}
	}
	return nil
}

type frame struct {
	op      op
	seq     uint32
	payload []byte
}

// A sender writes frames to the next leader. A goroutine writes the long ones, so that a sending
// rank can receive at the same time.
type sender struct {
	line    *line
	timeout time.Duration
	frames  chan frame
	done    chan error
	waiting bool // a frame's done is still to come
	small   [ringHeaderBytes + inlineBytes]byte
}

// inlineBytes is the longest payload written without the goroutine, whose help costs microseconds.
// A socket accepts more than this before it blocks, so a write blocks only if the next rank lags
// behind. Not all ranks can lag behind their neighbour, so one of them reads.
const inlineBytes = 8 << 10

func newSender(l *line, timeout time.Duration) *sender {
	s := &sender{line: l, timeout: timeout, frames: make(chan frame, 1), done: make(chan error, 1)}
	go s.run()
	return s
}

func (s *sender) run() {
	var head [ringHeaderBytes]byte
	var parts [2][]byte
	var buffers net.Buffers
	for f := range s.frames {
		putRingHeader(head[:], f.op, f.seq, len(f.payload))
		parts[0], parts[1] = head[:], f.payload
		buffers = parts[:]
		s.line.writeWithin(s.timeout)
		_, err := buffers.WriteTo(s.line.next)
		s.done <- err
	}
}

// post hands over one frame, after waiting for the previous one.
func (s *sender) post(f frame) error {
	if err := s.wait(); err != nil {
		return err
	}
	if len(f.payload) <= inlineBytes {
		putRingHeader(s.small[:], f.op, f.seq, len(f.payload))
		n := ringHeaderBytes + copy(s.small[ringHeaderBytes:], f.payload)
		s.line.writeWithin(s.timeout)
		_, err := s.line.next.Write(s.small[:n])
		return err
	}
	s.frames <- f
	s.waiting = true
	return nil
}

// wait returns when the last posted frame has been written.
func (s *sender) wait() error {
	if !s.waiting {
		return nil
	}
	s.waiting = false
	return <-s.done
}
