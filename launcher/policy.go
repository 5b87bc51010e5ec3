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

// A Todo is a planned run without a good result.
type Todo struct {
	study.Planned
	Number int // number of the attempt to start
	// Again is an attempt that was written down but never reached the
	// scheduler; it is handed over again instead of making a new one, so that
	// a copy that got through after all cannot train twice.
	Again   *Attempt
	Exclude []string // nodes that failed under the run before
	After   string   // id of the job to wait for; "" for none
}

// A Choice says which runs to start. It depends only on the attempts on disk, so that another command can
// continue where one that died stopped.
type Choice struct {
	Plan   *study.Plan
	Policy study.Policy
	// Done reports a good result from elsewhere: the store, after the run
	// folders were purged.
	Done func(study.Run) bool
	// Asked has the attempts that existed when the command started. A run whose latest attempt is
	// among them and failed is restarted because the command asks for it; the policy decides about
	// later attempts.
	Asked map[rundir.Folder]bool
	// Cancelled also restarts runs that `cancel` has ended.
	Cancelled bool
	// Exhausted also starts runs that are known to run out of memory, see RanOut.
	Exhausted bool
	// Outdated holds good results to measure again; may be nil.
	Outdated map[rundir.Folder]bool
	// Last returns the number of the last attempt that is known from elsewhere, or 0; new attempts get higher
	// numbers. It may be nil.
	Last func(study.Run) int
	// Forgotten holds the attempts in the study's trash, whose names are not reused. Drive sets it.
	Forgotten []rundir.Attempt
}

// Todo returns the runs of the plan to start, in the policy's order: all except those with a good result, with
// an attempt that has not ended, or without a further attempt allowed.
func (c Choice) Todo(states []State) []Todo {
	attempts, ranOut := attemptsAt(states), c.RanOut(states)
	forgotten := map[study.Run]int{}
	for _, a := range c.Forgotten {
		at := study.Run{Point: a.Point, Repeat: a.Repeat}
		forgotten[at] = max(forgotten[at], a.Number)
	}
	var list []Todo
	for _, p := range c.Plan.Points {
		at := p.Point.Run()
		if !c.Exhausted && slices.ContainsFunc(ranOut, func(r study.Point) bool { return r.ID == p.Point.ID }) {
			continue
		}
		if t, wanted := c.next(p, attempts[at]); wanted && !c.Done(p.Point.Run()) {
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

// RanOut returns the plan's points that have a memory limit, or compare layouts, and ran out of memory in some
// run. That is their result, and another run would only repeat it. It returns none if the policy retries such
// runs.
func (c Choice) RanOut(states []State) []study.Point {
	var list []study.Point
	for _, p := range c.Plan.Points {
		if p.Point.ExhaustionIsResult() && c.Policy.Retries.OutOfMemory == 0 &&
			!slices.ContainsFunc(list, func(r study.Point) bool { return r.ID == p.Point.ID }) &&
			slices.ContainsFunc(states, func(s State) bool { return s.Point.ID == p.Point.ID && s.Status == metrics.OutOfMemory }) {
			list = append(list, p.Point)
		}
	}
	return list
}

// Left returns how many runs of the plan are not started because `cancel` ended them.
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

// edge returns the position of a run in its block: the unconstrained point starts every first of
// two blocks and ends every second. Drift of the machine shows in the difference of the two, and
// favours each side equally often, without extra runs.
func edge(p study.Planned) int {
	switch {
	case !p.Unconstrained:
		return 0
	case p.Point.Repeat%2 == 1:
		return -1
	}
	return 1
}

// lot returns the random number by which a run is placed within its block. It is derived from the
// seed of its repeat: different for every repeat, and independent of the runs still to be started.
func lot(p study.Point) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", p.Seed, p.ID))
	return binary.BigEndian.Uint64(sum[:])
}

// A BadEnd is a planned run and its latest attempt, which failed.
type BadEnd struct {
	Planned study.Planned
	Last    State
}

// EndedBadly returns the runs of the plan whose latest attempt failed and that have neither a good result nor
// an attempt under way.
func (c Choice) EndedBadly(states []State) []BadEnd {
	attempts := attemptsAt(states)
	var list []BadEnd
	for _, p := range c.Plan.Points {
		tried := attempts[p.Point.Run()]
		if len(tried) == 0 || c.Done(p.Point.Run()) ||
			slices.ContainsFunc(tried, func(s State) bool { return s.Status.Good() || !s.Status.Terminal() && !s.Waits() }) ||
			!slices.ContainsFunc(tried, func(s State) bool { return s.Status.Terminal() }) {
			continue
		}
		list = append(list, BadEnd{p, tried[len(tried)-1]})
	}
	return list
}

// attemptsAt returns the attempts at each run, in order.
func attemptsAt(states []State) map[study.Run][]State {
	attempts := map[study.Run][]State{}
	for _, s := range states {
		attempts[s.Point.Run()] = append(attempts[s.Point.Run()], s)
	}
	for _, tried := range attempts {
		slices.SortFunc(tried, func(a, b State) int { return a.Number - b.Number })
	}
	return attempts
}

// next returns what to do about a run after the given attempts.
func (c Choice) next(p study.Planned, tried []State) (t Todo, wanted bool) {
	t = Todo{Planned: p, Number: 1}
	if c.Last != nil {
		t.Number += c.Last(p.Point.Run())
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
		case s.Waits():
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

// retries reports whether the policy allows another attempt after the last one ended with the given status.
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

// failedNodes returns the nodes that failed, or may have failed, during these attempts.
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

// suspects returns which of a job's nodes may have failed, and a text about it. Slurm says that a node failed,
// but not which one. Supervisors on the other nodes were ended properly and recorded it, so those without a
// record since their start were on the failed node. If none exist, all nodes are suspects.
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
