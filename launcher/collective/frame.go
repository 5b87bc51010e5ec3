package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// op is a kind of collective, as frames carry it.
type op uint8

const (
	opAllReduce op = iota + 1
	opAllReduce64
	opAllReduceInt
	opBroadcast
	opBarrier
	opReduceScatter
	opAllGather
)

func (o op) String() string {
	switch o {
	case opAllReduce:
		return "all-reduce"
	case opAllReduce64:
		return "all-reduce of float64"
	case opAllReduceInt:
		return "all-reduce of int64"
	case opBroadcast:
		return "broadcast"
	case opBarrier:
		return "barrier"
	case opReduceScatter:
		return "reduce-scatter"
	case opAllGather:
		return "all-gather"
	}
	return fmt.Sprintf("unknown collective %d", uint8(o))
}

// Kinds of frame. What travels on the ring is a sequence of frames, each a
// header and a payload.
const (
	frameData    uint8 = iota + 1 // numbers
	frameStalled                  // empty: this rank lives, but hears nothing from the one before
	frameAbort                    // the rank to blame (4 bytes), then why in words
)

// header is kind, op, two zero bytes, the collective's number and the
// payload's length, big-endian.
const headerBytes = 12

// maxAbort bounds what is read of another rank's complaint.
const maxAbort = 2048

func putHeader(b []byte, kind uint8, op op, seq uint32, length int) {
	b[0], b[1], b[2], b[3] = kind, byte(op), 0, 0
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint32(b[8:], uint32(length))
}

type frame struct {
	kind    uint8
	op      op
	seq     uint32
	payload []byte
}

// A sender writes frames to the next rank from its own goroutine, so that a
// rank that sends still listens.
type sender struct {
	line    *line
	timeout time.Duration
	frames  chan frame
	done    chan error // one for every data frame
	waiting bool       // a data frame's done is still to come
}

func newSender(l *line, timeout time.Duration) *sender {
	s := &sender{line: l, timeout: timeout, frames: make(chan frame, 4), done: make(chan error, 1)}
	go s.run()
	return s
}

func (s *sender) run() {
	var head [headerBytes]byte
	var parts [2][]byte
	var buffers net.Buffers
	for f := range s.frames {
		putHeader(head[:], f.kind, f.op, f.seq, len(f.payload))
		parts[0], parts[1] = head[:], f.payload
		buffers = parts[:]
		s.line.writeWithin(s.timeout)
		_, err := buffers.WriteTo(s.line.next)
		if f.kind == frameData {
			s.done <- err
		}
	}
}

// post hands over one data frame; it waits for the one before, so payload must
// not change until the next post or wait.
func (s *sender) post(f frame) error {
	if err := s.wait(); err != nil {
		return err
	}
	s.frames <- f
	s.waiting = true
	return nil
}

// wait returns when the last posted frame is on its way.
func (s *sender) wait() error {
	if !s.waiting {
		return nil
	}
	err := <-s.done
	s.waiting = false
	return err
}

// notify queues a frame without waiting for it, or drops it when there is no
// room.
func (s *sender) notify(f frame) {
	select {
	case s.frames <- f:
	default:
	}
}

// farewell is how long a last frame may take.
const farewell = time.Second

// sayLast writes a last frame, if the frame before it can be finished. The
// other ranks find out by themselves if this fails.
func (s *sender) sayLast(f frame) {
	if s.waiting {
		select {
		case err := <-s.done:
			if err != nil {
				return
			}
			s.waiting = false
		case <-time.After(farewell):
			return
		}
	}
	message := make([]byte, headerBytes, headerBytes+len(f.payload))
	putHeader(message, f.kind, f.op, f.seq, len(f.payload))
	_ = s.line.next.SetWriteDeadline(time.Now().Add(farewell))
	_, _ = s.line.next.Write(append(message, f.payload...))
}

// post sends payload to the next rank as part of the collective.
func (g *Group) post(payload []byte) error {
	return g.next.post(frame{frameData, g.op, g.seq, payload})
}

// receive fills payload from the rank before.
func (g *Group) receive(payload []byte) error {
	if err := g.receiveHeader(len(payload)); err != nil {
		return err
	}
	return g.receivePayload(payload)
}

func (g *Group) before() int { return (g.rank - 1 + g.size) % g.size }
func (g *Group) after() int  { return (g.rank + 1) % g.size }

