package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/native/dataset"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// point returns a small run of a model on synthetic data; batch is the batch per worker.
func point(model string, workers, batch int) study.Point {
	return study.Point{
		ID: "test", Study: "test", Framework: "native", Workers: workers,
		Workload: study.Workload{Kind: "train", Train: study.Train{
			Model: model, Precision: "fp32", Batch: batch, Scaling: "weak",
			LearningRate: 0.05, ReferenceBatch: batch * workers, ScaleLearningRate: "none",
			Decay: "none", Momentum: 0.9, WeightDecay: 1e-4, BatchNorm: "local", Augment: true, Epochs: 1,
		}},
		Data:      study.Data{Kind: "synthetic", TrainSamples: 64, TestSamples: 21},
		Resources: study.Resources{Device: "cpu", CPUsPerWorker: 1},
		Repeat:    1, Seed: 42, Nodes: 1, WorkersPerNode: workers,
		WorkerBatch: batch, GlobalBatch: batch * workers, LearningRate: 0.05,
	}
}

// outcome is the result of one rank's Run.
type outcome struct {
	err    error
	file   []byte
	events []metrics.Event
}

func (o outcome) last() metrics.Event { return o.events[len(o.events)-1] }

// of returns the events of a kind.
func (o outcome) of(kind string) (list []metrics.Event) {
	for _, e := range o.events {
		if e.Kind() == kind {
			list = append(list, e)
		}
	}
	return list
}

// runRanks runs all ranks of p as goroutines, connected over TCP. change may
// alter what one of them is given.
func runRanks(t testing.TB, p study.Point, size int, change func(rank int, p *study.Point, w *world.World, o *Options) context.Context) []outcome {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	list := make([]outcome, size)
	var wg sync.WaitGroup
	for r := range size {
		w := world.World{Rank: r, Size: size, LocalRank: r, LocalSize: size, Nodes: 1, Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port}
		var file bytes.Buffer
		o := Options{Nonce: "secret", Events: &file, Version: "test", Timeout: 30 * time.Second, JoinTimeout: 30 * time.Second}
		if r == 0 {
			o.listener = l
		}
		p, ctx := p, context.Background()
		if change != nil {
			if c := change(r, &p, &w, &o); c != nil {
				ctx = c
			}
		}
		wg.Go(func() {
			err := Run(ctx, p, w, o)
			list[r] = outcome{err: err, file: file.Bytes(), events: readEvents(t, &file)}
		})
	}
	wg.Wait()
	return list
}

func readEvents(t testing.TB, from io.Reader) (list []metrics.Event) {
	r := metrics.NewReader(from, "events", 0, 0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Error(err)
			return list
		}
		list = append(list, e)
	}
}

func noErrors(t testing.TB, list []outcome) {
	t.Helper()
	for r, o := range list {
		if o.err != nil {
			t.Fatalf("rank %d: %v", r, o.err)
		}
	}
}

// byEpoch joins the steps of each epoch, which are written once a second and at
// its end.
func byEpoch(events []metrics.Event) []metrics.Steps {
	var list []metrics.Steps
	within := false
	for _, e := range events {
		if s := e.Steps; s != nil && within {
			l := &list[len(list)-1]
			l.Duration, l.Samples = append(l.Duration, s.Duration...), append(l.Samples, s.Samples...)
			l.DataWait, l.Compute = append(l.DataWait, s.DataWait...), append(l.Compute, s.Compute...)
			l.Communication = append(l.Communication, s.Communication...)
		} else if s != nil {
			list = append(list, *s)
		}
		within = e.Steps != nil
	}
	return list
}

