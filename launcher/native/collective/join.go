package collective

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/world"
)

// Join connects w.Size processes to a Group. Rank 0 listens on w.Address and w.Port. The others
// call until it answers, and both sides prove that they know the nonce (see handshake). When all
// have joined, they find out which of them share memory (see place.go), and the first rank of each
// node connects to the next node's, which closes the ring. Last, a sum checks the number of ranks.
//
// Each rank listens for its ring neighbour on the address of w.Interface if that is set. Otherwise
// it uses the address by which it reached rank 0, and rank 0 uses w.Address.
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
	case !slices.Contains(transports, o.Transport):
		return nil, fmt.Errorf("rendezvous: unknown transport %q; want tcp or shm, or leave it out for the fastest available", o.Transport)
	case w.Size > 1 && nonce == "":
		return nil, errors.New("rendezvous: the run's nonce is empty; anybody could take part")
	case w.Rank < 0 || w.Rank >= w.Size:
		return nil, fmt.Errorf("rendezvous: rank %d is outside a world of %d", w.Rank, w.Size)
	}
	patience := o.JoinTimeout
	if w.Rank == 0 {
		patience -= patience / 10 // so that the others are still waiting when rank 0 reports who is missing
	}
	deadline := time.Now().Add(patience)
	joining, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	j := &joiner{ctx: joining, cancel: cancel, deadline: deadline, world: w, failMemory: o.failMemory,
		nonce: nonce, self: hello{rank: w.Rank, size: w.Size, transport: o.Transport, build: o.Build}}
	g := alone(w, o)
	err := error(nil)
	if w.Size > 1 {
		g, err = j.group(o)
	}
	if err == nil {
		err = g.count(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("told to stop (%w) while joining: %w", cause, err)
		}
		return nil, fmt.Errorf("rendezvous of rank %d of %d: %w", w.Rank, w.Size, err)
	}
	return g, nil
}

// count checks that the expected number of ranks takes part.
func (g *Group) count(ctx context.Context) error {
	count := []int64{1}
	if err := g.AllReduceInt64(ctx, count); err != nil {
		return err
	}
	if count[0] != int64(g.size) {
		_ = g.Close()
		return fmt.Errorf("%d ranks take part in a run of %d", count[0], g.size)
	}
	return nil
}

// A joiner is one rank while it joins the group.
type joiner struct {
	ctx      context.Context // ends at deadline
	cancel   context.CancelFunc
	deadline time.Time
	world    world.World
	nonce    string
	self     hello

	memory     *net.UnixListener // where other ranks of this host ask for shared memory
	failMemory error             // set by tests
}

// group meets the other ranks, finds out who shares memory, and connects the leaders.
func (j *joiner) group(o Options) (*Group, error) {
	noMemory := j.openMemory(o.host)
	if j.memory != nil {
		defer j.memory.Close()
	}
	var own net.Listener // where the previous leader will call
	var lines []net.Conn // to rank 0, or from rank 0 to all
	var hellos []hello
	var err error
	if j.self.rank == 0 {
		own, lines, hellos, err = j.gather(o.Listener)
	} else {
		own, lines, err = j.register()
	}
	if err != nil {
		return nil, err
	}
	defer own.Close()
	list, p, s, err := j.place(lines, hellos, noMemory)
	if err != nil {
		for _, l := range lines {
			if l != nil {
				l.Close()
			}
		}
		return nil, err
	}
	g := newGroup(j.self.rank, p, s, newControl(j.self.rank, j.self.size, o.Timeout, lines))
	g.control.listen(func() { j.cancel(); g.interrupt() })
	leaders := p.leaders()
	if len(leaders) == 1 || p.node[g.rank] != g.rank {
		return g, nil
	}
	me := slices.Index(leaders, g.rank)
	before, after := leaders[(me-1+len(leaders))%len(leaders)], leaders[(me+1)%len(leaders)]
	prev, next, err := j.connect(own, before, after, list[after].ring)
	if err != nil {
		return nil, g.giveUp(g.control.blame(&PeerError{Rank: g.rank, Err: fmt.Errorf("could not connect with the other hosts: %w", err)}))
	}
	g.attach(newRing(leaders, me, g.control, prev, next))
	return g, nil
}

// listenRing opens this rank's listener for the ring. ip is its address unless an interface is
// configured.
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

// rendezvous returns rank 0's address, which must be a specific one.
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

