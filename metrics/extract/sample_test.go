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

// sample is the output of a real program; testdata/SOURCE.md gives its origin.
type sample struct {
	file, format string
	options      Options
	want         []string // findings, written by hand from the file
	notes        []string // parts of the notes of the log or of its figures
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
		notes: []string{"tracked_stats"}},
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
	// The mesh has 8 devices. Without step 1 and the first line after the restart, the
	// median of 5800, 5840, 5846, 5850, 5852, 5854 and 5856 tokens/s is 5850, times 8 is
	// 46800.
	{file: "torchtitan.log", format: "torchtitan", workers: 8,
		want: []string{"12 tokens_per_second_per_gpu 5850 tokens/s median of 7", "12 tokens_per_second 46800 tokens/s median of 7", "12 reported_flops_per_gpu 338800000000000 FLOP/s median of 7",
			"12 reported_mfu 0.3425999", "12 reserved_memory 51539607552 B max of 9", // 48 GiB
			"5 loss 9.25  step 20", "6 eval_loss 9.125  step 20", "12 final_loss 7.75 ", "6 final_eval_loss 9.125 "},
		notes: []string{"only rank 0 is read", "goes back from step 60 to step 30 in line 11", "a device's rate times the number of devices, not a measured aggregate"}},
	// The first line is left out. The median of 4.0, 4.1 and 3.9 s is 4 s; 64 samples of
	// 4096 tokens in it are 16/s and 65536 tokens/s, 4096 on each of 16. The larger memory
	// of the two ranks is 46 GiB reserved, 42 GiB of it in tensors.
	{file: "megatron.log", format: "megatron", workers: 16,
		want: []string{"12 step_seconds 4 s median of 3", "12 throughput 16 samples/s median of 3", "12 tokens_per_second 65536 tokens/s median of 3", "12 tokens_per_second_per_gpu 4096 tokens/s median of 3",
			"12 reported_flops_per_gpu 223700000000000 FLOP/s", "7 loss 10.8  step 10", "14 eval_loss 8.5  step 40", "9 reserved_memory 49392123904 B max of 2", "9 allocated_memory 45097156608 B max of 2", "12 final_loss 8.625 ", "14 final_eval_loss 8.5 "},
		notes: []string{"a sample is a sequence"}},
	// 768 samples of 625999872/152832 = 4096 tokens in 14.2875 s: 53.753/s and 220173 tokens/s.
	{file: "megatron-deepspeed.log", format: "megatron",
		want: []string{"step_seconds 14.2875 s median of 3", "throughput 53.753", "tokens_per_second 220173.", "reported_flops_per_gpu 141280000000000 FLOP/s", "4 final_loss 7 "}},
	// The current values count, not the averages after them. 9801.4 tokens/s on each of 8
	// are 78411.2; 128 samples in 13.3728 s are 9.5717/s; 154 GiB.
	{file: "megatron-primus.log", format: "megatron", options: Options{Workers: 8},
		want: []string{"step_seconds 13.3728 s median of 3", "tokens_per_second_per_gpu 9801.4 tokens/s median of 3", "tokens_per_second 78411.2 tokens/s", "throughput 9.5716", "used_memory 165356240896 B max of 4",
			"reported_flops_per_gpu 567600000000000 FLOP/s median of 3"}},
	// 512 samples in 9.089 s are 56.332/s. FLOP/s are on the line before the iteration's.
	{file: "megatron-bridge.log", format: "megatron",
		want: []string{"8 step_seconds 9.089 s median of 3", "7 reported_flops_per_gpu 663500000000000 FLOP/s median of 3", "throughput 56.3318"}},
	// Without iteration 0, the median of 6.10, 6.08, 6.05 and 6.08 s is 6.08 s; 128 samples
	// in it are 21.053/s. Lines after an evaluation repeat its val_loss, which counts once.
	{file: "nemo.log", format: "nemo",
		want: []string{"5 step_seconds 6.08 s median of 4", "throughput 21.0526", "reported_flops_per_gpu 1.249e+15 FLOP/s median of 4", "reserved_memory 127789957120 B max of 5", "allocated_memory 115792977920 B",
			"4 eval_loss 12.01  step 3", "5 final_loss 11.96 ", "4 final_eval_loss 12.01 "}},
	{file: "deepspeed.log", format: "deepspeed", // 38.5 GiB
		want:  []string{"4 throughput 25.625 samples/s", "allocated_memory 41339060224 B max of 4"},
		notes: []string{"running average over all ranks"}},
	{file: "deepspeed-pipeline.log", format: "deepspeed",
		want: []string{"4 throughput 1024 samples/s median of 3", "4 step_seconds 0.125 s median of 3", "3 loss 4.75  step 30", "4 final_loss 4.5 "}},
	// Steps 0 and 1 are left out. The median of 8777.143, 8623.158 and 8673.372 tokens/s
	// times 4 is 34693.488.
	{file: "maxtext.log", format: "maxtext", options: Options{Workers: 4},
		want: []string{"7 step_seconds 5.667 s median of 3", "7 tokens_per_second_per_gpu 8673.372 tokens/s median of 3", "7 tokens_per_second 34693.488 tokens/s median of 3", "7 reported_flops_per_gpu 134924000000000 FLOP/s",
			"1 loss 12.038  step 0", "5 eval_loss 11.125  step 3", "7 final_loss 11 "}},
	{file: "hf-trainer.log", format: "hf-trainer",
		want: []string{"6 throughput 0.663 samples/s", "6 train_seconds 9117.7233 s", "2 accuracy 0.6875 at 0 epoch 1", "5 accuracy 0.75 at 0 epoch 3", "3 loss 0.5  epoch 2", "5 final_eval_loss 0.5 ", "4 final_loss 0.25 "}},
	// The median of 3049, 3101 and 3075, without the first line; the 0 after the end does
	// not count. 4.5 GiB.
	{file: "hf-trainer-axolotl.log", format: "hf-trainer",
		want: []string{"4 trainable_tokens_per_second_per_gpu 3075 tokens/s median of 3", "reserved_memory 4831838208 B max of 5", "1 loss 1.695  epoch 0.25", "5 throughput 8.921 samples/s", "4 final_loss 0.625 "}},
	// 480000 tokens and 30 steps from 2:10 to 4:10: 4000 tokens/s ± 1 s of 120 s, and 4 s a step.
	{file: "llama-factory.jsonl", format: "llama-factory",
		want:  []string{"tokens_per_second 4000 tokens/s ±33.33", "step_seconds 4 s ±0.0333", "3 eval_loss 0.9375  step 20", "5 loss 0.8125  step 40", "5 final_loss 0.8125 "},
		notes: []string{"between the first and the last loss"}},
	// The iteration after an evaluation includes its time. The median of 500, 512 and 480
	// ms is 0.5 s; 491520 tokens in it are 983040/s.
	{file: "nanogpt.log", format: "nanogpt",
		want: []string{"8 step_seconds 0.5 s median of 3", "8 tokens_per_second 983040 tokens/s median of 3", "2 eval_loss 10.9896  step 0", "8 final_loss 8 ", "6 final_eval_loss 8.25 "}},
	{file: "nccl-tests.log", format: "nccl-tests", workers: 1, // the log begins with the last rank's line
		want: []string{"6 busbw 586060000000 B/s bytes 536870912 in_place 0", "10 busbw 846820000000 B/s bytes 8589934592 in_place 1",
			"10 time 0.020006 s bytes 8589934592 in_place 1", "12 avg_busbw 745530000000 B/s"}},
	// Two loads. The first has a mean of 18.13 ms at 602 requests/s, that is 10.9 in flight
	// on 4 connections.
	{file: "wrk.log", format: "wrk",
		want: []string{"12 requests_per_second 602.27 requests/s batch 1 threads 4", "4 latency_mean 0.01813 s batch 1 threads 4", "7 latency_p50 0.00286 s batch 1 threads 4",
			"10 latency_p99 0.18188 s batch 1 threads 4", "11 errors 0  batch 1 threads 4", "25 requests_per_second 1398.2 requests/s batch 1 threads 8", "23 latency_p99 0.10368 s batch 1 threads 8"},
		notes: []string{"wrk's loop is closed", "it did not measure", "at threads=4, answers/s times the mean latency are 10.9 requests in flight, not 4", "at threads=8, answers/s times the mean latency are 18.3 "}},
	// 48 of 484 are wrong, so 436/484 of 229.77/s are right, and the mean does not cover only
	// right answers.
	{file: "wrk-failing.log", format: "wrk",
		want:  []string{"6 errors 0.099173553719  batch 1 threads 2", "8 requests_per_second 206.98", "4 stated_latency_mean 0.01885 s"},
		notes: []string{"at threads=2, 48 of 484 requests failed", "not the latency of right answers"}},
	{file: "wrk2.log", format: "wrk", options: Options{At: map[string]float64{"rate": 2000}},
		want:  []string{"29 requests_per_second 2000.28 requests/s batch 1 rate 2000", "9 latency_p50 0.00667 s batch 1 rate 2000", "12 latency_p99 0.01118 s"},
		notes: []string{"the time at which each request was to be sent"}},
	// 3158.04 MiB/s are 3.3114 GB/s. Divided by 22.588 samples/s, that is 146,600,628
	// bytes, the size of a UNet3D sample in DLIO's configuration.
	{file: "dlio.json", format: "dlio", workers: 8,
		want:  []string{"24 throughput 22.588179283661333 samples/s", "14 accelerator_utilisation 0.9967752041595843", "26 source_rate 3.31144"},
		notes: []string{"accelerators are sleeps", "MiB/s, though the file calls them MB"}},
	{file: "hey.log", format: "hey", options: Options{At: map[string]float64{"threads": 4}},
		want: []string{"7 requests_per_second 937.2507 requests/s batch 1 threads 4", "6 latency_mean 0.0043 s", "29 latency_p50 0.0026 s", "32 latency_p95 0.0108 s", "33 latency_p99 0.0481 s",
			"43 errors 0  batch"},
		notes: []string{"hey's loop is closed"}},
	// 20 of 200 are wrong: 0.9 of 99.749/s.
	{file: "hey-failing.log", format: "hey", options: Options{At: map[string]float64{"threads": 4}},
		want: []string{"44 errors 0.1  batch 1 threads 4", "7 requests_per_second 89.7741 requests/s", "stated_latency_p99 0.0385 s"}},
	// 20 answers; the last ends at 0.0418+0.0024 = 0.0442 s. The 10th smallest latency is 0.0025 s.
	{file: "hey.csv", format: "hey", options: Options{At: map[string]float64{"threads": 2, "batch": 8}},
		want:  []string{"requests_per_second 454.545454545 requests/s", "samples_per_second 3636.36", "latency_p50 0.0025 s batch 8 threads 2", "latency_p95 0.0188 s", "latency_p99 0.0189 s"},
		notes: []string{"no figure includes requests without an answer"}},
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

