package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Reports with no answer, no result or contradicting parts, which programs write now and then.
func TestRareReports(t *testing.T) {
	at := Options{At: map[string]float64{measure.Threads: 4}}
	const (
		perfHead = "  Batch size: 1\n\nRequest concurrency: 4\n"
		perfEnd  = "    Throughput: 100 infer/sec\nConcurrency: 4, throughput: 100 infer/sec, latency 40000 usec\n"
		run      = `:::MLLOG {"time_ms": 1700000000000, "key": "run_start", "metadata": {}}` + "\n"
		stop     = `:::MLLOG {"time_ms": 1700000010000, "key": "run_stop", "metadata": {"status": "success"}}` + "\n"
		ncclHead = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
		ncclTwo  = "#  Rank  0 Group  0 Pid  1 on n1 device  0 [0x01] X\n#  Rank  1 Group  0 Pid  2 on n1 device  1 [0x02] X\n"
	)
	vllm := func(rate, completed, more string) string {
		return `{"request_throughput": ` + rate + `, "duration": 10, "completed": ` + completed + `, "num_prompts": 100, ` + more + "}\n"
	}
	counts := func(samples ...string) string { // an evaluation each second, with the samples up to it
		text := ""
		for i, x := range samples {
			text += fmt.Sprintf(`:::MLLOG {"time_ms": 170000000%d000, "key": "eval_accuracy", "value": 0.5, "metadata": {"samples_count": %s}}`+"\n", i+1, x)
		}
		return text
	}
	fields := ""
	for i := range 105 { // each line has a field that is not read
		fields += fmt.Sprintf("Training epoch 0, iteration %d/200 | global_step: %[1]d | train_step_timing in s: 1.0 | extra%[1]d: 7\n", i)
	}
	runVariants(t, "", []variant{
		{format: "aiperf", name: "neither rate nor latency", text: "{}\n", refused: "nothing found"},
		{format: "aiperf", name: "no answer", o: at, text: `{"request_throughput": {"unit": "requests/sec", "avg": 0}, "request_count": {"unit": "requests", "avg": 0}, "error_request_count": {"unit": "requests", "avg": 5}}` + "\n",
			want: []string{" errors 1 "}, says: "no request had a right answer"},
		{format: "aiperf", name: "two phases", text: `{"request_throughput": {"unit": "requests/sec", "avg": 9}, "input_config": {"phases": [{"kind": "profiling", "concurrency": 4}, {"kind": "profiling", "concurrency": 8}]}}` + "\n",
			refused: "several phases are measured"},
		{format: "vllm-bench", name: "half an answer", text: vllm("0.15", "1.5", `"max_concurrency": 4`), refused: "completed is 1.5; want a count"},
		{format: "vllm-bench", name: "no answer", text: vllm("0", "0", `"max_concurrency": 4`), want: []string{" errors 1 "}, says: "no request had a right answer"},
		{format: "vllm-bench", name: "less than no tokens", text: vllm("10", "100", `"max_concurrency": 4, "output_throughput": -1`), refused: "output_throughput is -1; want 0 or more"},
		{format: "vllm-bench", name: "a blank line", text: vllm("10", "100", `"max_concurrency": 4`) + "\n" + vllm("10", "100", `"max_concurrency": 8`),
			want: []string{" requests_per_second 10 requests/s batch 1 threads 4", " requests_per_second 10 requests/s batch 1 threads 8"}},
		{format: "wrk", name: "no answer", text: "Running 10s test @ http://x\n  2 threads and 4 connections\n  0 requests in 10.00s, 0.00B read\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n", refused: "no request had a right answer"},
		{format: "hey", name: "no row", text: heyColumns + "\n", o: at, refused: "nothing found"},
		{format: "hey", name: "failures only", text: heyColumns + "\n0.1,0,0,0,0.1,0,500,0\n0.1,0,0,0,0.1,0,500,0.1\n", o: at, want: []string{" errors 1 "}, never: []string{"requests_per_second"}},
		{format: "perf-analyzer", name: "a decoupled model", o: Options{At: map[string]float64{measure.Batch: 1}}, text: "Concurrency,Inferences/Second,Response Throughput,Avg latency\n4,100,200,40000\n",
			want: []string{" latency_mean 0.04 s "}, says: "the model is decoupled"},
		{format: "perf-analyzer", name: "less than no rate", o: Options{At: map[string]float64{measure.Batch: 1}}, text: "Concurrency,Inferences/Second,Avg latency\n4,-100,40000\n", refused: "a rate of -100; want 0 or more"},
		{format: "perf-analyzer", name: "a slow client", text: perfHead + "[WARNING] Perf Analyzer is not able to keep up with the desired load. The results may not be accurate.\n" + perfEnd,
			want: []string{" requests_per_second 100 requests/s "}, says: "its client did not keep up with the load"},
		{format: "perf-analyzer", name: "a result of no load", text: perfHead + perfEnd + "Concurrency: 8, throughput: 100 infer/sec, latency 80000 usec\n", refused: "log:6: the result matches no load above"},
		{format: "nccl-tests-json", name: "a list", text: "[1]\n", refused: "want a JSON object with a list named results"},
		{format: "nccl-tests-json", name: "less than no bytes", text: `{"results": [{"size": -1}]}` + "\n", refused: "a result without its size"},
		// 1024 bytes in 10 µs are 0.1024 GB/s.
		{format: "nccl-tests-json", name: "no bytes", text: `{"results": [{"size": 0}, {"size": 1024, "out_of_place": {"time": 10, "alg_bw": 0.1024, "bus_bw": 0.1024}}]}` + "\n",
			want: []string{" time 1e-05 s "}, says: "results of 0 bytes left out"},
		// Without results in place, as of alltoall; all_reduce on 2 ranks has a factor of 2 × 1/2.
		{format: "nccl-tests", name: "nothing in place", text: ncclTwo + "# Collective test starting: all_reduce_perf\n" + ncclHead +
			" 1048576 262144 float sum -1 1000 1.05 1.05 0 N/A N/A N/A N/A\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.05\n", want: []string{" time 0.001 s "}, never: []string{"stated_"}},
		{format: "tf-cnn-benchmarks", name: "devices before the batch", text: "   32 per device\ntotal images/sec: 100.00\n" + strings.Repeat("-", 64) + "\n", want: []string{" throughput 100 samples/s"}},
		{format: "torchtitan", name: "a mesh of 10^12", text: "Building device mesh with parallelism: pp=1000, dp_replicate=1000, dp_shard=1000, cp=1000, tp=1\n", refused: "want at most"},
		{format: "timm", name: "no text", text: strings.Repeat("x", longestLine+1), refused: "log:1: a line of more than 4194304 bytes"},
		{format: "nemo", name: "105 notes", text: fields, want: []string{" step_seconds 1 s "}, says: "more note"},
		// 20 samples/s in 100 s are 2 epochs of 1,000; its bar has all planned steps.
		{format: "hf-trainer", name: "planned steps", text: "***** Running training *****\n  Num examples = 1,000\n  Total optimization steps = 100\n100%|###| 100/100 [01:40<00:00,  1.00it/s]\n" +
			"{'train_runtime': 100.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 1.0, 'epoch': 2.0}\n", want: []string{" throughput 20 samples/s"}},
		{format: "hf-trainer", name: "other steps than planned", text: "***** Running training *****\n  Num examples = 1,000\n  Total optimization steps = 100\n100%|###| 100/100 [01:40<00:00,  1.00it/s]\n" +
			"{'train_runtime': 100.0, 'train_samples_per_second': 20.0, 'train_steps_per_second': 2.0, 'epoch': 2.0}\n", want: []string{" stated_throughput 20 samples/s"}, says: "100 steps in 100 s are 1"},
		{format: "mlperf", name: "two ranks start", text: "0: " + run + "1: " + run + "0: " + stop, want: []string{" train_seconds 10 s"}, says: "only rank 0 is read"},
		// 100 samples a second; then a count goes back, and nothing tells the rate.
		{format: "mlperf", name: "samples", text: run + counts("100", "200", "300") + stop, want: []string{" throughput 100 samples/s"}},
		{format: "mlperf", name: "fewer samples", text: run + counts("100", "200", "150") + stop, never: []string{" throughput "}},
	})
}

