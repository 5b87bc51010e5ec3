package launcher

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
)

// Each run of the plan is counted once, by its latest attempt; one that has a good
// result is not counted.
func TestProgressOf(t *testing.T) {
	plan := &study.Plan{}
	var attempts []*Attempt
	add := func(id string, tries ...Attempt) {
		plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: id, Repeat: 1}})
		for i, a := range tries {
			a.Run, a.Number, a.Point = rundir.Folder("/runs/s/"+id), i+1, study.Point{ID: id, Repeat: 1}
			attempts = append(attempts, &a)
		}
	}
	ended := func(backend string, status metrics.Status) Attempt {
		return Attempt{Record: Record{Backend: backend}, Verdict: &Verdict{Status: status}}
	}
	add("never")
	add("waits", Attempt{Record: Record{Backend: "fake"}})
	add("retried", ended("fake", metrics.Failed), Attempt{Record: Record{Backend: "fake"}})
	add("done", ended("fake", metrics.Failed), ended("fake", metrics.Done))
	add("failed", ended("fake", metrics.Lost), ended("fake", metrics.NodeFailed))
	add("cancelled", ended("fake", metrics.Cancelled))
	add("being cancelled", Attempt{Record: Record{Backend: "fake"}, Cancelled: &Cancellation{}})
	add("here", ended("fake-beside", metrics.Failed))
	got := ProgressOf(plan, attempts)
	if want := (Progress{Unbegun: 1, Underway: 2, Ended: 3, Cancelled: 2, EndedHere: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMeans(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		want     bool
	}{
		{"s/native-w1-r1-a1", "s/native-w1-r1-a1", true},
		{"s/native-w1-r1", "s/native-w1-r1-a12", true},
		{"s/native-w1", "s/native-w1-r3-a2", true},
		{"s/native-w1-r1", "s/native-w1-r12-a1", false},
		{"s/native-w1", "s/native-w12-r1-a1", false},
		{"s/native", "s/native-w1-r1-a1", false},
		{"s/native-w1-r1-a1", "s/native-w1-r1-a12", false},
		{"native-w1", "s/native-w1-r1-a1", false},
	} {
		if got := Means(tt.name, tt.id); got != tt.want {
			t.Errorf("%s means %s: %v", tt.name, tt.id, got)
		}
	}
}
