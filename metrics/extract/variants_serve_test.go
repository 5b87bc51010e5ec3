package extract

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// 10000 requests in 10 s over 8 connections: 1000 requests/s; a mean of 8 ms by Little's
// law.
func TestWrkVariants(t *testing.T) {
	const (
		begin  = "Running 10s test @ http://127.0.0.1:8080/\n  2 threads and 8 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     8.00ms    1.00ms  20.00ms   90.00%\n    Req/Sec     0.50k    10.00     0.60k    70.00%\n"
		spread = "  Latency Distribution\n     50%    7.00ms\n     75%    8.00ms\n     90%   10.00ms\n     99%   15.00ms\n"
		end    = "  10000 requests in 10.00s, 1.20MB read\nRequests/sec:   1000.00\nTransfer/sec:    122.88KB\n"
	)
	right := []string{" requests_per_second 1000 requests/s ", " latency_mean 0.008 s ", " latency_p99 0.015 s "}
	hdr := "Initialised 2 threads in 0 ms.\n" + strings.Replace(begin, "  Thread Stats", "  Thread calibration: mean lat.: 1.000ms, rate sampling interval: 10ms\n  Thread Stats", 1) +
		"  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    7.00ms\n 99.000%   15.00ms\n100.000%   20.00ms\n" + end
	runVariants(t, "wrk", []variant{
		{name: "as it is", text: begin + spread + end, want: right},
		{name: "minutes", text: strings.NewReplacer("Running 10s", "Running 1m", "10000 requests in 10.00s", "60000 requests in 1.00m").Replace(begin + spread + end), want: right},
		{name: "microseconds", text: strings.NewReplacer("8.00ms    1.00ms", "800.00us  1.00ms", "2 threads and 8 con", "1 threads and 1 con", "10.00s, 1", "8.00s, 1", " 1000.00", " 1250.00").Replace(begin + spread + end), want: []string{" latency_mean 0.0008 s ", " requests_per_second 1250 "}},
		{name: "seconds and minutes of latency", text: strings.NewReplacer("    99%   15.00ms", "    99%    1.50m").Replace(begin + spread + end), want: []string{" latency_p99 90 s "}},
		{name: "without --latency", text: begin + end, want: right[:2]},
		{name: "errors of the socket", text: begin + spread + strings.Replace(end, "Requests/sec", "  Socket errors: connect 0, read 100, write 0, timeout 400\nRequests/sec", 1), says: "500 of 10100 requests failed", never: []string{" latency_p99 "}},
		{name: "other answers", text: begin + spread + strings.Replace(end, "Requests/sec", "  Non-2xx or 3xx responses: 2500\nRequests/sec", 1), want: []string{" requests_per_second 750 ", " errors 0.25 "}, never: []string{" latency_p99 "}},
		{name: "a rate with a suffix", text: begin + spread + strings.Replace(end, " 1000.00", " 1.00k", 1), refused: "a test without its connections"},
		{name: "a rate that is damaged", text: begin + spread + strings.Replace(end, " 1000.00", " 100.00", 1), refused: "damaged"},
		{name: "cut off", text: begin + spread, refused: "cut off"},
		{name: "no end of line", text: begin + spread + strings.TrimSuffix(end, "\n"), refused: "cut off"},
		{name: "a script's own lines", text: begin + spread + end + "summary: 10000\n", want: right},
		{name: "two loads", text: begin + spread + end + strings.NewReplacer("8 con", "16 con", "8.00ms    1", "16.00ms    1").Replace(begin+spread+end), want: right},
		{name: "the same load twice", text: begin + spread + end + begin + spread + end, refused: "a second result of the same load"},
		{name: "wrk2 without its rate", text: hdr, refused: "--at rate=R"},
		{name: "wrk2", text: hdr, o: Options{At: map[string]float64{measure.Rate: 1000}}, want: []string{" requests_per_second 1000 ", " latency_p99 0.015 s "}},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(begin+spread+end, "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", want: right},
		{name: "under journald", text: "May 01 10:00:00 n01 wrk[7]: " + strings.ReplaceAll(strings.TrimSuffix(begin+spread+end, "\n"), "\n", "\nMay 01 10:00:00 n01 wrk[7]: ") + "\n", want: right},
		{name: "decimal commas", text: strings.ReplaceAll(begin+spread+end, ".", ","), refused: "a test without"},
	})
}