// receiveHeader waits for the data frame of the collective that is going on.
//
// When nothing comes for too long, either the rank before is to blame or it is
// itself waiting for another. A rank that runs out of patience therefore first
// tells the next one that it is alive, and listens a little longer: if the rank
// before is heard to be alive too, whoever is to blame is known further up the
// ring and that rank's verdict will arrive; if not, the rank before is to blame.
func (g *Group) receiveHeader(length int) error {
	g.line.readWithin(g.timeout - 2*g.grace)
	patient, alive := true, false
	var head [headerBytes]byte
	for {
		n, err := io.ReadFull(g.reader, head[:])
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 {
				return g.blameBefore(err)
			}
			if patient {
				patient = false
				g.next.notify(frame{kind: frameStalled, op: g.op, seq: g.seq})
				if alive {
					g.line.readWithin(2 * g.grace)
				} else {
					g.line.readWithin(g.grace)
				}
				continue
			}
			if alive {
				return &PeerError{g.before(), g.phase(), fmt.Errorf("has sent nothing for %v, because it waits for another rank that it could not name in time", g.timeout)}
			}
			return &PeerError{g.before(), g.phase(), fmt.Errorf("has sent nothing for %v; it hangs, or is slower than the others by more than that", g.timeout-g.grace)}
		}
		switch kind := head[0]; kind {
		case frameStalled:
			alive = true
			if !patient {
				g.line.readWithin(2 * g.grace)
			}
			continue
		case frameAbort:
			return g.readAbort(binary.BigEndian.Uint32(head[8:]))
		case frameData:
			gotOp, seq, got := op(head[1]), binary.BigEndian.Uint32(head[4:]), int(binary.BigEndian.Uint32(head[8:]))
			if gotOp != g.op || seq != g.seq || got != length {
				return &PeerError{g.before(), g.phase(), fmt.Errorf("is in %s %d with a chunk of %d bytes where %d are expected; all ranks must do the same steps on arrays of the same length", gotOp, seq, got, length)}
			}
			return nil
		default:
			return &PeerError{g.before(), g.phase(), fmt.Errorf("sent a frame of unknown kind %d", kind)}
		}
	}
}

// receivePayload reads a frame's numbers. A rank sends a frame from its memory,
// without waiting for anybody, so whoever stops in its midst is to blame.
func (g *Group) receivePayload(payload []byte) error {
	if len(payload) == 0 {
		return nil
	}
	g.line.readWithin(g.timeout - 2*g.grace)
	if _, err := io.ReadFull(g.reader, payload); err != nil {
		return g.blameBefore(err)
	}
	return nil
}

// readAbort reads another rank's verdict.
func (g *Group) readAbort(length uint32) *PeerError {
	payload := make([]byte, min(length, maxAbort))
	if _, err := io.ReadFull(g.reader, payload); err != nil || len(payload) < 4 {
		return g.blameBefore(io.ErrUnexpectedEOF)
	}
	return &PeerError{int(binary.BigEndian.Uint32(payload)), g.phase(), errors.New(string(payload[4:]))}
}

// blameBefore is the verdict when reading from the rank before failed.
func (g *Group) blameBefore(err error) *PeerError {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("stopped in the middle of sending, for %v", g.timeout-2*g.grace)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("is gone: its connection was closed; its own log or events say why")
	default:
		err = fmt.Errorf("is gone: %w", err)
	}
	return &PeerError{g.before(), g.phase(), err}
}

// blameAfter is the verdict when sending to the next rank failed. That rank may
// have left because of another one; then word of it is on its way round.
func (g *Group) blameAfter(err error) *PeerError {
	g.line.readWithin(g.grace)
	var head [headerBytes]byte
	for {
		if _, e := io.ReadFull(g.reader, head[:]); e != nil {
			break
		}
		length := binary.BigEndian.Uint32(head[8:])
		if head[0] == frameAbort {
			return g.readAbort(length)
		}
		if _, e := io.CopyN(io.Discard, g.reader, int64(length)); e != nil {
			break
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("has taken nothing for %v; it hangs, or is slower than the others by more than that", g.timeout)
	} else {
		err = fmt.Errorf("is gone: %w", err)
	}
	return &PeerError{g.after(), g.phase(), err}
}

// giveUp tells the next rank who is to blame, closes, and keeps the error.
func (g *Group) giveUp(blamed *PeerError) error {
	g.err = blamed
	if g.size == 1 {
		return blamed
	}
	payload := binary.BigEndian.AppendUint32(nil, uint32(blamed.Rank))
	payload = append(payload, blamed.Err.Error()...)
	g.next.sayLast(frame{frameAbort, g.op, g.seq, payload[:min(len(payload), maxAbort)]})
	_ = g.Close()
	return blamed
}
