package launcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Times are in a synctest bubble. There is a survey every 30 s, and a job takes 50 s.
const (
	interval = 30 * time.Second
	lasts    = 50 * time.Second
)

// A rig is a study with a scheduler and the configuration of Drive.
type rig struct {
	*scheduler
	Driving
	backend *fake
	warned  []string
	ended   []string // "p-r1-a1 done"
	said    map[rundir.Folder]metrics.Status
}

// runs returns a rig with a plan of n runs.
func runs(t *testing.T, n int) *rig {
	folder := rundir.OpenStudy(t.TempDir(), "s")
	return command(newScheduler(folder, lasts), folder, n)
}

// command returns a rig for another command on the same study.
func command(s *scheduler, folder rundir.Study, n int) *rig {
	r := &rig{scheduler: s, backend: &fake{Creator: Creator{Folder: folder}}, said: map[rundir.Folder]metrics.Status{}}
	plan := &study.Plan{}
	for repeat := 1; repeat <= n; repeat++ {
		plan.Points = append(plan.Points, study.Planned{Point: study.Point{ID: "p", Repeat: repeat, Framework: "native", Workers: 1, Nodes: 1, WorkersPerNode: 1}})
	}
	r.Driving = Driving{Backend: r.backend, Folder: folder, Choice: Choice{Plan: plan, Done: none}, Interval: interval, Patience: 2 * time.Minute,
		Warn: func(err error) { r.warned = append(r.warned, err.Error()) },
		Observe: func(states []State) {
			for _, s := range states {
				if r.said[s.Run] != s.Status && s.Status.Terminal() {
					r.ended = append(r.ended, fmt.Sprintf("%s %s", s.Run.Name(), s.Status))
				}
				r.said[s.Run] = s.Status
			}
		}}
	return r
}

func (r *rig) drive(t *testing.T) (Outcome, error) { return Drive(t.Context(), r.Driving) }

// check compares how Drive ended: its outcome, a part of the error, the time, and what was submitted when.
func (r *rig) check(t *testing.T, o Outcome, err error, left, underway int, says string, at time.Duration, submitted string) {
	t.Helper()
	if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
		t.Errorf("error %v, want %q", err, says)
	}
	if o.Left != left || len(o.Underway) != underway {
		t.Errorf("%d are left and %d under way, want %d and %d", o.Left, len(o.Underway), left, underway)
	}
	if got := r.now(); got != at {
		t.Errorf("it took %v, want %v", got, at)
	}
	if d := cmp.Diff(submitted, r.begins()); d != "" {
		t.Errorf("submitted (-want +got):\n%s", d)
	}
}

// Runs that have a good result (here or in the store) or are under way are not started.
func TestDriveStartsTheChosenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 4)
		r.Choice.Done = func(run study.Run) bool { return run.Repeat == 2 }
		first := *r.Choice.Plan
		r.Choice.Plan = &study.Plan{Points: first.Points[:1]}
		o, err := r.drive(t)
		r.check(t, o, err, 0, 1, "", 0, "0s p-r1-a1")
		r.Choice.Plan = &first
		found := [2]int{}
		r.Found = func(todo, underway int) { found = [2]int{todo, underway} }
		o, err = r.drive(t)
		r.check(t, o, err, 0, 3, "", 0, "0s p-r1-a1, 0s p-r3-a1, 0s p-r4-a1")
		if found != [2]int{2, 1} {
			t.Errorf("found %v to do and under way, want 2 and 1", found)
		}
		// After they have ended successfully, nothing is left to do.
		time.Sleep(lasts)
		o, err = r.drive(t)
		r.check(t, o, err, 0, 0, "", lasts, "0s p-r1-a1, 0s p-r3-a1, 0s p-r4-a1")
	})
}

// When Drive watches to the end, each survey takes one query of the scheduler, and the end of each attempt is
// reported once.
func TestDriveWatchesToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 2)
		r.Watch = true
		o, err := r.drive(t)
		// Surveys at 30 and 60 s; the jobs end at 50 s.
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1, 0s p-r2-a1")
		if d := cmp.Diff([]time.Duration{30 * time.Second, 60 * time.Second}, r.asked); d != "" {
			t.Errorf("looks (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"p-r1-a1 done", "p-r2-a1 done"}, r.ended); d != "" {
			t.Errorf("ended (-want +got):\n%s", d)
		}
	})
}

func TestDriveInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 5)
		r.backend.limits.InFlight = 2
		o, err := r.drive(t)
		r.check(t, o, err, 3, 2, "", 0, "0s p-r1-a1, 0s p-r2-a1")
		if !strings.Contains(o.Why, "2 are under way") {
			t.Errorf("why: %q", o.Why)
		}
		r.Watch = true
		o, err = r.drive(t)
		// The surveys at 60, 120 and 180 s find that the jobs started at 0, 60 and 120 s have ended.
		r.check(t, o, err, 0, 0, "", 180*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r3-a1, 1m0s p-r4-a1, 2m0s p-r5-a1")
		if r.most != 2 {
			t.Errorf("%d at once, want 2", r.most)
		}
	})
}

// The rate holds over cycles, between commands and for loads of several.
func TestDriveRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 4)
		r.backend.limits.Rate = 3 // every 20 s
		o, err := r.drive(t)
		r.check(t, o, err, 0, 4, "", 60*time.Second, "0s p-r1-a1, 20s p-r2-a1, 40s p-r3-a1, 1m0s p-r4-a1")
		next := command(r.scheduler, r.Folder, 8)
		next.backend.limits.Rate, next.backend.pairs = 3, true
		o, err = next.drive(t)
		next.check(t, o, err, 0, 5, "", 100*time.Second, r.begins())
		if want := "1m20s p-r5-a1, 1m20s p-r6-a1, 1m40s p-r7-a1, 1m40s p-r8-a1"; !strings.HasSuffix(r.begins(), want) {
			t.Errorf("%s, want an end of %s", r.begins(), want)
		}
	})
}

func TestDriveChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 3)
		r.Choice.Policy.Chain = true
		var after []string
		r.Begun = func(a *Attempt) { after = append(after, a.Submission.After) }
		o, err := r.drive(t)
		r.check(t, o, err, 0, 3, "", 0, "0s p-r1-a1, 0s p-r2-a1, 0s p-r3-a1")
		// Jobs of another backend cannot be dependencies.
		next := command(r.scheduler, r.Folder, 4)
		next.backend.beside, next.Choice.Policy.Chain, next.Begun = true, true, r.Begun
		if _, err := next.drive(t); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"", "0", "1", ""}, after); d != "" {
			t.Errorf("each waits for (-want +got):\n%s", d)
		}
	})
}

// A refusal because of too many jobs is not a verdict: the recorded attempt is submitted again after 60 s, then
// after 120 s.
func TestDriveRefusedForNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 3)
		r.Watch = true
		r.answer = func(n int) (error, bool) {
			if n == 1 || n == 2 {
				return fmt.Errorf("sbatch: %w", refusal{forNow: true}), false
			}
			return nil, true
		}
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 240*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r2-a1, 3m0s p-r2-a1, 3m0s p-r3-a1")
		if d := cmp.Diff([]string{"p-r1-a1 done", "p-r2-a1 done", "p-r3-a1 done"}, r.ended); d != "" {
			t.Errorf("ended (-want +got):\n%s", d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 3)
		r.answer = func(n int) (error, bool) { return refusal{forNow: true}, false }
		o, err := r.drive(t)
		r.check(t, o, err, 3, 0, "", 0, "0s p-r1-a1")
		if o.Why != "too many pods; try later" {
			t.Errorf("why: %q", o.Why)
		}
		// The reason stays with the run, and the next command starts that attempt, not another one.
		attempts, err := Attempts(r.Folder)
		if err != nil || len(attempts) != 1 || attempts[0].Limited == nil || attempts[0].Limited.Words != "too many pods; try later" {
			t.Fatalf("%v, %+v", err, attempts)
		}
		r.answer = nil
		o, err = r.drive(t)
		r.check(t, o, err, 0, 3, "", 0, "0s p-r1-a1, 0s p-r1-a1, 0s p-r2-a1, 0s p-r3-a1")
	})
}

