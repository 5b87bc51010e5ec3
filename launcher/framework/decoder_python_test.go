//go:build python

package framework

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// decoderPoint returns a small point of a language model: 40 training sequences of 32 bytes, 5 steps per epoch
// with 2 workers, and 9 sequences to test with, which the ranks share unevenly.
func decoderPoint(t *testing.T, model string, workers int) study.Point {
	t.Helper()
	p := point(t, workers)
	a, ok, err := study.Decoder(model)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	dir := t.TempDir()
	letters := strings.Repeat("the quick brown fox jumps over the lazy dog; ", 29)
	for name, sequences := range map[string]int{"train.txt": 40, "test.txt": 9} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(letters[:32*sequences+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.Sequence = 32
	p.Architecture, p.Data = a, study.Data{Kind: "text", Path: dir}
	w := &p.Workload.Train
	w.Model, w.Batch, w.Sequence = model, 4, 32
	p.WorkerBatch, p.GlobalBatch = 4, 4*workers
	return p
}

// Three steps of a framework give the same losses and parameters as a plain PyTorch loop in
// one process, from equal weights on the same samples.
func TestDecoderSteps(t *testing.T) {
	for _, model := range []string{"llama-100k", "gpt-100k"} {
		t.Run(model, func(t *testing.T) {
			p := decoderPoint(t, model, 2)
			w := &p.Workload.Train
			w.Checkpointing = model == "gpt-100k"
			if w.MicroBatch = 2; model == "llama-100k" { // a batch of 4 in four parts, given by the other keys
				w.Batch, w.MicroBatch, w.Accumulate, p.MicroBatch = 128, 1, 4, 1
			}
			decoderSteps(t, "pytorch_ddp", p, debianPython, debianPython)
		})
	}
}

// decoderSteps compares a module's three steps with PyTorch's own.
func decoderSteps(t *testing.T, module string, p study.Point, python, pytorch string) {
	t.Helper()
	p.Framework = "" // any
	p.MicroBatch = cmp.Or(p.MicroBatch, p.Workload.Train.MicroBatch)
	dir := t.TempDir()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	// Ranks that meet prove to each other that they know the nonce.
	for name, content := range map[string][]byte{"point.json": text, "nonce": []byte("a nonce\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := filepath.Abs("programs")
	if err != nil {
		t.Fatal(err)
	}
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	start := func(python, module string, rank, size int) error {
		cmd := exec.Command(python, "-B", "testdata/decoder_steps.py", module, dir, strconv.Itoa(rank), strconv.Itoa(size), strconv.Itoa(port))
		cmd.Env = append(os.Environ(), "PYTHONPATH="+programs, "GLOO_SOCKET_IFNAME=lo", "SCALEBENCH_RUN="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s, rank %d: %w\n%s", module, rank, err, out)
		}
		return nil
	}
	errs := make([]error, p.Workers+1)
	var all sync.WaitGroup
	all.Go(func() { errs[p.Workers] = start(pytorch, "plain", 0, 1) })
	for rank := range p.Workers {
		all.Go(func() { errs[rank] = start(python, module, rank, p.Workers) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	var plain struct{ Losses [][]float64 }
	readJSON(t, filepath.Join(dir, "plain-0.json"), &plain)
	want, begin := readFloats(t, filepath.Join(dir, "plain-0.f32")), readFloats(t, filepath.Join(dir, "start.f32"))
	const tolerance = 1e-4
	if d := furthest(t, begin, want); d < 30*tolerance {
		t.Errorf("three steps moved the parameters by %g only; the comparison would say nothing", d)
	}
	for rank := range p.Workers {
		var here struct {
			Losses []float64
			Sums   []float64
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%d", module, rank))
		readJSON(t, name+".json", &here)
		d := furthest(t, want, readFloats(t, name+".f32"))
		t.Logf("rank %d: %d parameters differ by at most %.2g", rank, len(want), d)
		if !(d <= tolerance) {
			t.Errorf("rank %d: parameters differ by %g, want at most %g", rank, d, tolerance)
		}
		for step, losses := range plain.Losses {
			if math.Abs(losses[rank]-here.Losses[step]) > tolerance*losses[rank] {
				t.Errorf("rank %d: the loss of step %d is %g, PyTorch's own %g", rank, step, here.Losses[step], losses[rank])
			}
		}
		if n := float64(p.Workers); here.Sums[0] != n || here.Sums[1] != n/2 {
			t.Errorf("rank %d: sums %v over %g ranks of 1 and 0.5", rank, here.Sums, n)
		}
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func readFloats(t *testing.T, path string) []float32 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]float32, len(text)/4)
	if _, err := binary.Decode(text, binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	return list
}

// furthest returns the largest difference between two lists; NaN if any element is NaN.
func furthest(t *testing.T, a, b []float32) float64 {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%d and %d numbers", len(a), len(b))
	}
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}

// Two ranks complete a run of a language model, including evaluations.
func TestDecoderRun(t *testing.T) {
	p := decoderPoint(t, "llama-100k", 2)
	decoderRun(t, p, 106_816)
}

// decoderRun completes a run and checks its events.
func decoderRun(t *testing.T, p study.Point, parameters int64) {
	t.Helper()
	w := &p.Workload.Train
	w.MFU = "palm" // the MFU needs the measured peak of the CPUs
	w.Optimizer, w.Momentum, w.Beta1, w.Beta2, w.Epsilon, w.Epochs, p.LearningRate, w.LearningRate = "adamw", 0, 0.9, 0.95, 1e-8, 6, 3e-3, 3e-3
	f, err := Find(p.Framework)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := f.check(func() study.Point { q := p; q.Resources.Launch = "srun"; return q }()); len(wrong) > 0 {
		t.Errorf("check refuses it: %v", wrong)
	}
	events, codes := start(t, p, p.Workers).wait()
	first, end := only(t, events[0], trainOf), only(t, events[0], stopOf)
	if first.Parameters != parameters || first.TrainSamples != 40 || first.TestSamples != 9 || first.StepsPerEpoch != 40/p.GlobalBatch || first.ParameterSHA256 == end.ParameterSHA256 {
		t.Errorf("%+v, ends with %s", first, end.ParameterSHA256)
	}
	for rank, list := range events {
		if stop := only(t, list, stopOf); codes[rank] != 0 || stop.Status != metrics.StopDone || *stop != *end {
			t.Errorf("rank %d ended with %d: %+v, rank 0 with %+v", rank, codes[rank], stop, end)
		}
	}
	figure := func(name string) *metrics.Figure {
		return only(t, events[0], func(e metrics.Event) *metrics.Figure {
			if e.Figure == nil || e.Figure.Name != name {
				return nil
			}
			return e.Figure
		})
	}
	if tokens := figure("tokens_per_sample"); tokens.Value != 32 || tokens.Unit != "tokens" {
		t.Errorf("%+v", tokens)
	}
	// A core computes between 0.1 GFLOP/s and 10 TFLOP/s.
	if peak := figure("gemm_flops"); peak.Value < 1e8 || peak.Value > 1e13 || peak.Unit != "FLOP/s" {
		t.Errorf("%+v", peak)
	}
	var losses []float64
	for _, e := range events[0] {
		if e.Evaluation != nil {
			losses = append(losses, *e.Evaluation.Loss)
		}
	}
	// An untrained model predicts all 256 bytes equally: the loss is ln 256 = 5.5.
	if len(losses) != 6 || losses[0] > 5.6 || losses[5] > losses[0]-0.5 {
		t.Errorf("losses on the test split %v, want them to fall", losses)
	}
}

// Problems of a text are reported in terms of the text.
func TestTextProblems(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *study.Point)
		want   string
	}{
		"no file":   {func(p *study.Point) { p.Data.Path = t.TempDir() }, "train.txt is missing"},
		"too short": {func(p *study.Point) { p.Architecture.Sequence, p.Workload.Train.Sequence = 1281, 1281 }, "has 1281 bytes, fewer than one sequence of 1281 tokens and the one behind it"},
		"too few":   {func(p *study.Point) { p.Data.TestSamples = 10 }, "10 test samples asked for, it has 9 of 32 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := decoderPoint(t, "llama-100k", 1)
			c.change(&p)
			events, codes := start(t, p, 1).wait()
			if stop := only(t, events[0], stopOf); codes[0] == 0 || stop.Status != metrics.StopFailed || !strings.Contains(stop.Cause, c.want) {
				t.Errorf("ended with %d: %+v, want %q", codes[0], stop, c.want)
			}
		})
	}
}

// Frameworks without language models, or without a layout, name the ones that have them.
func TestDecoderChecks(t *testing.T) {
	for name, c := range map[string]struct {
		framework Framework
		change    func(*study.Point)
		path, say string
	}{
		"native":          {native, func(*study.Point) {}, "workload.model", "is not a model of the native trainer"},
		"horovod":         {pytorchHorovod, func(*study.Point) {}, "workload.model", "pytorch-horovod has no language models; pytorch-ddp"},
		"ddp zero":        {pytorchDDP, func(p *study.Point) { p.Workload.Train.Zero = 3 }, "workload.zero", "does not shard"},
		"fsdp zero":       {pytorchFSDP, func(p *study.Point) { p.Workload.Train.Zero = 1 }, "workload.zero", "has no stage 1; valid: 2, 3"},
		"deepspeed shard": {deepspeed, func(p *study.Point) { p.Workload.Train.Shard = 2 }, "workload.shard", "no groups of ranks"},
		"deepspeed bf16":  {deepspeed, func(p *study.Point) { p.Workload.Train.Precision = "bf16" }, "workload.precision", "set zero = 1, 2 or 3"},
		"ddp shard":       {pytorchDDP, func(p *study.Point) { p.Workload.Train.Shard = 2 }, "workload.shard", "no groups of ranks"},
		"fp16":            {pytorchDDP, func(p *study.Point) { p.Workload.Train.Precision = "fp16" }, "workload.precision", "but not in fp16"},
		"images":          {pytorchDDP, func(p *study.Point) { p.Data.Kind = "cifar10" }, "data.kind", "is a language model and cannot be trained on"},
		"no path":         {pytorchDDP, func(p *study.Point) { p.Data.Path = "" }, "data.path", "train.txt and test.txt"},
		"fsdp images":     {pytorchFSDP, func(p *study.Point) { p.Workload.Train.Model, p.Architecture = "cnn", study.Point{}.Architecture }, "workload.model", "is not a model of pytorch-fsdp"},
	} {
		t.Run(name, func(t *testing.T) {
			p := decoderPoint(t, "llama-100k", 2)
			c.change(&p)
			if wrong := c.framework.Check(p); !strings.Contains(wrong[c.path], c.say) {
				t.Errorf("%v, want %q at %s", wrong, c.say, c.path)
			}
		})
	}
	p := decoderPoint(t, "llama-100k", 2)
	p.Workload.Train.Precision = "bf16"
	for _, f := range []Framework{pytorchDDP, pytorchFSDP, deepspeed} {
		if f.Name == deepspeedName {
			p.Workload.Train.Zero = 2
		}
		if wrong := f.Check(p); len(wrong) > 0 {
			t.Errorf("%s: %v", f.Name, wrong)
		}
	}
}

// A CPU's peak is measured at its best: other programs only lower it.
func TestGEMM(t *testing.T) {
	programs, err := filepath.Abs("programs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(debianPython, "-B", "testdata/simulated_core.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
