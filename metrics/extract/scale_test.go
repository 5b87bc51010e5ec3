package extract

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/worktest"
)

// long writes a log of n entries in each format, and for a user's patterns. Formats that are not
// listed repeat a row of their sample.
var long = map[string]struct {
	write   func(b *bytes.Buffer, n int)
	options Options
}{
	"aiperf": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("{\"request_throughput\": {\"unit\": \"requests/sec\", \"avg\": 2.5},\n\"input_config\": {\"phases\": [{\"concurrency\": 2}]},\n\"inputs\": [0")
		for i := range n {
			fmt.Fprintf(b, ",\n{\"id\": %d}", i)
		}
		b.WriteString("]}\n")
	}},
	"dlio": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("{\"num_accelerators\": 2, \"metric\": {\"train_throughput_mean_samples_per_second\": 2.5,\n\"train_throughput_samples_per_second\": [2.5")
		for range n {
			b.WriteString(",\n2.5")
		}
		b.WriteString("]}}\n")
	}},
	"hey": {write: func(b *bytes.Buffer, n int) {
		b.WriteString(heyColumns + "\n")
		for i := range n {
			fmt.Fprintf(b, "0.%04d,0,0,0,0.0026,0.0001,200,%d.0004\n", i%1000, i)
		}
	}, options: Options{At: map[string]float64{"threads": 2}}},
	"mlperf-loadgen": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("MLPerf Results Summary\nScenario : Server\nMode     : PerformanceOnly\nCompleted samples per second    : 197.77\nResult is : VALID\n")
		for i := range n {
			fmt.Fprintf(b, "%d.5 percentile latency (ns)   : 123\n", i)
		}
		b.WriteString("samples_per_query : 1\ntarget_qps : 200\nNo errors encountered during test.\n")
	}},
	"perf-analyzer": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("Concurrency,Inferences/Second,p50 latency,p95 latency,p99 latency\n")
		for i := range n {
			fmt.Fprintf(b, "%d,69.5,13891,19753,21018\n", i+1)
		}
	}, options: Options{At: map[string]float64{"batch": 1}}},
	"vllm-bench": {write: func(b *bytes.Buffer, n int) {
		fmt.Fprintf(b, "{\"num_prompts\": %d, \"completed\": %d, \"request_rate\": 5.5, \"duration\": 2, \"request_throughput\": %g, \"ttfts\": [0", n, n, float64(n)/2)
		for range n {
			b.WriteString(",\n0.05")
		}
		b.WriteString("]}\n")
	}},
	"wrk": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "Running 3s test @ http://127.0.0.1:80/\n  1 threads and %d connections\n  Latency Distribution\n     50%%    2.86ms\n  1500 requests in 3.00s, 1.00KB read\nRequests/sec:    500.00\nTransfer/sec:     38.82KB\n", i+1)
		}
	}},
	"horovod-synthetic": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "Iter #%d: 1473.8 img/sec per GPU\n", i)
		}
		b.WriteString("Img/sec per GPU: 1475.8 +-3.9\nTotal img/sec on 2 GPU(s): 2951.6 +-7.9\n")
	}},
	"hf-trainer-state": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("{\n  \"log_history\": [\n")
		for i := range n {
			fmt.Fprintf(b, "    {\n      \"epoch\": %d.0,\n      \"eval_accuracy\": 0.75,\n      \"eval_loss\": 0.5,\n      \"step\": %d\n    },\n", i+1, i+1)
		}
		b.WriteString("    {\n      \"epoch\": 1.0,\n      \"train_runtime\": 12.5,\n      \"train_samples_per_second\": 100.5\n    }\n  ]\n}\n")
	}},
	"lightning-csv": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("epoch,step,train/device/samples_per_sec,train/time,val_acc\n")
		for i := range n {
			fmt.Fprintf(b, "%d,%d,889.5,%d.5,0.5\n", i, i, i)
		}
	}, options: Options{Workers: 2}},
	"mlperf": {write: func(b *bytes.Buffer, n int) {
		line := func(ms int, key, value string) {
			fmt.Fprintf(b, ":::MLLOG {\"namespace\": \"\", \"time_ms\": %d, \"key\": %q, \"value\": %s, \"metadata\": {}}\n", 1759300479747+ms, key, value)
		}
		line(0, "submission_benchmark", `"resnet"`)
		line(1, "run_start", "null")
		for i := range n {
			line(2+i, "eval_accuracy", "0.5")
		}
	}},
	"nccl-tests": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n")
		for i := range n {
			fmt.Fprintf(b, " %d %d float sum -1 1806.7 297.16 586.06 1 1835.9 292.43 576.74 0\n", 4*(i+1), i+1)
		}
		b.WriteString("# Avg bus bandwidth    : 745.53 \n")
	}},
	"nccl-tests-json": {write: func(b *bytes.Buffer, n int) {
		b.WriteString("{\n\"devices\": [{}, {}],\n\"results\": [\n")
		for i := range n {
			comma := ","
			if i == n-1 {
				comma = ""
			}
			fmt.Fprintf(b, "{\"size\": %d,\n \"out_of_place\": {\"time\": 10.5, \"alg_bw\": 1.5,\n \"bus_bw\": 1.5, \"nwrong\": 0}}%s\n", 4*(i+1), comma)
		}
		b.WriteString("]\n}\n")
	}},
	"tensorboard": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			// Event{wall_time, step, summary{value{tag, simple_value}}}
			value := append([]byte("\x0a\x0depoch_accurac\x15"), 0, 0, 0, 0x3f)
			if i%2 == 0 {
				value = append([]byte("\x0a\x0deval/accuracy\x15"), 0, 0, 0, 0x3f)
			}
			summary := append([]byte{0x0a, byte(len(value))}, value...)
			event := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(1.7e9+float64(i)))
			event = binary.AppendUvarint(append(event, 0x10), uint64(i))
			event = append(append(event, 0x2a, byte(len(summary))), summary...)
			head := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
			b.Write(head)
			b.Write(binary.LittleEndian.AppendUint32(nil, masked(head)))
			b.Write(event)
			b.Write(binary.LittleEndian.AppendUint32(nil, masked(event)))
		}
	}},
	"torchtitan": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "[rank%d]:[titan] - root - INFO - step: %2d  loss:  7.5000  memory: 49.66GiB(52.28%%)  tps: 5,593  tflops: 323.92  mfu: 32.75%%\n", i%2, i+1)
		}
	}, options: Options{Workers: 8}},
	"megatron": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, " iteration %8d/  317892 | consumed samples: %d | elapsed time per iteration (ms): 14287.5 | global batch size:   512 | lm loss: 2.120380E+00 |\n", i+1, i*512)
		}
	}},
	"nemo": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "Training epoch 0, iteration %d/99 | global_batch_size: 128 | global_step: %[1]d | max_memory_reserved: 127785762816 | reduced_train_loss: 11.96 | train_step_timing in s: 6.08 | val_loss: %d\n", i, i)
		}
	}},
	"deepspeed": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "[INFO] [timer.py:260:stop] epoch=0/micro_step=%d/global_step=%[1]d, RunningAvgSamplesPerSec=25.5, CurrSamplesPerSec=25.5, MemAllocated=4.32GB, MaxMemAllocated=38.49GB\n", i)
			fmt.Fprintf(b, "steps: %d loss: 2.3456 iter time (s): 0.123 samples/sec: 1040.650\n", i)
		}
	}},
	"maxtext": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "completed step: %d, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, total_weights: 196608, loss: 10.374\n", i)
		}
	}, options: Options{Workers: 4}},
	"hf-trainer": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "{'loss': '1.105', 'tokens/train_per_sec_per_gpu': '3049', 'memory/max_allocated (GiB)': '3.17', 'epoch': '%d'}\n{'eval_loss': 1, 'eval_accuracy': 0.5, 'epoch': %[1]d}\n", i)
		}
	}},
	"llama-factory": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "{\"current_steps\": %d, \"total_steps\": 1750, \"loss\": 0.1513, \"epoch\": 7.67, \"elapsed_time\": \"2:37:45\", \"total_tokens\": %[1]d}\n", i+1)
		}
	}},
	"nanogpt": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "iter %d: loss 2.3456, time 123.45ms, mfu 30.12%%\nstep %[1]d: train loss 2.5, val loss 2.5\n", i)
		}
	}},
	"tf-cnn-benchmarks": {write: func(b *bytes.Buffer, n int) {
		for range n {
			b.WriteString("total images/sec: 204.75\n")
		}
		b.WriteString(strings.Repeat("-", 64) + "\n")
	}},
	"timm": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "Test: [   %d/%d]  Time: 0.280 (0.893)  Loss:   0.345 ( 0.468)  Acc@1: 99.000 (98.500)  Acc@5: 100.000 (100.000)\n", i%4, 3)
		}
	}},
	"extract": {write: func(b *bytes.Buffer, n int) {
		for i := range n {
			fmt.Fprintf(b, "[default%d]:step %d: 12.5 it/s, loss 0.5, acc 0.5\n", i%4, i)
		}
	}, options: Options{Workers: 4, WorkerBatch: 32}},
}

