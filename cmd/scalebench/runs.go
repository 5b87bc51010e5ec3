package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// shownRuns is how many runs a person is shown unless they ask for more.
const shownRuns = 50

type runsOptions struct {
	study, framework string
	workers          int
	since, where     string
	metrics          cli.StringSlice
	states           cli.StringSlice
	limit            int // 0: all
}

func runsCommand(s *session) *cli.Command {
	var o runsOptions
	return &cli.Command{
		Name:  "runs",
		Usage: "list runs, newest first",
		Description: "The list is of what collect has read in. In CSV and JSON it has more columns, in\n" +
			"base units: samples/s, seconds, fractions.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "study", Usage: "only of `STUDY`, a study's name or file", Destination: &o.study},
			&cli.StringFlag{Name: "framework", Usage: "only with framework `NAME`", Destination: &o.framework},
			&cli.IntFlag{Name: "workers", Usage: "only with `N` workers", Destination: &o.workers},
			&cli.StringFlag{Name: "since", Usage: "only recorded at `TIME` or later: 2026-11-21 (its first moment, local time), 2026-11-21T15:04:05Z, or how long ago: 12h, 7d", Destination: &o.since},
			&cli.StringSliceFlag{Name: "state", Usage: "only in `STATE`; may be given again for another one", Destination: &o.states},
			&cli.StringFlag{Name: "where", Usage: "only where SQL `CONDITION` holds, over the columns of view runs and parameters: \"workload.batch > 64 AND throughput > 1e3\"", Destination: &o.where},
			&cli.StringSliceFlag{Name: "metric", Usage: "with the `MEASURE`, such as step_p95 or one that runs report; may be given again", Destination: &o.metrics},
			&cli.IntFlag{Name: "limit", Usage: "the newest `N`; 0 for all", Destination: &o.limit, DefaultText: fmt.Sprintf("%d for people, all in CSV and JSON", shownRuns)},
		},
		Action: func(c *cli.Context) error {
			if !c.IsSet("limit") && (s.format == table.FormatTable || s.format == table.FormatMarkdown) {
				o.limit = shownRuns
			}
			return runRuns(c.Context, s, o)
		},
	}
}

func runRuns(ctx context.Context, s *session, o runsOptions) error {
	filter, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	db, err := s.openStore()
	if err != nil {
		return err
	}
	defer db.Close()
	if filter.Limit > 0 {
		filter.Limit++ // to see whether there are more
	}
	list := append([]measure.Measure{}, runMeasures...)
	for _, name := range o.metrics.Value() {
		m, err := findMeasure(ctx, db, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(known measure.Measure) bool { return known.Name == m.Name }) {
			list = append(list, m)
		}
	}
	rows, err := db.Runs(ctx, filter, list...)
	if err != nil {
		return storeError(err)
	}
	more := o.limit > 0 && len(rows) > o.limit
	if more {
		rows = rows[:o.limit]
	}
	if err := s.print(runsTable(rows, list)); err != nil {
		return err
	}
	switch {
	case more:
		s.note("These are the newest %d; --limit 0 shows all.", o.limit)
	case len(rows) == 0:
		s.note("No run in %s fits.", db.Path())
	}
	return nil
}

// filter is what the options ask of the database, at the time now.
func (o runsOptions) filter(now time.Time) (store.Filter, error) {
	f := store.Filter{Framework: o.framework, Workers: o.workers, Where: o.where, Limit: o.limit}
	if o.workers < 0 || o.limit < 0 {
		return f, usagef("--workers and --limit are counts; want 1 or more, or 0 for any")
	}
	for _, name := range o.states.Value() {
		status := metrics.Status(name)
		if !slices.Contains(metrics.Statuses, status) {
			return f, usagef("--state %q is not known; valid: %s", name, strings.Join(statusNames(), ", "))
		}
		f.Statuses = append(f.Statuses, status)
	}
	var err error
	if f.Since, err = parseSince(o.since, now); err != nil {
		return f, &usageError{err: fmt.Errorf("--since %q: %w", o.since, err)}
	}
	if o.study != "" {
		f.Study, err = studyName(o.study)
	}
	return f, err
}

func statusNames() []string {
	names := make([]string, len(metrics.Statuses))
	for i, s := range metrics.Statuses {
		names[i] = string(s)
	}
	return names
}

var days = regexp.MustCompile(`^(\d{1,5})d$`)

// parseSince reads a point in time: a date (its start, local time), a date with
// time (RFC 3339), or how long before now. "" is the zero time.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if m := days.FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return time.Time{}, err
		}
		return now.AddDate(0, 0, -n), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("no point in time; write 2026-11-21, 2026-11-21T15:04:05Z, or how long ago: 12h, 7d")
}

// runMeasures are those that a list of runs has: the headline of a training, and
// what a list has room for.
var runMeasures = declared(measure.Throughput, measure.EndToEnd, measure.StepP50, measure.TrainSeconds, measure.FinalAccuracy)

// declared are measures by their names.
func declared(names ...string) []measure.Measure {
	list := make([]measure.Measure, len(names))
	for i, name := range names {
		var err error
		if list[i], err = measure.Find(name); err != nil {
			panic(err) // a constant of package measure that is not declared
		}
	}
	return list
}

// runsTable has the runs with their values of the measures, the first of which
// are runMeasures.
func runsTable(rows []store.RunRow, of []measure.Measure) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Key: "run"},
		{Key: "study", Data: true},
		{Key: "series", Data: true},
		{Key: "point", Data: true},
		{Key: "repeat", Data: true},
		{Key: "attempt", Data: true},
		{Key: "framework", Optional: true},
		{Key: "workers"},
		{Key: "nodes", Optional: true},
		{Key: "status"},
		{Key: "detail", Data: true},
		{Key: "job", Optional: true},
		{Key: "job_state", Data: true},
		{Key: "created", Optional: true},
		{Key: "dir", Data: true},
		{Key: "steps", Data: true},
		{Key: "epochs", Optional: true},
		{Key: "throughput", Unit: "samples/s"},
		{Key: "throughput_why", Data: true},
		{Key: "end_to_end", Data: true},
		{Key: "step_p50", Head: "step", Show: number.Seconds, Optional: true},
		{Key: "train_seconds", Head: "training", Show: number.Seconds, Optional: true},
		{Key: "final_accuracy", Head: "accuracy", Show: number.Percent},
		{Key: "warnings", Data: true},
	}}
	for _, m := range of[len(runMeasures):] {
		t.Columns = append(t.Columns, table.ColumnOf(m))
	}
	for _, r := range rows {
		warnings := r.Warnings
		if warnings == nil {
			warnings = []string{}
		}
		if r.Steps != nil && *r.Steps == 0 {
			r.Steps = nil // nobody counted
			if r.Epochs != nil && *r.Epochs == 0 {
				r.Epochs = nil
			}
		}
		cells := []any{r.Run, r.Study, r.Series, r.Point, r.Repeat, r.Attempt, r.Framework, r.Workers, table.NonZero(r.Nodes), string(r.Status), table.NonZero(r.Detail),
			table.NonZero(r.Job), table.NonZero(r.JobState), r.Created, r.Dir, r.Steps, r.Epochs, r.Values[0], table.NonZero(r.ThroughputWhy), r.Values[1],
			r.Values[2], r.Values[3], r.Values[4], warnings}
		for _, v := range r.Values[len(runMeasures):] {
			cells = append(cells, v)
		}
		t.Add(cells...)
	}
	return t
}
