package collective

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// Join makes w.Size processes a Group. Rank 0 listens on w.Address and w.Port;
// the others call it, again and again until it answers, show the nonce and
// learn where their next rank listens. Then the ring closes and the ranks count
// themselves.
//
// Each rank's end of the ring is bound to the address of w.Interface, if that
// is set; else to the address by which it reached rank 0, and rank 0 to
// w.Address.
func Join(ctx context.Context, w world.World, nonce string, o Options) (*Group, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.JoinTimeout <= 0 {
		o.JoinTimeout = DefaultJoinTimeout
	}
	if o.Listener != nil {
		defer o.Listener.Close()
	}
	switch {
	case w.Size < 1:
		return nil, fmt.Errorf("rendezvous: a world of %d ranks; want 1 or more", w.Size)
	case o.Transport == SharedMemory:
		return nil, errors.New("rendezvous: there is no shared memory yet; use tcp")
	case o.Transport != "" && o.Transport != TCP:
		return nil, fmt.Errorf("rendezvous: unknown transport %q; want tcp or shm", o.Transport)
	case w.Rank < 0 || w.Rank >= w.Size:
		return nil, fmt.Errorf("rendezvous: rank %d is outside a world of %d", w.Rank, w.Size)
	}
	patience := o.JoinTimeout
	if w.Rank == 0 {
		patience -= patience / 10 // so that its word on who is missing finds the others still waiting
	}
	deadline := time.Now().Add(patience)
	joining, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	j := &joiner{ctx: joining, deadline: deadline, world: w, self: hello{rank: w.Rank, size: w.Size, nonce: digest(nonce)}}
	var prev, next net.Conn
	if w.Size > 1 {
		var err error
		if prev, next, err = j.ring(o.Listener); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("told to stop (%w) while joining: %v", cause, err)
			}
			return nil, fmt.Errorf("rendezvous of rank %d of %d: %w", w.Rank, w.Size, err)
		}
	}
	g := newGroup(w.Rank, w.Size, o.Timeout, prev, next)
	count := []int64{1}
	if err := g.AllReduceInt64(ctx, count); err != nil {
		return nil, fmt.Errorf("rendezvous of rank %d of %d: %w", w.Rank, w.Size, err)
	}
	if count[0] != int64(w.Size) {
		_ = g.Close()
		return nil, fmt.Errorf("rendezvous of rank %d: the ring has %d ranks, the run is of %d", w.Rank, count[0], w.Size)
	}
	return g, nil
}

// joiner is one rank on its way into the ring.
type joiner struct {
	ctx      context.Context // ends at deadline
	deadline time.Time
	world    world.World
	self     hello
}

// ring returns the connections from the rank before and to the next one.
func (j *joiner) ring(listener net.Listener) (prev, next net.Conn, err error) {
	var own net.Listener       // where the rank before will call
	var address netip.AddrPort // where the next rank listens
	if j.self.rank == 0 {
		own, address, err = j.gather(listener)
	} else {
		own, address, err = j.register()
	}
	if err != nil {
		return nil, nil, err
	}
	defer own.Close()
	return j.connect(own, address)
}

// listenRing opens this rank's end of the ring. ip is where, unless an
// interface is configured.
func (j *joiner) listenRing(ip netip.Addr) (net.Listener, error) {
	if name := j.world.Interface; name != "" {
		named, err := world.InterfaceAddress(name)
		if err != nil {
			return nil, err
		}
		ip, _ = netip.AddrFromSlice(named)
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(ip.Unmap(), 0).String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the other ranks: %w", err)
	}
	j.self.ring = l.Addr().(*net.TCPAddr).AddrPort()
	return l, nil
}

// rendezvous is rank 0's address, which must be a definite one.
func (j *joiner) rendezvous() (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(j.world.Address)
	switch {
	case err != nil || ip.IsUnspecified():
		return netip.AddrPort{}, fmt.Errorf("rank 0's address is %q; want the IP address of one interface", j.world.Address)
	case j.world.Port < 1 || j.world.Port > 65535:
		return netip.AddrPort{}, fmt.Errorf("rank 0's port is %d; want 1 to 65535", j.world.Port)
	}
	return netip.AddrPortFrom(ip, uint16(j.world.Port)), nil
}

