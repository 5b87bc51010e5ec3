package launcher

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// Todo is a planned run without a good result.
type Todo struct {
	study.Planned
	Number int // of the attempt to begin
	// Again is an attempt that was written down but never reached the
	// scheduler; it is handed over again instead of making a new one, so that
	// a copy that got through after all cannot train twice.
	Again   *Attempt
	Exclude []string // nodes that failed under the run before
	After   string   // id of the job whose end it waits for; "" for none
}

// Choice says which runs are to be begun. It is a function of the attempts on
// disk alone, so that it goes on where a command that died stood.
type Choice struct {
	Plan   *study.Plan
	Policy study.Policy
	// Done reports a good result from elsewhere: the store, after the run
	// folders were purged.
	Done func(point string, repeat int) bool
	// Asked are the attempts that stood there when the command was given. A
	// run whose latest attempt is one of them and ended badly is begun again,
	// because the command asks for it; what follows a later one is the
	// policy's to say.
	Asked map[rundir.Folder]bool
	// Cancelled says to begin again also what `cancel` has ended.
	Cancelled bool
	// Exhausted says to begin also what is known to run out of memory, see RanOut.
	Exhausted bool
	// Outdated are good results that are to be measured again; nil for none.
	Outdated map[rundir.Folder]bool
	// Last is the number of the last attempt that is known from elsewhere, 0 for
	// none: what is begun comes after it. Nil: there is none.
	Last func(point string, repeat int) int
	// Forgotten are the attempts in the study's trash, whose names no other attempt
	// gets. Drive fills it in.
	Forgotten []rundir.Attempt
}

// Todo is what of the plan is to be begun, in the policy's order: all but the
// runs that have a good result, an attempt that has not ended, or no further
// attempt allowed.
func (c Choice) Todo(states []State) []Todo {
	attempts, ranOut := attemptsAt(states), c.RanOut(states)
	forgotten := map[place]int{}
	for _, a := range c.Forgotten {
		at := place{a.Point, a.Repeat}
		forgotten[at] = max(forgotten[at], a.Number)
	}
	var list []Todo
	for _, p := range c.Plan.Points {
		at := place{p.Point.ID, p.Point.Repeat}
		if !c.Exhausted && slices.ContainsFunc(ranOut, func(r study.Point) bool { return r.ID == p.Point.ID }) {
			continue
		}
		if t, wanted := c.next(p, attempts[at]); wanted && !c.Done(p.Point.ID, p.Point.Repeat) {
			if t.Again == nil {
				t.Number = max(t.Number, forgotten[at]+1)
			}
			list = append(list, t)
		}
	}
	switch c.Policy.Order {
	case study.OrderLargest:
		slices.SortStableFunc(list, func(a, b Todo) int {
			return cmp.Or(b.Point.Nodes-a.Point.Nodes, b.Point.Workers-a.Point.Workers)
		})
	case study.OrderBlocks:
		slices.SortStableFunc(list, func(a, b Todo) int {
			return cmp.Or(a.Point.Repeat-b.Point.Repeat, edge(a.Planned)-edge(b.Planned), cmp.Compare(lot(a.Point), lot(b.Point)))
		})
	}
	return list
}

// RanOut are the plan's points that are held to an amount of memory, or compare
// layouts, and ran out of memory in some run: that is their result, and another run
// would say it again. None are
// where the policy retries such runs.
func (c Choice) RanOut(states []State) []study.Point {
	var list []study.Point
	for _, p := range c.Plan.Points {
		if p.Point.ExhaustionTells() && c.Policy.Retries.OutOfMemory == 0 &&
			!slices.ContainsFunc(list, func(r study.Point) bool { return r.ID == p.Point.ID }) &&
			slices.ContainsFunc(states, func(s State) bool { return s.Point.ID == p.Point.ID && s.Status == metrics.OutOfMemory }) {
			list = append(list, p.Point)
		}
	}
	return list
}

// Left are the runs of the plan that are not begun because `cancel` ended them.
func (c Choice) Left(states []State) int {
	n := 0
	if !c.Cancelled {
		for _, b := range c.EndedBadly(states) {
			if b.Last.Cancelled != nil {
				n++
			}
		}
	}
	return n
}

// edge is where in its block a run stands: of each two blocks the unconstrained point
// begins the first and ends the second. A machine that drifts shows it in the two, and
// favours one side in as many blocks as the other, at no further run.
func edge(p study.Planned) int {
	switch {
	case !p.Unconstrained:
		return 0
	case p.Point.Repeat%2 == 1:
		return -1
	}
	return 1
}

// lot is a run's place within its block, by the seed of its repeat: it is drawn
// anew for every repeat, and the same however many runs are still to be begun.
func lot(p study.Point) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", p.Seed, p.ID))
	return binary.BigEndian.Uint64(sum[:])
}