// A run's events, from the first to the last.
func TestEvents(t *testing.T) {
	p := point("cnn", 2, 8)
	p.Workload.Train.Epochs = 3
	begin := float64(time.Now().UnixNano()) / 1e9
	list := runRanks(t, p, 2, nil)
	noErrors(t, list)
	for r, o := range list {
		var kinds []string
		for _, e := range o.events {
			if k := e.Kind(); len(kinds) == 0 || kinds[len(kinds)-1] != k {
				kinds = append(kinds, k)
			}
		}
		epoch := "steps epoch gradients "
		if r == 0 {
			epoch += "evaluation "
		}
		if got, want := strings.Join(kinds, " "), "start environment train "+strings.Repeat(epoch, 3)+"stop"; got != want {
			t.Fatalf("rank %d: events %s, want %s", r, got, want)
		}
		start := o.events[0].Start
		if start.Rank != r || start.WorldSize != 2 || start.Writer != "rank" || start.Framework != "native" || start.PID != os.Getpid() || start.Unix < begin-1 {
			t.Errorf("rank %d: start %+v", r, start)
		}
		env := o.of("environment")[0].Environment
		if env.Threads != 1 || env.Versions["scalebench"] != "test" || env.Versions["go"] == "" {
			t.Errorf("rank %d: environment %+v", r, env)
		}
		train := o.of("train")[0].Train
		if train.TrainSamples != 64 || train.TestSamples != 21 || train.GlobalBatch != 16 || train.StepsPerEpoch != 4 ||
			train.Parameters != 24_346 || train.GradientBytes != 4*24_346 || len(train.ParameterSHA256) != 64 {
			t.Errorf("rank %d: train %+v", r, train)
		}
		if first := list[0].of("train")[0].Train.ParameterSHA256; train.ParameterSHA256 != first {
			t.Errorf("rank %d starts with parameters %s, rank 0 with %s", r, train.ParameterSHA256, first)
		}
		next, epochs := 0, byEpoch(o.events)
		for i, e := range o.of("epoch") {
			s := epochs[i]
			var samples, ticks int64
			for k, d := range s.Duration {
				samples += s.Samples[k]
				ticks += d
				if parts := s.DataWait[k] + s.Compute[k]; parts > d+2 || s.Communication[k] > d {
					t.Errorf("rank %d: parts of %d ticks and communication of %d in a step of %d", r, parts, s.Communication[k], d)
				}
			}
			if s.First != next || len(s.Duration) != 4 || samples != 32 || e.Epoch.Samples != 32 || e.Epoch.Epoch != i+1 || e.Epoch.Step != 4*(i+1) {
				t.Errorf("rank %d: epoch %+v with steps %+v", r, e.Epoch, s)
			}
			next += len(s.Duration)
			// Steps add up to the epoch, except for rounding by less than a tick each.
			if got := float64(ticks) * s.Tick; got > e.Epoch.Seconds+1e-9 || got < e.Epoch.Seconds-4*s.Tick {
				t.Errorf("rank %d: steps of %v s in an epoch of %v s", r, got, e.Epoch.Seconds)
			}
			if e.Epoch.Loss == nil || !(*e.Epoch.Loss > 0) || e.Epoch.LearningRate != 0.05 {
				t.Errorf("rank %d: epoch %+v", r, e.Epoch)
			}
		}
		for i, e := range o.of("gradients") {
			g := e.Gradients
			if g.Epoch != i+1 || g.Step != 4*(i+1) || g.Samples != 8 || g.GlobalSamples != 16 || len(g.Steps) != 4 {
				t.Errorf("rank %d: gradients %+v", r, g)
			}
			zero, one := list[0].of("gradients")[i].Gradients, list[1].of("gradients")[i].Gradients
			for k := range g.Steps {
				// The norm of a mean is at most the mean of the norms.
				if mean := (zero.Own[k] + one.Own[k]) / 2; !(g.Averaged[k] > 0) || g.Averaged[k] > mean*(1+1e-6) || g.Averaged[k] != zero.Averaged[k] {
					t.Errorf("epoch %d, step %d: averaged gradients %g of own ones %g and %g", i+1, k, g.Averaged[k], zero.Own[k], one.Own[k])
				}
			}
		}
		stop := o.last().Stop
		if stop.Status != metrics.StopDone || stop.Steps != 12 || stop.Epochs != 3 || stop.Cause != "" {
			t.Errorf("rank %d: stop %+v", r, stop)
		}
		if zero := list[0].last().Stop.ParameterSHA256; stop.ParameterSHA256 != zero || zero == train.ParameterSHA256 {
			t.Errorf("rank %d ends with parameters %s, rank 0 with %s", r, stop.ParameterSHA256, zero)
		}
	}
	for i, e := range list[0].of("evaluation") {
		if v := e.Evaluation; v.Samples != 21 || v.Epoch != i+1 || v.Step != 4*(i+1) || v.Loss == nil || v.Seconds <= 0 {
			t.Errorf("evaluation %d: %+v", i, v)
		}
	}
}

