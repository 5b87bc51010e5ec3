package extract

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleText(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Input that is not one clear result of a load gives an error with its line.
func TestLoadRefused(t *testing.T) {
	threads, rate := map[string]float64{"threads": 4}, map[string]float64{"rate": 2000}
	for _, tt := range []struct {
		format, file, old, now string
		at                     map[string]float64
		want                   string
	}{
		{"wrk", "wrk.log", "8 connections", "4 connections", nil, "wrk.log:14: a second result of the same load; the first is on line 1"},
		{"wrk", "wrk.log", "2.86ms", "2.86fortnights", nil, `wrk.log:7: a time in "fortnights"; valid units are h, min, s, ms, us, ns`},
		{"wrk", "wrk.log", "602.27", "902.27", nil, "wrk.log:12: 902.27 requests/s, where 1861 requests in 3.09 s make 602.265"},
		{"wrk", "wrk.log", "  2 threads and 8 connections\n", "", nil, "wrk.log:14: a test without its connections"},
		{"wrk", "wrk.log", "Transfer/sec:     38.82KB\n", "", nil, "wrk.log:13: a test begins, but the one on line 1 did not end"},
		{"wrk", "wrk.log", "     99%  181.88ms\n", "     99%    1.88ms\n", nil, "wrk.log:10: P99 of latency is less than the percentile before it, on line 7"},
		{"wrk", "wrk.log", "", "", threads, "wrk.log:14: the load has threads=8 here; --at says 4"},
		{"wrk", "wrk.log", "", "", rate, "wrk.log:1: threads=4 and rate=2000: a load has either"},
		{"wrk", "wrk2.log", "", "", nil, "wrk2.log:1: wrk2 does not print its request rate (-R); give it with --at rate=R"},
		{"hey", "hey.log", "", "", nil, "hey.log:2: the load is not stated here; say it with --at threads=N"},
		{"hey", "hey.log", "2815 responses", "2715 responses", threads, "hey.log:7: 937.2507 requests/s over 3.0035 s are 2815.03 requests, the answers and errors 2715"},
		{"hey", "hey.log", "0.0481 secs", "0.0481 msecs", threads, `hey.log:33: a time in "msecs"; hey prints secs`},
		{"hey", "hey.csv", "0.0033,0.0000,200,0.0312", "200,0.0312", threads, "hey.csv:12: 6 cells; want response-time,"},
		{"perf-analyzer", "perf-analyzer.csv", "", "", nil, "perf-analyzer.csv:1: perf_analyzer's CSV does not state the batch"},
		{"perf-analyzer", "perf-analyzer.log", "1407.84 infer/sec, latency", "1507.84 infer/sec, latency", nil, "perf-analyzer.log:19: the result matches no load above"},
		{"perf-analyzer", "perf-analyzer.log", "Concurrency: 1, throughput", "Concurrency: 1 throughput", nil, "perf-analyzer.log:4: the load is missing in the results at the end"},
		{"perf-analyzer", "perf-analyzer.log", "p95 latency: 926 usec", "p95 latency: 926 ticks", nil, `perf-analyzer.log:11: a time in "ticks"`},
		{"vllm-bench", "vllm-bench.json", `"failed": 1`, `"failed": 0`, nil, "vllm-bench.json:1: 0 failed and 199 completed are not 200 prompts"},
		{"vllm-bench", "vllm-bench.json", `"request_throughput": 0.97`, `"request_throughput": 9.97`, nil, "vllm-bench.json:1: 9.97332 requests/s over 204.454 s are 2039.09 requests, not 199"},
		{"vllm-bench", "vllm-bench.json", `"rtfx"`, `"ramp_up_strategy": "linear", "rtfx"`, nil, "the rate rose during the run"},
		{"aiperf", "aiperf.json", `"unit": "requests/sec"`, `"unit": "requests/min"`, nil, `aiperf.json:5: request_throughput in "requests/min"; want requests/sec`},
		{"aiperf", "aiperf.json", `"unit": "ms"`, `"unit": "ticks"`, nil, `a time in "ticks"`},
		{"mlperf-loadgen", "mlperf-loadgen-server.txt", "VALID", "VALIDATED", nil, `mlperf-loadgen-server.txt:8: the result is "VALIDATED"; LoadGen says VALID or INVALID`},
		{"mlperf-loadgen", "mlperf-loadgen-server.txt", "Min duration satisfied : Yes", "Min duration satisfied : NO", nil, "mlperf-loadgen-server.txt:8: the result is VALID, and min duration satisfied: NO"},
		{"mlperf-loadgen", "mlperf-loadgen-server.txt", "PerformanceOnly", "AccuracyOnly", nil, `mlperf-loadgen-server.txt:6: mode "AccuracyOnly"; only PerformanceOnly`},
		{"mlperf-loadgen", "mlperf-loadgen-server.txt", "\nNo errors encountered during test.\n", "", nil, "mlperf-loadgen-server.txt:2: a summary without LoadGen's last lines"},
		{"wrk", "wrk.log", "", "", map[string]float64{"threads": 1.5}, "threads=1.5; want a whole number"},
		{"wrk", "wrk.log", "", "", map[string]float64{"bytes": 8}, "bytes is not a coordinate of a load; valid: batch, rate, threads"},
		{"timm", "timm.log", "", "", threads, "timm is not such a format"},
	} {
		e, err := Find(tt.format)
		if err != nil {
			t.Fatal(err)
		}
		text := sampleText(t, tt.file)
		if tt.old != "" && !strings.Contains(text, tt.old) {
			t.Errorf("%s has no %q", tt.file, tt.old)
		}
		_, err = e.Extract(strings.NewReader(strings.Replace(text, tt.old, tt.now, 1)), Options{File: tt.file, At: tt.at})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %q: %v, want %q", tt.file, tt.now, err, tt.want)
		}
	}
}

