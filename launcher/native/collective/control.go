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

// Kinds of control frame. "From rank 0" and "to rank 0" give the direction.
const (
	controlRoster  uint8 = iota + 1 // from rank 0: the list of all ranks
	controlMapped                   // to rank 0: shared memory is mapped (empty payload), or why not
	controlPlan                     // from rank 0: which ranks share memory
	controlStuck                    // to rank 0: the sender waits for rank in collective seq
	controlProbe                    // from rank 0: asks for the receiver's position; seq numbers the question
	controlHere                     // to rank 0: answers question seq; the payload is a position
	controlGaveUp                   // to rank 0: the sender blames rank; the payload says why
	controlVerdict                  // from rank 0: rank is to blame; the payload says why
	controlLeft                     // rank has left normally after collective seq
)

const (
	// controlHeaderBytes is the size of a header: kind, op, two zero bytes, seq, rank and the
	// payload's length, big-endian.
	controlHeaderBytes = 16
	// maxWords is the longest error text accepted from another rank, in bytes.
	maxWords = 2048
	// farewell is the time limit for sending a control frame, also the last one.
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

// A control is a rank's part in finding out who is to blame when a collective does not finish.
// Every rank keeps the connection by which it joined rank 0, and a goroutine listens on it
// whichever transport carries the data: when a process dies, the kernel closes it at once. Only
// rank 0 decides, so that all ranks report the same cause.
type control struct {
	rank, size     int
	timeout, grace time.Duration // see Options.Timeout; its last 2*grace are reserved for the verdict
	lines          []*controlLine

	position  atomic.Uint64 // packed
	departed  atomic.Pointer[departure]
	verdict   atomic.Pointer[PeerError] // Phase is empty: every rank sets its own
	decided   chan struct{}             // closed with the verdict
	closing   atomic.Bool
	heard     atomic.Uint32 // number of frames received from rank 0
	interrupt func()        // ends all waits for data; called once, with the verdict

	// used only by rank 0:
	asking   atomic.Bool // an investigation is running and owns question
	question uint32      // number of the last question
	answers  chan answer
}

// A controlLine is a connection that carries whole frames. On rank 0, lines has one for each other
// rank; elsewhere it has only the one to rank 0.
type controlLine struct {
	conn net.Conn
	mu   sync.Mutex
	left atomic.Bool // on rank 0: this rank has left normally
}

// write ignores errors: the goroutine that reads a broken connection reports it.
func (l *controlLine) write(f controlFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(farewell))
	_, _ = l.conn.Write(f.encode())
}

// A position is the last collective of a rank and whether the rank is still in it.
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

// A departure is the earliest position at which a rank left normally.
type departure struct {
	rank int
	at   position
}

// An answer is a rank's position when it received a question.
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

// listen starts to read from the other ranks; interrupt is called with the verdict.
func (c *control) listen(interrupt func()) {
	c.interrupt = interrupt
	for r, l := range c.lines {
		if l != nil {
			go c.hear(r, l)
		}
	}
}

// enter records that a collective begins; leave records that it has ended.
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

// hear handles the frames that rank r sends until its connection ends.
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
				default: // the investigation is over
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

// tell sends a frame from rank 0 to all ranks, or from another rank to rank 0.
func (c *control) tell(f controlFrame) {
	for _, l := range c.lines {
		if l != nil && !l.left.Load() {
			l.write(f)
		}
	}
}

// depart records that a rank has left. Only the earliest departure matters, because no later
// collective can finish.
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
	return &PeerError{Rank: d.rank, Err: fmt.Errorf("ended normally after %v; all ranks must do the same steps", d.at)}
}

// close announces a normal departure; after a verdict it announces nothing.
func (c *control) close(at position) {
	if c.closing.Swap(true) {
		return
	}
	if c.verdict.Load() == nil {
		c.tell(controlFrame{kind: controlLeft, op: at.op, seq: at.seq, rank: c.rank})
	} else {
		<-c.decided // rank 0 has then sent the verdict; before, the others would blame this rank for closing
	}
	for _, l := range c.lines {
		if l != nil {
			_ = l.conn.Close()
		}
	}
}
