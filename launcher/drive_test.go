package launcher

import (
	"math"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

func driverOf(b Backend) *driver {
	return &driver{Driving: Driving{Backend: b}, mine: map[rundir.Folder]bool{}}
}

func TestRateDelaysTheNextSubmission(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ago := func(d time.Duration) *Submission { return &Submission{SubmittedUnix: metrics.Unix(now.Add(-d))} }
	for name, c := range map[string]struct {
		backend Backend
		last    *Submission
		want    time.Duration
	}{
		"no rate":                    {&fake{}, ago(0), 0},
		"the first":                  {&fake{limits: Limits{Rate: 10}}, nil, 0},
		"at once after another":      {&fake{limits: Limits{Rate: 10}}, ago(0), 6 * time.Second},
		"two seconds after":          {&fake{limits: Limits{Rate: 10}}, ago(2 * time.Second), 4 * time.Second},
		"long after":                 {&fake{limits: Limits{Rate: 10}}, ago(time.Hour), 6*time.Second - time.Hour},
		"a host whose clock is fast": {&fake{limits: Limits{Rate: 10}}, ago(-time.Hour), 6 * time.Second},
		"on this machine":            {&fake{beside: true}, ago(0), 0},
	} {
		if got := driverOf(c.backend).turn(c.last, now); (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestBackOffDoublesToEightTimes(t *testing.T) {
	for failures, want := range []time.Duration{30, 60, 120, 240, 240, 240} {
		if got := backOff(30*time.Second, failures); got != want*time.Second {
			t.Errorf("after %d failures: %v, want %v s", failures, got, int(want))
		}
	}
	if got := backOff(time.Second, math.MaxInt); got != 8*time.Second {
		t.Errorf("after many failures: %v", got)
	}
}

func TestRoomCountsAttemptsUnderWay(t *testing.T) {
	unanswered := tried(5, 1, metrics.Submitted)
	unanswered.Submission = nil // it was not submitted yet
	local := tried(6, 1, metrics.Running)
	local.Record.Backend = "fake-beside"
	elsewhere := tried(7, 1, metrics.Running) // driven on another host
	elsewhere.Record.Backend, elsewhere.Submission = "fake-beside", nil
	states := []State{tried(1, 1, metrics.Done), tried(2, 1, metrics.Pending), tried(3, 1, metrics.Unknown), tried(4, 1, metrics.Failed),
		unanswered, local, elsewhere}
	for _, c := range []struct {
		backend Backend
		want    int
	}{
		{&fake{}, math.MaxInt}, {&fake{limits: Limits{InFlight: 3}}, 1}, {&fake{limits: Limits{InFlight: 2}}, 0},
		{&fake{limits: Limits{InFlight: 1}}, 0}, {&fake{beside: true, limits: Limits{InFlight: 1}}, 0},
	} {
		if got := driverOf(c.backend).free(states); got != c.want {
			t.Errorf("%s, %+v: room for %d, want %d", c.backend.Name(), c.backend.Limits(), got, c.want)
		}
	}
	d := driverOf(&fake{beside: true})
	if d.ours(local) {
		t.Error("a local attempt of another command is watched to its end")
	}
	d.mine[local.Run] = true
	if !d.ours(local) || d.ours(elsewhere) || d.ours(states[1]) {
		t.Error("of local attempts those that this command drives are watched to their end, and no jobs")
	}
}

func TestLastJob(t *testing.T) {
	at := func(s State, id string, second float64) State {
		s.Submission = &Submission{JobID: id, SubmittedUnix: second}
		return s
	}
	states := []State{at(tried(1, 1, metrics.Running), "1", 10), at(tried(2, 1, metrics.Done), "2", 30), at(tried(3, 1, metrics.Pending), "3", 20)}
	d := driverOf(&fake{})
	if got := d.lastJob(states, false); got == nil || got.JobID != "2" {
		t.Errorf("the last of all is %+v", got)
	}
	if got := d.lastJob(states, true); got == nil || got.JobID != "3" {
		t.Errorf("the last that has not ended is %+v", got)
	}
	if got := d.lastJob(states[1:2], true); got != nil {
		t.Errorf("none is left, and yet %+v", got)
	}
}