// 8 workers, 10000 requests in 10 s.
func TestHeyVariants(t *testing.T) {
	at := Options{At: map[string]float64{measure.Threads: 8}}
	text := func(total, average, rate, status, more string) string {
		return "\nSummary:\n  Total:\t" + total + " secs\n  Slowest:\t0.0200 secs\n  Fastest:\t0.0020 secs\n  Average:\t" + average + " secs\n  Requests/sec:\t" + rate + "\n  \n  Total data:\t5630 bytes\n  Size/request:\t2 bytes\n\nResponse time histogram:\n  0.002 [1]\t|\n\n\nLatency distribution:\n  10% in 0.0024 secs\n  50% in 0.0070 secs\n  95% in 0.0108 secs\n  99% in 0.0150 secs\n\nDetails (average, fastest, slowest):\n  DNS+dialup:\t0.0000 secs, 0.0022 secs, 0.0899 secs\n\nStatus code distribution:\n" + status + "\n" + more
	}
	right := []string{" requests_per_second 1000 requests/s ", " latency_mean 0.008 s ", " latency_p50 0.007 s ", " latency_p99 0.015 s "}
	plain := text("10.0000", "0.0080", "1000.0000", "  [200]\t10000 responses\n", "")
	const errs = "Error distribution:\n  [2000]\tGet http://h/: EOF\n"
	runVariants(t, "hey", []variant{
		{name: "as it is", text: plain, o: at, want: right},
		{name: "without the workers", text: plain, refused: "--at threads=N"},
		{name: "doubled percent signs", text: strings.ReplaceAll(plain, "% in", "%% in"), o: at, want: right},
		{name: "milliseconds", text: strings.ReplaceAll(plain, "0.0080 secs", "8.0000 msecs"), o: at, refused: "hey prints secs"},
		{name: "other answers", text: text("10.0000", "0.0080", "1000.0000", "  [200]\t7500 responses\n  [500]\t2500 responses\n", ""), o: at, want: []string{" requests_per_second 750 ", " errors 0.25 "}, never: []string{" latency_p99 "}},
		{name: "lost requests", text: text("10.0000", "0.0064", "1000.0000", "  [200]\t8000 responses\n", errs), o: at, want: []string{" requests_per_second 800 ", " errors 0.2 "}},
		// Until 2018, requests without an answer were not in the rate: 8000 answers in 10 s.
		{name: "lost requests in older versions", text: text("10.0000", "0.0100", "800.0000", "  [200]\t8000 responses\n", errs), o: at, want: []string{" requests_per_second 800 ", " errors 0.2 "}},
		// Older versions keep a million and divide their number by the time: 3e6 answers in 60 s are
		// 50000/s, and 16666.7 is printed.
		{name: "more than a million in older versions", text: text("60.0000", "0.0005", "16666.6667", "  [200]\t3000000 responses\n", ""), o: at, want: []string{" stated_requests_per_second "}, never: []string{" requests_per_second "}, says: "3000000 answers in 60 s are 50.0k/s"},
		{name: "more than a million", text: text("60.0000", "0.0005", "50000.0000", "  [200]\t1000000 responses\n", ""), o: at, want: []string{" requests_per_second 50000 "}, says: "first million"},
		{name: "a damaged rate", text: text("10.0000", "0.0080", "100.0000", "  [200]\t10000 responses\n", ""), o: at, refused: "damaged or missing"},
		{name: "cut off", text: plain[:strings.Index(plain, "Status code")], o: at, refused: "cut off"},
		{name: "twice", text: plain + plain, o: at, refused: "a second summary"},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(plain, "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", o: at, want: right},
		{name: "a rate that the load contradicts", text: text("10.0000", "0.0008", "1000.0000", "  [200]\t10000 responses\n", ""), o: at, says: "Little's law"},
		{name: "redirects", text: text("10.0000", "0.0080", "1000.0000", "  [302]\t10000 responses\n", ""), o: at, says: "no request had a right answer", never: []string{" requests_per_second "}},
	})
}

