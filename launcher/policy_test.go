package launcher

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// tried returns the state of an attempt at repeat r of the point "p" in a job of the fake scheduler.
func tried(repeat, number int, status metrics.Status) State {
	p := study.Point{ID: "p", Repeat: repeat}
	a := &Attempt{Run: rundir.OpenStudy("runs", "s").Run(p.ID, repeat, number), Number: number, Point: p,
		Record: Record{Backend: "fake"}, Submission: &Submission{JobID: "1"}}
	return State{Attempt: a, Status: status}
}

func repeats(n int) *study.Plan {
	plan := &study.Plan{}
	for repeat := 1; repeat <= n; repeat++ {
		plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: "p", Repeat: repeat}})
	}
	return plan
}

func none(study.Run) bool { return false }

func TestTodo(t *testing.T) {
	unanswered := tried(5, 1, metrics.Submitted)
	unanswered.Submission = nil
	states := []State{
		tried(1, 1, metrics.Done),
		tried(2, 2, metrics.TimedOut), tried(2, 1, metrics.Failed), // in any order
		tried(3, 1, metrics.Failed), tried(3, 2, metrics.Running),
		tried(4, 1, metrics.Submitted),
		unanswered,
		tried(6, 1, metrics.Done), tried(6, 2, metrics.Failed),
		tried(9, 1, metrics.Failed),  // no longer in the plan
		tried(10, 1, metrics.Failed), // begun since the command was given
		tried(11, 1, metrics.Unknown),
	}
	asked := map[rundir.Folder]bool{}
	for _, s := range states[:len(states)-2] {
		asked[s.Run] = true
	}
	plan := repeats(11)
	plan.Points = append(plan.Points[:8], plan.Points[9:]...)
	got := map[int]Todo{}
	for _, todo := range (Choice{Plan: plan, Asked: asked, Done: func(r study.Run) bool { return r.Repeat == 7 }}).Todo(states) {
		got[todo.Point.Repeat] = todo
	}
	// 1 and 6 are good, 3, 4 and 11 are under way, 7 is good in the store, and 10 was not asked for.
	if len(got) != 3 || got[2].Number != 3 || got[5].Again != unanswered.Attempt || got[8].Number != 1 {
		t.Errorf("to do: %+v", got)
	}
}

// If a point with a memory limit runs out of memory, that is its result: no other repeat starts, unless the
// user asks for it.
func TestRanOut(t *testing.T) {
	plan := repeats(3)
	for i := range plan.Points {
		plan.Points[i].Point.Enforced = []string{study.MemoryKey}
	}
	out := tried(1, 1, metrics.OutOfMemory)
	asked := map[rundir.Folder]bool{out.Run: true}
	c := Choice{Plan: plan, Asked: asked, Done: none}
	if todo := c.Todo([]State{out}); len(todo) != 0 || len(c.RanOut([]State{out})) != 1 {
		t.Errorf("to do: %+v", todo)
	}
	c.Exhausted = true
	if todo := c.Todo([]State{out}); len(todo) != 3 {
		t.Errorf("asked for: %d to do, want 3", len(todo))
	}
	c.Exhausted, c.Policy.Retries.OutOfMemory = false, 1
	if todo := c.Todo([]State{out}); len(todo) != 3 {
		t.Errorf("with retries: %d to do, want 3", len(todo))
	}
	compared := repeats(3)
	for i := range compared.Points {
		compared.Points[i].Point.ComparesLayouts = true
	}
	c = Choice{Plan: compared, Asked: asked, Done: none}
	if todo := c.Todo([]State{out}); len(todo) != 0 {
		t.Errorf("a layout that does not fit: %d to do, want 0", len(todo))
	}
	c = Choice{Plan: repeats(3), Asked: asked, Done: none}
	if todo := c.Todo([]State{out}); len(todo) != 3 {
		t.Errorf("memory that is not swept: %d to do, want 3", len(todo))
	}
}

