package slurm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// For any content of a run folder's record, the attempt is listed once under its folder's name, and is either
// unreadable or has only values that can be stored.
func FuzzRecords(f *testing.F) {
	plan := launchtest.SmallPlan(f, "[2]")
	point := plan.Points[0].Point
	name := point.ID + "-r1-a1"
	whole := map[string]any{
		"point.json":   point,
		"attempt.json": launcher.Record{ID: "s/" + name, Backend: "local", CreatedUnix: 1.7e9},
		"job.json":     launcher.Submission{JobID: "7", SubmittedUnix: 1.7e9},
		"refused.json": launcher.Limited{Words: "QOSMaxSubmitJobPerUserLimit", Unix: 1.7e9},
		"cancel.json":  launcher.Cancellation{Unix: 1.7e9, Host: "h"},
		"state.json":   launcher.Verdict{Status: metrics.Done, Job: &metrics.Job{ID: "7", StartUnix: 1.7e9}},
		"exit-0.json":  launcher.Exit{ExitCode: 1, StartUnix: 1.7e9, EndUnix: 1.7e9},
	}
	texts := map[string][]byte{}
	for file, record := range whole {
		text, err := json.Marshal(record)
		if err != nil {
			f.Fatal(err)
		}
		texts[file] = text
		f.Add(file, text)
		f.Add(file, []byte(strings.ReplaceAll(string(text), "1700000000", "1e300")))
		f.Add(file, []byte(strings.ReplaceAll(string(text), ":1", ":-9223372036854775808")))
		f.Add(file, []byte(strings.Repeat("[", 20000)))
		f.Add(file, []byte("null"))
	}
	f.Fuzz(func(t *testing.T, record string, content []byte) {
		if texts[record] == nil {
			return
		}
		folder := rundir.Study(filepath.Join(t.TempDir(), "s"))
		at := filepath.Join(string(folder), name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for other, text := range texts {
			if other == record {
				text = content
			}
			if err := os.WriteFile(filepath.Join(at, other), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list, err := launcher.Attempts(folder)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d attempts, %v", len(list), err)
		}
		a := list[0]
		if a.Run.Name() != name || a.Point.ID != point.ID || a.Point.Repeat != 1 || a.Number != 1 {
			t.Errorf("%s-r%d-a%d (%s)", a.Point.ID, a.Point.Repeat, a.Number, a.Run.Name())
		}
		if a.Unreadable != nil {
			if text := a.Unreadable.Error(); !strings.Contains(text, record) {
				t.Errorf("the error does not name %s: %.300s", record, text)
			}
			return
		}
		if _, err := launcher.ReadTraces(a.Run); err != nil && !strings.Contains(err.Error(), record) {
			t.Errorf("the error does not name %s: %.300v", record, err)
		}
		state := launcher.State{Attempt: a, Status: metrics.Done}
		if a.Verdict != nil {
			state.Status, state.Job = a.Verdict.Status, a.Verdict.Job
		}
		run := state.Fact()
		if _, err := json.Marshal(run); err != nil {
			t.Error(err)
		}
		times := []float64{run.CreatedUnix}
		if a.Cancelled != nil {
			times = append(times, a.Cancelled.Unix)
		}
		if a.Submission != nil {
			times = append(times, a.Submission.SubmittedUnix)
		}
		if j := run.Job; j != nil {
			times = append(times, j.SubmitUnix, j.StartUnix, j.EndUnix)
		}
		for _, unix := range times {
			if err := metrics.CheckUnix(unix); err != nil {
				t.Errorf("%s: %v", record, err)
			}
		}
		if run.Workers < 1 || run.Workers > metrics.MaxRanks || !run.Status.Terminal() {
			t.Errorf("%+v", run)
		}
	})
}
