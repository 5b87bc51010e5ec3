package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// A Watcher polls the states of the runs of some studies, for `scalebench status --watch`.
type Watcher struct {
	Folders  []rundir.Study
	Interval time.Duration // time between queries to Slurm
	Where    string        // condition on runs; "" for all
	// Known and Ended make the Watcher forget attempts that have ended, if set: Ended gets each of them once, and
	// Known reports those that it got. Planned is then empty.
	Known func(rundir.Folder) bool
	Ended func(launcher.State)
	Lists int // how often the run folders were listed

	Planned []launcher.Unbegun // planned runs that have not started and match the condition
	Trouble error              // error of the last query to Slurm
	Unread  error              // error of a run folder that cannot be read

	attempts map[rundir.Study][]*launcher.Attempt
	states   map[rundir.Folder]launcher.State
	shown    map[rundir.Folder]bool // attempts that match the condition; nil for all
	unbegun  []launcher.Unbegun     // all planned runs without an attempt
	asked    time.Time              // time of the last query to Slurm, or when it was due if no run needed it
	failures int                    // number of successive queries without an answer
}

// NextQuery returns the time until the next query of Slurm.
func (v *Watcher) NextQuery() time.Duration { return max(0, time.Until(v.asked.Add(v.pause()))) }

// Due makes the next Look list the runs again, as it does after each interval.
func (v *Watcher) Due() { v.asked = time.Time{} }

// pause returns the time between two queries of Slurm; it grows while Slurm does not answer.
func (v *Watcher) pause() time.Duration {
	return v.Interval * time.Duration(min(1<<min(v.failures, 3), 8))
}

// Look updates the states of runs that have not ended. If the next query to Slurm is due, it
// updates all of them, else only those that can be read from the run folder.
func (v *Watcher) Look(ctx context.Context) error {
	due := time.Since(v.asked) >= v.pause()
	if due {
		v.asked, v.Trouble, v.Unread = time.Now(), nil, nil
		if err := v.list(); err != nil {
			return err
		}
	}
	var open []*launcher.Attempt
	for _, folder := range v.Folders {
		for _, a := range v.attempts[folder] {
			if state, seen := v.states[a.Run]; seen && state.Verdict != nil {
				continue
			}
			if due || a.Attached() || a.Verdict != nil {
				open = append(open, a)
			}
		}
	}
	states, err := launcher.Survey(ctx, open)
	if v.states == nil {
		v.states = map[rundir.Folder]launcher.State{}
	}
	for _, state := range states {
		v.states[state.Run] = state
		if state.Err != nil {
			v.Unread = state.Err
		}
	}
	if err != nil {
		v.Trouble = err
	}
	v.forget(states)
	if err := v.choose(ctx); err != nil {
		return err
	}
	if due {
		if v.failures++; err == nil {
			v.failures = 0
		}
	}
	return ctx.Err()
}

// choose applies the condition Where. Each call of Look applies it again, since statuses
// change.
func (v *Watcher) choose(ctx context.Context) error {
	if v.Where == "" {
		return nil
	}
	v.shown = nil
	chosen, err := Runs{States: v.States(), Planned: v.unbegun}.Where(ctx, v.Where)
	if err != nil {
		return err
	}
	v.shown, v.Planned = map[rundir.Folder]bool{}, chosen.Planned
	for _, state := range chosen.States {
		v.shown[state.Run] = true
	}
	return nil
}

// forget hands over the attempts that have ended.
func (v *Watcher) forget(states []launcher.State) {
	if v.Ended == nil {
		return
	}
	for _, state := range states {
		if state.Verdict != nil && state.Err == nil {
			v.Ended(state)
			delete(v.states, state.Run)
		}
	}
	for folder, list := range v.attempts {
		v.attempts[folder] = slices.DeleteFunc(list, func(a *launcher.Attempt) bool { return v.Known(a.Run) })
	}
}

// list reads which attempts exist, and which planned runs have none.
func (v *Watcher) list() error {
	v.Lists++
	before := v.attempts
	v.attempts, v.unbegun = map[rundir.Study][]*launcher.Attempt{}, nil
	for _, folder := range v.Folders {
		plan := &study.Plan{} // the plan is not needed: attempts contain their study's name
		if v.Ended == nil {
			read, err := launcher.ReadPlan(folder)
			switch {
			case err == nil:
				plan = read
			case !errors.Is(err, fs.ErrNotExist): // unless the folder was purged in the meantime
				v.Unread = err
			}
		}
		list, err := v.refresh(folder, before[folder])
		if err != nil {
			v.Unread = err
			list = before[folder]
		}
		v.attempts[folder] = list
		v.unbegun = append(v.unbegun, launcher.NotBegun(plan, folder, list)...)
	}
	v.Planned = v.unbegun
	return nil
}

// refresh reads the attempts of a study.
func (v *Watcher) refresh(folder rundir.Study, before []*launcher.Attempt) ([]*launcher.Attempt, error) {
	if v.Ended == nil {
		return launcher.Refresh(folder, before)
	}
	return launcher.Underway(folder, before, v.Known, v.Ended)
}

// States returns the states of the attempts that match the condition, running and waiting
// attempts first.
func (v *Watcher) States() []launcher.State {
	var list []launcher.State
	for _, folder := range v.Folders {
		for _, a := range v.attempts[folder] {
			if state, ok := v.states[a.Run]; ok && (v.shown == nil || v.shown[a.Run]) {
				list = append(list, state)
			}
		}
	}
	rank := func(s launcher.State) int {
		switch {
		case s.Status == metrics.Running:
			return 0
		case !s.Status.Terminal():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(list, func(a, b launcher.State) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// Underway returns how many attempts have not ended.
func (v *Watcher) Underway() int {
	n := 0
	for _, state := range v.States() {
		if !state.Status.Terminal() && state.Err == nil {
			n++
		}
	}
	return n
}

// Unjudged returns the number of attempts whose state cannot be read; it is 1 if a study's
// folder cannot be read.
func (v *Watcher) Unjudged() int {
	n := 0
	for _, state := range v.States() {
		if state.Err != nil {
			n++
		}
	}
	if n == 0 && v.Unread != nil {
		n = 1
	}
	return n
}