// Tables that are mapped wrongly or have next to nothing.
func TestRareTables(t *testing.T) {
	for _, c := range []struct {
		name, csv string
		maps      []string
		want      []string
		why       string
	}{
		{"two clocks", "epoch,a,b,acc\n1,1,1,0.5\n", []string{"epoch=epoch", "elapsed=a:s", "epoch_seconds=b:s", "accuracy=acc"}, nil, "elapsed and epoch_seconds both give the time"},
		{"durations of no epoch", "a,acc\n1,0.5\n", []string{"epoch_seconds=a:s", "accuracy=acc"}, nil, "epoch_seconds needs the number of the epoch"},
		{"no figure", "a,b\n1,2\n", []string{"label=a"}, nil, "no column is mapped to a figure"},
		{"an empty file", "", nil, nil, "The file has none"},
		{"blank lines", "\n\n", nil, nil, "The file has none"},
		{"no row", "workers,throughput\n", nil, nil, "it has no rows"},
		{"a time of a step as an accuracy", "w,ms/step\n1,5\n", []string{"workers=w", "accuracy=ms/step"}, nil, "write " + mapping(stepSeconds, "ms/step", "")},
		{"a device's tokens as samples", "w,tokens/s/GPU\n1,5\n", []string{"workers=w", "throughput=tokens/s/GPU"}, nil, "write " + mapping(tokensPerGPU, "tokens/s/GPU", "")},
		{"losses of epochs", "epoch,loss,accuracy\n1,0.9,0.5\n2,0.8,0.75\n", nil, []string{"acc 0.5 at 0, loss 0.9, acc 0.75 at 0, loss 0.8"}, ""},
		{"one epoch", "epoch,acc,gpu\n1,0.5,0\n", []string{"epoch=epoch", "accuracy=acc"}, []string{"acc 0.5 at 0"}, ""},
		{"one step", "workers,throughput,step\n1,100,5\n2,190,5\n", []string{"workers=workers", "throughput=throughput"}, []string{"throughput 100", "throughput 190"}, ""},
	} {
		runs, _, err := readRuns(c.csv, Options{}, c.maps...)
		checkRuns(t, c.name, runs, c.want, err, c.why)
	}
	n := 0
	for range Runs(strings.NewReader("epoch,run,acc\n1,a,0.5\n1,b,0.5\n"), Options{}, map[string]Column{"epoch": {Name: "epoch"}, "name": {Name: "run"}, "accuracy": {Name: "acc"}}) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d runs before the end, want 1", n)
	}
}

