package query

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// A command that has not reported a step is not at step 0: it may never report one.
func TestStatusSteps(t *testing.T) {
	for _, tt := range []struct {
		command study.CommandLine
		step    int
		want    any
	}{{nil, 0, 0}, {study.CommandLine{"sleep", "1"}, 0, nil}, {study.CommandLine{"train"}, 7, 7}} {
		table := Status([]launcher.State{{
			Attempt: &launcher.Attempt{Run: rundir.OpenStudy("/runs", "s").Run("w1", 1, 1), Number: 1,
				Point: study.Point{ID: "w1", Study: "s", Workload: study.Workload{Kind: "train"}, Command: study.Command{Run: tt.command}}},
			Status: metrics.Running, Traces: launcher.Traces{Begun: true, Step: tt.step},
		}}, nil)
		for i, c := range table.Columns {
			if c.Key == "step" && table.Rows[0][i] != tt.want {
				t.Errorf("%v at step %d: %v, want %v", tt.command, tt.step, table.Rows[0][i], tt.want)
			}
		}
	}
}

// Slurm keeps a cancelled job's last reason for waiting. It does not explain why the run is missing, and no
// reason is shown twice.
func TestStatusReason(t *testing.T) {
	for _, tt := range []struct {
		status        metrics.Status
		detail        string
		reason, shown any
	}{
		{metrics.Pending, "Priority", "Priority", nil},
		{metrics.Pending, "JobHeldUser; `scontrol release 7` lets it start", "Priority", "JobHeldUser; `scontrol release 7` lets it start"},
		{metrics.Cancelled, "by scalebench cancel", nil, "by scalebench cancel"},
		{metrics.Failed, "KeyError: 'labels' (train.py:31)", "Priority", "KeyError: 'labels' (train.py:31)"},
	} {
		table := Status([]launcher.State{{
			Attempt: &launcher.Attempt{Run: rundir.OpenStudy("/runs", "s").Run("w1", 1, 1), Number: 1, Point: study.Point{ID: "w1", Study: "s"}},
			Status:  tt.status, Detail: tt.detail, Job: &metrics.Job{ID: "7", Reason: "Priority"},
		}}, nil)
		at := map[string]any{}
		for i, c := range table.Columns {
			at[c.Key] = table.Rows[0][i]
		}
		if at["reason"] != tt.reason || at["detail"] != tt.shown {
			t.Errorf("%s, %q: reason %v, detail %v; want %v, %v", tt.status, tt.detail, at["reason"], at["detail"], tt.reason, tt.shown)
		}
	}
}

// Runs that cannot be read for the same reason get one row; its name covers them.
func TestStatusFoldsUnreadable(t *testing.T) {
	folder := rundir.OpenStudy("/runs", "s")
	var states []launcher.State
	for i, why := range []string{"point.json cannot be read: EOF", "point.json cannot be read: EOF", "point.json cannot be read: EOF", "attempt.json cannot be read: EOF"} {
		run := folder.Run("w1", i+1, 1)
		states = append(states, launcher.State{
			Attempt: &launcher.Attempt{Run: run, Number: 1, Point: study.Point{Study: "s"}, Record: launcher.Record{ID: run.ID()}},
			Status:  metrics.Unknown, Detail: run.Path() + "/" + why, Err: errors.New(why),
		})
	}
	table := Folded(states, nil)
	var got []string
	for _, row := range table.Rows {
		got = append(got, fmt.Sprint(row[0], " ", row[1], " ", row[len(row)-2]))
	}
	want := []string{"s/w1-* 3 point.json cannot be read: EOF", "s/w1-r4-a1 1 attempt.json cannot be read: EOF"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A failed attempt that a later attempt of the run replaced is only counted; the last attempt is listed, with
// a result or without.
func TestStatusFoldsSuperseded(t *testing.T) {
	var states []launcher.State
	for _, a := range []struct {
		repeat, number int
		status         metrics.Status
	}{{1, 1, metrics.Failed}, {1, 2, metrics.Done}, {2, 1, metrics.TimedOut}, {2, 2, metrics.Failed}, {2, 3, metrics.Done}, {3, 1, metrics.Failed}, {3, 2, metrics.Running}, {4, 1, metrics.Cancelled}, {4, 2, metrics.Failed}} {
		states = append(states, launcher.State{Status: a.status, Attempt: &launcher.Attempt{Run: rundir.OpenStudy("/runs", "s").Run("w1", a.repeat, a.number),
			Number: a.number, Point: study.Point{ID: "w1", Study: "s", Framework: "native", Repeat: a.repeat}}})
	}
	table := Folded(states, nil)
	if len(table.Rows) != 4 || len(table.Notes) != 1 || table.Notes[0] != "5 earlier attempts of these runs did not succeed; -v lists them." {
		t.Errorf("%d rows, notes %q; want r1-a2, r2-a3, r3-a2 and r4-a2, and a note of 5", len(table.Rows), table.Notes)
	}
	if all := Status(states, nil); len(all.Rows) != len(states) || len(all.Notes) != 0 {
		t.Errorf("with -v: %d rows, notes %q", len(all.Rows), all.Notes)
	}
}