// After every step all ranks hold the same bits.
func TestRanksStayIdentical(t *testing.T) {
	for _, test := range []struct {
		model string
		sizes []int
		sync  bool
	}{{"cnn", []int{2, 3, 4}, false}, {"cnn", []int{3}, true}, {"mlp", []int{2}, false}, {"resnet20", []int{2}, false}} {
		for _, size := range test.sizes {
			t.Run(fmt.Sprintf("%s on %d, sync %v", test.model, size, test.sync), func(t *testing.T) {
				p := point(test.model, size, 2)
				p.Workload.Train.MaxSteps = 4
				if test.sync {
					p.Workload.Train.BatchNorm = "sync"
				}
				p.Data.TestSamples = 8
				hashes := make([][]string, size)
				list := runRanks(t, p, size, func(r int, _ *study.Point, _ *world.World, o *Options) context.Context {
					o.afterStep = func(_ int, e engine) {
						sum, err := parameterSHA256(e)
						if err != nil {
							t.Error(err)
						}
						hashes[r] = append(hashes[r], sum)
					}
					return nil
				})
				noErrors(t, list)
				for r := range hashes {
					if len(hashes[r]) != 4 {
						t.Fatalf("rank %d made %d steps, want 4", r, len(hashes[r]))
					}
					for i, h := range hashes[r] {
						if h != hashes[0][i] {
							t.Errorf("step %d: rank %d has %s, rank 0 %s", i, r, h, hashes[0][i])
						}
						if i > 0 && h == hashes[r][i-1] {
							t.Errorf("step %d changes nothing", i)
						}
					}
				}
			})
		}
	}
}

// All ranks start with rank 0's parameters.
func TestRankZeroDecidesTheStart(t *testing.T) {
	p := point("cnn", 3, 4)
	list := runRanks(t, p, 3, func(r int, p *study.Point, _ *world.World, _ *Options) context.Context {
		p.Seed += int64(r)
		return nil
	})
	noErrors(t, list)
	alone := runRanks(t, point("cnn", 1, 4), 1, nil)
	for r, o := range list {
		if got, want := o.of("train")[0].Train.ParameterSHA256, alone[0].of("train")[0].Train.ParameterSHA256; got != want {
			t.Errorf("rank %d starts with %s, rank 0 alone with %s", r, got, want)
		}
		if got, want := o.last().Stop.ParameterSHA256, list[0].last().Stop.ParameterSHA256; got != want {
			t.Errorf("rank %d ends with %s, rank 0 with %s", r, got, want)
		}
	}
}

// trained returns rank 0's parameters after every step.
func trained(t *testing.T, p study.Point) (list [][]float32) {
	t.Helper()
	noErrors(t, runRanks(t, p, p.Workers, func(r int, _ *study.Point, _ *world.World, o *Options) context.Context {
		if r == 0 {
			o.afterStep = func(_ int, e engine) {
				var b bytes.Buffer
				if err := e.WriteParameters(&b); err != nil {
					t.Error(err)
				}
				v := make([]float32, b.Len()/4)
				if err := binary.Read(&b, binary.LittleEndian, v); err != nil {
					t.Error(err)
				}
				list = append(list, v)
			}
		}
		return nil
	}))
	return list
}

