//go:build python

package framework

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// training runs testdata/training.py with variables that describe its rank.
func training(t *testing.T, run rundir.Folder, how string, variables ...string) (output string, err error) {
	t.Helper()
	programs, err := filepath.Abs("programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/training.py", how)
	cmd.Env = append(variables, "PYTHONPATH="+programs)
	if run != "" {
		cmd.Env = append(cmd.Env, RunVariable+"="+run.Path())
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A loop that calls step, epoch and evaluate is timed from call to call: the
// steps add up to the epoch, evaluations are between steps, and parts are within their
// step.
func TestPythonTraining(t *testing.T) {
	run := newRun(t)
	if out, err := training(t, run, "whole", "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	events := readEvents(t, run, 1, 0)
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind())
	}
	if diff := cmp.Diff([]string{"start", "train", "steps", "epoch", "steps", "epoch", "note", "stop"}, kinds); diff != "" {
		t.Fatal(diff) // only rank 0's evaluation counts
	}
	start := metrics.Start{Format: metrics.FormatVersion, Writer: "rank", Framework: "command", Rank: 1, WorldSize: 4, LocalRank: 1}
	if diff := cmp.Diff(&start, events[0].Start, cmpopts.IgnoreFields(metrics.Start{}, "Unix", "Host", "PID")); diff != "" {
		t.Error(diff)
	}
	if events[1].Time < 0.0499 || events[1].Train.Parameters != 10 {
		t.Errorf("the clock starts at %g s with %+v, want begin's call", events[1].Time, events[1].Train)
	}
	first, epoch, last := events[2].Steps, events[3].Epoch, events[4].Steps
	var sum float64
	for i, ticks := range first.Duration {
		sum += float64(ticks) * first.Tick
		if max(ticks-20_000, 20_000-ticks) > 1 || max(first.DataWait[i]-10_000, 10_000-first.DataWait[i]) > 1 {
			t.Errorf("step %d of 20 ms, half of it waiting: %d µs, %d µs", i, ticks, first.DataWait[i])
		}
	}
	if d := epoch.Seconds - sum; epoch.Samples != 24 || epoch.LearningRate != 0.1 || *epoch.Loss != 1.5 || d < 0 || d > 1e-5 {
		t.Errorf("epoch %+v of steps of %g s", epoch, sum)
	}
	if last.First != 3 || last.Duration[0] != 0 || last.Communication[0] != 1000 || last.DataWait != nil {
		t.Errorf("the step after an evaluation of 30 ms: %+v", last)
	}
	if e := events[5].Epoch; e.Epoch != 2 || e.Samples != 4 || e.LearningRate != 0 || e.Loss != nil {
		t.Errorf("second epoch %+v", e)
	}
	if stop := events[7].Stop; stop.Status != metrics.StopDone || stop.Steps != 4 || stop.Epochs != 2 {
		t.Errorf("stop %+v", stop)
	}
}

// A process finds its place in the world under every launcher.
func TestPythonTrainingPlace(t *testing.T) {
	for name, c := range map[string]struct {
		how              string
		variables        string
		rank, size, many int // many: number of ranks that it reports for
	}{
		"alone":        {"whole", "", 0, 1, 1},
		"torchrun":     {"whole", "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 SCALEBENCH_NODE=1", 3, 4, 1},
		"Open MPI":     {"whole", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2", 1, 2, 1},
		"MPICH":        {"whole", "PMI_RANK=2 PMI_SIZE=3", 2, 3, 1},
		"once a node":  {"whole", "WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 SCALEBENCH_NODE=1", 4, 8, 4},
		"for everyone": {"everyone", "RANK=0 WORLD_SIZE=4", 0, 4, 4},
		"not asked":    {"everyone", "RANK=1 WORLD_SIZE=4", -1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			if out, err := training(t, run, c.how, strings.Fields(c.variables)...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if c.rank < 0 {
				if files, err := run.EventFiles(); err != nil || len(files) > 0 {
					t.Errorf("%v, %v of a rank for which rank 0 reports", files, err)
				}
				return
			}
			s := readEvents(t, run, c.rank, 0)[0].Start
			if s.Rank != c.rank || s.WorldSize != c.size || s.Covers() != c.many {
				t.Errorf("%+v, want rank %d of %d, for %d", s, c.rank, c.size, c.many)
			}
		})
	}
}

// The exit and mistakes of a program are recorded; a process that it forks reports nothing.
func TestPythonTrainingEnds(t *testing.T) {
	for how, want := range map[string]struct{ status, cause, output string }{
		"lazy":  {metrics.StopDone, "", ""},
		"forks": {metrics.StopDone, "", ""},
		"fails": {metrics.StopFailed, "ArithmeticError: the loss is NaN (training.py:87)", "ArithmeticError: the loss is NaN"},
		// An invalid value does not stop the training.
		"percent": {metrics.StopDone, "", "an accuracy of 75: it is a fraction, from 0 to 1; 75 % is 0.75"},
		"twice":   {metrics.StopDone, "", "scalebench.begin(): call it once"},
		"odd":     {metrics.StopDone, "", "an accuracy of nan: it is a fraction"},
	} {
		t.Run(how, func(t *testing.T) {
			run := newRun(t)
			out, err := training(t, run, how)
			if (err != nil) != (want.status == metrics.StopFailed) || !strings.Contains(out, want.output) {
				t.Errorf("%v\n%s", err, out)
			}
			events := readEvents(t, run, 0, 0)
			stop := events[len(events)-1].Stop
			if stop == nil || stop.Status != want.status || stop.Cause != want.cause {
				t.Errorf("stop %+v", stop)
			}
			if how == "odd" {
				accuracies := 0
				for _, e := range events {
					if e.Evaluation != nil && e.Evaluation.Accuracy == 0.5 {
						accuracies++
					}
				}
				if accuracies != 9 || stop.Steps != 18 || stop.Epochs != 9 {
					t.Errorf("%d evaluations, %+v; want the 9 with a value, 18 steps and 9 epochs", accuracies, stop)
				}
			}
			if how == "forks" && stop.Steps != 4 {
				t.Errorf("%d steps, with those of the forked process", stop.Steps)
			}
			if how == "lazy" && (events[1].Train == nil || events[1].Time <= 0 || events[2].Note == nil) {
				t.Errorf("without begin() the clock starts with the import, and a note says so: %+v", events[1:3])
			}
		})
	}
	// If nothing can be recorded, the helper reports it and the program continues.
	run := newRun(t)
	if out, err := training(t, run, "gone"); err != nil || strings.Count(out, "recording fails") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := training(t, rundir.Folder(filepath.Join(t.TempDir(), "nowhere")), "whole"); err != nil || !strings.Contains(out, "recording fails: FileNotFoundError") {
		t.Errorf("%v\n%s", err, out)
	}
	run = newRun(t)
	if err := os.WriteFile(run.EventFile("rank", 0, 0), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := training(t, run, "whole"); err == nil || !strings.Contains(out, "another process reports as rank 0") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Outside scalebench nothing is written and nothing fails.
func TestPythonTrainingOutside(t *testing.T) {
	for _, how := range []string{"outside", "whole", "everyone"} {
		if out, err := training(t, "", how); err != nil || out != "" {
			t.Errorf("%s: %v\n%s", how, err, out)
		}
	}
}

// The helper is valid Python 3.6, and the programs are valid Python 3.8: old clusters have nothing newer.
func TestPythonProgramsAreOldPython(t *testing.T) {
	files, err := filepath.Glob("programs/*.py")
	if err != nil || len(files) < 10 {
		t.Fatalf("programs %v, %v", files, err)
	}
	check := `
import ast, sys
for name in sys.argv[1:]:
    version = (3, 6) if name.endswith("/scalebench.py") else (3, 8)
    with open(name, encoding="utf-8") as file:
        ast.parse(file.read(), name, feature_version=version)
`
	if out, err := exec.Command(debianPython, append([]string{"-c", check}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The Python trainers and the helper measure initialisation from the start of the process,
// including imports and the meeting of the ranks, as the native trainer does
// (cmd/scalebench-worker). Each case knows a time between the start of the process and the end
// of its initialisation.
func TestInitialisationBeginsWithTheProcess(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T) (run rundir.Folder, before, during time.Time){
		"trainer": func(t *testing.T) (rundir.Folder, time.Time, time.Time) {
			p := point(t, 2)
			d := prepare(t, p)
			place := world.World{Size: 2, LocalSize: 2, Nodes: 1, Address: "127.0.0.1", Port: d.port}
			environ := func(environ []string) []string { return environ }
			before := time.Now()
			d.startOne(p, place, environ)
			during := time.Now() // rank 0 waits for rank 1
			place.Rank, place.LocalRank = 1, 1
			d.startOne(p, place, environ)
			d.wait()
			return d.run, before, during
		},
		"helper": func(t *testing.T) (rundir.Folder, time.Time, time.Time) {
			run := newRun(t)
			cmd := exec.Command(debianPython, "-B", "-c", `
import sys, time
print(time.time(), flush=True)
sys.stdin.readline()  # a slow import
import scalebench
scalebench.begin()
scalebench.step(1)
`)
			programs, err := filepath.Abs("programs")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(os.Environ(), "PYTHONPATH="+programs, RunVariable+"="+run.Path())
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			during := time.Now()
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			return run, before, during
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, before, during := begin(t)
			var began, ready float64
			for _, e := range readEvents(t, run, 0, 0) {
				switch {
				case e.Start != nil:
					began = e.Start.Unix
				case e.Train != nil:
					ready = began + e.Time
				}
			}
			// A process's start is known to 10 ms, rounded down.
			if began < metrics.Unix(before)-0.02 || began > metrics.Unix(during)+0.01 {
				t.Errorf("the clock began %.3f s after the process was started, which waited from %.3f s on", began-metrics.Unix(before), during.Sub(before).Seconds())
			}
			if ready < metrics.Unix(during) {
				t.Errorf("the training clock began %.3f s too early", metrics.Unix(during)-ready)
			}
		})
	}
}

// If a process is delayed between reading two clocks it reads them again, in Python as in Go
// (metrics.ProcessStart), so that the delay does not appear as a difference.
func TestPythonClocksAreReadTogether(t *testing.T) {
	programs, err := filepath.Abs("programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "-c", `
import scalebench

class Clock:
    now = 0.0
    def monotonic(self):
        self.now += 1e-5
        return self.now

clock, reads = Clock(), 0
scalebench.time = clock

def other():
    global reads
    reads += 1
    if reads <= 3:
        clock.now += 5
    return clock.now + 1000

ahead = scalebench._ahead(other)
assert reads == 4 and abs(ahead - 1000) < 1e-3, (reads, ahead)
`)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