// 200 requests in 20 s: 10 requests/s.
func TestVLLMVariants(t *testing.T) {
	doc := func(head string) string {
		return `{"backend": "openai", ` + head + `"duration": 20.0, "total_input_tokens": 39800, "total_output_tokens": 25600, "request_throughput": 10.0, "output_throughput": 1280.0, "total_token_throughput": 3270.0, "mean_ttft_ms": 97.5, "median_ttft_ms": 98.0, "p99_ttft_ms": 113.0, "median_tpot_ms": 34.0, "p99_tpot_ms": 35.0, "mean_e2el_ms": 800.0, "median_e2el_ms": 790.0, "p99_e2el_ms": 900.0}`
	}
	const all = `"num_prompts": 200, "completed": 200, `
	right := []string{" requests_per_second 10 requests/s ", " ttft_p99 0.113 s ", " output_throughput 1280 "}
	runVariants(t, "vllm-bench", []variant{
		{name: "closed", text: doc(all + `"request_rate": "inf", "max_concurrency": 8, `), want: append(right, " threads 8 ")},
		{name: "open", text: doc(all + `"request_rate": 10.0, "burstiness": 1.0, "max_concurrency": null, `), want: append(right, " rate 10 ")},
		{name: "a rate as text", text: doc(all + `"request_rate": "10.0", "max_concurrency": null, `), refused: "request_rate"},
		{name: "Infinity", text: doc(all + `"request_rate": Infinity, "max_concurrency": 8, `), refused: "not JSON"},
		{name: "all at once", text: doc(all + `"request_rate": "inf", "max_concurrency": null, `), want: append(right, " threads 200 ")},
		{name: "failures", text: doc(`"num_prompts": 250, "completed": 200, "failed": 50, "request_rate": "inf", "max_concurrency": 8, `), want: append(right, " errors 0.2 ")},
		{name: "failures that do not add up", text: doc(`"num_prompts": 200, "completed": 200, "failed": 50, "request_rate": "inf", "max_concurrency": 8, `), refused: "damaged"},
		{name: "a ramp", text: doc(all + `"request_rate": "inf", "ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 10, `), refused: "ramp_up_strategy"},
		{name: "SGLang's", text: doc(`"completed": 200, "request_rate": 10.0, "max_concurrency": null, `), refused: "add \"num_prompts\": N"},
		{name: "more answers than asked for", text: doc(all + `"request_rate": 2.0, "max_concurrency": null, `), want: []string{" stated_requests_per_second 10 "}, never: []string{" requests_per_second "}},
		{name: "the rate of another time", text: strings.Replace(doc(all+`"request_rate": "inf", "max_concurrency": 8, `), "20.0", "40.0", 1), refused: "damaged"},
		{name: "tokens that do not add up", text: strings.Replace(doc(all+`"request_rate": "inf", "max_concurrency": 8, `), "25600", "256000", 1), refused: "not 256000"},
		{name: "two lines", text: doc(all+`"request_rate": "inf", "max_concurrency": 8, `) + "\n" + doc(all+`"request_rate": "inf", "max_concurrency": 16, `) + "\n", want: append(right, " threads 8 ", " threads 16 ")},
		{name: "the same twice", text: doc(all+`"request_rate": "inf", "max_concurrency": 8, `) + "\n" + doc(all+`"request_rate": "inf", "max_concurrency": 8, `) + "\n", refused: "a second result"},
		{name: "cut off", text: doc(all + `"request_rate": "inf", "max_concurrency": 8, `)[:200], refused: "log"},
	})
}

