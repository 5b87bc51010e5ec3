package launcher

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// A good result of other versions is measured again on request, once: the next attempt is judged like any
// other.
func TestOutdatedIsBegunAgain(t *testing.T) {
	p := study.Planned{Point: study.Point{ID: "p", Repeat: 1}}
	state := func(number int, status metrics.Status) State {
		run := rundir.OpenStudy("runs", "s").Run("p", 1, number)
		return State{Attempt: &Attempt{Run: run, Number: number, Point: p.Point, Record: Record{Backend: "fake-beside"}}, Status: status}
	}
	old := map[rundir.Folder]bool{state(1, metrics.Done).Run: true}
	for _, test := range []struct {
		name   string
		states []State
		old    map[rundir.Folder]bool
		last   int
		want   []int // numbers of the attempts to begin
	}{
		{"good", []State{state(1, metrics.Done)}, nil, 0, nil},
		{"outdated", []State{state(1, metrics.Done)}, old, 0, []int{2}},
		{"measured again", []State{state(1, metrics.Done), state(2, metrics.Done)}, old, 0, nil},
		{"under way", []State{state(1, metrics.Done), state(2, metrics.Running)}, old, 0, nil},
		{"failed this time", []State{state(1, metrics.Done), state(2, metrics.Failed)}, old, 0, nil},
		{"purged", nil, nil, 3, []int{4}},
		{"purged in part", []State{state(1, metrics.Failed), state(2, metrics.Done)}, map[rundir.Folder]bool{state(2, metrics.Done).Run: true}, 5, []int{6}},
	} {
		c := Choice{Plan: &study.Plan{Points: []study.Planned{p}}, Outdated: test.old,
			Done: func(study.Run) bool { return false }, Last: func(study.Run) int { return test.last }}
		var got []int
		for _, todo := range c.Todo(test.states) {
			got = append(got, todo.Number)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}
