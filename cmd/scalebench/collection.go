package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
)

// collection reads the runs of one study in.
type collection struct {
	s     *session
	db    *store.Store
	its   rundir.Identity
	asked map[string]question
	again bool

	read int            // runs whose output was read again
	kept map[string]int // why others' could not be, to how many

	by                           map[metrics.Status]int
	changed, events, bad, unread int // runs, events, lines, and runs that cannot be read
}

// all stores the runs, with their tags and notes.
func (c *collection) all(ctx context.Context, states []launcher.State) error {
	bar := c.s.startProgress("collecting", len(states))
	defer bar.stop()
	warnings := c.s.limitWarnings()
	for _, state := range states {
		c.by[state.Status]++
		bar.advance(1)
		if state.Unreadable != nil {
			continue // survey has said so
		}
		if said, ok, err := launcher.Remarks(state.Run); err != nil {
			warnings.warn("runs whose tags and notes cannot be read", "%v; the run keeps its earlier tags and note", err)
		} else if ok {
			if err := c.db.PutRemarks(ctx, state.Record.ID, said); err != nil {
				return err
			}
		}
		if err := c.one(ctx, state, warnings); err != nil {
			return err
		}
	}
	bar.stop()
	warnings.end()
	return nil
}

// one reads a run in, and counts what came of it.
func (c *collection) one(ctx context.Context, state launcher.State, warnings *warningLimiter) error {
	report, err := c.run(ctx, state)
	var run *store.RunError
	switch {
	case errors.As(err, &run) && state.Err != nil:
		return nil // survey has said so
	case errors.As(err, &run):
		warnings.warn("runs that cannot be collected", "%v", err)
		c.unread++
		return nil
	case err != nil:
		return err
	}
	if report.Unread > 0 && state.Err == nil {
		c.unread++
	}
	for _, line := range report.BadLines {
		warnings.warn("lines that are not events", "%v", line)
	}
	for _, w := range report.Warnings {
		warnings.warn("warnings about files of runs", "%s: %s", state.Record.ID, w)
	}
	if report.Changed {
		c.changed++
	}
	c.events, c.bad = c.events+report.Events, c.bad+len(report.BadLines)
	return nil
}

// arrange brings what the database has worked out up to date: results of earlier
// versions, what is planned (a nil plan leaves that), and the series.
func (c *collection) arrange(ctx context.Context, folder rundir.Study, plan *study.Plan) error {
	if c.read > 0 {
		why := ", because the study now reads it differently"
		if c.again {
			why = ""
		}
		c.s.note("read the output of %s again%s", number.Count(c.read, "run"), why)
	}
	for _, why := range slices.Sorted(maps.Keys(c.kept)) {
		c.s.warn("could not read the output of %s again, keeping the earlier figures: %s", number.Count(c.kept[why], "run"), why)
	}
	if n, err := c.db.Recompute(ctx); err != nil {
		return err
	} else if n > 0 {
		c.s.note("recomputed %s stored by an earlier version", number.Count(n, "result"))
	}
	if plan != nil {
		if err := c.db.SetPlanned(ctx, c.its.Name, launcher.Planned(launcher.NotBegun(plan, folder, nil))); err != nil {
			return err
		}
	}
	return c.db.Arrange(ctx)
}

// String is how many runs there are by status, and what was read of them:
// "12 done (2 updated, 52 events)".
func (c *collection) String() string {
	var statuses []string
	for _, status := range metrics.Statuses {
		if n := c.by[status]; n > 0 {
			statuses = append(statuses, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(statuses) == 0 {
		statuses = []string{"no runs yet"}
	}
	read := fmt.Sprintf("%d updated, %s", c.changed, number.Count(c.events, "event"))
	if c.bad > 0 {
		read += ", " + number.Count(c.bad, "bad line")
	}
	return strings.Join(statuses, ", ") + " (" + read + ")"
}

func (c *collection) run(ctx context.Context, state launcher.State) (store.Report, error) {
	files, err := state.Run.EventFiles()
	if err != nil {
		return store.Report{}, &store.RunError{Run: state.Record.ID, Err: err}
	}
	fact := state.Fact()
	fact.Study, fact.StudyID = c.its.Name, c.its.ID
	asked, planned := c.asked[fact.Point]
	if !planned {
		return c.db.Ingest(ctx, fact, files)
	}
	ask(fact.Parameters, asked.asked)
	if !state.Status.Good() {
		return c.db.Ingest(ctx, fact, files)
	}
	anew, err := state.ReadAnew(asked.reading, c.again)
	if err != nil {
		return store.Report{}, &store.RunError{Run: fact.ID, Err: err}
	}
	if anew == nil {
		return c.db.Ingest(ctx, fact, files)
	}
	return c.readAnew(ctx, fact, files, anew)
}

// readAnew stores a run with the events that its output has when it is read as
// the study now asks. The run's own event file is left alone.
func (c *collection) readAnew(ctx context.Context, fact metrics.Run, files []metrics.EventFile, anew *launcher.Reread) (store.Report, error) {
	from, err := c.db.ReadFrom(ctx, fact.ID, anew.Restart)
	if err != nil {
		return store.Report{}, err
	}
	var events []metrics.Event
	if from != anew.From() || c.again {
		if events, err = anew.Events(); err != nil {
			c.kept[err.Error()]++
			if from != "" { // as it was last read, whichever way
				files = withoutFirst(files, anew.Restart)
			}
			return c.db.Ingest(ctx, fact, files)
		}
	}
	parameters := anew.Parameters()
	ask(parameters, questionsOf(fact.Parameters))
	if exclusive, ok := fact.Parameters[measure.ExclusiveKey]; ok {
		parameters[measure.ExclusiveKey] = exclusive
	}
	fact.Parameters = parameters
	report, err := c.db.Ingest(ctx, fact, withoutFirst(files, anew.Restart))
	if err != nil || events == nil {
		return report, err
	}
	c.read++
	read, err := c.db.Reread(ctx, fact, anew.Restart, anew.From(), events)
	report.Changed, report.Events = true, report.Events+read.Events
	return report, err
}

// withoutFirst leaves the event file of an incarnation's first rank out.
func withoutFirst(files []metrics.EventFile, restart int) []metrics.EventFile {
	return slices.DeleteFunc(slices.Clone(files), func(f metrics.EventFile) bool {
		return f.Writer == "rank" && f.Rank == 0 && f.Restart == restart
	})
}
