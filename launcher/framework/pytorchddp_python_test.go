//go:build python

package framework

import (
	"encoding/json"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// ddp is a run of a PyTorch framework with processes on this machine.
type ddp struct {
	t     *testing.T
	run   rundir.Folder
	port  int
	ranks []*exec.Cmd // the ranks; by torchrun, the nodes
}

// point returns a small point: 240 training samples, 10 steps per epoch with 2 workers.
func point(t *testing.T, workers int) study.Point {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := dataset.Synthesize(dir, dataset.SyntheticOptions{TrainSamples: 240, TestSamples: 51}); err != nil {
		t.Fatal(err)
	}
	return study.Point{Framework: "pytorch-ddp", Workers: workers, Seed: 3,
		Workload: study.Workload{Kind: "train", Train: study.Train{
			Model: "cnn", Precision: "fp32", Batch: 12, Scaling: "weak", LearningRate: 0.01, ReferenceBatch: 12,
			Decay: "none", DecayEpochs: []int{}, Optimizer: "sgd", Momentum: 0.9, WeightDecay: 1e-4, BatchNorm: "local", Augment: true, Epochs: 2,
		}},
		Data:      study.Data{Kind: "cifar10", Path: dir},
		Resources: study.Resources{Device: "cpu", CPUsPerWorker: 1},
		Nodes:     1, WorkersPerNode: workers, WorkerBatch: 12, GlobalBatch: 12 * workers, LearningRate: 0.01,
	}
}

// start starts the ranks of a point in a world of the given size.
func start(t *testing.T, p study.Point, size int) *ddp {
	t.Helper()
	d := prepare(t, p)
	d.begin(p, size)
	return d
}

// prepare makes the run folder of a point.
func prepare(t *testing.T, p study.Point) *ddp {
	t.Helper()
	run := newRun(t)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(run.Point(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Find(p.Framework)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(run.Programs(), f.Programs); err != nil {
		t.Fatal(err)
	}
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return &ddp{t: t, run: run, port: port}
}

// begin starts the ranks.
func (d *ddp) begin(p study.Point, size int) {
	d.t.Helper()
	for rank := range size {
		d.startOne(p, world.World{Rank: rank, Size: size, LocalRank: rank, LocalSize: size, Nodes: 1, Address: "127.0.0.1", Port: d.port},
			func(environ []string) []string { return environ })
	}
}

// startOne starts a process in a separate process group, as the supervisor does.
func (d *ddp) startOne(p study.Point, w world.World, environ func([]string) []string) {
	t := d.t
	t.Helper()
	f, err := Find(p.Framework)
	if err != nil {
		t.Fatal(err)
	}
	s := Rank{Point: p, Run: d.run, World: w, Python: interpreterOf(t, f.Name)}
	command := f.Command(s)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(environ(append(os.Environ(), w.Environ()...)), RunVariable+"="+d.run.Path())
	if f.Environment != nil {
		cmd.Env = append(cmd.Env, f.Environment(s)...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.Create(d.run.RankLog(w.Rank))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has a duplicate
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.ranks = append(d.ranks, cmd)
	t.Cleanup(func() {
		if t.Failed() {
			text, err := os.ReadFile(log.Name())
			t.Logf("%s: %v\n%s", log.Name(), err, text)
		}
	})
}

// interpreterOf returns a Python with the framework: Debian's, or that of its family's environment, which is
// built if necessary.
func interpreterOf(t testing.TB, name string) string {
	t.Helper()
	f, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if f.Family == "" {
		return debianPython
	}
	return pythontest.Environment(t, "locks", f.Family)
}

// codes waits for all processes and returns their exit codes.
func (d *ddp) codes() (codes []int) {
	d.t.Helper()
	var all sync.WaitGroup
	for _, cmd := range d.ranks {
		limit := time.AfterFunc(5*time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		all.Go(func() {
			_ = cmd.Wait() // the exit code shows it
			limit.Stop()
		})
	}
	all.Wait()
	for _, cmd := range d.ranks {
		codes = append(codes, cmd.ProcessState.ExitCode())
	}
	return codes
}

// events returns what the given number of ranks wrote.
func (d *ddp) events(ranks int) (events [][]metrics.Event) {
	d.t.Helper()
	for rank := range ranks {
		events = append(events, readEvents(d.t, d.run, rank, 0))
	}
	return events
}

// wait waits for all ranks and returns their events and exit codes.
func (d *ddp) wait() (events [][]metrics.Event, codes []int) {
	d.t.Helper()
	codes = d.codes()
	return d.events(len(codes)), codes
}

// awaitEvaluation waits until rank 0 has evaluated.
func (d *ddp) awaitEvaluation() {
	d.t.Helper()
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(d.run.EventFile("rank", 0, 0)); err == nil {
			list := readEvents(d.t, d.run, 0, 0)
			if len(list) > 0 && list[len(list)-1].Evaluation != nil {
				return
			}
		}
	}
	d.t.Error("no evaluation after five minutes")
}

// only returns the one event that pick finds, and fails if there is not one.
func only[T any](t *testing.T, events []metrics.Event, pick func(metrics.Event) *T) *T {
	t.Helper()
	var found []*T
	for _, e := range events {
		if p := pick(e); p != nil {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d events of the kind, want one", len(found))
	}
	return found[0]
}

func stopOf(e metrics.Event) *metrics.Stop   { return e.Stop }
func trainOf(e metrics.Event) *metrics.Train { return e.Train }

// Two ranks complete a run with all events and all parts of the steps. Their parameters are
// equal at the start and at the end.
func TestDDPRun(t *testing.T) {
	p := point(t, 2)
	events, codes := start(t, p, 2).wait()
	for rank, list := range events {
		var kinds []string
		steps := 0
		for _, e := range list {
			if k := e.Kind(); len(kinds) == 0 || kinds[len(kinds)-1] != k { // steps are written once a second
				kinds = append(kinds, k)
			}
			if s := e.Steps; s != nil {
				if s.First != steps || s.DataWait == nil || s.Compute == nil || s.Communication == nil {
					t.Errorf("rank %d: steps from %d, want %d, with data wait, compute and communication: %+v", rank, s.First, steps, s)
				}
				for i, d := range s.Duration {
					if s.Samples[i] != 12 || s.Communication[i] > d || s.Compute[i]+s.DataWait[i] > d+1 || s.Communication[i] == 0 {
						t.Errorf("rank %d: step %d does not add up: %+v", rank, s.First+i, s)
					}
				}
				steps += len(s.Duration)
			}
			if e.Start != nil && (e.Start.WorldSize != 2 || e.Start.Rank != rank || e.Start.Framework != "pytorch-ddp") {
				t.Errorf("rank %d: %+v", rank, e.Start)
			}
			if e.Epoch != nil && (e.Epoch.Samples != 120 || e.Epoch.Loss == nil || e.Epoch.LearningRate != 0.01) {
				t.Errorf("rank %d: %+v", rank, e.Epoch)
			}
			if e.Evaluation != nil && (e.Evaluation.Samples != 51 || e.Evaluation.Loss == nil) {
				t.Errorf("rank %d: %+v", rank, e.Evaluation)
			}
		}
		evaluation := ""
		if rank == 0 {
			evaluation = " evaluation"
		}
		want := "start environment train" + strings.Repeat(" steps epoch gradients"+evaluation, 2) + " stop"
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("rank %d: events %s, want %s", rank, got, want)
		}
		if steps != 20 || codes[rank] != 0 {
			t.Errorf("rank %d: %d steps and exit code %d, want 20 and 0", rank, steps, codes[rank])
		}
	}
	a, b := only(t, events[0], stopOf), only(t, events[1], stopOf)
	if a.Status != metrics.StopDone || *a != *b || len(a.ParameterSHA256) != 64 {
		t.Errorf("stops %+v and %+v, want them done and equal", a, b)
	}
	first := only(t, events[0], trainOf)
	if first.Parameters != 24_346 || first.GradientBytes != 4*24_346 || first.TrainSamples != 240 || first.StepsPerEpoch != 10 || first.ParameterSHA256 == a.ParameterSHA256 {
		t.Errorf("train %+v", first)
	}
	if again, _ := start(t, p, 2).wait(); *only(t, again[0], stopOf) != *a {
		t.Errorf("the same point again ends with %+v, before with %+v", only(t, again[0], stopOf), a)
	}
}

// The first step of a single worker uses the same samples and parameters as rank 0 of two. The
// results differ, which shows that rank 1's gradient
// arrived.
func TestDDPIsNotRankZeroAlone(t *testing.T) {
	together, alone := point(t, 2), point(t, 1)
	together.Workload.Train.MaxSteps, alone.Workload.Train.MaxSteps = 1, 1
	two, _ := start(t, together, 2).wait()
	one, _ := start(t, alone, 1).wait()
	if a, b := only(t, two[0], trainOf), only(t, one[0], trainOf); a.ParameterSHA256 != b.ParameterSHA256 {
		t.Fatalf("the runs start from different parameters: %+v, %+v", a, b)
	}
	a, b := only(t, two[0], stopOf), only(t, one[0], stopOf)
	if a.Steps != 1 || b.Steps != 1 || a.ParameterSHA256 == b.ParameterSHA256 {
		t.Errorf("after a step two workers are at %+v and one at %+v", a, b)
	}
	if c := only(t, two[1], stopOf); *c != *a {
		t.Errorf("ranks end with %+v and %+v", a, c)
	}
}

// If a run cannot be measured, every rank reports it in an error event of its phase and by its exit code.
func TestDDPRefuses(t *testing.T) {
	cases := map[string]struct {
		size   int
		change func(p *study.Point)
		where  string
		says   string
	}{
		"independent copies": {1, func(p *study.Point) { p.Workers = 2 }, "rendezvous", "PyTorch has rank 0 of 1 here; the plan has rank 0 of 2"},
		"no GPU":             {1, func(p *study.Point) { p.Resources.Device = "gpu" }, "rendezvous", `resources.device is "gpu"`},
		"no data":            {1, func(p *study.Point) { p.Data.Path = t.TempDir() }, "data", "data_batch_1.bin is missing"},
		"corrupt data": {2, func(p *study.Point) {
			f, err := os.OpenFile(filepath.Join(p.Data.Path, "data_batch_2.bin"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte{10}, dataset.RecordBytes); err != nil {
				t.Fatal(err)
			}
		}, "data", "record 2 (at byte 3073) has label 10"},
		"short data": {1, func(p *study.Point) {
			if err := os.Truncate(filepath.Join(p.Data.Path, "test_batch.bin"), 4000); err != nil {
				t.Fatal(err)
			}
		}, "data", "test_batch.bin is cut short: 4000 bytes"},
		"too many samples asked": {1, func(p *study.Point) { p.Data.TrainSamples = 241 }, "data", "241 training samples asked for, the data set has 240"},
		"small data":             {1, func(p *study.Point) { p.GlobalBatch = 241 }, "configuration", "240 samples, fewer than one global batch of 241"},
		"diverging":              {2, func(p *study.Point) { p.LearningRate = 1e30; p.Workload.Train.LearningRate = 1e30 }, "train", "is not a finite number; lower workload.learning_rate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := point(t, c.size)
			c.change(&p)
			events, codes := start(t, p, c.size).wait()
			for rank, list := range events {
				e := only(t, list, func(e metrics.Event) *metrics.Error { return e.Error })
				stop := only(t, list, stopOf)
				if e.Where != c.where || !strings.Contains(e.Message, c.says) || stop.Status != metrics.StopFailed || codes[rank] == 0 {
					t.Errorf("rank %d: %+v, %+v, exit code %d; want %q in phase %s", rank, e, stop, codes[rank], c.says, c.where)
				}
			}
		})
	}
}

// However a run's length is given, all ranks stop after the same step.
func TestDDPLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *study.Train)
		steps  int // -1 means any number
	}{
		"max_steps":   {func(w *study.Train) { w.MaxSteps = 13 }, 13},
		"max_minutes": {func(w *study.Train) { w.Epochs, w.MaxMinutes = 0, 0.01 }, -1},
		"until targets": {func(w *study.Train) {
			w.Epochs, w.Until, w.Targets = 50, "targets", []measure.Target{measure.Accuracy(0.01)}
		}, 10},
		"until a loss and a perplexity": {func(w *study.Train) {
			w.Epochs, w.Until, w.Targets = 50, "targets", lossTargets(t, "loss<=100", "perplexity<=1000000")
		}, 10},
		"loss not met": {func(w *study.Train) { w.Until, w.Targets = "targets", lossTargets(t, "loss<=0.000001") }, 20},
		"one of two met": {func(w *study.Train) {
			w.Until, w.Targets = "targets", lossTargets(t, "loss<=100", "perplexity<=1")
		}, 20},
		"target not met": {func(w *study.Train) { w.Until, w.Targets = "targets", []measure.Target{measure.Accuracy(1)} }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := point(t, 2)
			c.change(&p.Workload.Train)
			events, _ := start(t, p, 2).wait()
			a, b := only(t, events[0], stopOf), only(t, events[1], stopOf)
			if *a != *b || a.Status != metrics.StopDone || a.Steps == 0 || (c.steps >= 0 && a.Steps != c.steps) {
				t.Errorf("stops %+v and %+v, want them done, equal, after %d steps", a, b, c.steps)
			}
			last := events[0][len(events[0])-2].Evaluation
			if last == nil || last.Step != a.Steps {
				t.Errorf("rank 0's last word before it stops is %+v, want an evaluation after step %d", last, a.Steps)
			}
		})
	}
}

func lossTargets(t *testing.T, texts ...string) (list []measure.Target) {
	t.Helper()
	for _, text := range texts {
		target, err := measure.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, target)
	}
	return list
}