// Retries are counted from the attempts on disk, for each cause.
func TestRetriesPerCause(t *testing.T) {
	r := study.Retries{NodeFailed: 2, Preempted: 1, Failed: 1}
	for name, c := range map[string]struct {
		ended []metrics.Status
		want  bool
	}{
		"one node failure":             {[]metrics.Status{metrics.NodeFailed}, true},
		"two node failures":            {[]metrics.Status{metrics.NodeFailed, metrics.NodeFailed}, true},
		"three node failures":          {[]metrics.Status{metrics.NodeFailed, metrics.NodeFailed, metrics.NodeFailed}, false},
		"each cause counts for itself": {[]metrics.Status{metrics.Preempted, metrics.NodeFailed, metrics.NodeFailed}, true},
		"preempted twice":              {[]metrics.Status{metrics.Preempted, metrics.NodeFailed, metrics.Preempted}, false},
		"no retry by default":          {[]metrics.Status{metrics.TimedOut}, false},
		"incomplete is a failure":      {[]metrics.Status{metrics.Incomplete}, true},
		"a person's cancellation":      {[]metrics.Status{metrics.Cancelled}, false},
		"lost":                         {[]metrics.Status{metrics.Lost}, false},
		"good after a failure":         {[]metrics.Status{metrics.Done, metrics.NodeFailed}, false},
	} {
		var states []State
		for i, status := range c.ended {
			states = append(states, tried(1, i+1, status))
		}
		todo := Choice{Plan: repeats(1), Policy: study.Policy{Retries: r}, Done: none}.Todo(states)
		if got := len(todo) == 1; got != c.want {
			t.Errorf("%s: tried again is %v", name, got)
		} else if got && todo[0].Number != len(c.ended)+1 {
			t.Errorf("%s: attempt %d", name, todo[0].Number)
		}
	}
}

func TestOrder(t *testing.T) {
	plan := &study.Plan{}
	for _, workers := range []int{1, 4, 2} {
		for repeat := range 2 {
			plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: fmt.Sprint("w", workers), Workers: workers, Repeat: repeat + 1}})
		}
	}
	for order, want := range map[string]string{
		study.OrderPlan:    "w1-r1 w1-r2 w4-r1 w4-r2 w2-r1 w2-r2",
		study.OrderLargest: "w4-r1 w4-r2 w2-r1 w2-r2 w1-r1 w1-r2",
	} {
		var got []string
		for _, todo := range (Choice{Plan: plan, Policy: study.Policy{Order: order}, Done: none}).Todo(nil) {
			got = append(got, fmt.Sprintf("%s-r%d", todo.Point.ID, todo.Point.Repeat))
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s:\n%s", order, d)
		}
	}
}

// Blocks hold each point once and follow each other. The order within them differs between repeats and seeds,
// and does not change when some runs are done.
func TestBlocks(t *testing.T) {
	order := func(seed int64, done func(study.Run) bool) []string {
		plan := &study.Plan{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			for repeat := 1; repeat <= 6; repeat++ {
				plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: id, Repeat: repeat, Seed: seed + int64(repeat) - 1}})
			}
		}
		var list []string
		for _, todo := range (Choice{Plan: plan, Policy: study.Policy{Order: study.OrderBlocks}, Done: done}).Todo(nil) {
			list = append(list, fmt.Sprintf("%d%s", todo.Point.Repeat, todo.Point.ID))
		}
		return list
	}
	first := order(1, none)
	different := map[string]bool{}
	for repeat := range 6 {
		block := first[5*repeat : 5*repeat+5]
		var ids string
		for _, name := range block {
			if name[0] != byte('1'+repeat) {
				t.Errorf("%s is in block %d", name, repeat+1)
			}
			ids += name[1:]
		}
		different[ids] = true
		sorted := slices.Sorted(strings.SplitSeq(ids, ""))
		if strings.Join(sorted, "") != "abcde" {
			t.Errorf("block %d has %s", repeat+1, ids)
		}
	}
	// Of five random orders of three, two are equal with a probability of 12 % or more; four almost never.
	if len(different) < 4 {
		t.Errorf("orders of blocks: %v", different)
	}
	if slices.Equal(first, order(100, none)) {
		t.Error("another seed gives the same order")
	}
	without := slices.DeleteFunc(slices.Clone(first), func(name string) bool { return name == "3c" || name[0] == '5' })
	if d := cmp.Diff(without, order(1, func(run study.Run) bool { return run.Point == "c" && run.Repeat == 3 || run.Repeat == 5 })); d != "" {
		t.Errorf("with some done (-want +got):\n%s", d)
	}
}

// The unconstrained point starts every first of two blocks and ends every second; with several, one per worker
// count, all do. The others keep the order that they have without it.
func TestUnconstrainedFirstAndLast(t *testing.T) {
	order := func(unconstrained ...string) (blocks []string) {
		plan := &study.Plan{}
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			for repeat := 3; repeat <= 6; repeat++ {
				plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: id, Repeat: repeat, Seed: int64(repeat)}, Unconstrained: slices.Contains(unconstrained, id)})
			}
		}
		blocks = make([]string, 4)
		last := 3
		for _, todo := range (Choice{Plan: plan, Policy: study.Policy{Order: study.OrderBlocks}, Done: none}).Todo(nil) {
			if todo.Point.Repeat < last {
				t.Errorf("%s of block %d after block %d", todo.Point.ID, todo.Point.Repeat, last)
			}
			last = todo.Point.Repeat
			blocks[last-3] += todo.Point.ID
		}
		return blocks
	}
	plain := order()
	for i, block := range order("c") {
		want := "c" + strings.ReplaceAll(plain[i], "c", "") // repeats 3 and 5
		if i%2 == 1 {
			want = want[1:] + "c"
		}
		if block != want {
			t.Errorf("repeat %d: %s, want %s", i+3, block, want)
		}
	}
	for i, block := range order("b", "d") {
		edge := block[:2]
		if i%2 == 1 {
			edge = block[3:]
		}
		if edge != "bd" && edge != "db" {
			t.Errorf("repeat %d, two of them: %s", i+3, block)
		}
	}
}