// register announces this rank to rank 0 and keeps the connection. own is the listener for the
// previous leader.
func (j *joiner) register() (own net.Listener, lines []net.Conn, err error) {
	zero, err := j.rendezvous()
	if err != nil {
		return nil, nil, err
	}
	conn, err := j.call(zero, purposeRendezvous)
	var stranger *world.StrangerError
	switch {
	case errors.As(err, &stranger):
		return nil, nil, fmt.Errorf("rank 0 does not answer: %w", err)
	case err != nil:
		return nil, nil, fmt.Errorf("rank 0 does not answer at %s: %w; it may have failed, or a firewall or a wrong interface is in the way", zero, err)
	}
	own, err = j.listenRing(conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr())
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	if err := j.introduce(conn); err != nil {
		conn.Close()
		own.Close()
		return nil, nil, fmt.Errorf("rank 0 at %s %w", zero, err)
	}
	return own, []net.Conn{conn}, nil
}

// introduce sends this rank's hello and reads the answer.
func (j *joiner) introduce(conn net.Conn) error {
	defer j.guard(conn)()
	if _, err := conn.Write(j.self.encode()); err != nil {
		return fmt.Errorf("broke off: %w", err)
	}
	return readAnswer(conn)
}

// guard limits all I/O on a connection to the time for joining and to ctx.
func (j *joiner) guard(conn net.Conn) (release func()) {
	_ = conn.SetDeadline(j.deadline)
	stop := context.AfterFunc(j.ctx, func() { _ = conn.SetDeadline(longAgo) })
	return func() {
		if stop() {
			_ = conn.SetDeadline(time.Time{})
		}
	}
}

// call connects to a rank as soon as it answers and has proven itself.
func (j *joiner) call(to netip.AddrPort, purpose string) (net.Conn, error) {
	return world.Dial(j.ctx, net.Dialer{}, "tcp", to.String(), j.nonce, purpose)
}

// A caller is a rank of this run that called, with the result.
type caller struct {
	conn  net.Conn
	hello hello
	err   error // why it was refused: the run is set up wrongly
}

// answer admits ranks of this run until done ends, and reads their hellos.
func (j *joiner) answer(door *world.GuardedListener, callers chan<- caller, done context.Context) {
	door.Serve(done, func(conn net.Conn) error {
		release := j.guard(conn)
		text, err := receiveHello(conn)
		if err != nil {
			conn.Close()
			return err // its connection broke; it may call again
		}
		c := caller{conn: conn}
		c.hello, c.err = readHello(text, j.self)
		release()
		if c.err != nil {
			refuse(conn, c.err)
		}
		select {
		case callers <- c:
		case <-done.Done():
			conn.Close()
		}
		return nil
	})
}

// gather is rank 0's part: it waits for every other rank and returns their connections and hellos,
// by rank.
func (j *joiner) gather(l net.Listener) (own net.Listener, lines []net.Conn, hellos []hello, err error) {
	if l == nil {
		at, err := j.rendezvous()
		if err != nil {
			return nil, nil, nil, err
		}
		if l, err = net.Listen("tcp", at.String()); err != nil {
			return nil, nil, nil, fmt.Errorf("cannot listen for the other ranks: %w", err)
		}
	}
	defer l.Close()
	ring, err := j.listenRing(l.Addr().(*net.TCPAddr).AddrPort().Addr())
	if err != nil {
		return nil, nil, nil, err
	}
	callers := make(chan caller)
	gathering, enough := context.WithCancel(j.ctx)
	defer enough()
	door := world.NewGuardedListener(l, j.nonce, purposeRendezvous)
	go j.answer(door, callers, gathering)

	ranks := make([]*caller, j.self.size) // by rank; 0 stays nil
	defer func() {
		if err == nil {
			return
		}
		for _, c := range ranks {
			if c != nil {
				refuse(c.conn, err)
			}
		}
		ring.Close()
	}()
	if err := j.collect(ranks, callers); errors.Is(err, errLate) {
		return nil, nil, nil, missing(ranks, l.Addr(), door.Trouble())
	} else if err != nil {
		return nil, nil, nil, err
	}
	lines, hellos = make([]net.Conn, j.self.size), make([]hello, j.self.size)
	hellos[0] = j.self
	for r, c := range ranks {
		if c == nil {
			continue
		}
		lines[r], hellos[r] = c.conn, c.hello
		_ = c.conn.SetDeadline(j.deadline)
		if e := accept(c.conn); e != nil {
			return nil, nil, nil, fmt.Errorf("rank %d at %s is gone: %w", r, c.conn.RemoteAddr(), e)
		}
	}
	return ring, lines, hellos, nil
}

