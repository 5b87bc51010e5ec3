package query

import (
	"fmt"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// attempt returns an attempt at a point; started and took are in seconds, or 0.
func attempt(point string, repeat, number int, status metrics.Status, started, took float64) launcher.State {
	s := launcher.State{Status: status, Traces: launcher.Traces{StartUnix: started}, Attempt: &launcher.Attempt{
		Run: rundir.OpenStudy("/runs", "s").Run(point, repeat, number), Number: number,
		Point: study.Point{ID: point, Study: "s", Repeat: repeat, Framework: "native"}}}
	s.Record.ID = fmt.Sprintf("s/%s-r%d-a%d", point, repeat, number)
	if took > 0 {
		s.Traces.Exit = &launcher.Exit{StartUnix: started, EndUnix: started + took}
	}
	return s
}

func unbegun(point string, repeats ...int) (list []launcher.Unbegun) {
	for _, r := range repeats {
		list = append(list, launcher.Unbegun{First: rundir.OpenStudy("/runs", "s").Run(point, r, 1), Point: study.Point{ID: point, Study: "s", Repeat: r, Framework: "native"}})
	}
	return list
}

// Runs of w1 took 100 s, one of w2 60 s.
func TestProgress(t *testing.T) {
	done := []launcher.State{
		attempt("w1", 1, 1, metrics.Done, 1000, 100), attempt("w1", 2, 1, metrics.Done, 1000, 90),
		attempt("w1", 3, 1, metrics.Done, 1000, 110), attempt("w2", 1, 1, metrics.Done, 1000, 60)}
	for _, tt := range []struct {
		name    string
		states  []launcher.State
		planned []launcher.Unbegun
		want    string
	}{
		{"nothing is done", []launcher.State{attempt("w1", 1, 1, metrics.Running, 1000, 0)}, nil, "1 run: 1 running"},
		{"all is done", done, nil, "4 runs: 4 done"},
		// 40 s of one and 20 s of the other are left, then 100 s and 60 s: 220 s on two.
		{"two at a time", append([]launcher.State{attempt("w1", 4, 1, metrics.Running, 1940, 0), attempt("w2", 2, 1, metrics.Running, 1960, 0),
			attempt("w1", 5, 1, metrics.Pending, 0, 0)}, done...), unbegun("w2", 3),
			"8 runs: 1 planned, 1 pending, 2 running, 4 done; about 110 s left, 2 at a time"},
		// The longest of the last runs determines the end; one is already late.
		{"the last ones", append([]launcher.State{attempt("w1", 4, 1, metrics.Running, 1940, 0), attempt("w2", 2, 1, metrics.Running, 1000, 0)}, done...), nil,
			"6 runs: 2 running, 4 done; about 40 s left"},
		// All that are left take longer than any before: nothing says how long.
		{"overdue", append([]launcher.State{attempt("w2", 2, 1, metrics.Running, 1000, 0)}, done...), nil, "5 runs: 1 running, 4 done"},
		{"less than a second", append([]launcher.State{attempt("w2", 2, 1, metrics.Running, 1940.3, 0)}, done...), nil, "5 runs: 1 running, 4 done; about 1 s left"},
		// Of a point without done runs, the median of all, 95 s.
		{"none runs", append([]launcher.State{attempt("w4", 1, 1, metrics.Pending, 0, 0)}, done...), nil,
			"5 runs: 1 pending, 4 done; about 95 s left, one at a time"},
		{"a second attempt", append([]launcher.State{attempt("w3", 1, 1, metrics.Failed, 1000, 5), attempt("w3", 1, 2, metrics.Done, 1010, 95)}, done...), nil,
			"5 runs: 5 done"},
	} {
		if got := Progress(BriefsOf(tt.states, tt.planned), 2000); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Alike are runs of one point in one state for one reason; a run that runs, or two
// alone, keep their rows.
func TestFolded(t *testing.T) {
	states := []launcher.State{
		attempt("w1", 1, 1, metrics.Done, 1000, 100), attempt("w1", 2, 1, metrics.Done, 1000, 100), attempt("w1", 3, 1, metrics.Done, 1000, 100),
		attempt("w1", 4, 1, metrics.Failed, 1000, 100),
		attempt("w2", 1, 1, metrics.Running, 1000, 0), attempt("w2", 2, 1, metrics.Running, 1000, 0), attempt("w2", 3, 1, metrics.Running, 1000, 0),
		attempt("w3", 1, 1, metrics.Done, 1000, 100), attempt("w3", 2, 1, metrics.Done, 1000, 100),
	}
	folded := Folded(states, unbegun("w4", 1, 2, 3, 4))
	var got []string
	for _, row := range folded.Rows {
		got = append(got, fmt.Sprint(row[0], " ", row[1], " ", row[3]))
	}
	want := []string{"s/w1 3 done", "s/w1-r4-a1 1 failed", "s/w2-r1-a1 1 running", "s/w2-r2-a1 1 running", "s/w2-r3-a1 1 running",
		"s/w3-r1-a1 1 done", "s/w3-r2-a1 1 done", "s/w4 4 planned"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rows\n%q, want\n%q", got, want)
	}
	if plain := Folded(states[7:], nil); plain.Columns[1].Key == "attempts" {
		t.Error("a column of attempts where every row is a run")
	}
}
