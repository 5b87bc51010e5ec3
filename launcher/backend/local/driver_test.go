package local

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
)

// The same for an attempt that a command drives.
func TestJudgeDriven(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	exit := func(code int, signal string) *launcher.Exit {
		return &launcher.Exit{ExitCode: code, Signal: signal, EndUnix: metrics.Unix(now)}
	}
	local := drivenEvidence{Evidence: launcher.Evidence{Ranks: 2, Now: now}, Driven: true, DrivenKnown: true}
	with := func(e drivenEvidence, change func(*drivenEvidence)) drivenEvidence { change(&e); return e }
	for name, c := range map[string]struct {
		e      drivenEvidence
		want   metrics.Status
		detail string
	}{
		"running":              {local, metrics.Running, ""},
		"done":                 {with(local, func(e *drivenEvidence) { e.Traces = launcher.Traces{Exit: exit(0, ""), Done: 2, Stopped: 2} }), metrics.Done, ""},
		"failed":               {with(local, func(e *drivenEvidence) { e.Traces = launcher.Traces{Exit: exit(1, ""), Cause: "train: loss is NaN"} }), metrics.Failed, "loss is NaN"},
		"interrupted":          {with(local, func(e *drivenEvidence) { e.Traces = launcher.Traces{Exit: exit(143, "TERM")} }), metrics.Cancelled, ""},
		"ended on a full disk": {with(local, func(e *drivenEvidence) { e.Unwritten = syscall.ENOSPC }), metrics.Lost, "could not be written: no space left on device"},
		"driver died":          {with(local, func(e *drivenEvidence) { e.Driven = false }), metrics.Lost, "gone"},
		"on another one":       {with(local, func(e *drivenEvidence) { e.Driven, e.DrivenKnown = false, false }), metrics.Running, "judged by its events"},
		"on another one, alive": {with(local, func(e *drivenEvidence) {
			e.Driven, e.DrivenKnown, e.Silence = false, false, new(driverGrace-time.Second)
		}),
			metrics.Running, "another host"},
		"on another one, silent": {with(local, func(e *drivenEvidence) { e.Driven, e.DrivenKnown, e.Silence = false, false, new(driverGrace) }),
			metrics.Lost, "no sign of life for 5m0s"},
		"on another one, silent since its end": {with(local, func(e *drivenEvidence) {
			e.Driven, e.DrivenKnown, e.Silence = false, false, new(time.Hour)
			e.Traces = launcher.Traces{Exit: exit(0, ""), Done: 2, Stopped: 2}
		}), metrics.Done, ""},
	} {
		got, detail := judgeDriven(c.e)
		if got != c.want || !strings.Contains(detail, c.detail) {
			t.Errorf("%s: %s %q, want %s with %q", name, got, detail, c.want, c.detail)
		}
	}
}

func TestProcessStart(t *testing.T) {
	first, second := processStart(os.Getpid()), processStart(os.Getpid())
	if first == "" || first != second {
		t.Error("this process has no start time")
	}
	if got := processStart(1 << 30); got != "" {
		t.Errorf("no process began at %q", got)
	}
}

// A pid is looked up only in its namespace, which the host name alone does not identify.
func TestDrives(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	me := launcher.Record{Backend: Name, Host: host, PID: os.Getpid(), PIDStart: processStart(os.Getpid()), PIDSpace: worker.PIDSpace()}
	boot, namespace, _ := strings.Cut(me.PIDSpace, " ")
	if len(boot) != 36 || !strings.HasPrefix(namespace, "pid:[") {
		t.Fatalf("place %q, want a boot id and a pid namespace", me.PIDSpace)
	}
	for name, c := range map[string]struct {
		change       func(r *launcher.Record)
		alive, known bool
	}{
		"this process":                      {func(r *launcher.Record) {}, true, true},
		"this process, the host renamed":    {func(r *launcher.Record) { r.Host = "x" }, true, true},
		"a process that is gone":            {func(r *launcher.Record) { r.PIDStart = boot + " 1" }, false, true},
		"another host of this name":         {func(r *launcher.Record) { r.PIDSpace = strings.Repeat("0", 36) + " " + namespace }, false, false},
		"another container of this name":    {func(r *launcher.Record) { r.PIDSpace = boot + " pid:[1]" }, false, false},
		"a host whose kernel does not tell": {func(r *launcher.Record) { r.PIDSpace = "" }, false, false},
	} {
		r := me
		c.change(&r)
		if alive, known := drives(r); alive != c.alive || known != c.known {
			t.Errorf("%s: alive %v, known %v", name, alive, known)
		}
	}
}

// Cancel signals only the process that drives the run.
func TestCancelSignalsOnlyOwnDriver(t *testing.T) {
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
	reused.Record = launcher.Record{Backend: Name, Host: host, PID: os.Getpid(), PIDStart: "long ago", PIDSpace: worker.PIDSpace()}
	elsewhere := tried(5, 1, metrics.Running)
	elsewhere.Record = launcher.Record{Backend: Name, Host: host + "x", PID: os.Getpid(), PIDStart: processStart(os.Getpid()), PIDSpace: "another"}
	sameName := elsewhere // a container with this host's name, in which this pid is another process
	sameName.Record.Host, sameName.Record.PIDSpace = host, strings.Replace(worker.PIDSpace(), "pid:[", "pid:[1", 1)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"squeue": "", "sacct": "", "scancel": "echo >&2 called; exit 1"} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", ".") // scancel must not be called
	for _, s := range []launcher.State{unanswered, forgotten} {
		if err := os.MkdirAll(s.Run.Path(), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := forgotten.Run.TakeClaim(0, "1"); err != nil { // it has begun
		t.Fatal(err)
	}
	endings, err := launcher.Cancel(t.Context(), []launcher.State{ended, unanswered, forgotten, reused, elsewhere, sameName})
	if err != nil || len(endings) != 5 {
		t.Fatalf("%d endings, want 5: %v", len(endings), err)
	}
	for _, e := range endings {
		// Attempts that have not started are withdrawn without asking Slurm.
		if e.Asked != (e.Run == unanswered.Run) || e.What == "" {
			t.Errorf("%s: asked %v (%q)", e.Run.Name(), e.Asked, e.What)
		}
	}
}
