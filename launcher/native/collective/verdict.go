package collective

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// decide makes v the verdict unless there is one already. Rank 0 then tells the others.
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

// accuse asks for a verdict against a rank known to be the cause. Without rank 0 every rank decides
// for itself.
func (c *control) accuse(v *PeerError) {
	d := c.departed.Load()
	if c.rank == 0 || d != nil && d.rank == 0 {
		c.decide(v)
	} else if c.verdict.Load() == nil {
		c.tell(controlFrame{kind: controlGaveUp, rank: v.Rank, payload: []byte(words(v.Err))})
	}
}

// blame accuses a rank and returns the verdict, which may be against another rank.
func (c *control) blame(v *PeerError) *PeerError {
	c.accuse(v)
	c.await(farewell)
	c.decide(v) // decide alone if rank 0 has not answered
	return c.verdict.Load()
}

// suspect accuses a rank whose connection has broken. That rank may have left because of another
// one, whose verdict is then on its way, so suspect waits first.
func (c *control) suspect(v *PeerError) *PeerError {
	c.await(c.grace / 2)
	c.accuse(v)
	for silence := c.rankZeroSilence(); c.verdict.Load() == nil && !silence(); {
		c.await(c.tick())
	}
	c.renounce() // rank 0 should have answered by now
	return c.verdict.Load()
}

// await waits at most d for a verdict.
func (c *control) await(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.decided:
	case <-t.C:
	}
}

// patience returns how long to wait for another rank before reporting that this rank is stuck.
func (c *control) patience() time.Duration { return c.timeout - 2*c.grace }

// A rank's silence is counted in ticks of the rank that waits for it, not only in time: on an
// overloaded host the waiting rank counts as seldom as the other one can answer. Otherwise all
// ticks together last 1.6 times c.grace, so that the verdict comes within the timeout.
const ticks = 16

func (c *control) tick() time.Duration { return c.grace / 10 }

// stuck reports that this rank has waited for another one for c.patience, and repeats the report
// until there is a verdict or the collective is over. The wait itself continues.
func (c *control) stuck(at position, waitsFor int) {
	at.inside = true
	go c.press(at, waitsFor)
}

func (c *control) press(at position, waitsFor int) {
	silence := c.rankZeroSilence()
	for c.verdict.Load() == nil && c.position.Load() == at.pack() {
		if c.rank == 0 {
			c.investigate(0, at, waitsFor)
		} else if silence() {
			if d := c.departed.Load(); d != nil && d.rank == 0 {
				c.decide(&PeerError{Rank: waitsFor, Err: fmt.Errorf("has sent nothing for %v", c.timeout)})
			} else {
				c.renounce()
			}
			return
		} else {
			c.tell(controlFrame{kind: controlStuck, op: at.op, seq: at.seq, rank: waitsFor})
		}
		c.await(c.tick())
	}
}

// rankZeroSilence returns a function that counts for how many calls nothing has come from rank 0, and
// reports whether that is too long. Rank 0 asks for everyone's position before it decides, which
// shows that it is alive.
func (c *control) rankZeroSilence() func() bool {
	heard, quiet := c.heard.Load(), 0
	return func() bool {
		if now := c.heard.Load(); now != heard {
			heard, quiet = now, 0
		}
		quiet++
		return quiet > ticks
	}
}

// renounce blames rank 0 for not answering, and tells it so: if it is alive after all, all ranks
// report the same cause.
func (c *control) renounce() {
	if v := mute(); c.verdict.Load() == nil {
		c.accuse(v)
		c.decide(v)
	}
}

// mute returns the verdict against a rank 0 that gives none.
func mute() *PeerError {
	return &PeerError{Rank: 0, Err: errors.New("does not respond to a query about the failure: its process is stopped, or its host hangs")}
}

func silence(d time.Duration) error {
	return fmt.Errorf("has been silent for %v: its process is stopped, or its host hangs", d)
}

// gone returns the verdict on a rank whose control connection has ended. launcher/worker matches
// its text.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is gone: its connection was closed; its own log or events say why")
	}
	return fmt.Errorf("is gone: %w", err)
}

// investigate finds the rank that is to blame when reporter is stuck in a collective. Rank 0 runs
// it, and asks all ranks for their position in every tick. A rank that answered none of the last
// questions is stopped. A rank that answers that it has not begun this collective is late. If all
// ranks are in it, they may only just have arrived; if the reporter still waits after as many
// questions, the data from the rank it waits for is lost between the two. If the reporter
// continues, no rank is blamed.
func (c *control) investigate(reporter int, at position, waitsFor int) {
	if c.asking.Swap(true) {
		return
	}
	defer c.asking.Store(false)
	p := places{at: make([]position, c.size), answered: make([]int, c.size)}
	together := 0 // the last tick in which not all were known to be in the collective
	for first, now := c.question+1, 1; ; now++ {
		if !c.ask(first, now, p) {
			return
		}
		if r := p.at[reporter]; p.answered[reporter] > 0 && (!r.inside || r.seq != at.seq) {
			return
		}
		var silent, late []int
		for r := range c.size {
			switch {
			case c.lines[r] != nil && c.lines[r].left.Load():
			case now-p.answered[r] >= ticks:
				silent = append(silent, r)
			case p.answered[r] == 0:
				together = now
			case p.at[r].seq < at.seq:
				late = append(late, r)
				together = now
			}
		}
		patience := c.patience().Round(time.Millisecond)
		switch {
		case len(silent) > 0:
			c.decide(&PeerError{Rank: silent[0], Err: alike(silence(patience), silent)})
		case len(late) > 0 && now >= ticks:
			c.decide(&PeerError{Rank: late[0], Err: alike(fmt.Errorf("has not reached %v for %v, its last was %v; it hangs, or is slower than the others by more than that",
				at, patience, p.at[late[0]]), late)})
		case now-together >= ticks:
			c.decide(&PeerError{Rank: waitsFor, Err: fmt.Errorf("is in the collective, but nothing from it has reached rank %d for %v: the network between them may be at fault", reporter, patience)})
		}
	}
}

// places are the ranks' answers, by rank: the last position, and the tick of the answer; 0: none
// yet.
type places struct {
	at       []position
	answered []int
}

// ask handles, for one tick, the answers to this question and to earlier ones since first. It
// returns false if there is a verdict.
func (c *control) ask(first uint32, now int, p places) bool {
	c.question++
	c.tell(controlFrame{kind: controlProbe, seq: c.question})
	over := time.NewTimer(c.tick())
	defer over.Stop()
	for more := true; more; {
		select {
		case a := <-c.answers:
			p.take(a, first, now)
		case <-over.C:
			more = false
		case <-c.decided:
			return false
		}
	}
	for len(c.answers) > 0 { // arrived while this rank was not running
		p.take(<-c.answers, first, now)
	}
	p.at[0], p.answered[0] = unpack(c.position.Load()), now
	return c.verdict.Load() == nil
}

func (p places) take(a answer, first uint32, now int) {
	if a.number >= first {
		p.at[a.rank], p.answered[a.rank] = a.at, now
	}
}

// alike adds the other ranks in the same state.
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
