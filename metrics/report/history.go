package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// A Trace is the history of a measure at one point.
type Trace struct {
	Point    string
	Segments []compare.Segment
	Alarm    *compare.Alarm // alarm if its newest runs changed; nil otherwise
}

// changesOf returns the commit of the run before a segment, nil if unknown, and what changed since.
func changesOf(s compare.Segment, commit string, marks map[int64]store.RunMark) (before any, changed []string) {
	changed = []string{}
	for _, d := range s.Changed {
		changed = append(changed, d.String())
	}
	if s.Before == nil {
		return nil, changed
	}
	was := marks[s.Before.Run].GitCommit
	if was != commit && was != "" && commit != "" {
		changed = append(changed, fmt.Sprintf("commit %s → %s", short(was), short(commit)))
	}
	if len(changed) == 0 {
		changed = append(changed, "no recorded cause")
	}
	return table.NonZero(was), changed
}

// History returns the table of the history of a measure: a row for each period without a change,
// and a note for each alarm. marks describes the first runs of periods and alarms, and the run
// before each period.
func History(traces []Trace, marks map[int64]store.RunMark, m measure.Measure) *table.Table {
	median := table.ColumnOf(m)
	low, high := median, median
	median.Key, low.Key, low.Head, high.Key, high.Head = "median", "p25", "", "p75", ""
	low.Unit, high.Unit = "", ""
	t := &table.Table{Columns: []table.Column{{Key: "point", ID: true}, {Key: "workers"}, {Key: "since"}, {Key: "until", Data: true}, {Key: "first_run", Optional: true}, {Key: "runs"},
		median, low, high, {Key: "ratio", Head: "change", Show: signedChange}, {Key: "p"},
		{Key: "kind", Head: "begins with", Data: true}, {Key: "changed", Head: "what changed"},
		{Key: "metric", Data: true}, {Key: "framework", Data: true}, {Key: "git_commit", Data: true}, {Key: "git_commit_before", Data: true},
		{Key: "alarm_since", Data: true}, {Key: "alarm_runs", Data: true}, {Key: "alarm_ratio", Data: true}}}
	workers := func(p Trace) int { return marks[p.Segments[0].Samples[0].Run].Workers }
	slices.SortStableFunc(traces, func(a, b Trace) int { return workers(a) - workers(b) })
	for _, trace := range traces {
		for _, s := range trace.Segments {
			first := marks[s.Samples[0].Run]
			last := s.Samples[len(s.Samples)-1]
			before, changed := changesOf(s, first.GitCommit, marks)
			var since, newest, ratio any
			if a := trace.Alarm; a != nil && slices.ContainsFunc(s.Samples, func(x compare.Sample) bool { return x.Run == a.Since.Run }) {
				since, newest = marks[a.Since.Run].Run, a.Runs
				if !math.IsNaN(a.Ratio) {
					ratio = a.Ratio
				}
			}
			t.Add(trace.Point, first.Workers, unixTime(s.Samples[0].Unix), unixTime(last.Unix), first.Run, len(s.Samples),
				s.Median, s.Low, s.High, s.Ratio, s.P, s.Kind, changed, m.Name, first.Framework, table.NonZero(first.GitCommit), before, since, newest, ratio)
		}
	}
	if len(traces) > 0 {
		t.Notes = []string{"Medians over runs, with their quartiles. Change: against the stretch of the run before; p: by Welch's t-test. –: first run of a point or, for p, fewer than 4 runs."}
	}
	for _, trace := range traces {
		if trace.Alarm != nil {
			t.Notes = append(t.Notes, AlarmText(trace, marks, m))
		}
	}
	return t
}

// AlarmText returns a sentence on how the newest runs of a point changed.
func AlarmText(trace Trace, marks map[int64]store.RunMark, m measure.Measure) string {
	a := trace.Alarm
	how := "worse"
	if m.Better == measure.Neither {
		how = "different"
	}
	text := fmt.Sprintf("Alarm: %s: the newest %d runs, from %s on, are %s than the %d before", trace.Point, a.Runs, marks[a.Since.Run].Run, how, a.Before)
	if how == "different" {
		text = strings.Replace(text, "different than", "different from", 1)
	}
	if math.IsNaN(a.Ratio) {
		return text + "."
	}
	return fmt.Sprintf("%s: %s %s (medians; the means are %s standard errors apart).", text, m.Title, signedChange(a.Ratio), number.Significant(min(a.Errors, 99)))
}

// signedChange formats a ratio as a change in percent: −10.0 %.
func signedChange(ratio float64) string {
	change := (ratio - 1) * 100
	sign := "+"
	if change < 0 {
		sign = "−"
	}
	return sign + number.Significant(math.Abs(change)) + " %"
}

// short abbreviates the hash of a commit and keeps the suffix "-dirty".
func short(commit string) string {
	hash, rest, dirty := strings.Cut(commit, "-")
	hash = hash[:min(len(hash), 10)]
	if dirty {
		return hash + "-" + rest
	}
	return hash
}