// register shows this rank to rank 0 and returns where the next rank listens.
func (j *joiner) register() (net.Listener, netip.AddrPort, error) {
	zero, err := j.rendezvous()
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	conn, err := j.dial(zero)
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("rank 0 does not answer at %s: %w; it may have failed, or a firewall or a wrong interface stands between", zero, err)
	}
	defer conn.Close()
	own, err := j.listenRing(conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr())
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	next, err := j.introduce(conn, purposeRendezvous)
	if err != nil {
		own.Close()
		return nil, netip.AddrPort{}, fmt.Errorf("rank 0 at %s %w", zero, err)
	}
	return own, next, nil
}

// introduce sends this rank's hello and reads the answer.
func (j *joiner) introduce(conn net.Conn, purpose uint8) (netip.AddrPort, error) {
	defer j.guard(conn)()
	h := j.self
	h.purpose = purpose
	if _, err := conn.Write(h.encode()); err != nil {
		return netip.AddrPort{}, fmt.Errorf("broke off: %w", err)
	}
	return readAnswer(conn)
}

// guard bounds all I/O on a connection by the time for joining, and by ctx.
func (j *joiner) guard(conn net.Conn) (release func()) {
	_ = conn.SetDeadline(j.deadline)
	stop := context.AfterFunc(j.ctx, func() { _ = conn.SetDeadline(longAgo) })
	return func() {
		if stop() {
			_ = conn.SetDeadline(time.Time{})
		}
	}
}

// dial calls until somebody answers or time is up.
func (j *joiner) dial(to netip.AddrPort) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		conn, err := dialer.DialContext(j.ctx, "tcp", to.String())
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(pause):
		case <-j.ctx.Done():
			return nil, err
		}
	}
}

// strangerTimeout is how long somebody who has called may take to say hello.
const strangerTimeout = 5 * time.Second

// caller is somebody who called and what came of it.
type caller struct {
	conn  net.Conn
	hello hello
	err   error // refused
	fatal bool  // refused although it is of this run: the run is set up wrongly
}

// answer accepts callers until done, each in its own goroutine, so that one who
// says nothing keeps nobody waiting.
func (j *joiner) answer(l net.Listener, purpose uint8, callers chan<- caller, done <-chan struct{}) {
	stop := context.AfterFunc(j.ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return // closed: done, or out of time
		}
		go func() {
			release := j.guard(conn)
			if soon := time.Now().Add(strangerTimeout); soon.Before(j.deadline) {
				_ = conn.SetReadDeadline(soon)
			}
			c := caller{conn: conn}
			c.hello, c.err, c.fatal = readHello(conn, j.self, purpose)
			release()
			if c.err != nil {
				refuse(conn, c.err)
			}
			select {
			case callers <- c:
			case <-done:
				conn.Close()
			}
		}()
	}
}

// gather is rank 0's part: it hears every other rank and tells each where its
// next one listens.
func (j *joiner) gather(l net.Listener) (_ net.Listener, next netip.AddrPort, err error) {
	if l == nil {
		at, err := j.rendezvous()
		if err != nil {
			return nil, next, err
		}
		if l, err = net.Listen("tcp", at.String()); err != nil {
			return nil, next, fmt.Errorf("cannot listen for the other ranks: %w", err)
		}
	}
	defer l.Close()
	own, err := j.listenRing(l.Addr().(*net.TCPAddr).AddrPort().Addr())
	if err != nil {
		return nil, next, err
	}
	callers, done := make(chan caller), make(chan struct{})
	defer close(done)
	go j.answer(l, purposeRendezvous, callers, done)

	ranks := make([]*caller, j.self.size) // by rank; 0 stays nil
	defer func() {
		for _, c := range ranks {
			if c == nil {
				continue
			}
			if err != nil {
				refuse(c.conn, err)
			}
			c.conn.Close()
		}
		if err != nil {
			own.Close()
		}
	}()
	var refused []string
	for here := 1; here < j.self.size; {
		select {
		case c := <-callers:
			switch {
			case c.err != nil && c.fatal:
				return nil, next, fmt.Errorf("a rank at %s was refused: %w", c.conn.RemoteAddr(), c.err)
			case c.err != nil:
				refused = append(refused, fmt.Sprintf("%s: %v", c.conn.RemoteAddr(), c.err))
				refused = refused[max(0, len(refused)-8):]
			case c.hello.rank == 0 || ranks[c.hello.rank] != nil:
				err = fmt.Errorf("there are two processes of rank %d, the second one at %s", c.hello.rank, c.conn.RemoteAddr())
				refuse(c.conn, err)
				return nil, next, err
			default:
				ranks[c.hello.rank] = &c
				here++
			}
		case <-j.ctx.Done():
			return nil, next, missing(ranks, refused, l.Addr())
		}
	}
	for i, c := range ranks[1:] {
		at := j.self.ring // the last rank's next one is this
		if i+2 < j.self.size {
			at = ranks[i+2].hello.ring
		}
		_ = c.conn.SetDeadline(j.deadline)
		if e := accept(c.conn, at); e != nil {
			return nil, next, fmt.Errorf("rank %d at %s is gone: %w", i+1, c.conn.RemoteAddr(), e)
		}
	}
	return own, ranks[1].hello.ring, nil
}

