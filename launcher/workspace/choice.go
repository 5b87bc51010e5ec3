package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
)

// Choice returns which runs of the plan to start: those without a good result in the run folder or
// the database. If again is set, it adds runs whose results were measured with other versions of
// the user's scripts or data.
func (k *Work) Choice(ctx context.Context, again bool) (launcher.Choice, error) {
	stored, err := k.w.Results(ctx, k.Study.Name, k.Folder)
	if err != nil {
		return launcher.Choice{}, err
	}
	choice := launcher.Choice{Plan: k.Plan, Policy: k.Study.Policy,
		Done: func(run study.Run) bool { return stored.Done[run] },
		Last: func(run study.Run) int { return stored.Last[run] }}
	if err := k.noteForgotten(stored); err != nil {
		return choice, err
	}
	if !again {
		return choice, nil
	}
	list, err := k.outdated(stored)
	if err != nil {
		return choice, err
	}
	choice.Outdated = map[rundir.Folder]bool{}
	for _, o := range list {
		choice.Outdated[o.Folder] = true
		delete(stored.Done, o.Run)
	}
	return choice, nil
}

// noteForgotten tells the user which runs of the plan are measured again because their results were
// forgotten (`scalebench forget`).
func (k *Work) noteForgotten(stored Results) error {
	if len(stored.Forgotten) == 0 {
		return nil
	}
	attempts, err := launcher.Attempts(k.Folder)
	if err != nil {
		return err
	}
	there := map[study.Run]bool{}
	for _, a := range attempts {
		there[a.Point.Run()] = true
	}
	n := 0
	for _, p := range k.Plan.Points {
		if at := p.Point.Run(); stored.Forgotten[at] && !stored.Done[at] && !there[at] {
			n++
		}
	}
	if n > 0 {
		k.w.Note("measuring %s of %s again; `scalebench forget --restore %s` brings %s back instead",
			number.Count(n, "forgotten run"), k.Study.Name, k.Study.Name, number.Them(n))
	}
	return nil
}

// outdated returns the results that were measured with other versions of the user's scripts and
// data.
func (k *Work) outdated(stored Results) ([]launcher.Outdated, error) {
	attempts, err := launcher.Attempts(k.Folder)
	if err != nil {
		return nil, err
	}
	return versions(stored).Outdated(k.Plan, attempts), nil
}

func versions(stored Results) *launcher.Versions {
	return &launcher.Versions{Stored: func(run study.Run) map[string]string { return stored.Made[run] }}
}

// NoteOutdated tells the user which results were measured with other versions of the user's scripts
// and data. Their runs are not repeated unless the user asks for it.
func (k *Work) NoteOutdated(ctx context.Context) error {
	stored, err := k.w.Results(ctx, k.Study.Name, k.Folder)
	if err != nil {
		return err
	}
	list, err := k.outdated(stored)
	if err != nil {
		return err
	}
	for _, line := range outdatedLines(list) {
		k.w.Note("%s; use --again to measure again", line)
	}
	return nil
}

// outdatedLines returns one line for each way in which the user's files have changed, with the
// number of results that were measured before the change.
func outdatedLines(list []launcher.Outdated) []string {
	runs := map[string]int{}
	var order []string
	for _, o := range list {
		var changes []string
		for _, c := range o.Changes {
			was, is := shortest(c.Was, c.Is)
			changes = append(changes, fmt.Sprintf("%s (%s… → %s…)", c.File, was, is))
		}
		text := "another version of " + strings.Join(changes, " and of ")
		if !slices.Contains(order, text) {
			order = append(order, text)
		}
		runs[text]++
	}
	var lines []string
	for _, text := range order {
		lines = append(lines, fmt.Sprintf("%s from %s", number.Are(runs[text], "result"), text))
	}
	return lines
}

// shortest returns the shortest prefixes that distinguish two digests.
func shortest(a, b string) (string, string) {
	n := 4
	for n < min(len(a), len(b)) && a[:n] == b[:n] {
		n++
	}
	return a[:min(n, len(a))], b[:min(n, len(b))]
}

// An Inventory lists which runs of a plan have results and which are left to make.
type Inventory struct {
	Good map[string]int      // by point: the number of its repeats that have a result
	Why  map[string][]string // by point: the reasons for missing results, such as "2 failed"
	Left map[string]int      // by point: the number of runs left to make
	// Whole is the number of points of which all repeats have results. Outdated are lines about
	// results that were measured with other versions of the user's files.
	Whole    int
	Make     *study.Plan // the runs to be made
	Outdated []string
}

