package query

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Progress returns one sentence with the number of runs in each state and the time
// left: "24 runs: 12 done, 2 running, 10 planned; about 18m left, 2 at a time". If a
// run has several attempts, the last one counts. now is in seconds since the epoch.
func Progress(list []Brief, now float64) string {
	last := lastAttempts(list)
	by := map[metrics.Status]int{}
	for _, b := range last {
		by[b.status]++
	}
	text := number.Count(len(last), "run") + ": " + strings.Join(workspace.ByStatus(by), ", ")
	if left := remainingTime(list, now); left != "" {
		text += "; " + left
	}
	return text
}

// remainingTime returns a text with the estimated time until all runs have ended, and how many run
// at a time. The estimate is based on finished runs of the same point, or else on all finished
// runs. The text is "" if no run is left, if none has finished, or if all that are left take longer
// than the finished ones.
func remainingTime(list []Brief, now float64) string {
	if !slices.ContainsFunc(list, func(b Brief) bool { return !b.status.Terminal() && !b.unjudged }) {
		return ""
	}
	took := durationsOf(list)
	medians := map[pointID]float64{}
	for id, of := range took {
		m, _ := scaling.Median(of, 0.95) // no error: there is at least one value
		medians[id] = m.Value
	}
	all, ok := medians[pointID{}]
	if !ok {
		return ""
	}
	var total, longest float64
	running, waiting := 0, 0
	for _, b := range list {
		if b.status.Terminal() || b.unjudged {
			continue
		}
		rest, own := medians[b.at.pointID]
		if !own {
			rest = all
		}
		if b.status == metrics.Running && b.began > 0 {
			running++
			rest = max(0, rest-max(0, now-b.began))
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
func durationsOf(list []Brief) map[pointID][]float64 {
	took := map[pointID][]float64{}
	for _, b := range list {
		if b.status.Good() && b.took >= 0 {
			for _, id := range []pointID{{}, b.at.pointID} {
				took[id] = append(took[id], b.took)
			}
		}
	}
	return took
}
