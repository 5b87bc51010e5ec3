package notify

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher"
	_ "github.com/scalebench/scalebench/launcher/backend/local" // whose attempts these are
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A scene is a study's folder with attempts, and what its message command received.
type scene struct {
	*testing.T
	folder rundir.Study
	plan   *study.Plan
	out    string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir := t.TempDir()
	s := &scene{t, rundir.OpenStudy(dir, "s"), launchtest.SmallPlan(t, "[1, 2]"), filepath.Join(dir, "out")}
	if err := os.Mkdir(s.folder.Path(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tell"), []byte("#!/bin/sh\n{ echo \"== $1\"; cat; } >>"+s.out+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// sender returns a command that sends messages of the study.
func (s *scene) sender() *Sender {
	return &Sender{Folder: s.folder, To: study.Notify{Command: []string{filepath.Join(filepath.Dir(s.out), "tell"), "{subject}"}}}
}

// attempt begins an attempt at a run of the plan.
func (s *scene) attempt(run, number int) *launcher.Attempt {
	s.Helper()
	a, err := launcher.Creator{Folder: s.folder}.Create(launcher.Todo{Planned: s.plan.Points[run], Number: number}, launcher.Record{Backend: "local"}, nil)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

func (s *scene) end(a *launcher.Attempt, status metrics.Status) {
	s.Helper()
	if err := rundir.WriteJSON(a.Run.State(), launcher.Verdict{Status: status, Detail: "attempt " + a.Run.Name()}, 0o644); err != nil {
		s.Fatal(err)
	}
}

func compose(e Event, attempts []*launcher.Attempt) (Message, error) {
	if e == Failed {
		return FirstFailure("s", attempts), nil
	}
	return News{Study: "s", Attempts: attempts, Verdict: "ended", Answer: "Use 2.", Spent: "1 node-hour"}.Message(), nil
}

func (s *scene) deliver(by *Sender, over bool) {
	s.Helper()
	if err := by.Deliver(s.Context(), over, compose); err != nil {
		s.Error(err)
	}
}

// attend reports whether a sender may send the message of the end.
func (s *scene) attend(by *Sender) bool {
	s.Helper()
	err := by.Attend(s.Context(), 0)
	if held := (*sharedfs.LeaseHeldError)(nil); err != nil && !errors.As(err, &held) {
		s.Fatal(err)
	}
	return err == nil
}

// subjects returns the subjects of the messages so far.
func (s *scene) subjects() (list []string) {
	text, _ := os.ReadFile(s.out)
	for line := range strings.Lines(string(text)) {
		if subject, ok := strings.CutPrefix(line, "== scalebench: "); ok {
			list = append(list, strings.TrimSpace(subject))
		}
	}
	return list
}

func (s *scene) want(subjects ...string) {
	s.Helper()
	if diff := cmp.Diff(subjects, s.subjects()); diff != "" {
		s.Errorf("subjects (-want +got):\n%s", diff)
	}
}

// The job that follows an earlier submit runs between a failure and its retry by a command that waits. It reports the
// failure, and leaves the end to the other one.
func TestJobBetweenRetries(t *testing.T) {
	s := newScene(t)
	waits, job := s.sender(), s.sender()
	first := s.attempt(0, 1)
	if !s.attend(waits) {
		t.Fatal("nobody else waits")
	}
	s.end(first, metrics.Failed)
	if s.attend(job) {
		t.Error("the job takes the end from the command that waits for it")
	}
	s.deliver(job, true)
	s.want("s: a run failed")

	s.end(s.attempt(0, 2), metrics.Done)
	s.deliver(job, true)
	s.want("s: a run failed")
	s.deliver(waits, true)
	if err := waits.Leave(); err != nil {
		t.Fatal(err)
	}
	want := []string{"s: a run failed", "s ended, 1 of 1 run good"}
	s.want(want...)

	// A job that runs later has nothing to say. After new runs without a command that waits it has.
	if !s.attend(job) {
		t.Fatal("the other command left")
	}
	s.deliver(job, true)
	s.want(want...)
	s.end(s.attempt(1, 1), metrics.Done)
	s.deliver(job, true)
	s.want(append(want, "s ended, 2 of 2 runs good")...)
}

// Whichever of several commands and jobs see the end at the same time, each message is sent once.
func TestSendersAtOnce(t *testing.T) {
	s := newScene(t)
	s.end(s.attempt(0, 1), metrics.Failed)
	s.end(s.attempt(1, 1), metrics.Done)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			one := s.sender()
			s.deliver(one, s.attend(one))
			if err := one.Leave(); err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
	last := s.sender() // in case the one that attended was overtaken by one that did not
	s.deliver(last, s.attend(last))
	got := s.subjects()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"s ended, 1 of 2 runs good", "s: a run failed"}, got); diff != "" {
		t.Error(diff)
	}
}

// After the study has ended once, a message about a failure is about a new one, and the end names a run that still has
// no good result.
func TestNewFailure(t *testing.T) {
	s := newScene(t)
	by := s.sender()
	s.attend(by)
	s.end(s.attempt(0, 1), metrics.Failed)
	s.deliver(by, true)
	s.end(s.attempt(0, 2), metrics.Done)
	s.end(s.attempt(1, 1), metrics.OutOfMemory)
	if err := os.Truncate(s.out, 0); err != nil {
		t.Fatal(err)
	}
	s.deliver(by, true)
	text, err := os.ReadFile(s.out)
	if err != nil {
		t.Fatal(err)
	}
	second := s.folder.Run(s.plan.Points[1].Point.ID, 1, 1).Name()
	for _, want := range []string{"a run failed\ns/" + second + ": out_of_memory", "First failure: s/" + second, "1 of 2 runs good"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// A run folder that cannot be read does not hold up the message of the end.
func TestUnreadableFolder(t *testing.T) {
	s := newScene(t)
	s.end(s.attempt(0, 1), metrics.Done)
	if err := os.WriteFile(s.attempt(1, 1).Run.Attempt(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	by := s.sender()
	s.attend(by)
	s.deliver(by, true)
	s.want("s ended, 1 of 1 run good")
	if text, err := os.ReadFile(s.out); err != nil || !strings.Contains(string(text), "\n1 run folder is unreadable; ") {
		t.Errorf("%s (%v)", text, err)
	}
}

// A subject is one argument in one line, whatever it contains.
func TestHostileSubjects(t *testing.T) {
	dir := t.TempDir()
	program, out := filepath.Join(dir, "tell"), filepath.Join(dir, "out")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s %s' $# \"$2\" >"+out+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ subject, want string }{
		{"a\nBcc: all@example.org", `a\nBcc: all@example.org`},
		{"a\r\nb\tc", `a\r\nb\tc`},
		{`"a" 'b' $(id) ` + "`id`", `"a" 'b' $(id) ` + "`id`"},
		{"--exec=id", "--exec=id"},
		{"\x00\x1b[2J\u202e\u0085", `\x00\x1b[2J\u202e\u0085`},
		{"{subject}", "{subject}"},
		{strings.Repeat("x", 100_000), strings.Repeat("x", 100_000)},
	} {
		if err := send(t.Context(), study.Notify{Command: []string{program, "-s", "{subject}"}}, Message{c.subject, "text"}); err != nil {
			t.Errorf("%.40q: %v", c.subject, err)
			continue
		}
		if text, err := os.ReadFile(out); err != nil || string(text) != "2 "+c.want {
			t.Errorf("%.40q: %.80q (%v), want %.80q", c.subject, text, err, c.want)
		}
	}
}
