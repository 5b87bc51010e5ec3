package collective

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/world"
)

// Placing finds out which ranks share memory. Ranks on one booted kernel and in one network
// namespace are candidates: the first of them makes a segment; the others request it over a Unix
// socket, which only such ranks can reach, and map it. Every rank reports the result to rank 0,
// which makes the plan: if one rank of a host failed, all ranks of that host use TCP.

// A socketName is the random part of an abstract Unix socket's name. Such a
// socket has no file and ends with its process.
type socketName [16]byte

func (n socketName) address() string { return "@scalebench-" + hex.EncodeToString(n[:]) }

// thisHost identifies this process's kernel and network namespace, the scope of abstract Unix
// sockets.
func thisHost() ([sha256.Size]byte, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	var space unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &space); err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("/proc/self/ns/net: %w", err)
	}
	return sha256.Sum256(fmt.Appendf(boot, "%d %d", space.Dev, space.Ino)), nil
}

// openMemory prepares this rank for sharing memory: its host's identity and its socket. why says
// what prevents it.
func (j *joiner) openMemory(host string) (why error) {
	if j.self.transport == TCP {
		return nil
	}
	id, err := thisHost()
	if err != nil {
		return fmt.Errorf("cannot tell this host from others: %w", err)
	}
	if host != "" {
		id = sha256.Sum256([]byte(host))
	}
	_, _ = rand.Read(j.self.socket[:]) // never fails
	if j.memory, err = net.ListenUnix("unix", &net.UnixAddr{Name: j.self.socket.address(), Net: "unix"}); err != nil {
		return fmt.Errorf("cannot open a socket for sharing memory: %w", err)
	}
	j.self.host = id
	return nil
}

// A member is the data about a rank that the other ranks need.
type member struct {
	ring   netip.AddrPort
	socket socketName
	host   int // equal for ranks that may share memory
}

const memberBytes = addressBytes + len(socketName{}) + 4

// rosterOf lists all ranks from their hellos.
func rosterOf(hellos []hello) []member {
	hosts := map[[sha256.Size]byte]int{}
	list := make([]member, len(hellos))
	for r, h := range hellos {
		host, known := hosts[h.host]
		if !known || h.host == ([sha256.Size]byte{}) {
			host = r
			hosts[h.host] = host
		}
		list[r] = member{h.ring, h.socket, host}
	}
	return list
}