// written formats a finding and its line.
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
		if _, load := g.At[measure.Batch]; load { // in another unit than in the log
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
		if op, ok := g.At["op"]; ok {
			line += fmt.Sprintf(" op %s", op)
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
	for _, e := range allFormats {
		if !seen[e.Name] && e.Name != ncclTestsJSON.Name { // testdata/SOURCE.md says why
			t.Errorf("no sample of %s", e.Name)
		}
	}
}

// checkEvents verifies invariants of every result: the reader accepts its events, they are
// in time order, and each figure follows from its values.
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
		if e := f.Event.Figure; e != nil && len(f.Values) == 0 && slices.Contains([]string{metrics.FigureThroughput, metrics.FigureEndToEnd, measure.RequestsPerSecond, measure.SamplesPerSecond, stepSeconds, tokensPerSecond}, strings.TrimPrefix(e.Name, statedPrefix)) {
			continue // computed from counts and times throughout the log
		}
		how := "last"
		if f.Event.Figure != nil && f.Event.Figure.Reduce != "" {
			how = f.Event.Figure.Reduce
		}
		var numbers []float64
		for _, v := range f.Values {
			numbers = append(numbers, v.Number)
		}
		if want, err := reduceBy(how, numbers); err != nil || math.Abs(value-want*f.Scale) > 1e-9*math.Abs(value) {
			t.Errorf("%s, made of %v: %v", written(f), f.Values, err)
		}
	}
}