// A signal to one rank ends all of them after the same step, in order.
func TestDDPInterrupted(t *testing.T) {
	p := point(t, 2)
	p.Workload.Train.Epochs = 1_000_000
	d := start(t, p, 2)
	d.awaitEvaluation()
	if err := d.ranks[1].Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	events, codes := d.wait() // a rank that does not end is killed and has no stop event
	for rank, want := range []string{"another rank was told to stop", "signal USR1"} {
		stop := only(t, events[rank], stopOf)
		if stop.Status != metrics.StopInterrupted || !strings.Contains(stop.Cause, want) || codes[rank] == 0 {
			t.Errorf("rank %d: %+v, exit code %d", rank, stop, codes[rank])
		}
	}
	a, b := only(t, events[0], stopOf), only(t, events[1], stopOf)
	if a.Steps != b.Steps || a.ParameterSHA256 != b.ParameterSHA256 {
		t.Errorf("stopped at %+v and %+v", a, b)
	}
}

// When a rank dies the others report it and end; they do not hang.
func TestDDPRankKilled(t *testing.T) {
	p := point(t, 2)
	p.Workload.Train.Epochs = 1_000_000
	d := start(t, p, 2)
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(d.run.EventFile("rank", 1, 0)); err == nil && strings.Contains(string(text), `"epoch"`) {
			break
		}
	}
	if err := d.ranks[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	events, codes := d.wait() // a rank that does not end is killed and has no stop event
	if stop := only(t, events[0], stopOf); stop.Status != metrics.StopFailed || stop.Steps == 0 || codes[0] == 0 {
		t.Errorf("rank 0 ends with %+v, exit code %d", stop, codes[0])
	}
}