func encodeRoster(list []member) []byte {
	var b []byte
	for _, m := range list {
		b = append(b, encodeAddress(m.ring)...)
		b = append(b, m.socket[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(m.host))
	}
	return b
}

func decodeRoster(b []byte, size int) ([]member, error) {
	if len(b) != size*memberBytes {
		return nil, fmt.Errorf("a list of ranks of %d bytes, want %d", len(b), size*memberBytes)
	}
	list := make([]member, size)
	for r := range list {
		m := b[r*memberBytes:][:memberBytes]
		var err error
		if list[r].ring, err = decodeAddress(m[:addressBytes]); err != nil {
			return nil, err
		}
		copy(list[r].socket[:], m[addressBytes:])
		list[r].host = int(binary.BigEndian.Uint32(m[memberBytes-4:]))
	}
	return list, nil
}

// A plan assigns the ranks to nodes.
type plan struct {
	node []int  // by rank: the first rank of its node
	why  string // why some ranks share no memory
}

func (p plan) encode() []byte {
	var b []byte
	for _, n := range p.node {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return append(b, p.why[:min(len(p.why), maxWords)]...)
}

func decodePlan(b []byte, size int) (plan, error) {
	p := plan{node: make([]int, size)}
	if len(b) < 4*size {
		return p, fmt.Errorf("a plan of %d bytes for %d ranks", len(b), size)
	}
	for r := range p.node {
		p.node[r] = int(binary.BigEndian.Uint32(b[4*r:]))
		if p.node[r] > r || p.node[p.node[r]] != p.node[r] {
			return p, fmt.Errorf("a plan that puts rank %d on the node of rank %d", r, p.node[r])
		}
	}
	p.why = string(b[4*size:])
	return p, nil
}

// on returns the ranks of a node.
func (p plan) on(node int) (ranks []int) {
	for r, n := range p.node {
		if n == node {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// leaders returns the first rank of every node.
func (p plan) leaders() (ranks []int) {
	for r, n := range p.node {
		if n == r {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// planFor returns rank 0's plan. failures are by rank, "" where memory was mapped.
func planFor(list []member, failures []string, asked Transport) (plan, error) {
	p := plan{node: make([]int, len(list))}
	apart := map[int]bool{}
	var why []string
	for r, m := range list {
		if failures[r] != "" {
			apart[m.host] = true
			why = append(why, fmt.Sprintf("rank %d: %s", r, failures[r]))
		}
	}
	for r, m := range list {
		p.node[r] = m.host
		if apart[m.host] {
			p.node[r] = r
		}
	}
	nodes := len(p.leaders())
	switch {
	case asked == TCP:
		p.why = "tcp was asked for"
	case len(why) > 0:
		p.why = strings.Join(why[:min(len(why), 8)], "; ")
	case nodes == len(list):
		p.why = "every rank is on a separate host"
	}
	if asked == SharedMemory && nodes > 1 {
		reason := p.why
		if len(why) == 0 {
			reason = fmt.Sprintf("the %d ranks are on %d hosts", len(list), nodes)
		}
		return p, fmt.Errorf("shm was requested, but not all ranks share memory: %s", reason)
	}
	return p, nil
}

// share makes or fetches the segment of this rank's host; nil if no other rank is on it. After the
// end of done, the segment is not passed to further ranks.
func (j *joiner) share(list []member, done context.Context) (*segment, error) {
	var ranks []int
	for r, m := range list {
		if m.host == list[j.self.rank].host {
			ranks = append(ranks, r)
		}
	}
	if len(ranks) < 2 {
		return nil, nil
	}
	var s *segment
	err := j.failMemory
	switch first := ranks[0] == j.self.rank; {
	case first && err == nil:
		s, err = newSegment(len(ranks))
		fallthrough
	case first:
		j.handOut(s, done)
	case err == nil:
		s, err = j.fetch(list[ranks[0]].socket, len(ranks))
	}
	if err != nil && ranks[0] == j.self.rank {
		return nil, fmt.Errorf("cannot make shared memory: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("no shared memory with rank %d: %w", ranks[0], err)
	}
	for i, r := range ranks {
		if r == j.self.rank {
			s.showProcessors(i)
		}
	}
	return s, nil
}

// handOut passes the segment to ranks of this run until done ends; a nil segment tells them that
// none exists. It returns at once.
func (j *joiner) handOut(s *segment, done context.Context) {
	door := world.NewGuardedListener(j.memory, j.nonce, purposeMemory)
	go door.Serve(done, func(conn net.Conn) error {
		defer conn.Close()
		_ = conn.SetDeadline(j.deadline)
		if s == nil {
			_, err := conn.Write([]byte{answerRefused})
			return err
		}
		return s.send(conn.(*net.UnixConn))
	})
}

// fetch gets the segment from the first rank of this host. It gives up early enough that the
// failure can be reported and all ranks can use TCP instead.
func (j *joiner) fetch(from socketName, ranks int) (*segment, error) {
	asking, enough := context.WithDeadline(j.ctx, time.Now().Add(time.Until(j.deadline)/2))
	defer enough()
	conn, err := world.Dial(asking, net.Dialer{}, "unix", from.address(), j.nonce, purposeMemory)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer j.guard(conn)()
	return receiveSegment(conn.(*net.UnixConn), ranks)
}

// place agrees with all ranks on the plan, over the connections by which they joined: indexed by
// rank on rank 0, only [0] elsewhere. Only rank 0 has hellos.
func (j *joiner) place(lines []net.Conn, hellos []hello, why error) (list []member, p plan, s *segment, err error) {
	handing, enough := context.WithCancel(j.ctx)
	defer enough()
	defer func() {
		if err != nil && s != nil {
			_ = s.unmap()
			s = nil
		}
	}()
	for _, l := range lines {
		if l != nil {
			defer j.guard(l)()
		}
	}
	mapped := func() string {
		var failure error
		if s, failure = j.share(list, handing); failure == nil {
			failure = why
		}
		return words(failure)
	}
	if j.self.rank != 0 {
		f, err := j.expect(lines[0], controlRoster, j.self.size*memberBytes)
		if err != nil {
			return nil, p, s, err
		}
		if list, err = decodeRoster(f.payload, j.self.size); err != nil {
			return nil, p, s, err
		}
		report := controlFrame{kind: controlMapped, rank: j.self.rank, payload: []byte(mapped())}
		if _, err := lines[0].Write(report.encode()); err != nil {
			return nil, p, s, &PeerError{Rank: 0, Err: gone(err)}
		}
		if f, err = j.expect(lines[0], controlPlan, 4*j.self.size+maxWords); err != nil {
			return nil, p, s, err
		}
		p, err = decodePlan(f.payload, j.self.size)
		return list, p, s, err
	}
	list = rosterOf(hellos)
	if err := j.broadcast(lines, controlFrame{kind: controlRoster, payload: encodeRoster(list)}); err != nil {
		return nil, p, s, err
	}
	failures := make([]string, j.self.size)
	failures[0] = mapped()
	if err := j.hearMapped(lines, failures); err != nil {
		return nil, p, s, j.fail(lines, err)
	}
	if p, err = planFor(list, failures, j.self.transport); err != nil {
		return nil, p, s, j.fail(lines, err)
	}
	return list, p, s, j.broadcast(lines, controlFrame{kind: controlPlan, payload: p.encode()})
}

// hearMapped receives from every other rank why it could not map the segment, by rank; "" if it
// could.
func (j *joiner) hearMapped(lines []net.Conn, failures []string) error {
	for r, l := range lines {
		if l == nil {
			continue
		}
		f, err := j.expect(l, controlMapped, maxWords)
		if err != nil {
			if peer, ok := errors.AsType[*PeerError](err); ok {
				peer.Rank = r
			}
			return err
		}
		failures[r] = string(f.payload)
	}
	return nil
}

// words returns err's text, at most maxWords bytes; "" for nil.
func words(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	return text[:min(len(text), maxWords)]
}

// broadcast sends a frame to all ranks.
func (j *joiner) broadcast(lines []net.Conn, f controlFrame) error {
	b := f.encode()
	for r, l := range lines {
		if l == nil {
			continue
		}
		if _, err := l.Write(b); err != nil {
			return j.fail(lines, &PeerError{Rank: r, Err: gone(err)})
		}
	}
	return nil
}

// fail tells all ranks why there will be no group.
func (j *joiner) fail(lines []net.Conn, why error) error {
	f := controlFrame{kind: controlVerdict, payload: []byte(words(why))}
	b := f.encode()
	for _, l := range lines {
		if l != nil {
			_, _ = l.Write(b)
		}
	}
	return why
}

// expect reads the next frame while placing. A PeerError blames rank 0, because most ranks talk
// only to it.
func (j *joiner) expect(l net.Conn, kind uint8, limit int) (controlFrame, error) {
	f, err := readControl(l, max(limit, maxWords))
	switch {
	case err != nil:
		return f, &PeerError{Phase: "rendezvous", Rank: 0, Err: gone(err)}
	case f.kind == controlVerdict:
		return f, errors.New(string(f.payload))
	case f.kind != kind:
		return f, &PeerError{Phase: "rendezvous", Rank: 0, Err: fmt.Errorf("sent a control frame of kind %d, want %d", f.kind, kind)}
	}
	return f, nil
}