// Without batch norm, or with synchronised batch norm, results depend on the number of workers
// only by rounding.
func TestWorkersDoNotChangeTheResult(t *testing.T) {
	for _, test := range []struct {
		model     string
		augment   bool
		sync      bool
		tolerance float64
	}{{"mlp", false, false, 1e-5}, {"mlp", true, false, 1e-5}, {"cnn", true, true, 1e-4}} {
		t.Run(fmt.Sprintf("%s, augment %v", test.model, test.augment), func(t *testing.T) {
			var results [3][][]float32
			for i, workers := range []int{1, 2, 4} {
				p := point(test.model, workers, 16/workers)
				p.Workload.Train.MaxSteps = 6
				p.Workload.Train.Epochs = 2
				p.Data.TestSamples = 4
				p.LearningRate, p.Workload.Train.LearningRate = 0.01, 0.01
				p.Workload.Train.Augment = test.augment
				if test.sync {
					p.Workload.Train.BatchNorm = "sync"
				}
				results[i] = trained(t, p)
			}
			for i, result := range results[1:] {
				if len(result) != 6 || len(results[0]) != 6 {
					t.Fatalf("%d and %d steps, want 6", len(result), len(results[0]))
				}
				for step := range result {
					var worst, moved float64
					for k, v := range result[step] {
						worst = max(worst, math.Abs(float64(v)-float64(results[0][step][k])))
						moved = max(moved, math.Abs(float64(v)-float64(results[0][0][k])))
					}
					if worst > test.tolerance {
						t.Errorf("%d workers: after step %d a parameter differs by %g", 2<<i, step+1, worst)
					}
					if step > 0 && moved < 1e-3 {
						t.Errorf("after step %d no parameter has moved by more than %g", step+1, moved)
					}
				}
			}
		})
	}
}

// With local batch norm, each worker has its own statistics, so the comparison must fail. This
// shows that the test above can fail.
func TestLocalBatchNormIsLocal(t *testing.T) {
	var last [2][]float32
	for i, workers := range []int{1, 2} {
		p := point("cnn", workers, 16/workers)
		p.Workload.Train.MaxSteps = 3
		p.Workload.Train.Augment = false
		steps := trained(t, p)
		last[i] = steps[len(steps)-1]
	}
	var worst float64
	for k := range last[0] {
		worst = max(worst, math.Abs(float64(last[0][k])-float64(last[1][k])))
	}
	if worst < 1e-3 {
		t.Errorf("one worker and two differ by no more than %g", worst)
	}
}

// The small CNN learns the default synthetic data: it passes 0.75 within a few
// epochs, but not in the first.
func TestLearns(t *testing.T) {
	p := point("cnn", 1, 32)
	p.Workload.Train.Epochs = 8
	p.Workload.Train.Until, p.Workload.Train.Targets = "targets", []measure.Target{measure.Accuracy(0.75)}
	p.Data = study.Data{Kind: "synthetic"}
	p.Resources.CPUsPerWorker = 2
	list := runRanks(t, p, 1, nil)
	noErrors(t, list)
	evaluations := list[0].of("evaluation")
	for i, e := range evaluations {
		t.Logf("epoch %d: accuracy %.4f at %.2f s", e.Evaluation.Epoch, e.Evaluation.Accuracy, e.Time)
		if reached := e.Evaluation.Accuracy >= 0.75; reached != (i == len(evaluations)-1) {
			t.Errorf("accuracy %.3f after epoch %d of %d", e.Evaluation.Accuracy, i+1, len(evaluations))
		}
	}
	if len(evaluations) < 2 {
		t.Error("the data is too easy")
	}
	epochs := list[0].of("epoch")
	if first, last := *epochs[0].Epoch.Loss, *epochs[len(epochs)-1].Epoch.Loss; last > 0.8*first {
		t.Errorf("the loss went from %.3f to %.3f", first, last)
	}
}

// The same samples from files and from memory end in the same parameters.
func TestDataFiles(t *testing.T) {
	dir := t.TempDir()
	if err := dataset.Synthesize(dir, dataset.SyntheticOptions{TrainSamples: 50, TestSamples: 10}); err != nil {
		t.Fatal(err)
	}
	var sums [2]string
	for i, d := range []study.Data{{Kind: "synthetic"}, {Kind: "cifar10", Path: dir}} {
		p := point("cnn", 1, 8)
		p.Data = d
		p.Data.TrainSamples, p.Data.TestSamples = 40, 10
		list := runRanks(t, p, 1, nil)
		noErrors(t, list)
		if train := list[0].of("train")[0].Train; train.TrainSamples != 40 || train.StepsPerEpoch != 5 {
			t.Errorf("%s: %+v", d.Kind, train)
		}
		sums[i] = list[0].last().Stop.ParameterSHA256
	}
	if sums[0] != sums[1] {
		t.Errorf("parameters %s from memory and %s from files", sums[0], sums[1])
	}
}