// Groups and units of patterns that few logs have.
func TestRarePatterns(t *testing.T) {
	own := func(pattern, unit string) Pattern {
		return Pattern{Name: "own", Pattern: pattern, Unit: unit, Per: "step", Reduce: "last"}
	}
	rate := func(pattern, unit string) Pattern {
		return Pattern{Name: "throughput", Pattern: pattern, Unit: unit}
	}
	least := own(`x (?P<value>\d+)`, "")
	least.Reduce = "min"
	for _, c := range []struct {
		p    Pattern
		log  string
		want float64
		why  string
	}{
		{own(`x(?P<value>\d+)?$`, ""), "x\n", 0, "is not a finite number"},
		{own(`v=(?P<value> *\d+) `, ""), "v=  12 \n", 12, ""},
		{own(`t (?P<value>\S+)`, "MB/s"), "t 1:02:03\n", 0, "is a length of time, and own is in MB/s"},
		{own(`t (?P<value>\d+)`, ""), "t 5 ms\nt 5\n", 0, "own has no unit here, and ms above"},
		{own(`t (?P<value>\d+)`, ""), "t 5 ms\nt 5 MB\n", 0, "own is in MB here"},
		{own(`t (?P<value>\d+)`, ""), "t 5 ms/step\n", 0.005, ""},
		{least, "x 5\nx 3\nx 4\n", 3, ""},
		{rate(`tokens_per_sec=(?P<value>\d+)`, "img/s"), "tokens_per_sec=12\n", 0, `by its name, but its unit is given as "img/s"`},
		// The braces before the number belong to another member; 5 ms are 0.005 s.
		{own(`"value": (?P<value>\d+)`, "s"), `{"other": {"x": 1}, "value": 5, "unit": "ms"}` + "\n", 0.005, ""},
		// The head of the table has the unit of its times.
		{own(`^1  (?P<value>\d+)  3$`, "s"), "All times in ms\n1  2  3\n", 0.002, ""},
		{Pattern{Name: "accuracy", Pattern: `at (?P<elapsed>\d)\d* acc (?P<value>[\d.]+)`, Per: "epoch"}, "at 10 acc 0.5\n", 0, "log:1: "},
	} {
		e, err := Patterns([]Pattern{c.p})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.log), Options{File: "log", Workers: 1})
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s in %q: %v, want %q", c.p.Pattern, c.log, err, c.why)
			}
			continue
		}
		var got []float64
		for f := range r.Findings() {
			got = append(got, f.Event.Figure.Value)
		}
		if err != nil || !slices.Equal(got, []float64{c.want}) {
			t.Errorf("%s in %q: %v, %v, want %v", c.p.Pattern, c.log, got, err, c.want)
		}
	}
}

// Guess names the formats in which a log has a figure.
func TestGuess(t *testing.T) {
	for log, want := range map[string][]string{
		"Total img/sec on 2 GPU(s): 20.0 +-2.0\n":                              nil, // cut off
		"Img/sec per GPU: 10.0 +-1.0\nTotal img/sec on 2 GPU(s): 20.0 +-2.0\n": {"horovod-synthetic"},
	} {
		if got := Guess(strings.NewReader(log)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}