// everyFormat returns the named extractors and one of patterns.
func everyFormat(t testing.TB) []Extractor {
	patterns, err := Patterns([]Pattern{
		{Name: "throughput", Pattern: `(?P<value>[\d.]+) it/s`, Unit: "it/s", Per: "step", Of: "rank"},
		{Name: "accuracy", Pattern: `acc (?P<value>[\d.]+)`, Per: "epoch"},
		{Name: "loss", Pattern: `loss (?P<value>[\d.]+)`, Per: "step"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(allFormats), patterns)
}

func longLog(t testing.TB, e Extractor, n int) []byte {
	var b bytes.Buffer
	if format, ok := long[e.Name]; ok {
		format.write(&b, n)
	} else {
		repeatRow(t, &b, e, n)
	}
	return b.Bytes()
}

// repeatRow writes the header of the format's sample, and its first row n times, with the next
// epoch in the first column each time.
func repeatRow(t testing.TB, b *bytes.Buffer, e Extractor, n int) {
	i := slices.IndexFunc(samples, func(s sample) bool { return s.format == e.Name && strings.HasSuffix(s.file, ".csv") })
	if i < 0 {
		t.Fatalf("no long log of %s: write one, or a sample that is a table", e.Name)
	}
	lines := strings.SplitN(sampleText(t, samples[i].file), "\n", 3)
	epoch, row, _ := strings.Cut(lines[1], ",")
	first, err := strconv.Atoi(epoch)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(b, lines[0])
	for i := range n {
		fmt.Fprintf(b, "%d,%s\n", first+i, row)
	}
}

// Sixteen times the entries take about sixteen times the work.
func TestLinear(t *testing.T) {
	count := worktest.New(t)
	for _, e := range everyFormat(t) {
		t.Run(e.Name, func(t *testing.T) {
			count.Linear(t, 200, func(n int) {
				r, err := e.Extract(bytes.NewReader(longLog(t, e, n)), long[e.Name].options)
				if err != nil || r.Found() == 0 {
					t.Errorf("%d findings, %v", r.Found(), err)
				}
			})
		})
	}
}

func BenchmarkExtract(b *testing.B) {
	for _, e := range everyFormat(b) {
		for _, n := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", e.Name, n), func(b *testing.B) {
				data := longLog(b, e, n)
				b.SetBytes(int64(len(data)))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for b.Loop() {
					if _, err := e.Extract(bytes.NewReader(data), long[e.Name].options); err != nil {
						b.Fatal(err)
					}
				}
				runtime.ReadMemStats(&after)
				entries := float64(b.N) * float64(n)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/entries, "ns/entry")
				b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/entries, "B/entry")
			})
		}
	}
}

// A table with a run per row is streamed: the first run is yielded before the second row is
// read. A table with epochs is read as a whole first.
func TestRunsComeOneByOne(t *testing.T) {
	text := "n,rate,ep\n1,100,1\n2,200,1\n3,\"\n"
	for _, test := range []struct {
		columns map[string]Column
		want    int
	}{
		{map[string]Column{"workers": {Name: "n"}, "throughput": {Name: "rate"}}, 2},
		{map[string]Column{"workers": {Name: "n"}, "throughput": {Name: "rate"}, "epoch": {Name: "ep"}}, 0},
	} {
		got, last := 0, error(nil)
		for _, err := range Runs(strings.NewReader(text), Options{File: "t.csv"}, test.columns) {
			if last = err; err == nil {
				got++
			}
		}
		if got != test.want || last == nil || !strings.Contains(last.Error(), "t.csv:4") {
			t.Errorf("%d runs, then %v; want %d and the error in line 4", got, last, test.want)
		}
	}
}
