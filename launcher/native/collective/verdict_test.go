package collective

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"
)

// scripted returns a control whose lines are connected to the test; theirs has the other ends by rank.
func scripted(t *testing.T, rank, size int, timeout time.Duration) (c *control, theirs []net.Conn) {
	t.Helper()
	lines := make([]net.Conn, size)
	theirs = make([]net.Conn, size)
	for r := range lines {
		if rank == 0 && r > 0 || rank > 0 && r == 0 {
			lines[r], theirs[r] = net.Pipe()
			t.Cleanup(func() { theirs[r].Close() })
		}
	}
	c = newControl(rank, size, timeout, lines)
	c.listen(func() {})
	t.Cleanup(func() { c.closing.Store(true); closeAll(lines) })
	return c, theirs
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// answerEach answers every each-th question of rank 0 with a position.
func answerEach(conn net.Conn, rank, each int, where func() position) {
	for asked := 0; ; {
		f, err := readControl(conn, maxWords)
		if err != nil {
			return
		}
		if f.kind != controlProbe {
			continue
		}
		if asked++; asked%each == 0 {
			report := controlFrame{kind: controlHere, seq: f.seq, rank: rank, payload: binary.BigEndian.AppendUint64(nil, where().pack())}
			if _, err := conn.Write(report.encode()); err != nil {
				return
			}
		}
	}
}

// Rank 0 waits for rank 2, which is in the collective and waits for rank 1. Rank 1 is alive but
// answers seldom and has not come: it alone is late and to blame.
func TestVerdictOnALateRankThatAnswersSlowly(t *testing.T) {
	at := position{op: opAllReduce, seq: 2, inside: true}
	c, ranks := scripted(t, 0, 3, 3*time.Second)
	go answerEach(ranks[1], 1, ticks/2, func() position { return position{op: opBarrier, seq: 1} })
	go answerEach(ranks[2], 2, 1, func() position { return at })
	if err := c.enter(at); err != nil {
		t.Fatal(err)
	}
	c.stuck(at, 2)
	<-c.decided
	if v := c.verdict.Load(); v.Rank != 1 || !strings.Contains(v.Error(), "has not reached all-reduce 2") {
		t.Errorf("%v, want rank 1 late", v)
	}
}

// A rank that arrives during the investigation does not count as late; the waiting rank continues
// and no rank is blamed.
func TestNoVerdictWhenALateRankComes(t *testing.T) {
	at := position{op: opAllReduce, seq: 2, inside: true}
	c, ranks := scripted(t, 0, 2, 3*time.Second)
	asked := make(chan struct{}, 1000)
	go answerEach(ranks[1], 1, 1, func() position {
		asked <- struct{}{}
		if len(asked) < ticks/2 {
			return position{op: opBarrier, seq: 1}
		}
		return at
	})
	if err := c.enter(at); err != nil {
		t.Fatal(err)
	}
	c.stuck(at, 1)
	for len(asked) < ticks+2 { // it arrived a few questions ago
		time.Sleep(time.Millisecond)
		if v := c.verdict.Load(); v != nil {
			t.Fatal(v)
		}
	}
	c.leave(position{op: opAllReduce, seq: 2})
	time.Sleep(3 * ticks * c.tick()) // as long as a wrong verdict could take
	if v := c.verdict.Load(); v != nil {
		t.Error(v)
	}
}

// Rank 0 is not blamed while it still asks, however long that takes; once it has stopped, it is.
func TestRankZeroIsHeard(t *testing.T) {
	at := position{op: opAllReduce, seq: 2, inside: true}
	c, ranks := scripted(t, 1, 2, 1200*time.Millisecond)
	if err := c.enter(at); err != nil {
		t.Fatal(err)
	}
	reports := make(chan controlFrame, 1000)
	go func() {
		for {
			f, err := readControl(ranks[0], maxWords)
			if err != nil {
				return
			}
			reports <- f
		}
	}()
	c.stuck(at, 0)
	if f := <-reports; f.kind != controlStuck || f.seq != 2 {
		t.Errorf("%+v, want that it is stuck", f)
	}
	for asked := range 3 * ticks {
		if _, err := ranks[0].Write(controlFrame{kind: controlProbe, seq: uint32(asked)}.encode()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(c.tick())
		if v := c.verdict.Load(); v != nil {
			t.Fatalf("after %d questions: %v", asked, v)
		}
	}
	<-c.decided
	if v := c.verdict.Load(); v.Rank != 0 || !strings.Contains(v.Error(), "does not respond to a query") {
		t.Errorf("%v, want rank 0 mute", v)
	}
	for f := range reports {
		if f.kind == controlGaveUp && f.rank == 0 { // and rank 0 announced it
			break
		}
	}
}