// The program's models are the ones that a study may name.
func TestDDPModels(t *testing.T) {
	cmd := exec.Command(debianPython, "-B", "-c", "import json, pytorch_models as m; print(json.dumps({k: sum(p.numel() for p in v().parameters()) for k, v in m.MODELS.items()}))")
	cmd.Dir = "programs"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var counts map[string]int
	if err := json.Unmarshal(out, &counts); err != nil {
		t.Fatal(err)
	}
	for _, name := range NativeModels {
		if counts[name] == 0 {
			t.Errorf("pytorch-ddp has no model %s", name)
		}
	}
	if len(counts) != len(NativeModels) || counts["resnet44"] != 658_586 || counts["mlp"] != 3_676_682 {
		t.Errorf("models %v, want %v", counts, NativeModels)
	}
}

// Training improves accuracy well above the 10 % of guessing.
func TestDDPLearns(t *testing.T) {
	p := point(t, 2)
	p.Data.Path = filepath.Join(t.TempDir(), "easy")
	easy := 0.0
	if err := dataset.Synthesize(p.Data.Path, dataset.SyntheticOptions{TrainSamples: 1200, TestSamples: 200, Difficulty: &easy}); err != nil {
		t.Fatal(err)
	}
	p.Workload.Train.Epochs, p.LearningRate, p.Workload.Train.LearningRate = 5, 0.03, 0.03
	events, _ := start(t, p, 2).wait()
	best := 0.0
	for _, e := range events[0] {
		if e.Evaluation != nil {
			best = math.Max(best, e.Evaluation.Accuracy)
		}
	}
	if best < 0.7 {
		t.Errorf("an accuracy of %g after 5 epochs, want 0.7", best)
	}
}
