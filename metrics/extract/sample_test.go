package extract

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// sample is output of a real program; testdata/SOURCE.md says of which.
type sample struct {
	file, format string
	options      Options
	want         []string // findings, written by hand from the file
	notes        []string // parts of notes, on the whole or on a figure
	workers      int
	failed       string // why the run failed
}

var samples = []sample{
	{file: "horovod-synthetic.log", format: "horovod-synthetic", workers: 2,
		want:  []string{"15 throughput 2951.6 samples/s ±7.9", "14 throughput_per_worker 1475.8 samples/s ±3.9"},
		notes: []string{"rank 0's rate times 2, not a measured aggregate"}},
	{file: "horovod-synthetic-pytorch.log", format: "horovod-synthetic", workers: 4,
		want: []string{"17 throughput 432.8 samples/s ±4.9", "16 throughput_per_worker 108.2 samples/s ±1.2"}},
	{file: "tf-cnn-benchmarks.log", format: "tf-cnn-benchmarks",
		want:  []string{"14 throughput 204.75 samples/s"},
		notes: []string{"one worker's images"}},
	{file: "mlperf-dlrm.log", format: "mlperf",
		want: []string{"23 train at 126.903", "accuracy 0.795728325843811 at 160.287 epoch 1", "accuracy 0.8025602102279663 at 290.604 epoch 1",
			"45 throughput 1.6888181759373963e+07 samples/s", "train_seconds "},
		notes: []string{"area under the ROC curve", "tracked_stats"}},
	{file: "mlperf-rgat.log", format: "mlperf",
		want:  []string{"76 throughput ", "79 train_seconds ", "accuracy 0.6792228817939758 at "},
		notes: []string{"classification accuracy"}},
	{file: "mlperf-llama2.log", format: "mlperf",
		want:  []string{"eval_accuracy 0.9391088485717773", "eval_accuracy 0.9321259260177612"},
		notes: []string{"is not an accuracy"}},
	{file: "timm.log", format: "timm",
		want:  []string{"20 accuracy 1 at 0 epoch 1", "throughput 8.81 samples/s median of 2"},
		notes: []string{"without the first", "of all ranks together"}},
	{file: "lightning-csv.csv", format: "lightning-csv", options: Options{Workers: 1},
		want:  []string{"14 accuracy 0.5361328125 at 0 epoch 1 step 64", "throughput "},
		notes: []string{"rank 0's rate times 1"}},
	{file: "keras-csvlogger.csv", format: "keras-csvlogger",
		want: []string{"2 accuracy 0.546875 at 0 epoch 1", "7 accuracy 0.546875 at 0 epoch 6", "7 val_loss 0.6900054812431335"}},
	{file: "tensorboard/validation/keras.v2", format: "tensorboard",
		want:  []string{"accuracy 0.546875 at ", "accuracy 0.515625 at ", "epoch 6", "epoch_loss 0.690005"},
		notes: []string{"by the writer's wall clock"}},
	{file: "tensorboard/hf-trainer", format: "tensorboard",
		want: []string{"accuracy 0.765625 at ", "step 48", "train/train_samples_per_second 217.666"}},
	{file: "hf-trainer-state.json", format: "hf-trainer-state",
		want:  []string{"accuracy 0.703125 at 0 epoch 1 step 16", "accuracy 0.765625 at 0 epoch 3 step 48", "throughput 217.666 samples/s", "train_seconds 3.5283 s"},
		notes: []string{"evaluations and checkpoints included"}},
	{file: "nccl-tests.log", format: "nccl-tests", workers: 1, // the log begins with the last rank's line
		want: []string{"6 busbw 586060000000 B/s bytes 536870912 in_place 0", "10 busbw 846820000000 B/s bytes 8589934592 in_place 1",
			"10 time 0.020006 s bytes 8589934592 in_place 1", "12 avg_busbw 745530000000 B/s"}},
	// Two loads; the mean of the first is 18.13 ms at 602 requests/s, 10.9 in flight on 4 connections.
	{file: "wrk.log", format: "wrk",
		want: []string{"12 requests_per_second 602.27 requests/s batch 1 threads 4", "4 latency_mean 0.01813 s batch 1 threads 4", "7 latency_p50 0.00286 s batch 1 threads 4",
			"10 latency_p99 0.18188 s batch 1 threads 4", "11 errors 0  batch 1 threads 4", "25 requests_per_second 1398.2 requests/s batch 1 threads 8", "23 latency_p99 0.10368 s batch 1 threads 8"},
		notes: []string{"wrk's loop is closed", "it did not measure", "at threads=4, answers/s times the mean latency are 10.9 requests in flight, not 4", "at threads=8, answers/s times the mean latency are 18.3 "}},
	// 48 of 484 are wrong, so that 436/484 of 229.77/s are right, and the mean is not that of right answers.
	{file: "wrk-failing.log", format: "wrk",
		want:  []string{"6 errors 0.099173553719  batch 1 threads 2", "8 requests_per_second 206.98", "4 stated_latency_mean 0.01885 s"},
		notes: []string{"at threads=2, 48 of 484 requests failed", "not the latency of right answers"}},
	{file: "wrk2.log", format: "wrk", options: Options{At: map[string]float64{"rate": 2000}},
		want:  []string{"29 requests_per_second 2000.28 requests/s batch 1 rate 2000", "9 latency_p50 0.00667 s batch 1 rate 2000", "12 latency_p99 0.01118 s"},
		notes: []string{"the time at which each request was to be sent"}},
	{file: "hey.log", format: "hey", options: Options{At: map[string]float64{"threads": 4}},
		want: []string{"7 requests_per_second 937.2507 requests/s batch 1 threads 4", "6 latency_mean 0.0043 s", "29 latency_p50 0.0026 s", "32 latency_p95 0.0108 s", "33 latency_p99 0.0481 s",
			"43 errors 0  batch"},
		notes: []string{"hey's loop is closed"}},
	// 20 of 200 are wrong: 0.9 of 99.749/s.
	{file: "hey-failing.log", format: "hey", options: Options{At: map[string]float64{"threads": 4}},
		want: []string{"44 errors 0.1  batch 1 threads 4", "7 requests_per_second 89.7741 requests/s", "stated_latency_p99 0.0385 s"}},
	// 20 answers from 0.0002 s to 0.0313+0.0034 … the last ends at 0.0418+0.0024 = 0.0442 s; the 10th by size, behind 0.0023 and 7 of 0.0024, is 0.0025.
	{file: "hey.csv", format: "hey", options: Options{At: map[string]float64{"threads": 2, "batch": 8}},
		want:  []string{"requests_per_second 454.545454545 requests/s", "samples_per_second 3636.36", "latency_p50 0.0025 s batch 8 threads 2", "latency_p95 0.0188 s", "latency_p99 0.0189 s"},
		notes: []string{"those without one are in no figure"}},
	{file: "perf-analyzer.csv", format: "perf-analyzer", options: Options{At: map[string]float64{"batch": 2}},
		want: []string{"3 requests_per_second 42.1 requests/s batch 2 threads 3", "3 samples_per_second 84.2 samples/s batch 2 threads 3", "5 latency_p99 0.034766 s batch 2 threads 2",
			"2 latency_p50 0.013891 s batch 2 threads 1", "4 latency_p95 0.059225 s"},
		notes: []string{"perf_analyzer's loop is closed"}},
	{file: "perf-analyzer.log", format: "perf-analyzer",
		want: []string{"7 requests_per_second 1407.84 requests/s batch 1 threads 1", "8 latency_mean 0.000708 s", "9 latency_p50 0.00069 s", "11 latency_p95 0.000926 s", "12 latency_p99 0.001031 s"}},
	{file: "vllm-bench.json", format: "vllm-bench",
		want: []string{"1 requests_per_second 0.973323671435 requests/s batch 1 rate 1", "1 errors 0.005  batch 1 rate 1", "1 ttft_p50 0.0989442998543 s", "1 ttft_p99 0.113886375544 s",
			"1 tpot_p99 0.0350129082", "1 itl_p50 0.0343412498478", "1 output_throughput 124.585429944 tokens/s"},
		notes: []string{"at rate=1, 1 of 200 requests failed", "rescaled so that the last"}},
	{file: "aiperf.json", format: "aiperf",
		want: []string{"requests_per_second 26.3523396139 requests/s batch 1 threads 2", "latency_p50 0.05854476", "latency_p99 0.0898684", "ttft_p50 0.0214909175", "tpot_p95 0.0065242434",
			"itl_p99 0.0101167914", "output_throughput 210.818716912 tokens/s", "errors 0  batch 1 threads 2"},
		notes: []string{"AIPerf's loop is closed", "are 1.60 requests in flight, not 2"}},
	{file: "aiperf-failing.json", format: "aiperf",
		want:  []string{"requests_per_second 15.7483706659 requests/s batch 1 rate 20", "errors 0.15  batch 1 rate 20"},
		notes: []string{"at rate=20, 6 of 40 requests failed", "sent at a rate (poisson)"}},
	{file: "mlperf-loadgen-server.txt", format: "mlperf-loadgen",
		want: []string{"7 requests_per_second 197.77 requests/s batch 1 rate 200", "22 latency_mean 0.002325011 s batch 1 rate 200", "23 latency_p50 0.00219904 s", "25 latency_p95 0.002336986 s",
			"27 latency_p99 0.005797948 s"},
		notes: []string{"latency counts from these"}},
	{file: "mlperf-loadgen-singlestream.txt", format: "mlperf-loadgen",
		want: []string{"requests_per_second 464.72 requests/s batch 1 threads 1", "latency_p99 0.002360904 s"}},
	{file: "mlperf-loadgen-multistream.txt", format: "mlperf-loadgen", failed: "LoadGen calls the result INVALID (early stopping satisfied: NO)",
		want: []string{"latency_p99 0.004586287 s batch 8 threads 1", "latency_mean 0.004291349 s batch 8"}},
	{file: "mlperf-loadgen-offline.txt", format: "mlperf-loadgen", failed: "LoadGen calls the result INVALID (min duration satisfied: NO)",
		want:  []string{"samples_per_second 1890.19 samples/s batch 2200 threads 1"},
		notes: []string{"one query has all samples"}},
}

