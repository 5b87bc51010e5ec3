//go:build python

package framework

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// debianPython has PyTorch from Debian's python3-torch.
const debianPython = "/usr/bin/python3"

// newRun creates a run folder for a program to report to.
func newRun(t testing.TB) rundir.Folder {
	t.Helper()
	run := rundir.Folder(t.TempDir())
	if err := os.Mkdir(run.Events(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(run.Nonce(), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return run
}

// reporter returns a command that runs testdata/events.py.
func reporter(t *testing.T, run rundir.Folder, how string) *exec.Cmd {
	t.Helper()
	programs, err := filepath.Abs("programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/events.py", how)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs, RunVariable+"="+run.Path())
	cmd.Stderr = os.Stderr
	return cmd
}

// readEvents reads the event file of a rank, which must hold whole lines of
// valid events only.
func readEvents(t *testing.T, run rundir.Folder, rank, restart int) (list []metrics.Event) {
	t.Helper()
	f, err := os.Open(run.EventFile("rank", rank, restart))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := metrics.NewReader(f, f.Name(), 0, 0); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			if info, err := f.Stat(); err != nil || info.Size() != r.Offset {
				t.Errorf("%s: %d bytes, of which %d are whole lines (%v)", f.Name(), info.Size(), r.Offset, err)
			}
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
}

// Package metrics reads the events that the Python helper writes.
func TestPythonEventsRoundTrip(t *testing.T) {
	run := newRun(t)
	before := time.Now()
	if out, err := reporter(t, run, "all").Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := run.EventFiles()
	if err != nil || len(files) != 1 || files[0].Writer != "rank" || files[0].Rank != 1 || files[0].Restart != 2 {
		t.Fatalf("event files %+v, %v", files, err)
	}
	got := readEvents(t, run, 1, 2)
	start := got[0].Start
	if start == nil || start.PID == 0 || start.Host == "" || start.Unix < float64(before.Unix()) || start.Unix > float64(before.Unix()+60) {
		t.Fatalf("start %+v", start)
	}
	last := 0.0
	for i := range got {
		if got[i].Time < last || got[i].Time > 60 {
			t.Errorf("event %d is at %g s, the one before at %g s", i, got[i].Time, last)
		}
		last, got[i].Time = got[i].Time, 0
	}

	columns := func(first, n int) metrics.Event {
		s := metrics.Steps{First: first, Tick: 1e-6}
		for i := range n {
			s.Duration = append(s.Duration, int64(1000*(first+i+1)))
			s.Samples = append(s.Samples, 8)
			s.DataWait = append(s.DataWait, 0) // measured as 0
			s.Compute = append(s.Compute, 500)
		}
		return metrics.Event{Steps: &s}
	}
	loss, testLoss := 1.25, 2.5
	want := []metrics.Event{
		{Start: &metrics.Start{Format: metrics.FormatVersion, Writer: "rank", Framework: "mine", Rank: 1, WorldSize: 4, LocalRank: 1, Restart: 2}},
		{Environment: &metrics.Environment{Threads: 2, Versions: map[string]string{"python": "3"}}},
		{Train: &metrics.Train{Parameters: 10, GradientBytes: 40, TrainSamples: 100, TestSamples: 20, GlobalBatch: 8, StepsPerEpoch: 12, ParameterSHA256: "ab"}},
		columns(0, 100), columns(100, 100), columns(200, 50),
		{Steps: &metrics.Steps{First: 250, Tick: 1e-6, Duration: []int64{2_500_000}, Samples: []int64{7}}},
		{Steps: &metrics.Steps{First: 251, Tick: 1e-6, Duration: []int64{0}, Samples: []int64{7}, Communication: []int64{1}}},
		{Epoch: &metrics.Epoch{Epoch: 1, Step: 252, Samples: 2014, Seconds: 1.5, Loss: &loss, LearningRate: 0.1}},
		{Epoch: &metrics.Epoch{Epoch: 2, Step: 252, Seconds: 0.5, LearningRate: 0.01}},
		{Gradients: &metrics.Gradients{Epoch: 2, Step: 252, Samples: 8, GlobalSamples: 32, Steps: []int{3, 1}, Own: []float64{2.5, 0}, Averaged: []float64{1.25, 0}}},
		{Evaluation: &metrics.Evaluation{Epoch: 2, Step: 252, Accuracy: 0, Loss: &testLoss, Samples: 20, Seconds: 0.25}},
		{Evaluation: &metrics.Evaluation{Epoch: 2, Step: 252, Accuracy: 1, Samples: 20, Seconds: 0.25}},
		{Error: &metrics.Error{Where: "train", Message: "line 1\nline 2 \"quoted\" \u2028 ü"}},
		{Stop: &metrics.Stop{Status: metrics.StopFailed, Cause: "x", Steps: 252, Epochs: 2, ParameterSHA256: "cd"}},
	}
	// Durations are floating-point seconds until they become ticks.
	tick := cmp.Comparer(func(a, b int64) bool { return max(a, b)-min(a, b) <= 1 })
	if diff := cmp.Diff(want, got, tick, cmpopts.IgnoreFields(metrics.Start{}, "Unix", "Host", "PID")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The last steps of a program that hangs are in the file within about a second, and a signal
// ends the program with a stop event although it hangs.
func TestPythonInterrupted(t *testing.T) {
	for signal, cause := range map[syscall.Signal]string{
		syscall.SIGTERM: "signal TERM",
		syscall.SIGUSR1: "signal USR1: the job's time limit is near",
	} {
		run := newRun(t)
		cmd := reporter(t, run, "wait")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if events := readEvents(t, run, 1, 2); len(events) == 2 && events[1].Steps != nil && len(events[1].Steps.Duration) == 3 {
				break
			}
			if time.Since(begin) > 2*time.Minute {
				t.Fatal("steps were kept back for 2 minutes")
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("an interrupted program ended with 0")
		}
		events := readEvents(t, run, 1, 2)
		stop := events[len(events)-1].Stop
		if stop == nil || stop.Status != metrics.StopInterrupted || !strings.HasPrefix(stop.Cause, cause) || stop.Steps != 3 {
			t.Errorf("after %v: %+v", signal, stop)
		}
	}
}