// BadEnd is a planned run and its latest attempt, which ended badly.
type BadEnd struct {
	Planned study.Planned
	Last    State
}

// EndedBadly are the runs of the plan whose latest attempt ended badly, and that
// have neither a good result nor anything under way.
func (c Choice) EndedBadly(states []State) []BadEnd {
	attempts := attemptsAt(states)
	var list []BadEnd
	for _, p := range c.Plan.Points {
		tried := attempts[place{p.Point.ID, p.Point.Repeat}]
		if len(tried) == 0 || c.Done(p.Point.ID, p.Point.Repeat) ||
			slices.ContainsFunc(tried, func(s State) bool { return s.Status.Good() || !s.Status.Terminal() }) {
			continue
		}
		list = append(list, BadEnd{p, tried[len(tried)-1]})
	}
	return list
}

// place is a repeat of a point.
type place struct {
	point  string
	repeat int
}

// attemptsAt are the attempts at each place, in their order.
func attemptsAt(states []State) map[place][]State {
	attempts := map[place][]State{}
	for _, s := range states {
		k := place{s.Point.ID, s.Point.Repeat}
		attempts[k] = append(attempts[k], s)
	}
	for _, tried := range attempts {
		slices.SortFunc(tried, func(a, b State) int { return a.Number - b.Number })
	}
	return attempts
}

// next is what is to be done about a run after the attempts at it, in their
// order.
func (c Choice) next(p study.Planned, tried []State) (t Todo, wanted bool) {
	t = Todo{Planned: p, Number: 1}
	if c.Last != nil {
		t.Number += c.Last(p.Point.ID, p.Point.Repeat)
	}
	if len(tried) == 0 {
		return t, true
	}
	last := tried[len(tried)-1]
	t.Number = max(t.Number, last.Number+1)
	for _, s := range tried {
		switch {
		case s.Status.Good() && !c.Outdated[s.Run]:
			return t, false
		case s.Status == metrics.Submitted && s.Submission == nil:
			t.Again = s.Attempt
		case !s.Status.Terminal():
			return t, false
		}
	}
	if t.Again != nil {
		return t, true
	}
	if last.Cancelled != nil && !c.Cancelled {
		return t, false
	}
	if c.Policy.ExcludeFailedNodes && !inVain(last) {
		t.Exclude = failedNodes(tried)
	}
	return t, c.Asked[last.Run] || c.Outdated[last.Run] || inVain(last) || c.retries(last.Status, tried)
}

// retries reports whether the policy allows another attempt after the last one
// of these ended with a status.
func (c Choice) retries(ended metrics.Status, tried []State) bool {
	r := c.Policy.Retries
	allowed := map[metrics.Status]int{metrics.NodeFailed: r.NodeFailed, metrics.Preempted: r.Preempted, metrics.TimedOut: r.TimedOut,
		metrics.OutOfMemory: r.OutOfMemory, metrics.Failed: r.Failed, metrics.Incomplete: r.Failed, metrics.Lost: r.Lost}[ended]
	for _, s := range tried {
		if s.Status == ended {
			allowed--
		}
	}
	return allowed >= 0
}

// inVain reports whether the scheduler refused an attempt that was to keep away
// from nodes: without them there may be too few. It is tried once more with
// all of them.
func inVain(s State) bool {
	return s.Status == metrics.Failed && s.Submission == nil && s.Job == nil && len(s.Record.Exclude) > 0
}

// failedNodes are the nodes that failed under these attempts, or may have.
func failedNodes(tried []State) []string {
	var nodes []string
	for _, s := range tried {
		switch {
		case s.Status != metrics.NodeFailed || s.Job == nil:
		case s.Verdict != nil && len(s.Verdict.FailedNodes) > 0:
			nodes = append(nodes, s.Verdict.FailedNodes...)
		default:
			nodes = append(nodes, s.Job.Nodes...)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// suspects are those of a job's nodes that may have failed, and the words on
// it. Slurm says that one did, not which one. The supervisors of the others
// were ended in order and wrote so; those that have written nothing since they
// began were on it. When that leaves none, all may be meant.
func suspects(nodes, silent []string, detail string) ([]string, string) {
	var list []string
	for _, node := range nodes {
		if slices.ContainsFunc(silent, func(host string) bool {
			short, _, _ := strings.Cut(host, ".")
			return host == node || short == node
		}) {
			list = append(list, node)
		}
	}
	switch {
	case len(nodes) == 1:
		return nodes, WithReason(nodes[0]+" failed", detail)
	case len(list) == 0 || len(list) == len(nodes):
		return nodes, WithReason("which of its nodes failed is not known: "+strings.Join(nodes, ", "), detail)
	case len(list) == 1:
		return list, WithReason(list[0]+" failed: its processes recorded no end, those of the other nodes did", detail)
	}
	return list, WithReason("one or more of these nodes failed; their processes recorded no end: "+strings.Join(list, ", "), detail)
}