// slowed is an engine whose reduction takes longer.
type slowed struct {
	engine
	by time.Duration
}

func (s slowed) Reduce(ctx context.Context, votes []float32) (time.Duration, error) {
	time.Sleep(s.by)
	busy, err := s.engine.Reduce(ctx, votes)
	return busy + s.by, err
}

// The time of a slow all-reduce counts as communication only.
func TestSlowReductionIsCommunication(t *testing.T) {
	const by = 400 * time.Millisecond // more than a busy machine adds to a step
	medians := func(slow bool) (compute, communication, wait float64) {
		p := point("cnn", 2, 2) // little to compute
		p.Workload.Train.MaxSteps = 5
		list := runRanks(t, p, 2, func(_ int, _ *study.Point, _ *world.World, o *Options) context.Context {
			if slow {
				o.wrap = func(e engine) engine { return slowed{e, by} }
			}
			return nil
		})
		noErrors(t, list)
		s := list[0].of("steps")[0].Steps
		return median(s.Compute) * s.Tick, median(s.Communication) * s.Tick, median(s.DataWait) * s.Tick
	}
	fastCompute, fastCommunication, fastWait := medians(false)
	compute, communication, wait := medians(true)
	if more := communication - fastCommunication; more < by.Seconds()*0.5 || communication < by.Seconds() {
		t.Errorf("communication went from %g to %g s with a reduction slower by %v", fastCommunication, communication, by)
	}
	if compute > fastCompute+by.Seconds()/2 || wait > fastWait+by.Seconds()/2 {
		t.Errorf("compute went from %g to %g s and data wait from %g to %g s with a reduction slower by %v", fastCompute, compute, fastWait, wait, by)
	}
}

func median(values []int64) float64 {
	sorted := append([]int64(nil), values...)
	for i := range sorted {
		for j := i; j > 0 && sorted[j] < sorted[j-1]; j-- {
			sorted[j], sorted[j-1] = sorted[j-1], sorted[j]
		}
	}
	return float64(sorted[len(sorted)/2])
}

// Signals on one rank stop all of them after the same step.
func TestInterrupt(t *testing.T) {
	p := point("cnn", 3, 4)
	p.Workload.Train.Epochs = 1_000_000
	p.Data.TrainSamples = 1200
	ctx, cancel := context.WithCancelCause(context.Background())
	list := runRanks(t, p, 3, func(r int, _ *study.Point, _ *world.World, o *Options) context.Context {
		if r != 1 {
			return nil
		}
		o.afterStep = func(step int, _ engine) {
			if step == 7 {
				cancel(errors.New("signal terminated"))
			}
		}
		return ctx
	})
	for r, o := range list {
		var interrupted *InterruptedError
		if !errors.As(o.err, &interrupted) || interrupted.Steps != list[1].last().Stop.Steps {
			t.Errorf("rank %d: %v", r, o.err)
		}
		stop := o.last().Stop
		if stop == nil || stop.Status != metrics.StopInterrupted || stop.Steps < 7 || stop.Steps > 8 || stop.ParameterSHA256 != list[0].last().Stop.ParameterSHA256 {
			t.Errorf("rank %d: stop %+v", r, stop)
		}
		steps := 0
		for _, e := range o.of("steps") {
			steps += len(e.Steps.Duration)
		}
		if steps != stop.Steps {
			t.Errorf("rank %d recorded %d steps of %d", r, steps, stop.Steps)
		}
	}
	if cause := list[1].last().Stop.Cause; cause != "signal terminated" {
		t.Errorf("the signalled rank gives the cause %q", cause)
	}
	if cause := list[0].last().Stop.Cause; !strings.Contains(cause, "another rank") {
		t.Errorf("another rank gives the cause %q", cause)
	}
}

