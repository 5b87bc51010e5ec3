package launcher

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
)

func driverOf(b Backend) *driver {
	return &driver{Driving: Driving{Backend: b}, mine: map[rundir.Folder]bool{}}
}

func TestRatePutsOffTheNextSubmission(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ago := func(d time.Duration) *Submission { return &Submission{SubmittedUnix: metrics.Unix(now.Add(-d))} }
	for name, c := range map[string]struct {
		backend Backend
		last    *Submission
		want    time.Duration
	}{
		"no rate":                    {&SlurmBackend{}, ago(0), 0},
		"the first":                  {&SlurmBackend{limits: Limits{Rate: 10}}, nil, 0},
		"at once after another":      {&SlurmBackend{limits: Limits{Rate: 10}}, ago(0), 6 * time.Second},
		"two seconds after":          {&SlurmBackend{limits: Limits{Rate: 10}}, ago(2 * time.Second), 4 * time.Second},
		"long after":                 {&SlurmBackend{limits: Limits{Rate: 10}}, ago(time.Hour), 6*time.Second - time.Hour},
		"a host whose clock is fast": {&SlurmBackend{limits: Limits{Rate: 10}}, ago(-time.Hour), 6 * time.Second},
		"on this machine":            {&LocalBackend{}, ago(0), 0},
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

func TestRoomCountsWhatIsUnderWay(t *testing.T) {
	unanswered := tried(5, 1, metrics.Submitted)
	unanswered.Submission = nil // it is in nobody's hands yet
	local := tried(6, 1, metrics.Running)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	local.Record = Record{Backend: Local, Host: host, PID: os.Getpid(), PIDStart: processStart(os.Getpid()), PIDSpace: worker.PIDSpace()}
	elsewhere := tried(7, 1, metrics.Running)
	elsewhere.Record = Record{Backend: Local, Host: host + "x", PID: 1, PIDStart: "1", PIDSpace: "another"}
	states := []State{tried(1, 1, metrics.Done), tried(2, 1, metrics.Pending), tried(3, 1, metrics.Unknown), tried(4, 1, metrics.Failed),
		unanswered, local, elsewhere}
	for _, c := range []struct {
		backend Backend
		want    int
	}{
		{&SlurmBackend{}, math.MaxInt}, {&SlurmBackend{limits: Limits{InFlight: 3}}, 1}, {&SlurmBackend{limits: Limits{InFlight: 2}}, 0},
		{&SlurmBackend{limits: Limits{InFlight: 1}}, 0}, {&LocalBackend{}, 0},
	} {
		if got := driverOf(c.backend).free(states); got != c.want {
			t.Errorf("%s, %+v: room for %d, want %d", c.backend.Name(), c.backend.Limits(), got, c.want)
		}
	}
	d := driverOf(&LocalBackend{})
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
	d := driverOf(&SlurmBackend{})
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

// What must not be signalled is not.
func TestCancelSpares(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ended := tried(1, 1, metrics.Done)
	unanswered := tried(2, 1, metrics.Submitted)
	unanswered.Submission = nil
	forgotten := tried(3, 1, metrics.Submitted) // the id may be another job's by now
	forgotten.Job = &metrics.Job{ID: "1"}
	reused := tried(4, 1, metrics.Running) // this process has the pid, but is another
	reused.Record = Record{Backend: Local, Host: host, PID: os.Getpid(), PIDStart: "long ago", PIDSpace: worker.PIDSpace()}
	elsewhere := tried(5, 1, metrics.Running)
	elsewhere.Record = Record{Backend: Local, Host: host + "x", PID: os.Getpid(), PIDStart: processStart(os.Getpid()), PIDSpace: "another"}
	sameName := elsewhere // a container with this host's name, in which this pid is another process
	sameName.Record.Host, sameName.Record.PIDSpace = host, strings.Replace(worker.PIDSpace(), "pid:[", "pid:[1", 1)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"squeue": "", "sacct": "", "scancel": "echo >&2 called; exit 1"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", ".") // whose scancel must not be called
	for _, s := range []State{unanswered, forgotten} {
		if err := os.MkdirAll(s.Run.Path(), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := forgotten.Run.TakeClaim(0, "1"); err != nil { // it has begun
		t.Fatal(err)
	}
	endings, err := Cancel(t.Context(), []State{ended, unanswered, forgotten, reused, elsewhere, sameName})
	if err != nil || len(endings) != 5 {
		t.Fatalf("%d endings, want 5: %v", len(endings), err)
	}
	for _, e := range endings {
		// What has not begun is withdrawn, and nobody else is asked.
		if e.Asked != (e.Run == unanswered.Run) || e.What == "" {
			t.Errorf("%s: asked %v (%q)", e.Run.Name(), e.Asked, e.What)
		}
	}
}
