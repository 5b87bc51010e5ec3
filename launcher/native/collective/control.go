package collective

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kinds of control frame.
const (
	controlRoster  uint8 = iota + 1 // rank 0: who everybody is
	controlMapped                   // to rank 0: payload is empty, or why this rank has no shared memory
	controlPlan                     // rank 0: who shares memory with whom
	controlStuck                    // to rank 0: this rank waits for rank, in collective seq
	controlProbe                    // rank 0: where are you? seq is the question's number
	controlHere                     // to rank 0: the answer to question seq; payload is a position
	controlGaveUp                   // to rank 0: rank is to blame, payload says why
	controlVerdict                  // rank 0: rank is to blame, payload says why
	controlLeft                     // rank has left in order, after collective seq
)

const (
	// controlHeaderBytes: kind, op, two zero bytes, seq, rank and the payload's
	// length, big-endian.
	controlHeaderBytes = 16
	// maxWords bounds what is read of another rank's complaint.
	maxWords = 2048
	// farewell is how long a last word may take.
	farewell = time.Second
)

type controlFrame struct {
	kind    uint8
	op      op
	seq     uint32
	rank    int
	payload []byte
}

func (f controlFrame) encode() []byte {
	b := make([]byte, 0, controlHeaderBytes+len(f.payload))
	b = append(b, f.kind, byte(f.op), 0, 0)
	b = binary.BigEndian.AppendUint32(b, f.seq)
	b = binary.BigEndian.AppendUint32(b, uint32(f.rank))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	return append(b, f.payload...)
}

// readControl reads one frame with a payload of at most limit bytes.
func readControl(r io.Reader, limit int) (f controlFrame, err error) {
	var head [controlHeaderBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	f.kind, f.op = head[0], op(head[1])
	f.seq = binary.BigEndian.Uint32(head[4:])
	f.rank = int(binary.BigEndian.Uint32(head[8:]))
	length := binary.BigEndian.Uint32(head[12:])
	if uint64(length) > uint64(limit) {
		return f, fmt.Errorf("a control frame of kind %d with %d bytes, want at most %d", f.kind, length, limit)
	}
	if length > 0 {
		f.payload = make([]byte, length)
		_, err = io.ReadFull(r, f.payload)
	}
	return f, err
}

// A control is a rank's part in finding out who is to blame when a collective
// does not finish. Every rank keeps the connection by which it joined rank 0,
// and a goroutine listens on it whatever the numbers travel over: a process that
// dies closes it, at once. Rank 0 alone decides, so that all ranks say the same.
type control struct {
	rank, size     int
	timeout, grace time.Duration // see Options.Timeout; twice grace of it is kept for the verdict
	lines          []*controlLine

	position  atomic.Uint64 // packed
	departed  atomic.Pointer[departure]
	verdict   atomic.Pointer[PeerError] // Phase is empty: every rank puts its own
	decided   chan struct{}             // closed with the verdict
	closing   atomic.Bool
	heard     atomic.Uint32 // frames from rank 0
	interrupt func()        // ends all waits for numbers; called once, with the verdict

	// of rank 0:
	asking   atomic.Bool // an investigation goes on, and owns question
	question uint32      // number of the last one
	answers  chan answer
}

// A controlLine is a connection with whole frames on it; lines is by rank at
// rank 0 and has only rank 0's elsewhere.
type controlLine struct {
	conn net.Conn
	mu   sync.Mutex
	left atomic.Bool // rank 0: this rank has left in order
}

// write leaves it to the reader of a broken connection to find that out.
func (l *controlLine) write(f controlFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(farewell))
	_, _ = l.conn.Write(f.encode())
}

// A position is what a rank was doing last: collective seq, and whether it still
// is.
type position struct {
	op     op
	seq    uint32
	inside bool
}

func (p position) pack() uint64 {
	u := uint64(p.seq)<<9 | uint64(p.op)<<1
	if p.inside {
		u |= 1
	}
	return u
}

func unpack(u uint64) position {
	return position{op: op(u >> 1), seq: uint32(u >> 9), inside: u&1 != 0}
}

func (p position) String() string {
	if p.seq == 0 {
		return "the rendezvous"
	}
	return fmt.Sprintf("%s %d", p.op, p.seq)
}