// 40 requests: 10 requests/s at 8 in flight, a mean of 0.8 s.
func TestAIPerfVariants(t *testing.T) {
	doc := func(config, more string) string {
		return `{"request_throughput": {"unit": "requests/sec", "avg": 10.0}, "request_latency": {"unit": "ms", "avg": 800.0, "p50": 790.0, "p95": 850.0, "p99": 900.0}, "request_count": {"unit": "requests", "avg": 40.0}, ` + more + `"input_config": {` + config + `}}`
	}
	const closed = `"loadgen": {"concurrency": 8}`
	right := []string{" requests_per_second 10 requests/s ", " latency_mean 0.8 s ", " latency_p99 0.9 s "}
	runVariants(t, "aiperf", []variant{
		{name: "closed", text: doc(closed, ""), want: append(right, " threads 8 ")},
		{name: "seconds", text: strings.NewReplacer(`"unit": "ms", "avg": 800.0, "p50": 790.0, "p95": 850.0, "p99": 900.0`, `"unit": "s", "avg": 0.8, "p50": 0.79, "p95": 0.85, "p99": 0.9`).Replace(doc(closed, "")), want: right},
		{name: "microseconds", text: strings.NewReplacer(`"unit": "ms", "avg": 800.0`, `"unit": "us", "avg": 800000.0`, "790.0", "790000.0", "850.0", "850000.0", "900.0", "900000.0").Replace(doc(closed, "")), want: right},
		{name: "an unknown unit", text: strings.Replace(doc(closed, ""), `"unit": "ms"`, `"unit": "ticks"`, 1), refused: "ticks"},
		{name: "a rate per minute", text: strings.Replace(doc(closed, ""), "requests/sec", "requests/min", 1), refused: "requests/min"},
		{name: "at a rate", text: doc(`"loadgen": {"request_rate": 10.0, "request_rate_mode": "poisson"}`, ""), want: append(right, " rate 10 ")},
		{name: "at a rate, in phases", text: doc(`"phases": [{"kind": "warmup", "concurrency": 1}, {"kind": "profiling", "type": "poisson", "rate": 10.0}]`, ""), want: append(right, " rate 10 ")},
		{name: "more answers than asked for", text: doc(`"loadgen": {"request_rate": 2.0}`, ""), want: []string{" stated_requests_per_second 10 "}, never: []string{" requests_per_second "}},
		{name: "a replayed schedule", text: doc(`"input": {"fixed_schedule": true}, "loadgen": {"concurrency": 1}`, ""), refused: "schedule"},
		{name: "a schedule with its mean rate", text: doc(`"input": {"fixed_schedule": true}, "loadgen": {"concurrency": 1}`, ""), o: Options{At: map[string]float64{measure.Rate: 10}}, want: append(right, " rate 10 "), says: "by a schedule"},
		{name: "a schedule in phases", text: doc(`"phases": [{"kind": "profiling", "type": "fixed_schedule", "concurrency": 8}]`, ""), refused: "schedule"},
		{name: "a rate of each user", text: doc(`"loadgen": {"user_centric_rate": 10.0, "num_users": 15, "concurrency": 8}`, ""), want: append(right, " rate 10 ")},
		{name: "a ramp", text: doc(`"loadgen": {"request_rate": 10.0, "request_rate_ramp_duration": 30.0}`, ""), says: "the load rose at first"},
		{name: "a ramp of the concurrency", text: doc(`"loadgen": {"concurrency": 8, "concurrency_ramp_duration": 30.0}`, ""), says: "the load rose at first"},
		{name: "errors", text: doc(closed, `"error_request_count": {"unit": "requests", "avg": 10.0}, `), want: append(right, " errors 0.2 ")},
		{name: "no load", text: doc("", ""), refused: "--at threads=N"},
		{name: "cancelled", text: doc(closed, `"was_cancelled": true, `), says: "cancelled"},
		{name: "the load contradicts", text: doc(`"loadgen": {"concurrency": 80}`, ""), says: "Little's law"},
		{name: "a sweep", text: doc(`"loadgen": {"concurrency": [8, 16]}`, ""), refused: "concurrency"},
		{name: "GenAI-Perf", text: `{"request_throughput": {"unit": "requests/sec", "avg": 10.0}, "request_latency": {"unit": "ms", "avg": 800.0, "p50": 790.0, "p99": 900.0}, "input_config": {"perf_analyzer": {"stimulus": {"concurrency": 8}}}}`, refused: "--at threads=N"},
	})
}

