package collective

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// decide makes v the verdict, unless there is one already. Rank 0 tells the
// others.
func (c *control) decide(v *PeerError) {
	v = &PeerError{Rank: v.Rank, Err: v.Err}
	if !c.verdict.CompareAndSwap(nil, v) {
		return
	}
	if c.rank == 0 {
		c.tell(controlFrame{kind: controlVerdict, rank: v.Rank, payload: []byte(words(v.Err))})
	}
	close(c.decided)
	c.interrupt()
}

// accuse asks for a verdict against a rank that is known to be the cause.
// Without rank 0 every rank decides for itself.
func (c *control) accuse(v *PeerError) {
	d := c.departed.Load()
	if c.rank == 0 || d != nil && d.rank == 0 {
		c.decide(v)
	} else if c.verdict.Load() == nil {
		c.tell(controlFrame{kind: controlGaveUp, rank: v.Rank, payload: []byte(words(v.Err))})
	}
}

// blame accuses a rank and returns the verdict, which may be against another
// one.
func (c *control) blame(v *PeerError) *PeerError {
	c.accuse(v)
	c.await(farewell)
	c.decide(v) // in case rank 0 has not answered
	return c.verdict.Load()
}

// suspect is blame of a rank whose connection has broken. It may have left
// because of another one, whose verdict is then under way.
func (c *control) suspect(v *PeerError) *PeerError {
	c.await(c.grace / 2)
	c.accuse(v)
	c.await(c.grace / 2)
	c.decide(mute()) // who would know, and would have answered
	return c.verdict.Load()
}

// await waits for a verdict, at most d.
func (c *control) await(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.decided:
	case <-t.C:
	}
}

// patience is how long a wait for another rank lasts before this rank says that
// it is stuck.
func (c *control) patience() time.Duration { return c.timeout - 2*c.grace }

// stuck says that this rank has waited for another one for c.patience. The wait
// goes on: the verdict comes within c.grace, or the other rank does.
func (c *control) stuck(at position, waitsFor int) {
	if c.rank == 0 {
		go c.investigate(0, at, waitsFor)
		return
	}
	c.tell(controlFrame{kind: controlStuck, op: at.op, seq: at.seq, rank: waitsFor})
}

// unanswered is the verdict of a rank that said it was stuck and then heard
// nothing for c.grace.
func (c *control) unanswered(waitsFor int) *PeerError {
	d := c.departed.Load()
	if c.rank == 0 || d != nil && d.rank == 0 {
		return c.blame(&PeerError{Rank: waitsFor, Err: fmt.Errorf("has sent nothing for %v", c.timeout)})
	}
	c.decide(mute())
	return c.verdict.Load()
}

// mute is the verdict on rank 0 when it gives none.
func mute() *PeerError {
	return &PeerError{Rank: 0, Err: errors.New("does not answer when it is asked who is to blame: its process is stopped, or its host hangs")}
}

func silence(d time.Duration) error {
	return fmt.Errorf("has said nothing for %v, not even where it is: its process is stopped, or its host hangs", d.Round(time.Millisecond))
}

// gone is the verdict on a rank whose control line has ended.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is gone: its connection was closed; its own log or events say why")
	}
	return fmt.Errorf("is gone: %w", err)
}

// investigate is how rank 0 finds out who is to blame when reporter is stuck in
// a collective: it asks everybody where they are, twice, as a busy host may need
// a while for an answer. Who does not answer is stopped; who answers that it has
// not begun this collective is late. If all are in it, they may just have come; if
// the reporter still waits after the second question, what it waits for is lost
// between that rank and itself.
func (c *control) investigate(reporter int, at position, waitsFor int) {
	if c.asking.Swap(true) {
		return
	}
	defer c.asking.Store(false)
	first := c.question + 1
	var places []*position
	for range 2 {
		if places = c.ask(first, places); c.verdict.Load() != nil {
			return
		}
	}
	var silent, late []int
	for r, p := range places {
		switch {
		case c.lines[r] != nil && c.lines[r].left.Load():
		case p == nil:
			silent = append(silent, r)
		case p.seq < at.seq:
			late = append(late, r)
		}
	}
	switch p := places[reporter]; {
	case len(silent) > 0:
		c.decide(&PeerError{Rank: silent[0], Err: alike(silence(c.patience()), silent)})
	case !p.inside || p.seq != at.seq: // it goes on
	case len(late) > 0:
		c.decide(&PeerError{Rank: late[0], Err: alike(fmt.Errorf("has not come to %v for %v, its last was %v; it hangs, or is slower than the others by more than that",
			at, c.patience().Round(time.Millisecond), *places[late[0]]), late)})
	default:
		c.decide(&PeerError{Rank: waitsFor, Err: fmt.Errorf("is in the collective, but nothing of it has come to rank %d for %v: the network between them may be at fault", reporter, c.patience().Round(time.Millisecond))})
	}
}

// ask returns where every rank is, after a third of the grace; nil for one that
// has answered no question since first. earlier is what they said before.
func (c *control) ask(first uint32, earlier []*position) []*position {
	places := make([]*position, c.size)
	copy(places, earlier)
	c.question++
	c.tell(controlFrame{kind: controlProbe, seq: c.question})
	late := time.NewTimer(c.grace / 3)
	defer late.Stop()
	for {
		select {
		case a := <-c.answers:
			if a.number >= first {
				places[a.rank] = &a.at
			}
		case <-late.C:
			own := unpack(c.position.Load())
			places[0] = &own
			return places
		case <-c.decided:
			return places
		}
	}
}

// alike adds who else is in the same state.
func alike(err error, ranks []int) error {
	if len(ranks) < 2 {
		return err
	}
	others := make([]string, 0, 8)
	for _, r := range ranks[1:min(len(ranks), 9)] {
		others = append(others, strconv.Itoa(r))
	}
	more := ""
	if n := len(ranks) - 9; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w; the same is true of rank %s%s", err, strings.Join(others, ", "), more)
}
