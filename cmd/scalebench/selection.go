package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// selection is the runs that a command is about: those of a study, or all of
// the history, as far as they fit.
type selection struct {
	study                       string
	framework                   string
	workers                     int
	since, until, commit, files string
	where                       string
}

func (o *selection) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "framework", Usage: "only with framework `NAME`", Destination: &o.framework},
		&cli.IntFlag{Name: "workers", DefaultText: "any", Usage: "only with `N` workers", Destination: &o.workers},
		&cli.StringFlag{Name: "since", Usage: "only recorded at `TIME` or later: 2026-11-21 (its first moment, local time), 2026-11-21T15:04:05Z, or how long ago: 12h, 7d", Destination: &o.since},
		&cli.StringFlag{Name: "until", Usage: "only recorded before `TIME`, in the same form", Destination: &o.until},
		&cli.StringFlag{Name: "commit", Usage: "only with the study's folder at git `COMMIT`, or its first digits", Destination: &o.commit},
		&cli.StringFlag{Name: "files", Usage: "only runs that used your own file whose SHA-256 begins with `DIGITS`", Destination: &o.files},
		whereFlag(&o.where),
	}
}

// filter is what the selection asks of the database, at the time now.
func (o *selection) filter(now time.Time) (store.Filter, error) {
	f, err := runsOptions{study: o.study, framework: o.framework, workers: o.workers, since: o.since, where: o.where}.filter(now)
	if err != nil {
		return f, err
	}
	f.Commit, f.Files = o.commit, o.files
	if f.Until, err = parseSince(o.until, now); err != nil {
		return f, &usageError{err: fmt.Errorf("--until %q: %w", o.until, err)}
	}
	if o.since != "" && o.until != "" && !f.Since.Before(f.Until) {
		return f, usagef("--since %s is not before --until %s: no run can match", f.Since.Format(time.RFC3339), f.Until.Format(time.RFC3339))
	}
	return f, nil
}

// openFor opens the database for the runs that options choose. Options that
// cannot be are refused before it is looked at.
func (s *session) openFor(o interface {
	filter(now time.Time) (store.Filter, error)
}) (*store.Store, store.Filter, error) {
	filter, err := o.filter(time.Now())
	if err != nil {
		return nil, filter, err
	}
	db, err := s.openStore()
	return db, filter, err
}

// metricFlag names the measure that a command follows.
func metricFlag(name *string) cli.Flag {
	return &cli.StringFlag{Name: "metric", Destination: name, Value: measure.Throughput, Usage: "the `MEASURE`, such as throughput, step_p95, the time to a target (to_0.75, to_loss_2) or one that runs report (an unknown name prints the list)"}
}

// observations reads the good runs of the selection. There is one at least.
func (s *session) observations(ctx context.Context, o selection) ([]scaling.Observation, []string, error) {
	db, filter, err := s.openFor(&o)
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	list, warnings, err := db.Select(ctx, filter)
	if err != nil {
		return nil, nil, s.workspace().Missing(ctx, filter.Study, err)
	}
	if len(list) == 0 {
		s.doubtAll(filter.Study, warnings...)
		return nil, nil, &usageError{err: errors.New("no good run matches"), hint: "`" + appName + " runs` lists all runs."}
	}
	return list, warnings, nil
}