// 1000 queries/s asked for, 990 answered.
func TestLoadgenVariants(t *testing.T) {
	doc := func(scenario, mode, rates, verdict, params, end string) string {
		return "================================================\nMLPerf Results Summary\n================================================\nSUT name : PySUT\nScenario : " + scenario + "\nMode     : " + mode + "\n" + rates + "Result is : " + verdict +
			"\n  Performance constraints satisfied : Yes\n  Min duration satisfied : Yes\n  Min queries satisfied : Yes\n  Early stopping satisfied: Yes\n\n================================================\nAdditional Stats\n================================================\nMean latency (ns)               : 5000000\n50.00 percentile latency (ns)   : 4000000\n99.00 percentile latency (ns)   : 9000000\n\n================================================\nTest Parameters Used\n================================================\nsamples_per_query : 1\ntarget_qps : " + params + "\n\nNo warnings encountered during test.\n\n" + end + "\n"
	}
	const completed, no = "Completed samples per second    : 990.00\n", "No errors encountered during test."
	server := doc("Server", "PerformanceOnly", completed, "VALID", "1000", no)
	right := []string{" requests_per_second 990 requests/s ", " latency_p99 0.009 s "}
	runVariants(t, "mlperf-loadgen", []variant{
		{name: "as it is", text: server, want: append(right, " rate 1000 ")},
		{name: "invalid", text: strings.NewReplacer("VALID", "INVALID", "Min duration satisfied : Yes", "Min duration satisfied : NO").Replace(server), says: "the run failed: LoadGen calls the result INVALID (min duration satisfied: NO)"},
		{name: "valid with an unmet check", text: strings.Replace(server, "Min duration satisfied : Yes", "Min duration satisfied : NO", 1), refused: "damaged"},
		{name: "accuracy", text: strings.Replace(server, "PerformanceOnly", "AccuracyOnly", 1), refused: "only PerformanceOnly measures performance"},
		{name: "only the scheduled rate", text: doc("Server", "PerformanceOnly", "Scheduled samples per second : 1000.00\n", "VALID", "1000", no), refused: "without Completed samples per second"},
		{name: "more answers than asked for", text: doc("Server", "PerformanceOnly", completed, "VALID", "100", no), want: []string{" stated_requests_per_second 990 "}, never: []string{" requests_per_second "}},
		{name: "errors", text: doc("Server", "PerformanceOnly", completed, "VALID", "1000", "3 ERRORS encountered. See detailed log."), says: "LoadGen had errors: 3"},
		{name: "offline", text: doc("Offline", "PerformanceOnly", "Samples per second: 990.00\n", "VALID", "1000", no), want: []string{" samples_per_second 990 samples/s "}, never: []string{"latency", "requests_per_second"}},
		{name: "an older scenario", text: doc("MultiStreamFree", "PerformanceOnly", completed, "VALID", "1000", no), refused: "known are"},
		{name: "a load that the user contradicts", text: server, o: Options{At: map[string]float64{measure.Rate: 500}}, refused: "--at says 500"},
		{name: "cut off", text: server[:strings.Index(server, "No errors")], refused: "cut off"},
		{name: "twice", text: server + server, refused: "a second summary"},
		{name: "a rate in thousands", text: doc("Server", "PerformanceOnly", "Completed samples per second    : 0.99k\n", "VALID", "1000", no), refused: "0.99k"},
		{name: "under kubectl", text: "2024-05-01T10:00:00.1Z " + strings.ReplaceAll(strings.TrimSuffix(server, "\n"), "\n", "\n2024-05-01T10:00:00.1Z ") + "\n", want: right},
	})
}
