package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
)

// CollectOptions configure Collect.
type CollectOptions struct {
	Again bool // read the output of the user's programs again, even if the patterns are the same
	// Progress receives the number of runs read and their total, from 0 to all. nil disables it.
	Progress func(done, total int)
	// OnlyNews omits the closing note if no run has changed since the last collect.
	OnlyNews bool
}

// CollectAll reads the runs of several studies into the database. If skip is set, it only warns
// about a folder that belongs to an unknown study, and continues with the next folder.
func (w *Workspace) CollectAll(ctx context.Context, folders []rundir.Study, o CollectOptions, skip bool) error {
	var problems []error
	for _, folder := range folders {
		err := w.Collect(ctx, folder, o)
		var unknown *unidentified
		var refused *Error
		if skip && errors.As(err, &unknown) && errors.As(err, &refused) {
			w.Warn("%v\n%s", err, refused.Hint)
			err = &PartialError{Err: fmt.Errorf("%s is left out, see the warning", folder.Path())}
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Collect reads one study's runs into the database.
func (w *Workspace) Collect(ctx context.Context, folder rundir.Study, o CollectOptions) error {
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		w.Warn("%v", err)
		return Unread(1)
	}
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool { return a.Unkeyed }) {
		if attempts, err = w.keyed(folder, attempts); err != nil {
			return err
		}
	}
	states, unread, unreachable := w.Survey(ctx, attempts)
	its, err := identify(folder)
	if err != nil {
		return err
	}
	plan, unplanned := w.readPlan(folder)
	file, err := w.Database()
	if err != nil {
		return err
	}
	w.Hold()
	db, err := openForWriting(file)
	if err != nil {
		return StoreError(err)
	}
	defer db.Close()
	if err := w.Register(ctx, db, folder, its); err != nil {
		return err
	}
	forgotten, err := folder.Forgotten()
	if err != nil {
		w.Warn("%v; runs already forgotten in the database stay forgotten", err)
		unread++
	}
	if err := followTrash(ctx, db, forgotten, its.Name, states); err != nil {
		return StoreError(err)
	}
	if unreachable == nil {
		w.recordEnergy(ctx, states)
	}
	c := &collection{w: w, db: db, its: its, asked: questions(plan), options: o, kept: map[string]int{}, by: map[metrics.Status]int{}, unread: unread}
	if err := c.all(ctx, states); err != nil {
		return StoreError(err)
	}
	if unplanned != nil { // an unreadable plan adds nothing; the database keeps the earlier plan
		plan = nil
	}
	if err := c.arrange(ctx, folder, plan); err != nil {
		return StoreError(err)
	}
	if !o.OnlyNews || c.changed > 0 {
		w.Note("collected %s into %s: %s", folder.Path(), db.Path(), c)
	}
	return errors.Join(unreachable, Unread(c.unread), unplanned)
}

// unidentified is the error if it is unknown which study a folder belongs to.
type unidentified struct{ error }

// identify returns the study that a folder belongs to.
func identify(folder rundir.Study) (rundir.Identity, error) {
	its, err := folder.Identity()
	if err == nil {
		return its, nil
	}
	hint := "`scalebench run FILE` or `submit FILE` records which study this is; runs with a result are not repeated."
	if !errors.Is(err, fs.ErrNotExist) {
		hint = "Move identity.json away. Then " + hint
	}
	return its, &Error{Err: &unidentified{err}, Hint: hint}
}

// keyed creates the folder's key for digests of secrets, if it is missing, and then reads the
// attempts that contain plain secrets again. With the key, every collect computes the same digests.
// keyed creates no key in another user's folder.
func (w *Workspace) keyed(folder rundir.Study, attempts []*launcher.Attempt) ([]*launcher.Attempt, error) {
	database, err := w.Database()
	if err != nil {
		return nil, err
	}
	if err := launcher.KeepKey(folder, database); err != nil {
		w.Warn("%v; digests of plain secrets in %s will change with each collect", err, folder.Path())
		return attempts, nil
	}
	return launcher.Attempts(folder)
}

// recordEnergy records the energy of Slurm jobs in the run folders, from Slurm's accounting. If
// Slurm does not answer, the runs are collected without their energy.
func (w *Workspace) recordEnergy(ctx context.Context, states []launcher.State) {
	a, err := launcher.RecordEnergy(ctx, states)
	if err != nil {
		w.Note("energy was not read from Slurm's accounting: %v", err)
	}
	if a.Meter == "" {
		return
	}
	if a.Recorded > 0 {
		w.Note("read the energy of %s from Slurm's accounting", number.Count(a.Recorded, "run"))
	}
	if a.Unknown > 0 && err == nil {
		w.Note("Slurm's accounting has no energy of %s (yet)", number.Count(a.Unknown, "run"))
	}
	if a.Shared > 0 {
		w.Note("did not read the energy of %s from Slurm's accounting: it covers whole nodes, which they may have shared; resources.exclusive = true gives each run whole nodes", number.Count(a.Shared, "run"))
	}
}

// A collection is the state of Collect while it reads the runs of one study into the database.
type collection struct {
	w       *Workspace
	db      *store.Store
	its     rundir.Identity
	asked   map[string]question // by point
	options CollectOptions

	read int            // runs whose output was read again
	kept map[string]int // number of runs by the reason why their output could not be read again

	by                           map[metrics.Status]int
	changed, events, bad, unread int // numbers of changed runs, new events, bad lines, and runs that cannot be read
	warnings                     []Warning
}

func (c *collection) warn(kind, format string, a ...any) {
	c.warnings = append(c.warnings, Warning{Kind: kind, Text: fmt.Sprintf(format, a...)})
}

func (c *collection) progress(done, total int) {
	if c.options.Progress != nil {
		c.options.Progress(done, total)
	}
}

// all stores all attempts in the database, with their tags and notes.
func (c *collection) all(ctx context.Context, states []launcher.State) error {
	defer func() { c.w.WarnOf(c.warnings) }()
	defer c.progress(len(states), len(states))
	for i, state := range states {
		c.progress(i, len(states))
		c.by[state.Status]++
		if state.Unreadable != nil {
			continue // Survey has warned
		}
		if said, ok, err := launcher.Remarks(state.Run); err != nil {
			c.warn("run whose tags and notes cannot be read", "%v; the run keeps its earlier tags and note", err)
		} else if ok {
			if err := c.db.PutRemarks(ctx, state.Record.ID, said); err != nil {
				return err
			}
		}
		if err := c.one(ctx, state); err != nil {
			return err
		}
	}
	return nil
}

// one stores one attempt in the database and updates the counters.
func (c *collection) one(ctx context.Context, state launcher.State) error {
	report, err := c.ingest(ctx, state)
	var run *store.RunError
	switch {
	case errors.As(err, &run) && state.Err != nil:
		return nil // Survey has warned
	case errors.As(err, &run):
		c.warn("run that cannot be collected", "%v", err)
		c.unread++
		return nil
	case err != nil:
		return err
	}
	if report.Unread > 0 && state.Err == nil {
		c.unread++
	}
	for _, line := range report.BadLines {
		c.warn("line without an event", "%v", line)
	}
	if AskOwner(state.Err) != "" {
		report.Warnings = nil // Survey has asked for access to the run's files
	}
	for _, w := range report.Warnings {
		c.warn("warning about files of runs", "%s: %s", state.Record.ID, w)
	}
	if report.Changed {
		c.changed++
	}
	c.events, c.bad = c.events+report.Events, c.bad+len(report.BadLines)
	return nil
}

// arrange updates what the database derives from the runs: which results are outdated, and the
// series. It also stores the planned points, unless plan is nil.
func (c *collection) arrange(ctx context.Context, folder rundir.Study, plan *study.Plan) error {
	if c.read > 0 {
		why := ", because the study now reads it differently"
		if c.options.Again {
			why = ""
		}
		c.w.Note("read the output of %s again%s", number.Count(c.read, "run"), why)
	}
	for _, why := range slices.Sorted(maps.Keys(c.kept)) {
		c.w.Warn("could not read the output of %s again, keeping the earlier figures: %s", number.Count(c.kept[why], "run"), why)
	}
	if n, err := c.db.Recompute(ctx); err != nil {
		return err
	} else if n > 0 {
		c.w.Note("recomputed %s stored by an earlier version", number.Count(n, "result"))
	}
	if plan != nil {
		if err := c.db.SetPlanned(ctx, c.its.Name, launcher.Planned(launcher.NotBegun(plan, folder, nil))); err != nil {
			return err
		}
	}
	looks, err := decide.Read(folder)
	if err != nil {
		c.w.Warn("%v", err)
	} else if err := c.db.SetLooks(ctx, c.its.Name, looks.Looks); err != nil {
		return err
	}
	return c.db.Arrange(ctx)
}

// String returns the number of runs by status, and what was new: "12 done (2 updated, 52 events)".
func (c *collection) String() string {
	statuses := ByStatus(c.by)
	if len(statuses) == 0 {
		statuses = []string{"no runs yet"}
	}
	read := fmt.Sprintf("%d updated, %s", c.changed, number.Count(c.events, "event"))
	if c.bad > 0 {
		read += ", " + number.Count(c.bad, "bad line")
	}
	return strings.Join(statuses, ", ") + " (" + read + ")"
}

// ByStatus returns numbers of runs in words, in the order of the statuses: "12 done", "2 running".
func ByStatus(runs map[metrics.Status]int) (words []string) {
	for _, status := range metrics.Statuses {
		if n := runs[status]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, status))
		}
	}
	return words
}

// Edited reports whether a study file has changed since its study was last run or
// submitted.
func Edited(file string, folder rundir.Study) bool {
	const maxStudyFile = 16 << 20 // bytes; a study file is smaller
	now, err := rundir.ReadFile(file)
	then, missing := folder.ReadFile(folder.StudyFile(), maxStudyFile)
	return filepath.Ext(file) == ".toml" && err == nil && missing == nil && string(now) != string(then)
}