var errLate = errors.New("the time to join is over")

// collect sets each rank's caller. The error is errLate if some have not called in time.
func (j *joiner) collect(ranks []*caller, callers <-chan caller) error {
	for here := 1; here < j.self.size; here++ {
		select {
		case c := <-callers:
			if c.err != nil {
				return fmt.Errorf("a rank at %s was refused: %w", c.conn.RemoteAddr(), c.err)
			}
			if c.hello.rank == 0 || ranks[c.hello.rank] != nil {
				err := fmt.Errorf("two processes have rank %d, the second at %s", c.hello.rank, c.conn.RemoteAddr())
				refuse(c.conn, err)
				return err
			}
			ranks[c.hello.rank] = &c
		case <-j.ctx.Done():
			return errLate
		}
	}
	return nil
}

// missing returns an error that says which ranks did not come, and what may have kept them out.
func missing(ranks []*caller, at net.Addr, trouble string) error {
	var absent []string
	for r, c := range ranks {
		if r > 0 && c == nil {
			absent = append(absent, strconv.Itoa(r))
		}
	}
	return fmt.Errorf("heard nothing at %s from rank %s; see their logs, and check that they can reach this address%s",
		at, strings.Join(absent, ", "), trouble)
}

// connect closes the ring of leaders: it calls the next leader, at to, and waits for the call of
// the previous one.
func (j *joiner) connect(own net.Listener, before, after int, to netip.AddrPort) (prev, next net.Conn, err error) {
	calling := make(chan dialled, 1)
	go func() { calling <- j.callNext(to) }()
	callers := make(chan caller)
	connecting, enough := context.WithCancel(j.ctx)
	defer enough()
	door := world.NewGuardedListener(own, j.nonce, purposeRing)
	go j.answer(door, callers, connecting)
	defer func() {
		if err == nil {
			return
		}
		for _, c := range []net.Conn{prev, next} {
			if c != nil {
				c.Close()
			}
		}
		prev, next = nil, nil
	}()
	for prev == nil || next == nil {
		select {
		case d := <-calling:
			if d.err != nil {
				return prev, next, fmt.Errorf("rank %d at %s: %w", after, to, d.err)
			}
			next = d.conn
		case c := <-callers:
			switch {
			case c.err != nil: // answer has refused it already
			case c.hello.rank != before || prev != nil:
				refuse(c.conn, fmt.Errorf("rank %d expects rank %d only", j.self.rank, before))
			default:
				prev = c.conn
				if err := j.admit(prev); err != nil {
					return prev, next, fmt.Errorf("rank %d is gone: %w", before, err)
				}
			}
		case <-j.ctx.Done():
			if prev == nil {
				return prev, next, fmt.Errorf("rank %d has not called at %s%s", before, own.Addr(), door.Trouble())
			}
			return prev, next, fmt.Errorf("rank %d does not answer at %s", after, to)
		}
	}
	return prev, next, nil
}

// dialled is a call to the next leader.
type dialled struct {
	conn net.Conn
	err  error
}

func (j *joiner) callNext(to netip.AddrPort) dialled {
	conn, err := j.call(to, purposeRing)
	if err != nil {
		return dialled{err: err}
	}
	if err := j.introduce(conn); err != nil {
		conn.Close()
		return dialled{err: err}
	}
	return dialled{conn: conn}
}

// admit accepts a caller, in the time that is left to join.
func (j *joiner) admit(conn net.Conn) error {
	_ = conn.SetDeadline(j.deadline)
	if err := accept(conn); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Time{})
	return nil
}

// refuse sends the reason to a caller and closes the connection.
func refuse(conn net.Conn, why error) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = conn.Write(encodeAnswer(answerRefused, []byte(why.Error())))
	conn.Close()
}

// accept tells a caller that it is accepted.
func accept(conn net.Conn) error {
	_, err := conn.Write(encodeAnswer(answerAccepted, nil))
	return err
}

// readAnswer reads what refuse or accept wrote.
func readAnswer(conn net.Conn) error {
	status, payload, err := decodeAnswer(conn)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("hung up without an answer; see its log")
	case err != nil:
		return fmt.Errorf("gave no answer: %w", err)
	case status == answerRefused:
		return fmt.Errorf("refused: %s", payload)
	}
	return nil
}
