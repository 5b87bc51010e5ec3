package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
)

// inventory is what of a plan is there already.
type inventory struct {
	good map[string]int      // point to how many of its repeats have a result
	why  map[string][]string // point to what keeps the others from one: "2 failed"
	// Over all points: those with a result for every repeat, those with runs to
	// begin, and results of other versions, in words.
	whole, toRun int
	toMake       *study.Plan    // the runs to begin
	left         map[string]int // point to how many they are
	outdated     []string
}

// have looks for results in the run folders, and in the database for those
// that were purged. It asks no scheduler: what has not been seen to end is
// under way.
func (s *session) have(ctx context.Context, w *work) (inventory, error) {
	in := inventory{good: map[string]int{}, why: map[string][]string{}, toMake: &study.Plan{Study: w.study.Name}, left: map[string]int{}}
	attempts, err := launcher.Attempts(w.folder)
	if err != nil {
		return in, err
	}
	stored, err := s.workspace().Results(ctx, w.study.Name, w.folder)
	if err != nil {
		s.detail("not using the database: %v", err)
	}
	last := map[workspace.Repeat]string{} // how the latest attempt stands, where none is good
	good := map[workspace.Repeat]bool{}
	for _, a := range attempts { // by number
		at := planned(a.Point.ID, a.Point.Repeat)
		switch {
		case a.Unreadable != nil:
			last[at] = "cannot be read"
		case a.Verdict == nil:
			last[at] = "under way"
		case a.Verdict.Status.Good():
			good[at] = true
		default:
			last[at] = strings.ReplaceAll(string(a.Verdict.Status), "_", " ")
		}
	}
	versions := launcher.Versions{Stored: func(point string, repeat int) map[string]string { return stored.Made[planned(point, repeat)] }}
	list := versions.Outdated(w.plan, attempts)
	in.outdated = outdatedLines(list)
	others := map[workspace.Repeat]bool{}
	for _, o := range list {
		others[planned(o.Point, o.Repeat)] = true
	}
	reasons := map[string]map[string]int{}
	for _, p := range w.plan.Points {
		id, at := p.Point.ID, planned(p.Point.ID, p.Point.Repeat)
		why := last[at]
		switch {
		case others[at]:
			in.good[id]++
			why = "of other versions"
		case good[at] || stored.Done[at]:
			in.good[id]++
			continue
		case why == "" && stored.Forgotten[at]:
			why = "forgotten"
		case why == "":
			why = "not started"
		}
		if !others[at] && why != "under way" && why != "cannot be read" {
			in.toMake.Points = append(in.toMake.Points, p)
			in.left[id]++
		}
		if reasons[id] == nil {
			reasons[id] = map[string]int{}
		}
		reasons[id][why]++
	}
	for _, n := range in.good {
		if n == w.study.Runs() {
			in.whole++
		}
	}
	in.toRun = len(in.left)
	for id, counts := range reasons {
		for why, n := range counts {
			in.why[id] = append(in.why[id], fmt.Sprintf("%d %s", n, why))
		}
		slices.Sort(in.why[id])
	}
	return in, nil
}

// summary is the inventory in words: "8 points: 8 have results, 0 to run".
func (in inventory) summary(points int) string {
	verb := "have"
	if in.whole == 1 {
		verb = "has"
	}
	return fmt.Sprintf("%s: %d %s results, %d to run", number.Count(points, "point"), in.whole, verb, in.toRun)
}