// A final refusal becomes the attempt's verdict, with the scheduler's message; the other attempts are started.
func TestDriveRefusedFinally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 2)
		r.answer = func(n int) (error, bool) {
			if n == 0 {
				return refusal{}, false
			}
			return nil, true
		}
		o, err := r.drive(t)
		r.check(t, o, err, 0, 1, "", 0, "0s p-r1-a1, 0s p-r2-a1")
		attempts, err := Attempts(r.Folder)
		if err != nil {
			t.Fatal(err)
		}
		want := &Verdict{Status: metrics.Failed, Detail: "job.yaml: too many pods\ntry later"}
		if d := cmp.Diff(want, attempts[0].Verdict); d != "" {
			t.Errorf("verdict (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"p-r1-a1 failed"}, r.ended); d != "" {
			t.Errorf("ended (-want +got):\n%s", d)
		}
	})
}

// A scheduler that does not answer is queried at growing intervals, up to a limit; running attempts
// continue.
func TestDriveUnreachable(t *testing.T) {
	for _, c := range []struct {
		name     string
		watch    bool
		from, to time.Duration // period in which it does not answer
		looks    []int         // seconds
		err      string
		underway int
	}{
		{"from the second look on, for a while", true, 10 * time.Second, 200 * time.Second, []int{30, 90, 210}, "", 0},
		// 60, 120, then 240 s apart, ten times.
		{"for ever", true, 10 * time.Second, time.Hour, []int{30, 90, 210, 450, 690, 930, 1170, 1410, 1650, 1890}, "does not answer", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := runs(t, 1)
			r.Watch = c.watch
			r.silent = func(at time.Duration) bool { return at >= c.from && at < c.to }
			o, err := r.drive(t)
			r.check(t, o, err, 0, c.underway, c.err, time.Duration(c.looks[len(c.looks)-1])*time.Second, "0s p-r1-a1")
			var looks []int
			for _, at := range r.asked {
				looks = append(looks, int(at.Seconds()))
			}
			if d := cmp.Diff(c.looks, looks); d != "" {
				t.Errorf("%s: looks (-want +got):\n%s", c.name, d)
			}
		})
	}
	// A command that does not watch fails at once and starts nothing.
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		if _, err := r.drive(t); err != nil {
			t.Fatal(err)
		}
		next := command(r.scheduler, r.Folder, 2)
		r.silent = func(time.Duration) bool { return true }
		o, err := next.drive(t)
		next.check(t, o, err, 0, 1, "does not answer", 0, "0s p-r1-a1")
	})
}

// If the answer to a submission is lost, Drive looks for the job before it submits the attempt again. It does
// so only if the job is not found, and as the same attempt.
func TestDriveAnswerLost(t *testing.T) {
	for _, accepted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := runs(t, 2)
			r.Watch = true
			r.answer = func(n int) (error, bool) {
				if n == 1 {
					return silence{queued: true}, accepted
				}
				return nil, true
			}
			o, err := r.drive(t)
			if accepted { // at 0; found at 60, since trouble doubles the interval
				r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1, 0s p-r2-a1")
			} else {
				r.check(t, o, err, 0, 0, "", 120*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r2-a1")
			}
			if d := cmp.Diff([]string{"p-r1-a1 done", "p-r2-a1 done"}, r.ended); d != "" {
				t.Errorf("ended (-want +got):\n%s", d)
			}
		})
	}
}

