package query

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/table"
)

// Looks returns a table of the interim analyses ("looks") of a study that is
// measured until its question is decided, one row per analysis and series.
func Looks(looks []metrics.Look) *table.Table {
	likely := func(p float64) string { return advice.Likely(p) }
	t := &table.Table{Columns: []table.Column{
		{Key: "series"},
		{Key: "look"},
		{Key: "at", Data: true},
		{Key: "runs"},
		{Key: "workers", Head: "answer"},
		{Key: "probability", Head: "likely", Show: likely, Right: true},
		{Key: "rival", Head: "compared with"},
		{Key: "ratio", Head: "times as fast", Show: number.Significant, Right: true},
		{Key: "low", Head: "at least", Show: number.Significant, Right: true},
		{Key: "high", Head: "at most", Show: number.Significant, Right: true},
		{Key: "confidence", Data: true},
		{Key: "decided"},
	}}
	for _, l := range looks {
		var rival any
		if l.Rival > 0 {
			rival = l.Rival
		}
		t.Add(l.Series, l.Number, metrics.Time(l.Unix), l.Runs, l.Workers, l.Probability, rival, l.Ratio, l.Low, l.High, l.Confidence, l.Decided)
	}
	if len(looks) == 0 {
		return t
	}
	of := "times as fast: the larger of the two counts over the smaller, by the time to the target or the throughput, whichever decides."
	if slices.ContainsFunc(looks, metrics.Look.Contrast) {
		of = "ratio: the first of the two settings over the second."
		for i, c := range t.Columns {
			switch c.Key {
			case "ratio":
				t.Columns[i].Head = ""
			case "workers", "probability", "rival":
				t.Columns[i].Data = true
			}
		}
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%s An interval has %s at its look, and all looks together 95 %%.", of, number.ExactPercent(looks[len(looks)-1].Confidence)))
	return t
}

// Cancelled lists the outcome of cancelling each run.
func Cancelled(endings []launcher.Ending) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "run"}, {Key: "status"}, {Key: "job"}, {Key: "asked", Data: true}, {Key: "what", Head: "what was done"}}}
	for _, e := range endings {
		var job any
		if e.Job != nil {
			job = table.NonZero(e.Job.ID)
		}
		t.Add(e.Record.ID, string(e.Status), job, e.Asked, e.What)
	}
	return t
}

// Submitted lists the attempts submitted to the scheduler.
func Submitted(attempts []*launcher.Attempt) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "run"}, {Key: "workers"}, {Key: "nodes", Optional: true}, {Key: "partition", Optional: true}, {Key: "job"}, {Key: "script", Data: true}}}
	for _, a := range attempts {
		t.Add(a.Record.ID, a.Point.Workers, a.Point.Nodes, a.Record.Partition, a.Submission.JobID, a.Script())
	}
	return t
}
