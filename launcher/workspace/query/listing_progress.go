package query

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Progress returns one sentence with the number of runs in each state and the time
// left: "24 runs: 12 done, 2 running, 10 planned; about 18m left, 2 at a time". If a
// run has several attempts, the last one counts. now is in seconds since the epoch.
func Progress(states []launcher.State, planned []launcher.Unbegun, now float64) string {
	last := lastAttempts(states)
	by := map[metrics.Status]int{metrics.Planned: len(planned)}
	for _, s := range last {
		by[s.Status]++
	}
	text := number.Count(len(last)+len(planned), "run") + ": " + strings.Join(workspace.ByStatus(by), ", ")
	if left := remainingTime(states, planned, now); left != "" {
		text += "; " + left
	}
	return text
}

// lastAttempts returns the last attempt of each run, in the order given.
func lastAttempts(states []launcher.State) []launcher.State {
	type run struct {
		pointID
		repeat int
	}
	of := func(s launcher.State) run { return run{pointID{s.Point.Study, s.Point.ID}, s.Point.Repeat} }
	last := map[run]int{}
	for _, s := range states {
		last[of(s)] = max(last[of(s)], s.Number)
	}
	return slices.DeleteFunc(slices.Clone(states), func(s launcher.State) bool { return s.Number < last[of(s)] })
}

// remainingTime returns a text with the estimated time until all runs have ended, and how many run
// at a time. The estimate is based on finished runs of the same point, or else on all finished
// runs. The text is "" if no run is left, if none has finished, or if all that are left take longer
// than the finished ones.
func remainingTime(states []launcher.State, planned []launcher.Unbegun, now float64) string {
	took := durationsOf(states)
	all := took[pointID{}]
	if len(all) == 0 {
		return ""
	}
	expected := func(id pointID) float64 {
		of := all
		if own := took[id]; len(own) > 0 {
			of = own
		}
		m, _ := scaling.Median(of, 0.95) // no error: there is at least one value
		return m.Value
	}
	var total, longest float64
	running, waiting := 0, len(planned)
	for _, p := range planned {
		total += expected(pointID{p.Point.Study, p.Point.ID})
	}
	for _, s := range states {
		if s.Status.Terminal() || s.Err != nil {
			continue
		}
		rest := expected(pointID{s.Point.Study, s.Point.ID})
		if s.Status == metrics.Running && s.Traces.StartUnix > 0 {
			running++
			rest = max(0, rest-max(0, now-s.Traces.StartUnix))
			longest = max(longest, rest)
		} else {
			waiting++
		}
		total += rest
	}
	switch {
	case total == 0: // nothing is left, or it is overdue
		return ""
	case running == 0:
		return fmt.Sprintf("about %s left, one at a time", wholeSeconds(total))
	case waiting == 0:
		return fmt.Sprintf("about %s left", wholeSeconds(longest))
	}
	return fmt.Sprintf("about %s left, %d at a time", wholeSeconds(max(longest, total/float64(running))), running)
}

// wholeSeconds formats an estimate, rounded up to seconds.
func wholeSeconds(seconds float64) string { return number.ShortSeconds(math.Ceil(seconds)) }

// durationsOf returns the durations of finished runs in seconds, by point. The zero pointID has
// the durations of all runs.
func durationsOf(states []launcher.State) map[pointID][]float64 {
	took := map[pointID][]float64{}
	for _, s := range states {
		if e := s.Traces.Exit; e != nil && s.Status.Good() && e.StartUnix > 0 && e.EndUnix >= e.StartUnix {
			for _, id := range []pointID{{}, {s.Point.Study, s.Point.ID}} {
				took[id] = append(took[id], e.EndUnix-e.StartUnix)
			}
		}
	}
	return took
}