// missing says which ranks did not come, and who came instead.
func missing(ranks []*caller, refused []string, at net.Addr) error {
	var absent []string
	for r, c := range ranks {
		if r > 0 && c == nil {
			absent = append(absent, strconv.Itoa(r))
		}
	}
	text := "nothing was heard at " + at.String() + " of rank " + strings.Join(absent, ", ") +
		"; see their logs, and whether they can reach this address"
	if len(refused) > 0 {
		text += "; refused were " + strings.Join(refused, "; ")
	}
	return errors.New(text)
}

// connect closes the ring: it calls the next rank and is called by the one
// before.
func (j *joiner) connect(own net.Listener, to netip.AddrPort) (prev, next net.Conn, err error) {
	size := j.self.size
	before, after := (j.self.rank-1+size)%size, (j.self.rank+1)%size
	type dialled struct {
		conn net.Conn
		err  error
	}
	calling := make(chan dialled, 1)
	go func() {
		conn, err := j.dial(to)
		if err == nil {
			if _, err = j.introduce(conn, purposeRing); err != nil {
				conn.Close()
			}
		}
		calling <- dialled{conn, err}
	}()
	callers, done := make(chan caller), make(chan struct{})
	defer close(done)
	go j.answer(own, purposeRing, callers, done)
	defer func() {
		if err != nil {
			for _, c := range []net.Conn{prev, next} {
				if c != nil {
					c.Close()
				}
			}
			prev, next = nil, nil
		}
	}()
	for prev == nil || next == nil {
		select {
		case d := <-calling:
			if d.err != nil {
				return prev, next, fmt.Errorf("rank %d at %s: %w", after, to, d.err)
			}
			next = d.conn
		case c := <-callers:
			if c.err != nil {
				continue // a stranger, who has been told
			}
			if c.hello.rank != before || prev != nil {
				refuse(c.conn, fmt.Errorf("rank %d expects rank %d only", j.self.rank, before))
				continue
			}
			prev = c.conn
			_ = prev.SetDeadline(j.deadline)
			if err := accept(prev, netip.AddrPort{}); err != nil {
				return prev, next, fmt.Errorf("rank %d is gone: %w", before, err)
			}
			_ = prev.SetDeadline(time.Time{})
		case <-j.ctx.Done():
			if prev == nil {
				return prev, next, fmt.Errorf("rank %d has not called at %s", before, own.Addr())
			}
			return prev, next, fmt.Errorf("rank %d does not answer at %s", after, to)
		}
	}
	return prev, next, nil
}

// refuse tells a caller why and hangs up.
func refuse(conn net.Conn, why error) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write(encodeAnswer(answerRefused, []byte(why.Error())))
	conn.Close()
}

// accept tells a caller that it is welcome, and where its next rank listens.
func accept(conn net.Conn, next netip.AddrPort) error {
	_, err := conn.Write(encodeAnswer(answerAccepted, encodeAddress(next)))
	return err
}

// readAnswer reads what refuse or accept wrote.
func readAnswer(conn net.Conn) (netip.AddrPort, error) {
	status, payload, err := decodeAnswer(conn)
	switch {
	case errors.Is(err, io.EOF):
		return netip.AddrPort{}, errors.New("hung up without an answer; see its log")
	case err != nil:
		return netip.AddrPort{}, fmt.Errorf("gave no answer: %w", err)
	case status == answerRefused:
		return netip.AddrPort{}, fmt.Errorf("refused: %s", payload)
	}
	return decodeAddress(payload)
}
