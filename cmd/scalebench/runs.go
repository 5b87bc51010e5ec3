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

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
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
		Description: "Lists the runs that collect has read. Keys that differ among the runs of a study\n" +
			"have a column each; if all runs are of one study, they are in the order of those\n" +
			"keys. CSV and JSON have more columns, in base units: samples/s, seconds, fractions.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "study", Usage: "only of `STUDY`, a study's name or file", Destination: &o.study},
			&cli.StringFlag{Name: "framework", Usage: "only with framework `NAME`", Destination: &o.framework},
			&cli.IntFlag{Name: "workers", DefaultText: "any", Usage: "only with `N` workers", Destination: &o.workers},
			&cli.StringFlag{Name: "since", Usage: "only recorded at `TIME` or later: 2026-11-21 (its first moment, local time), 2026-11-21T15:04:05Z, or how long ago: 12h, 7d", Destination: &o.since},
			&cli.StringSliceFlag{Name: "state", Usage: "only in `STATE`; may be repeated", Destination: &o.states},
			whereFlag(&o.where),
			&cli.StringSliceFlag{Name: "metric", Usage: "show the `MEASURE`, such as step_p95 or one that runs report; may be repeated", Destination: &o.metrics},
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
	db, filter, err := s.openFor(&o)
	if err != nil {
		return err
	}
	defer db.Close()
	if filter.Limit > 0 {
		filter.Limit++ // to see whether there are more
	}
	list := append([]measure.Measure{}, tables.RunMeasures...)
	for _, name := range o.metrics.Value() {
		m, err := findMeasure(ctx, db, name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(known measure.Measure) bool { return known.Name == m.Name }) {
			list = append(list, m)
		}
	}
	people := s.format == table.FormatTable || s.format == table.FormatMarkdown
	timed := people && len(list) == len(tables.RunMeasures)
	if timed {
		m, err := measure.Find(measure.RunSeconds)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	rows, err := db.Runs(ctx, filter, list...)
	if err != nil {
		return workspace.StoreError(err)
	}
	has := func(i int) bool {
		return slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Values[i] != nil })
	}
	if timed && (has(0) || !has(len(list)-1)) {
		list = list[:len(tables.RunMeasures)]
		for i := range rows {
			rows[i].Values = rows[i].Values[:len(list)]
		}
	}
	more := o.limit > 0 && len(rows) > o.limit
	if more {
		rows = rows[:o.limit]
	}
	if people {
		if err := db.Describe(ctx, rows); err != nil {
			return workspace.StoreError(err)
		}
		rows = tables.InOrder(rows)
	}
	if err := s.print(tables.Runs(rows, list)); err != nil {
		return err
	}
	switch {
	case more:
		s.note("These are the newest %d; --limit 0 shows all.", o.limit)
	case len(rows) == 0:
		s.note("No run in %s matches.", db.Path())
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
		f.Study, err = workspace.StudyName(o.study)
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
	return time.Time{}, errors.New("not a time; write 2026-11-21, 2026-11-21T15:04:05Z, or how long ago: 12h, 7d")
}