// Inventory returns the inventory of the plan. It finds results in the run folders, and in the
// database for runs whose folders were removed. It does not ask the scheduler: a run without a
// recorded end counts as still in progress.
func (k *Work) Inventory(ctx context.Context) (Inventory, error) {
	in := Inventory{Good: map[string]int{}, Why: map[string][]string{}, Make: &study.Plan{Study: k.Study.Name}, Left: map[string]int{}}
	attempts, err := launcher.Attempts(k.Folder)
	if err != nil {
		return in, err
	}
	stored, err := k.w.Results(ctx, k.Study.Name, k.Folder)
	if err != nil {
		k.w.Detail("not using the database: %v", err)
	}
	last := latest(attempts)
	list := versions(stored).Outdated(k.Plan, attempts)
	in.Outdated = outdatedLines(list)
	others := map[study.Run]bool{}
	for _, o := range list {
		others[o.Run] = true
	}
	reasons := map[string]map[string]int{}
	for _, p := range k.Plan.Points {
		id, at := p.Point.ID, p.Point.Run()
		why := last[at]
		switch {
		case others[at]:
			in.Good[id]++
			why = "of other versions"
		case why == good || stored.Done[at]:
			in.Good[id]++
			continue
		case why == "" && stored.Forgotten[at]:
			why = "forgotten"
		case why == "":
			why = "not started"
		}
		if !others[at] && why != underway && why != unreadable {
			in.Make.Points = append(in.Make.Points, p)
			in.Left[id]++
		}
		if reasons[id] == nil {
			reasons[id] = map[string]int{}
		}
		reasons[id][why]++
	}
	for _, n := range in.Good {
		if n == k.Study.Runs() {
			in.Whole++
		}
	}
	for id, counts := range reasons {
		for why, n := range counts {
			in.Why[id] = append(in.Why[id], fmt.Sprintf("%d %s", n, why))
		}
		slices.Sort(in.Why[id])
	}
	return in, nil
}

const (
	good       = "good"
	underway   = "under way"
	unreadable = "cannot be read"
)

// latest returns, for each repeat, how its latest attempt ended, or good if any of its attempts has
// a good result.
func latest(attempts []*launcher.Attempt) map[study.Run]string {
	last := map[study.Run]string{}
	for _, a := range attempts { // in ascending order of their numbers
		at := a.Point.Run()
		switch {
		case last[at] == good:
		case a.Unreadable != nil:
			last[at] = unreadable
		case a.Verdict == nil:
			last[at] = underway
		case a.Verdict.Status.Good():
			last[at] = good
		default:
			last[at] = strings.ReplaceAll(string(a.Verdict.Status), "_", " ")
		}
	}
	return last
}

// Summary returns the inventory in words: "8 points: 8 have results, 0 to run".
func (in Inventory) Summary(points int) string {
	verb := "have"
	if in.Whole == 1 {
		verb = "has"
	}
	return fmt.Sprintf("%s: %d %s results, %d to run", number.Count(points, "point"), in.Whole, verb, len(in.Left))
}

// Results are a study's good runs in the database, including runs whose folders were removed.
type Results struct {
	Done map[study.Run]bool
	Last map[study.Run]int               // number of the last attempt, good or not
	Made map[study.Run]map[string]string // the user's scripts and data: name to the first digits of the SHA-256

	Forgotten map[study.Run]bool // runs of which an attempt was forgotten
}

// Results reads a study's results from the database; without a database they are empty. Runs in the
// folder's trash count as forgotten, even if the database does not have that yet.
func (w *Workspace) Results(ctx context.Context, name string, folder rundir.Study) (Results, error) {
	r := Results{map[study.Run]bool{}, map[study.Run]int{}, map[study.Run]map[string]string{}, map[study.Run]bool{}}
	trash, err := folder.Forgotten()
	if err != nil {
		return r, err
	}
	gone := map[string]bool{}
	for _, a := range trash {
		gone[name+"/"+a.Run.Name()] = true
		r.forget(a)
	}
	file, err := w.Database()
	if err != nil {
		return r, err
	}
	db, err := store.OpenReadOnly(file, store.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, StoreError(err)
	}
	defer db.Close()
	return r, StoreError(r.read(ctx, db, name, gone))
}

// read adds the database's runs of a study; gone contains the names of runs in the trash.
func (r *Results) read(ctx context.Context, db *store.Store, name string, gone map[string]bool) error {
	rows, err := db.Runs(ctx, store.Filter{Study: name})
	if err != nil {
		return err
	}
	for _, row := range rows {
		at := study.Run{Point: row.Point, Repeat: row.Repeat}
		r.Last[at] = max(r.Last[at], row.Attempt)
		if row.Status.Good() && !gone[row.Run] {
			r.Done[at] = true
		}
	}
	names, err := db.Forgotten(ctx, name)
	if err != nil {
		return err
	}
	for _, n := range names {
		if a, ok := rundir.ParseName(path.Base(n)); ok {
			r.forget(a)
		}
	}
	made, err := db.MadeWith(ctx, name)
	for _, m := range made {
		r.Made[study.Run{Point: m.Point, Repeat: m.Repeat}] = m.Files
	}
	return err
}

func (r *Results) forget(a rundir.Attempt) {
	at := study.Run{Point: a.Point, Repeat: a.Repeat}
	r.Forgotten[at] = true
	r.Last[at] = max(r.Last[at], a.Number)
}