// Other lines of the real programs, added to samples that lack them. The older perf_client
// names percentiles differently: 6465 µs are 6.465 ms.
func TestPerfClient(t *testing.T) {
	text := "Concurrency,Inferences/Second,Client Send,50-th Percentile,90-th Percentile,95-th Percentile,99-th Percentile\n3,205,318,6465,6546,6561,6587\n"
	lines, notes := found(t, perfAnalyzer, text, Options{At: map[string]float64{"batch": 1}})
	for _, want := range []string{"2 latency_p50 0.006465 s batch 1 threads 3", "2 latency_p95 0.006561 s batch 1 threads 3", "2 latency_p99 0.006587 s batch 1 threads 3", "2 requests_per_second 205 requests/s batch 1 threads 3"} {
		if !slices.Contains(lines, want) {
			t.Errorf("%q is not among\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if !strings.Contains(notes, `ignored columns: "90-th Percentile"`) {
		t.Error(notes)
	}
}

func TestLoads(t *testing.T) {
	for _, tt := range []struct {
		format, file string
		replace      []string // old and new
		at           map[string]float64
		want, not    []string
		note         string
	}{
		// 1 % timed out: 0.99 of 602.27/s, and the slowest ones are missing in the
		// percentiles.
		{"wrk", "wrk.log", []string{"Requests/sec:    602.27", "  Socket errors: connect 0, read 100, write 0, timeout 18\nRequests/sec:    602.27"}, nil,
			[]string{"requests_per_second 596.44", "errors 0.06017", "stated_latency_p99 0.18188"}, []string{" latency_p99 0.18188"}, "at threads=4, 118 of 1961 requests failed"},
		// One in 1861 is wrong: its latency changes no percentile.
		{"wrk", "wrk.log", []string{"Requests/sec:    602.27", "  Non-2xx or 3xx responses: 1\nRequests/sec:    602.27"}, nil,
			[]string{" latency_p99 0.18188", "errors 0.0005373"}, nil, ""},
		{"wrk", "wrk2.log", []string{"Requests/sec:   2000.28", "  Socket errors: connect 0, read 0, write 0, timeout 900\nRequests/sec:   2000.28"}, map[string]float64{"rate": 2000},
			[]string{"stated_latency_p99", "requests_per_second 2000.28"}, []string{"errors"}, "the share of failed requests is unknown"},
		// -U adds wrk's own latencies, which are not the recorded ones.
		{"wrk", "wrk2.log", []string{"----------------------------------------------------------\n", "  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))\n 50.000%    1.00ms\n 99.000%    2.00ms\n-----\n"}, map[string]float64{"rate": 2000},
			[]string{" latency_p50 0.00667", " latency_p99 0.01118"}, []string{"0.001 s", "0.002 s"}, ""},
		{"hey", "hey.log", []string{"2815 responses\n", "2800 responses\n\nError distribution:\n  [15]\tGet x: refused\n"}, map[string]float64{"rate": 950},
			[]string{"requests_per_second 932.256", "errors 0.00532859", " latency_p99 0.0481 s batch 1 rate 950"}, nil, "15 of 2815 requests failed"},
		{"hey", "hey.log", []string{"50% in 0.0026", "50%% in 0.0000"}, map[string]float64{"threads": 4}, []string{"latency_p95"}, []string{"latency_p50"}, "latency_p50 is stated as 0"},
		{"perf-analyzer", "perf-analyzer.log", []string{"Request concurrency: 1\n", "Request Rate: 1500 inference requests per second\n", "Concurrency: 1, thr", "Request Rate: 1500, thr",
			"    Throughput:", "    [WARNING] Perf Analyzer was not able to keep up with the desired request rate. 12.50% of the requests were delayed. \n    Throughput:", "Batch size: 1", "Batch size: 4"}, nil,
			[]string{"requests_per_second 351.96 requests/s batch 4 rate 1500", "samples_per_second 1407.84"}, nil, "12.50 % of the requests were sent late"},
		{"perf-analyzer", "perf-analyzer.log", []string{"Inferences/Second vs", "Request concurrency: 2\nInferences/Second vs"}, nil, []string{"threads 1"}, []string{"threads 2"}, "1 of 2 loads had no stable measurement"},
		{"vllm-bench", "vllm-bench.json", []string{`"request_rate": 1.0`, `"request_rate": "inf"`, `"max_concurrency": null`, `"max_concurrency": 16`, `"rtfx": 0.0`, `"median_e2el_ms": 1500.5, "p99_e2el_ms": 2500`}, nil,
			[]string{"requests_per_second 0.973323671435 requests/s batch 1 threads 16", "latency_p50 1.5005 s", "latency_p99 2.5 s"}, nil, "16 requests in flight"},
		{"vllm-bench", "vllm-bench.json", []string{`"request_rate": 1.0`, `"request_rate": "inf"`}, nil, []string{"batch 1 threads 200"}, nil, "all 200 requests were sent at once"},
		{"vllm-bench", "vllm-bench.json", []string{`"burstiness": 1.0, "max_concurrency": null`, `"burstiness": 0.5, "max_concurrency": 8`, `"request_goodput": null`, `"request_goodput": 0.75`}, nil,
			[]string{"goodput 0.75 requests/s batch 1 rate 1"}, nil, "burstiness 0.5"},
		{"aiperf", "aiperf.json", []string{`"phases": [`, `"phases": [{"kind": "warmup", "concurrency": 9}, `}, nil, []string{"threads 2"}, nil, ""},
		{"aiperf", "aiperf.json", []string{`"phases": [`, `"loadgen": {"request_rate": 5.5, "concurrency": 3}, "before": [`}, nil, []string{"rate 5.5"}, nil, "at most 3 requests were in flight"},
		{"mlperf-loadgen", "mlperf-loadgen-server.txt", []string{"Scheduled samples per second", "Completed tokens per second                 : 1234.5\n50.00 percentile first token latency (ns)   : 2000000\nScheduled samples per second"}, nil,
			[]string{"output_throughput 1234.5", "ttft_p50 0.002 s"}, nil, ""},
	} {
		e, err := Find(tt.format)
		if err != nil {
			t.Fatal(err)
		}
		text := sampleText(t, tt.file)
		for i := 0; i < len(tt.replace); i += 2 {
			if !strings.Contains(text, tt.replace[i]) {
				t.Errorf("%s has no %q", tt.file, tt.replace[i])
			}
			text = strings.Replace(text, tt.replace[i], tt.replace[i+1], 1)
		}
		lines, notes := found(t, e, text, Options{At: tt.at})
		all := strings.Join(lines, "\n")
		for _, w := range tt.want {
			if !strings.Contains(all, w) {
				t.Errorf("%s, %q: %q is not among\n%s", tt.file, tt.replace, w, all)
			}
		}
		for _, w := range tt.not {
			if strings.Contains(all, w) {
				t.Errorf("%s, %q: %q is among\n%s", tt.file, tt.replace, w, all)
			}
		}
		if !strings.Contains(notes, tt.note) {
			t.Errorf("%s, %q: %q is not in\n%s", tt.file, tt.replace, tt.note, notes)
		}
	}
	// hey's 937.2507/s times 4.3 ms are 4.03, within 5 % of 4.
	if _, notes := found(t, hey, sampleText(t, "hey.log"), Options{At: map[string]float64{"threads": 4}}); strings.Contains(notes, "Little") {
		t.Error(notes)
	}
	// --append-result: a line per result, and no load twice.
	one := sampleText(t, "vllm-bench.json")
	two := one + strings.Replace(one, `"request_rate": 1.0`, `"request_rate": 2.5`, 1)
	if lines, _ := found(t, vllmBench, two, Options{}); !slices.Contains(lines, "2 output_throughput 124.585429944 tokens/s batch 1 rate 2.5") || len(lines) != 20 {
		t.Errorf("%q", lines)
	}
	for text, want := range map[string]string{one + one: "log:2: a second result of the same load", two + "{\"cut\n": "log:3: not JSON"} {
		if _, err := vllmBench.Extract(strings.NewReader(text), Options{File: "log"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	r, err := mlperfLoadgen.Extract(strings.NewReader(strings.Replace(sampleText(t, "mlperf-loadgen-server.txt"), "No errors", "3 ERRORS", 1)), Options{})
	if err != nil || r.Failed != "LoadGen had errors: 3; see its detailed log" {
		t.Errorf("%q, %v", r.Failed, err)
	}
}

// A row of a table is a load: 50 ms, 0.5 %, 8 samples each.
func TestTableOfLoads(t *testing.T) {
	columns := map[string]Column{"threads": {Name: "conns"}, "requests_per_second": {Name: "rps"}, "latency_p95": {Name: "p95", Unit: "ms"}, "latency_p99": {Name: "p99", Unit: "ms"},
		"errors": {Name: "bad", Unit: "%"}, "platform": {Name: "host"}}
	read := func(text string, columns map[string]Column, at map[string]float64) (lines []string, err error) {
		for run, err := range Runs(strings.NewReader(text), Options{File: "t.csv", At: at}, columns) {
			if err != nil {
				return lines, err
			}
			if run.Result.Kind != "serve" {
				t.Errorf("kind %q", run.Result.Kind)
			}
			checkEvents(t, run.Result)
			for f := range run.Result.Findings() {
				lines = append(lines, written(f))
			}
		}
		return lines, nil
	}
	head := "conns,rps,p95,p99,bad,host\n"
	lines, err := read(head+"4,100,50,70.5,0.5,a\n8,150,NA,,0,b\n", columns, map[string]float64{"batch": 8})
	want := []string{"2 requests_per_second 100 requests/s batch 8 threads 4", "2 samples_per_second 800 samples/s batch 8 threads 4", "2 latency_p95 0.05 s batch 8 threads 4",
		"2 latency_p99 0.0705 s batch 8 threads 4", "2 errors 0.005  batch 8 threads 4",
		"3 requests_per_second 150 requests/s batch 8 threads 8", "3 samples_per_second 1200 samples/s batch 8 threads 8", "3 errors 0  batch 8 threads 8"}
	if diff := cmp.Diff(want, lines); diff != "" || err != nil {
		t.Error(diff, err)
	}
	without := func(name string, add ...string) map[string]Column {
		c := maps.Clone(columns)
		delete(c, name)
		for i := 0; i < len(add); i += 2 {
			c[add[i]] = Column{Name: add[i+1]}
		}
		return c
	}
	for _, tt := range []struct {
		row     string
		columns map[string]Column
		at      map[string]float64
		want    string
	}{
		{"4,100,50,40,0,a", columns, nil, "t.csv:2: P99 of latency is less than the percentile before it"},
		{"4,100,50,60,150,a", columns, nil, "t.csv:2: errors of 150; they are a share"},
		{"4,100,-50,60,0,a", columns, nil, "t.csv:2: latency_p95 is -50"},
		{"4.5,100,50,60,0,a", columns, nil, "t.csv:2: threads=4.5; want a whole number"},
		{"4,100,50,60,0,a", columns, map[string]float64{"threads": 8}, "t.csv:2: the load has threads=4 here; --at says 8"},
		{"4,100,50,60,0,a", without("threads"), nil, "t.csv:2: the load is not stated here"},
		{"4,100,50,60,0,a", without("errors", "accuracy", "bad"), nil, "accuracy belongs to a training"},
		{"4,100,50,60,0,a", map[string]Column{"throughput": {Name: "rps", Unit: "samples/s"}}, map[string]float64{"threads": 8}, "--at is for figures of a load"},
		{"4,100,50,60,0,a", map[string]Column{"throughput": {Name: "rps", Unit: "samples/s"}, "threads": {Name: "conns"}}, nil, "threads describes the load of a service, but no column is mapped to one of its figures"},
		{"4,100,50,60,0,a", map[string]Column{"threads": {Name: "conns"}, "latency_p95": {Name: "p95", Unit: "img/s"}}, nil, `latency_p95 cannot be in "img/s"; it may be in`},
	} {
		if lines, err := read(head+tt.row+"\n", tt.columns, tt.at); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v, want %q", tt.row, lines, err, tt.want)
		}
	}
}