// Each case ends a run by another limit.
func TestLimits(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*study.Train)
		check  func(steps, epochs, evaluations int) bool
	}{
		{"max_steps within an epoch", func(t *study.Train) { t.MaxSteps, t.Epochs = 6, 9 }, func(s, e, v int) bool { return s == 6 && e == 1 && v == 2 }},
		{"max_steps at the end of an epoch", func(t *study.Train) { t.MaxSteps, t.Epochs = 8, 9 }, func(s, e, v int) bool { return s == 8 && e == 2 && v == 2 }},
		{"epochs", func(t *study.Train) { t.Epochs = 3 }, func(s, e, v int) bool { return s == 12 && e == 3 && v == 3 }},
		{"max_minutes", func(t *study.Train) { t.Epochs, t.MaxMinutes = 1_000_000, 0.3/60 }, func(s, e, v int) bool { return s > 0 && v > 0 && e < 1_000_000 }},
		{"targets", func(t *study.Train) {
			t.Epochs, t.Until, t.Targets = 0, "targets", []measure.Target{measure.Accuracy(0.001), measure.Accuracy(0)}
		}, func(s, e, v int) bool { return e == s/4 && v == e && e >= 1 && e < 50 }},
		{"loss and perplexity", func(t *study.Train) {
			t.Epochs, t.Until = 50, "targets"
			t.Targets = []measure.Target{{Of: measure.OfLoss, Value: 1000, Better: measure.Lower}, {Of: measure.OfPerplexity, Value: 1e12, Better: measure.Lower}}
		}, func(s, e, v int) bool { return s == 4 && e == 1 && v == 1 }},
		{"a loss that is not met", func(t *study.Train) {
			t.Epochs, t.Until = 2, "targets"
			t.Targets = []measure.Target{measure.Accuracy(0.001), {Of: measure.OfLoss, Value: 0, Better: measure.Lower}}
		}, func(s, e, v int) bool { return s == 8 && e == 2 && v == 2 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := point("cnn", 2, 8)
			test.change(&p.Workload.Train)
			list := runRanks(t, p, 2, nil)
			noErrors(t, list)
			stop := list[0].last().Stop
			if n := len(list[0].of("evaluation")); stop.Status != metrics.StopDone || !test.check(stop.Steps, stop.Epochs, n) {
				t.Errorf("%+v, %d evaluations", stop, n)
			}
			// The gradients of an incomplete last epoch are recorded, too.
			recorded := 0
			for _, e := range list[1].of("gradients") {
				for _, n := range e.Gradients.Steps {
					recorded += n
				}
			}
			if recorded != stop.Steps {
				t.Errorf("gradients of %d steps out of %d", recorded, stop.Steps)
			}
			if other := list[1].last().Stop; other.Steps != stop.Steps || other.Epochs != stop.Epochs {
				t.Errorf("rank 1 stops with %+v", other)
			}
		})
	}
}