// A departure is the earliest position at which a rank left in order.
type departure struct {
	rank int
	at   position
}

// An answer is where a rank was at question number.
type answer struct {
	rank   int
	number uint32
	at     position
}

func newControl(rank, size int, timeout time.Duration, conns []net.Conn) *control {
	c := &control{
		rank: rank, size: size, timeout: timeout, grace: min(timeout/6, 5*time.Second),
		lines: make([]*controlLine, len(conns)), decided: make(chan struct{}),
		interrupt: func() {}, answers: make(chan answer, 4*size),
	}
	for r, conn := range conns {
		if conn != nil {
			c.lines[r] = &controlLine{conn: conn}
		}
	}
	return c
}

// listen starts to hear the others; interrupt is called with the verdict.
func (c *control) listen(interrupt func()) {
	c.interrupt = interrupt
	for r, l := range c.lines {
		if l != nil {
			go c.hear(r, l)
		}
	}
}

// enter says that a collective begins, leave that it is over.
func (c *control) enter(at position) error {
	at.inside = true
	c.position.Store(at.pack())
	if v := c.verdict.Load(); v != nil {
		return v
	}
	if d := c.departed.Load(); d != nil && d.at.seq < at.seq {
		return d.blame()
	}
	return nil
}

func (c *control) leave(at position) { c.position.Store(at.pack()) }

// hear takes in what rank r sends, until its line ends.
func (c *control) hear(r int, l *controlLine) {
	for {
		f, err := readControl(l.conn, maxWords)
		switch {
		case err == nil:
		case c.closing.Load() || l.left.Load():
			return
		default:
			c.decide(&PeerError{Rank: r, Err: gone(err)})
			return
		}
		if r == 0 {
			c.heard.Add(1)
		}
		switch f.kind {
		case controlStuck:
			go c.investigate(r, position{op: f.op, seq: f.seq, inside: true}, f.rank)
		case controlProbe:
			l.write(controlFrame{kind: controlHere, seq: f.seq, rank: c.rank,
				payload: binary.BigEndian.AppendUint64(nil, c.position.Load())})
		case controlHere:
			if len(f.payload) == 8 {
				select {
				case c.answers <- answer{r, f.seq, unpack(binary.BigEndian.Uint64(f.payload))}:
				default: // nobody asks any more
				}
			}
		case controlGaveUp, controlVerdict:
			c.decide(&PeerError{Rank: f.rank, Err: fmt.Errorf("%s", f.payload)})
		case controlLeft:
			if f.rank == r {
				l.left.Store(true)
			}
			c.depart(departure{f.rank, position{op: f.op, seq: f.seq}})
		default:
			c.decide(&PeerError{Rank: r, Err: fmt.Errorf("sent a control frame of unknown kind %d", f.kind)})
			return
		}
	}
}

// tell sends a frame to everybody: rank 0 to all ranks, the others to rank 0.
func (c *control) tell(f controlFrame) {
	for _, l := range c.lines {
		if l != nil && !l.left.Load() {
			l.write(f)
		}
	}
}

// depart notes that a rank has left. Only the earliest departure matters: no
// collective after it can finish.
func (c *control) depart(d departure) {
	for {
		earlier := c.departed.Load()
		if earlier != nil && earlier.at.seq <= d.at.seq {
			return
		}
		if c.departed.CompareAndSwap(earlier, &d) {
			break
		}
	}
	if at := unpack(c.position.Load()); at.inside && at.seq > d.at.seq {
		c.accuse(d.blame())
	}
	if c.rank == 0 {
		c.tell(controlFrame{kind: controlLeft, op: d.at.op, seq: d.at.seq, rank: d.rank})
	}
}

func (d departure) blame() *PeerError {
	return &PeerError{Rank: d.rank, Err: fmt.Errorf("has left in order after %v; all ranks must do the same steps", d.at)}
}

// close leaves in order, or without a word after a verdict.
func (c *control) close(at position) {
	if c.closing.Swap(true) {
		return
	}
	if c.verdict.Load() == nil {
		c.tell(controlFrame{kind: controlLeft, op: at.op, seq: at.seq, rank: c.rank})
	} else {
		<-c.decided // rank 0 has told the others by then, who else would blame it for closing
	}
	for _, l := range c.lines {
		if l != nil {
			_ = l.conn.Close()
		}
	}
}
