package collective

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// If one rank cannot map the memory, its host's ranks use TCP and all report why; other hosts keep
// their shared memory. If shm was asked for, no rank starts.
func TestNoMemory(t *testing.T) {
	places, l := worlds(t, 4)
	type outcome struct {
		transport Transport
		why       string
		err       error
	}
	for _, test := range []struct {
		asked   Transport
		failing int // the first rank of its host, who would make the memory, or the second
		why     string
	}{{"", 3, "rank 3: no shared memory with rank 2: out of it"}, {"", 2, "rank 2: cannot make shared memory: out of it"}, {SharedMemory, 3, ""}} {
		asked, failing := test.asked, test.failing
		outcomes := make([]outcome, 4)
		done := make(chan int)
		for r, w := range places {
			o := Options{Transport: asked, JoinTimeout: 20 * time.Second, host: fmt.Sprint(r / 2)}
			if r == 0 && l != nil {
				o.Listener, l = l, nil
			}
			if r == failing {
				o.failMemory = errors.New("out of it")
			}
			go func() {
				defer func() { done <- r }()
				g, err := Join(context.Background(), w, "nonce", o)
				outcomes[r].err = err
				if err != nil {
					return
				}
				defer g.Close()
				outcomes[r].transport, outcomes[r].why = g.Transport()
				v := []float32{1}
				if err := g.AllReduce(context.Background(), v); err != nil || v[0] != 4 {
					outcomes[r].err = fmt.Errorf("sum %v, %w", v, err)
				}
			}()
		}
		for range places {
			<-done
		}
		for r, got := range outcomes {
			if asked == "" && (got.err != nil || got.transport != Mixed || !strings.HasPrefix(got.why, test.why)) {
				t.Errorf("rank %d: %+v, want shm+tcp because of %s", r, got, test.why)
			}
			if asked != "" && (got.err == nil || !strings.Contains(got.err.Error(), "shm was requested, but not all ranks share memory: rank 3: no shared memory with rank 2: out of it")) {
				t.Errorf("rank %d: %v, want the reason of rank 3", r, got.err)
			}
		}
	}
}

func TestSharedMemoryBetweenHosts(t *testing.T) {
	w := way{transport: SharedMemory, hosts: func(r int) string { return fmt.Sprint(r) }}
	for r, err := range w.together(t, 2, Options{JoinTimeout: 20 * time.Second}, func(*Group) error { return nil }) {
		if err == nil || !strings.Contains(err.Error(), "the 2 ranks are on 2 hosts") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Only a process that knows the nonce gets the memory.
func TestMemoryNeedsTheNonce(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	joined := func(rank int, nonce string) *joiner {
		j := &joiner{ctx: ctx, deadline: time.Now().Add(10 * time.Second), nonce: nonce, self: hello{rank: rank, size: 2}}
		if err := j.openMemory(""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.memory.Close() })
		return j
	}
	owner := joined(0, "nonce")
	s, err := newSegment(2)
	if err != nil {
		t.Fatal(err)
	}
	defer s.unmap()
	owner.handOut(s, ctx)
	stranger := joined(1, "guessed")
	stranger.deadline = time.Now().Add(4 * time.Second)
	if got, err := stranger.fetch(owner.self.socket, 2); err == nil {
		got.unmap()
		t.Error("a stranger got the memory")
	} else if !strings.Contains(err.Error(), "does not know this run's nonce") {
		t.Error(err)
	}
	got, err := joined(1, "nonce").fetch(owner.self.socket, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer got.unmap()
	s.flag(1).posted.Store(77)
	if n := got.flag(1).posted.Load(); n != 77 {
		t.Errorf("what one wrote as 77 the other reads as %d", n)
	}
}

// A file of another size, or one that could shrink, is not mapped.
func TestSegmentIsChecked(t *testing.T) {
	for _, test := range []struct {
		ranks int
		seals int
		want  string
	}{{3, segmentSeals, "want"}, {2, 0, "not sealed"}} {
		ours, theirs := socketPair(t)
		s, err := newSegment(2)
		if err != nil {
			t.Fatal(err)
		}
		if test.seals == 0 {
			fd, err := unix.MemfdCreate("test", unix.MFD_ALLOW_SEALING)
			if err == nil {
				_, whole := segmentGeometry(2)
				err = errors.Join(unix.Ftruncate(fd, int64(whole)), unix.Dup3(fd, int(s.file.Fd()), unix.O_CLOEXEC), unix.Close(fd))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.send(ours); err != nil {
			t.Fatal(err)
		}
		if got, err := receiveSegment(theirs, test.ranks); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, %v; want %q", got, err, test.want)
		}
		s.unmap()
	}
}

func socketPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	var name socketName
	copy(name[:], t.Name())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name.address(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	if b, err = l.AcceptUnix(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestPlan(t *testing.T) {
	list := func(hosts ...int) (m []member) {
		for _, h := range hosts {
			m = append(m, member{host: h})
		}
		return m
	}
	for _, test := range []struct {
		list     []member
		failures []string
		asked    Transport
		want     []int
		why      string
	}{
		{list(0, 0, 0), []string{"", "", ""}, "", []int{0, 0, 0}, ""},
		{list(0, 1, 0, 1), []string{"", "", "", ""}, "", []int{0, 1, 0, 1}, ""},
		{list(0, 1, 0, 1), []string{"", "", "no", ""}, "", []int{0, 1, 2, 1}, "rank 2: no"},
		{list(0, 1, 2), []string{"", "", ""}, "", []int{0, 1, 2}, "every rank is on a separate host"},
		{list(0, 1), []string{"", ""}, TCP, []int{0, 1}, "tcp was asked for"},
	} {
		p, err := planFor(test.list, test.failures, test.asked)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, p.node); diff != "" || p.why != test.why {
			t.Errorf("%v: %s\nbecause %q, want %q", test.list, diff, p.why, test.why)
		}
		again, err := decodePlan(p.encode(), len(p.node))
		if err != nil || cmp.Diff(p.node, again.node) != "" || again.why != p.why {
			t.Errorf("%+v became %+v, %v", p, again, err)
		}
	}
}

// Any bytes received as a plan or a roster are either valid or refused.
func FuzzPlan(f *testing.F) {
	f.Add(plan{node: []int{0, 1, 0}, why: "so"}.encode(), 3)
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0}, 2)
	f.Add([]byte{255, 255, 255, 255}, 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = min(max(size, 1), 64)
		if p, err := decodePlan(data, size); err == nil {
			for r, leader := range p.node {
				if leader > r || p.node[leader] != leader {
					t.Fatalf("%v is not a plan", p.node)
				}
			}
		}
		if list, err := decodeRoster(data, size); err == nil && len(list) != size {
			t.Fatalf("a roster of %d, want %d", len(list), size)
		}
	})
}

func FuzzControl(f *testing.F) {
	f.Add(controlFrame{kind: controlVerdict, op: opBarrier, seq: 7, rank: 3, payload: []byte("is gone")}.encode())
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readControl(strings.NewReader(string(data)), maxWords)
		if err != nil {
			return
		}
		if len(got.payload) > maxWords {
			t.Fatalf("%d bytes were taken", len(got.payload))
		}
		again, err := readControl(strings.NewReader(string(got.encode())), maxWords)
		if err != nil || again.kind != got.kind || again.op != got.op || again.seq != got.seq || again.rank != got.rank || string(again.payload) != string(got.payload) {
			t.Fatalf("%+v became %+v, %v", got, again, err)
		}
	})
}