// A point that cannot be trained is reported before training, also in the events.
func TestRefusals(t *testing.T) {
	short := t.TempDir()
	if err := dataset.Synthesize(short, dataset.SyntheticOptions{TrainSamples: 10, TestSamples: 2}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(short, "data_batch_4.bin"), 100); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*study.Point)
		where  string
		want   string
	}{
		{"model", func(p *study.Point) { p.Workload.Train.Model = "vgg" }, "configuration", "cnn, mlp, resnet20"},
		{"precision", func(p *study.Point) { p.Workload.Train.Precision = "bf16" }, "configuration", `"fp32" only`},
		{"device", func(p *study.Point) { p.Resources.Device = "gpu" }, "configuration", `no engine for GPUs`},
		{"workers", func(p *study.Point) { p.Workers = 4 }, "rendezvous", "ranks met: 1, but the point has 4"},
		{"batch", func(p *study.Point) { p.GlobalBatch = 9 }, "configuration", "global_batch 9"},
		{"no end", func(p *study.Point) { p.Workload.Train.Epochs = 0 }, "configuration", "nothing ends"},
		{"targets", func(p *study.Point) { p.Workload.Train.Until = "targets" }, "configuration", "needs workload.targets"},
		{"until", func(p *study.Point) { p.Workload.Train.Until = "bored" }, "configuration", `"bored"`},
		{"decay", func(p *study.Point) { p.Workload.Train.Decay = "linear" }, "configuration", `"cosine"`},
		{"cosine", func(p *study.Point) {
			p.Workload.Train.Decay, p.Workload.Train.Epochs, p.Workload.Train.MaxMinutes = "cosine", 0, 1
		}, "configuration", "max_steps"},
		{"learning rate", func(p *study.Point) { p.LearningRate = math.NaN() }, "configuration", "NaN"},
		{"batch norm", func(p *study.Point) { p.Workload.Train.BatchNorm = "group" }, "configuration", `"local" or "sync"`},
		{"few samples", func(p *study.Point) { p.Data.TrainSamples = 7 }, "configuration", "fewer than one global batch"},
		{"data kind", func(p *study.Point) { p.Data.Kind = "imagenet" }, "data", `"cifar10" or "synthetic"`},
		{"data missing", func(p *study.Point) { p.Data = study.Data{Kind: "cifar10", Path: "/nowhere"} }, "data", "/nowhere/data_batch_1.bin"},
		{"data short", func(p *study.Point) { p.Data = study.Data{Kind: "cifar10", Path: short} }, "data", "data_batch_4.bin is cut short"},
		{"divergence", func(p *study.Point) { p.LearningRate, p.Workload.Train.Model, p.Workload.Train.Epochs = 1e30, "mlp", 3 }, "train", "diverged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := point("cnn", 1, 8)
			test.change(&p)
			o := runRanks(t, p, 1, nil)[0]
			if o.err == nil || !strings.Contains(o.err.Error(), test.want) {
				t.Fatalf("%v, want %q in it", o.err, test.want)
			}
			report, stop := o.of("error"), o.last().Stop
			if len(report) != 1 || report[0].Error.Where != test.where || !strings.Contains(report[0].Error.Message, test.want) {
				t.Errorf("error events %s", o.file)
			}
			if stop == nil || stop.Status != metrics.StopFailed || !strings.Contains(stop.Cause, test.want) {
				t.Errorf("stop %+v", stop)
			}
		})
	}
}

// If one rank fails, all ranks fail, and their errors name it.
func TestOneRankFails(t *testing.T) {
	p := point("cnn", 3, 4)
	list := runRanks(t, p, 3, func(r int, p *study.Point, _ *world.World, _ *Options) context.Context {
		if r == 2 {
			p.Data = study.Data{Kind: "cifar10", Path: "/nowhere"}
		}
		return nil
	})
	for r, o := range list {
		if o.err == nil || !strings.Contains(o.err.Error(), "/nowhere/data_batch_1.bin") {
			t.Errorf("rank %d: %v", r, o.err)
		}
		if r != 2 && !strings.Contains(o.err.Error(), "rank 2 gave up") {
			t.Errorf("rank %d does not name rank 2: %v", r, o.err)
		}
		if stop := o.last().Stop; stop == nil || stop.Status != metrics.StopFailed {
			t.Errorf("rank %d: %+v", r, stop)
		}
	}
}

func TestWrongNonce(t *testing.T) {
	p := point("cnn", 2, 4)
	list := runRanks(t, p, 2, func(r int, _ *study.Point, _ *world.World, o *Options) context.Context {
		o.JoinTimeout = time.Second
		if r == 1 {
			o.Nonce = "guessed"
		}
		return nil
	})
	for r, o := range list {
		if want := []string{"wrong nonce", "does not know this run's nonce"}[r]; o.err == nil || !strings.Contains(o.err.Error(), want) {
			t.Errorf("rank %d: %v, want %q", r, o.err, want)
		}
		if e := o.of("error"); len(e) != 1 || e[0].Error.Where != "rendezvous" {
			t.Errorf("rank %d: %s", r, o.file)
		}
	}
}
