package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/history"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

type historyOptions struct {
	selection
	metric  string
	changed bool
}

func historyCommand(s *session) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name:      "history",
		Usage:     "print a figure over time, and where it changed",
		ArgsUsage: "[STUDY]",
		Description: "A line for each stretch of a point's good runs in which nothing changed: the first\n" +
			"run of it, the median and quartiles of its runs, and what changed before it.\n" +
			"Change points are looked for among runs that ran on the same alone (p < 0.001).\n" +
			"A point is the same in all studies. In CSV and JSON: base units and fractions.",
		Flags: append(o.flags(),
			&cli.StringFlag{Name: "metric", Destination: &o.metric, Value: measure.Throughput, Usage: "the `MEASURE`: " + strings.Join(measure.Names(), ", ") + ", the time to a target, to_0.75, or one that runs report"},
			&cli.BoolFlag{Name: "changes", Destination: &o.changed, DisableDefaultText: true, Usage: "only points in which something changed"}),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runHistory(c.Context, s, o)
		},
	}
}

func runHistory(ctx context.Context, s *session, o historyOptions) error {
	filter, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	db, err := s.openStore()
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := findMeasure(ctx, db, o.metric)
	if err != nil {
		return err
	}
	points, prints, err := db.History(ctx, filter, m)
	if err != nil {
		return storeError(err)
	}
	runs := 0
	var traces []pointTrace
	var ids []int64
	for _, p := range points {
		runs += len(p.Samples)
		segments := history.Trace(p.Samples, prints)
		if o.changed && len(segments) < 2 {
			continue
		}
		traces = append(traces, pointTrace{p.Point, segments})
		for _, segment := range segments {
			ids = append(ids, segment.Samples[0].Run)
			if segment.Before != nil {
				ids = append(ids, segment.Before.Run)
			}
		}
	}
	marks, err := db.Marks(ctx, ids)
	if err != nil {
		return storeError(err)
	}
	if err := s.print(historyTable(traces, marks, m)); err != nil {
		return err
	}
	if runs == 0 {
		s.note("No good run with this figure in %s fits.", db.Path())
	} else {
		s.note("%s of %s.", number.Count(runs, "run"), number.Count(len(points), "point"))
	}
	return nil
}

// pointTrace is the segments of one point.
type pointTrace struct {
	point    string
	segments []history.Segment
}

func historyTable(traces []pointTrace, marks map[int64]store.RunMark, m measure.Measure) *table.Table {
	median := table.ColumnOf(m)
	low, high := median, median
	median.Key, low.Key, low.Head, high.Key, high.Head = "median", "p25", "", "p75", ""
	low.Unit, high.Unit = "", ""
	t := &table.Table{Columns: []table.Column{{Key: "point"}, {Key: "workers"}, {Key: "since"}, {Key: "until", Data: true}, {Key: "first_run"}, {Key: "runs"},
		median, low, high, {Key: "ratio", Head: "change", Show: signedChange}, {Key: "p"},
		{Key: "kind", Head: "begins with", Data: true}, {Key: "changed", Head: "what changed"},
		{Key: "metric", Data: true}, {Key: "framework", Data: true}, {Key: "git_commit", Data: true}, {Key: "git_commit_before", Data: true}}}
	workers := func(p pointTrace) int { return marks[p.segments[0].Samples[0].Run].Workers }
	slices.SortStableFunc(traces, func(a, b pointTrace) int { return workers(a) - workers(b) })
	for _, trace := range traces {
		for _, s := range trace.segments {
			first := marks[s.Samples[0].Run]
			last := s.Samples[len(s.Samples)-1]
			var before any
			changed := []string{}
			for _, d := range s.Changed {
				changed = append(changed, d.String())
			}
			if s.Before != nil {
				commit := marks[s.Before.Run].GitCommit
				before = table.NonZero(commit)
				if commit != first.GitCommit && commit != "" && first.GitCommit != "" {
					changed = append(changed, fmt.Sprintf("commit %s → %s", short(commit), short(first.GitCommit)))
				}
				if len(changed) == 0 {
					changed = append(changed, "nothing that is recorded")
				}
			}
			t.Add(trace.point, first.Workers, unixTime(s.Samples[0].Unix), unixTime(last.Unix), first.Run, len(s.Samples),
				s.Median, s.Low, s.High, s.Ratio, s.P, s.Kind, changed, m.Name, first.Framework, table.NonZero(first.GitCommit), before)
		}
	}
	if len(traces) > 0 {
		t.Notes = []string{"Medians over runs, with their quartiles; change against the stretch that the run before is in, p by Welch's t-test. – at the first run of a point, and for p with fewer than 4 runs."}
	}
	return t
}

// signedChange writes a ratio as what it adds or takes: −10.0 %.
func signedChange(ratio float64) string {
	change := (ratio - 1) * 100
	sign := "+"
	if change < 0 {
		sign = "−"
	}
	return sign + number.Significant(math.Abs(change)) + " %"
}

// short is a commit as people write it, with "-dirty" kept.
func short(commit string) string {
	hash, rest, dirty := strings.Cut(commit, "-")
	hash = hash[:min(len(hash), 10)]
	if dirty {
		return hash + "-" + rest
	}
	return hash
}