func (s sample) path() string { return filepath.Join("testdata", filepath.FromSlash(s.file)) }

func (s sample) extract(data []byte) (Content, error) {
	e, err := Find(s.format)
	if err != nil {
		return Content{}, err
	}
	o := s.options
	o.File = s.path()
	return e.Extract(bytes.NewReader(data), o)
}

// written is a finding in a line.
func written(f Finding) string {
	line := fmt.Sprintf("%d ", f.Line)
	switch e := f.Event; {
	case e.Train != nil:
		return line + fmt.Sprintf("train at %.10g", e.Time)
	case e.Evaluation != nil:
		line += fmt.Sprintf("accuracy %v at %.10g epoch %d", e.Evaluation.Accuracy, e.Time, e.Evaluation.Epoch)
		if e.Evaluation.Step > 0 {
			line += fmt.Sprintf(" step %d", e.Evaluation.Step)
		}
	case e.Figure != nil:
		g := e.Figure
		line += fmt.Sprintf("%s %v %s", g.Name, g.Value, g.Unit)
		if g.Value == math.Trunc(g.Value) || g.Value*1e6 == math.Trunc(g.Value*1e6) {
			line = fmt.Sprintf("%d %s %.15g %s", f.Line, g.Name, g.Value, g.Unit)
		}
		if _, load := g.At[measure.Batch]; load { // in another unit than the log's
			line = fmt.Sprintf("%d %s %.12g %s", f.Line, g.Name, g.Value, g.Unit)
		}
		if g.PlusMinus != nil {
			line += fmt.Sprintf(" ±%g", *g.PlusMinus)
		}
		if g.Reduce != "" {
			line += fmt.Sprintf(" %s of %d", g.Reduce, g.Of)
		}
		for _, key := range []string{"bytes", "in_place", "epoch", "step", "batch", "rate", "threads"} {
			if v, ok := g.At[key]; ok {
				line += fmt.Sprintf(" %s %.15g", key, v)
			}
		}
	}
	return line
}

func TestSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples {
		seen[s.format] = true
		t.Run(s.file, func(t *testing.T) {
			data, err := os.ReadFile(s.path())
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.extract(data)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			said := strings.Join(r.Notes, "\n")
			for f := range r.Findings() {
				lines = append(lines, written(f))
				if f.Event.Figure != nil {
					said += "\n" + f.Event.Figure.Note
				}
			}
			all := strings.Join(lines, "\n")
			for _, w := range s.want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is not among\n%s", w, all)
				}
			}
			for _, n := range s.notes {
				if !strings.Contains(said, n) {
					t.Errorf("no note says %q:\n%s", n, said)
				}
			}
			if r.Workers != s.workers {
				t.Errorf("%d workers, want %d", r.Workers, s.workers)
			}
			if r.Failed != s.failed {
				t.Errorf("failed: %q, want %q", r.Failed, s.failed)
			}
			checkEvents(t, r)
		})
	}
	for _, e := range All {
		if !seen[e.Name] && e.Name != ncclTestsJSON.Name { // testdata/SOURCE.md says why
			t.Errorf("no sample of %s", e.Name)
		}
	}
}

// checkEvents holds what every result keeps: events that the reader takes, in
// the order of time, and figures that are what their values make.
func checkEvents(t *testing.T, r Content) {
	t.Helper()
	for e := range r.Events() {
		if err := e.Validate(); err != nil {
			t.Errorf("%s event: %v", e.Kind(), err)
		}
	}
	for f := range r.Findings() {
		value, known := math.NaN(), true
		switch e := f.Event; {
		case e.Evaluation != nil:
			value = e.Evaluation.Accuracy
		case e.Figure != nil:
			value = e.Figure.Value
		default:
			known = false
		}
		if !known {
			continue
		}
		if !finite(value) || !finite(f.Event.Time) {
			t.Errorf("%s", written(f))
		}
		if e := f.Event.Figure; e != nil && len(f.Values) == 2 && slices.Contains([]string{metrics.FigureTrainSeconds, metrics.FigureToTarget, metrics.FigureMissedTarget}, e.Name) {
			if want := (f.Values[1].Number - f.Values[0].Number) * f.Scale; math.Abs(value-want) > 1e-9*math.Abs(want) {
				t.Errorf("%s, made of %v", written(f), f.Values)
			}
			continue
		}
		if e := f.Event.Figure; e != nil && len(f.Values) == 0 && slices.Contains([]string{metrics.FigureThroughput, metrics.FigureEndToEnd, measure.RequestsPerSecond, measure.SamplesPerSecond}, e.Name) {
			continue // of counts and times all over the log
		}
		how := "last"
		if f.Event.Figure != nil && f.Event.Figure.Reduce != "" {
			how = f.Event.Figure.Reduce
		}
		var numbers []float64
		for _, v := range f.Values {
			numbers = append(numbers, v.Number)
		}
		if want, err := Reduce(how, numbers); err != nil || math.Abs(value-want*f.Scale) > 1e-9*math.Abs(value) {
			t.Errorf("%s, made of %v: %v", written(f), f.Values, err)
		}
	}
}