// The policy says how often failed attempts are retried; without watching, that is left to a later command.
func TestDriveRetries(t *testing.T) {
	for _, c := range []struct {
		watch bool
		ends  map[string]metrics.Status
		want  string
	}{
		{true, map[string]metrics.Status{"p-r1-a1": metrics.Lost}, "0s p-r1-a1, 1m0s p-r1-a2"},
		{true, map[string]metrics.Status{"p-r1-a1": metrics.Lost, "p-r1-a2": metrics.Lost}, "0s p-r1-a1, 1m0s p-r1-a2"},
		{true, map[string]metrics.Status{"p-r1-a1": metrics.Lost, "p-r1-a2": metrics.Failed}, "0s p-r1-a1, 1m0s p-r1-a2"},
		{true, map[string]metrics.Status{"p-r1-a1": metrics.Cancelled}, "0s p-r1-a1"},
		// Drive continues for another two minutes, to start the next one.
		{false, map[string]metrics.Status{"p-r1-a1": metrics.Lost}, "0s p-r1-a1, 2m0s p-r2-a1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := runs(t, strings.Count(c.want, "a1"))
			r.Watch, r.Choice.Policy.Retries = c.watch, study.Retries{Lost: 1}
			if !c.watch {
				r.backend.limits.Rate = 0.5
			}
			r.scheduler.ends = func(run string) metrics.Status {
				if status, bad := c.ends[run]; bad {
					return status
				}
				return metrics.Done
			}
			_, err := r.drive(t)
			if got := r.begins(); err != nil || got != c.want {
				t.Errorf("%v: submitted %s, want %s; %v", c.ends, got, c.want, err)
			}
		})
	}
}

// A command restarts attempts that failed before it, once; the policy decides about later failures.
func TestDriveAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		r.Watch = true
		r.scheduler.ends = func(string) metrics.Status { return metrics.Failed }
		for _, want := range []string{"0s p-r1-a1", "0s p-r1-a1, 1m0s p-r1-a2"} {
			if _, err := r.drive(t); err != nil || r.begins() != want {
				t.Errorf("submitted %s, want %s; %v", r.begins(), want, err)
			}
		}
	})
}

// An attempt that was under way when the command started is watched, but not restarted if it fails.
func TestDriveDoesNotRestartAttemptsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		r.scheduler.ends = func(string) metrics.Status { return metrics.Failed }
		if _, err := r.drive(t); err != nil {
			t.Fatal(err)
		}
		r.Watch = true
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
	})
}

// Drive waits for a lease that another command holds, and starts nothing meanwhile.
func TestDriveWaitsForTheLease(t *testing.T) {
	for _, held := range []time.Duration{20 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := runs(t, 1)
			if _, err := r.drive(t); err != nil { // makes the folder
				t.Fatal(err)
			}
			other, err := sharedfs.TakeLease(t.Context(), r.Folder.Lease(), 0)
			if err != nil {
				t.Fatal(err)
			}
			next := command(r.scheduler, r.Folder, 2)
			var done sync.WaitGroup
			done.Go(func() {
				time.Sleep(held)
				if err := other.Release(); err != nil {
					t.Error(err)
				}
			})
			o, err := next.drive(t)
			var refused *sharedfs.LeaseHeldError
			if held > next.Patience {
				if !errors.As(err, &refused) || r.begins() != "0s p-r1-a1" || r.now() != next.Patience {
					t.Errorf("after %v: %v; submitted %s", r.now(), err, r.begins())
				}
			} else if err != nil || o.Left != 0 || !strings.HasPrefix(r.begins(), "0s p-r1-a1, 2") {
				t.Errorf("%v; submitted %s", err, r.begins())
			}
			if len(next.warned) != 1 || !strings.Contains(next.warned[0], "waiting for it") {
				t.Errorf("warned: %q", next.warned)
			}
			done.Wait()
		})
	}
}

// Several commands at once start each run once. The scheduler refuses a second job of one attempt; a second
// attempt would show in the submissions.
func TestDriveTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 12
		r := runs(t, n)
		r.scheduler.ends = func(run string) metrics.Status {
			if run == "p-r7-a1" {
				return metrics.Lost
			}
			return metrics.Done
		}
		var done sync.WaitGroup
		for range 3 {
			c := command(r.scheduler, r.Folder, n)
			c.Watch, c.Choice.Policy.Retries = true, study.Retries{Lost: 1}
			c.backend.limits = Limits{InFlight: 4, Rate: 30}
			done.Go(func() {
				if o, err := c.drive(t); err != nil || o.Left > 0 || len(o.Underway) > 0 {
					t.Errorf("%d left, %d under way; %v", o.Left, len(o.Underway), err)
				}
			})
		}
		done.Wait()
		var got []string
		for _, s := range r.submitted {
			_, run, _ := strings.Cut(s, " ")
			got = append(got, run)
		}
		var want []string
		for i := 1; i <= n; i++ {
			want = append(want, fmt.Sprintf("p-r%d-a1", i))
		}
		want = append(want, "p-r7-a2")
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("submitted (-want +got):\n%s", d)
		}
		if r.most > 4 {
			t.Errorf("%d jobs at once, want 4 at most", r.most)
		}
	})
}