func TestFailedNodesAreExcluded(t *testing.T) {
	on := func(s State, nodes ...string) State { s.Job = &metrics.Job{Nodes: nodes}; return s }
	c := Choice{Plan: repeats(1), Policy: study.Policy{ExcludeFailedNodes: true, Retries: study.Retries{NodeFailed: 5, Preempted: 1}}, Done: none}
	states := []State{on(tried(1, 1, metrics.NodeFailed), "node2", "node1"), on(tried(1, 2, metrics.NodeFailed), "node3", "node2"),
		on(tried(1, 3, metrics.Preempted), "node4")}
	if d := cmp.Diff([]string{"node1", "node2", "node3"}, c.Todo(states)[0].Exclude); d != "" {
		t.Errorf("excluded (-want +got):\n%s", d)
	}
	// If too few nodes remain for the job, it is tried with all of them.
	refused := tried(1, 4, metrics.Failed)
	refused.Submission, refused.Record.Exclude = nil, []string{"node1", "node2", "node3"}
	todo := c.Todo(append(states, refused))
	if len(todo) != 1 || todo[0].Number != 5 || len(todo[0].Exclude) > 0 {
		t.Errorf("after a refusal: %+v", todo)
	}
	refused.Number, refused.Record.Exclude = 5, nil
	if todo := c.Todo(append(states, refused)); len(todo) != 0 {
		t.Errorf("after a refusal with all nodes: %+v", todo)
	}
	c.Policy.ExcludeFailedNodes = false
	if got := c.Todo(states)[0].Exclude; len(got) > 0 {
		t.Errorf("excluded against the policy: %q", got)
	}
}

// Of several nodes, the one whose supervisor left no final record is avoided, and the text says how that is
// known.
func TestSuspects(t *testing.T) {
	for _, tt := range []struct {
		nodes, silent, want []string
		words               string
	}{
		{[]string{"node1"}, nil, []string{"node1"}, "node1 failed"},
		{[]string{"node1", "node2"}, []string{"node2.cluster.site"}, []string{"node2"}, "node2 failed: "},
		{[]string{"node1", "node2"}, nil, []string{"node1", "node2"}, "not known: node1, node2"},
		{[]string{"node1", "node2"}, []string{"node2", "node1"}, []string{"node1", "node2"}, "not known"},
		{[]string{"node1", "node2", "node3"}, []string{"node3", "node1", "node4"}, []string{"node1", "node3"}, "one or more of these nodes failed"},
	} {
		got, words := suspects(tt.nodes, tt.silent, "Reason")
		if d := cmp.Diff(tt.want, got); d != "" || !strings.Contains(words, tt.words) || !strings.HasSuffix(words, "(Reason)") {
			t.Errorf("%q of which %q are silent: %q %s", tt.nodes, tt.silent, words, d)
		}
	}
	s := tried(1, 1, metrics.NodeFailed)
	s.Job = &metrics.Job{Nodes: []string{"node1", "node2"}}
	s.Verdict = &Verdict{FailedNodes: []string{"node2"}}
	if got := failedNodes([]State{s}); !slices.Equal(got, []string{"node2"}) {
		t.Errorf("kept away from %q, want node2 alone", got)
	}
}

// `retry` repeats runs that ended badly, also those whose next attempt the scheduler has not accepted yet; a run
// that was never accepted has not ended.
func TestEndedBadly(t *testing.T) {
	refused, first := tried(3, 2, metrics.Planned), tried(4, 1, metrics.Planned)
	refused.Submission, first.Submission = nil, nil
	states := []State{tried(1, 1, metrics.Failed), tried(2, 1, metrics.Failed), tried(2, 2, metrics.Running),
		tried(3, 1, metrics.Cancelled), refused, first, tried(5, 1, metrics.Failed), tried(5, 2, metrics.Done)}
	var got []string
	for _, b := range (Choice{Plan: repeats(6), Done: none}).EndedBadly(states) {
		got = append(got, b.Last.Run.Name())
	}
	if want := []string{"p-r1-a1", "p-r3-a2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
