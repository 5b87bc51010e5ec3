package query

import (
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics/table"
)

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