// When the context ends, nothing is cancelled, and the outcome lists the attempts under way.
func TestDriveContextDone(t *testing.T) {
	for _, rate := range []float64{0, 1} { // waiting for the next look; for the next turn, with the lease held
		synctest.Test(t, func(t *testing.T) {
			r := runs(t, 2)
			r.Watch, r.Interval, r.backend.limits.Rate = true, 5*time.Minute, rate
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(45*time.Second, func() { cancel(errTest) })
			o, err := Drive(ctx, r.Driving)
			want := "0s p-r1-a1, 0s p-r2-a1"
			if rate > 0 {
				want = "0s p-r1-a1"
			}
			if !errors.Is(err, errTest) || r.now() != 45*time.Second || r.begins() != want || len(o.Underway) != strings.Count(want, "p-") {
				t.Errorf("after %v: %v, %d under way; submitted %s", r.now(), err, len(o.Underway), r.begins())
			}
			if len(r.cancelled) > 0 {
				t.Errorf("cancelled %v", r.cancelled)
			}
			if l, err := sharedfs.TakeLease(t.Context(), r.Folder.Lease(), 0); err != nil {
				t.Errorf("the lease is not given up: %v", err)
			} else if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Attempts that are attached to their command start one after the other, as soon as the
// previous one has ended.
func TestDriveAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 2)
		r.Watch, r.backend.beside, r.backend.limits.InFlight = true, true, 1
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 120*time.Second, "0s p-r1-a1, 1m0s p-r2-a1")
	})
}

// A command finds the code for attempts of another backend by their records. It asks the other scheduler once,
// leaves its jobs alone, and starts attempts that never reached it here as new attempts.
func TestDriveMeetsAnotherBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 3)
		r.Choice.Plan.Points = r.Choice.Plan.Points[:2]
		r.answer = func(n int) (error, bool) {
			if n == 1 {
				return silence{}, false
			}
			return nil, true
		}
		if _, err := r.drive(t); err == nil {
			t.Fatal("no error")
		}
		r.lasts = 5 * time.Minute
		asked := len(r.asked)
		next := command(r.scheduler, r.Folder, 3)
		next.Watch, next.backend.beside, next.backend.limits.InFlight = true, true, 1
		next.Observe = func(states []State) {
			for _, s := range states {
				if s.Record.Backend != "fake-beside" {
					t.Errorf("watches %s of %s", s.Run.Name(), s.Record.Backend)
				}
			}
		}
		o, err := next.drive(t)
		next.check(t, o, err, 0, 0, "", 600*time.Second, "0s p-r1-a1, 0s p-r2-a1, 0s p-r2-a2, 5m0s p-r3-a1")
		// Its own jobs are surveyed every 30 s, from 30 to 600 s, and the other scheduler once.
		if n := len(r.asked) - asked; n != 21 {
			t.Errorf("asked %d times, want 21", n)
		}
	})
}

// Cancel uses the backend that each record names, and answers in the order of its arguments.
func TestCancelByBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 2)
		if _, err := r.drive(t); err != nil {
			t.Fatal(err)
		}
		beside := command(r.scheduler, r.Folder, 3)
		beside.backend.beside = true
		if _, err := beside.drive(t); err != nil {
			t.Fatal(err)
		}
		attempts, err := Attempts(r.Folder)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(attempts)
		states, err := Survey(t.Context(), attempts)
		if err != nil {
			t.Fatal(err)
		}
		endings, err := Cancel(t.Context(), states)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range endings {
			got = append(got, e.Run.Name())
		}
		if d := cmp.Diff([]string{"p-r3-a1", "p-r2-a1", "p-r1-a1"}, got); d != "" || len(r.cancelled) != 3 {
			t.Errorf("cancelled %v\n%s", r.cancelled, d)
		}
	})
}
