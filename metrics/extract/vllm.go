package extract

import (
	"fmt"
	"io"
	"math"

	"github.com/scalebench/scalebench/metrics/measure"
)

// vllmBench reads the JSON file that `vllm bench serve`, or its predecessor benchmark_serving.py,
// writes with --save-result or --append-result. vLLM rescales random arrivals so that the last
// one is at N / rate, which hides the variance of a Poisson process. Latencies cover answered
// requests only, and are measured from the time of sending. Rates are divided by the time until
// the last answer.
var vllmBench = Extractor{
	Name:  "vllm-bench",
	Kind:  "serve",
	Reads: "the JSON file of vllm bench serve --save-result: request_throughput, completed, p99_ttft_ms",
	read: func(l *log, r io.Reader) {
		for _, result := range l.documents(r) {
			l.vllmResult(result)
		}
	},
}

var vllmFields = []loadField{
	{"mean_e2el_ms", measure.LatencyMean, 1e-3}, {"median_e2el_ms", measure.LatencyP50, 1e-3}, {"p95_e2el_ms", measure.LatencyP95, 1e-3}, {"p99_e2el_ms", measure.LatencyP99, 1e-3},
	{"median_ttft_ms", measure.TTFTP50, 1e-3}, {"p95_ttft_ms", measure.TTFTP95, 1e-3}, {"p99_ttft_ms", measure.TTFTP99, 1e-3},
	{"median_tpot_ms", measure.TPOTP50, 1e-3}, {"p95_tpot_ms", measure.TPOTP95, 1e-3}, {"p99_tpot_ms", measure.TPOTP99, 1e-3},
	{"median_itl_ms", measure.ITLP50, 1e-3}, {"p95_itl_ms", measure.ITLP95, 1e-3}, {"p99_itl_ms", measure.ITLP99, 1e-3},
	{"output_throughput", measure.OutputThroughput, 1}, {"request_goodput", measure.Goodput, 1}, {"request_goodput:", measure.Goodput, 1},
}

// vllmResult adds the result of one load. With --append-result, the file has one per line.
func (l *log) vllmResult(doc value) {
	m := l.object(doc)
	if m.of["request_throughput"].null() && m.of["completed"].null() {
		return
	}
	completed := m.count("completed")
	if m.of["num_prompts"].null() {
		l.fail(completed.Line, "a result without num_prompts, as SGLang's bench_serving writes it: nothing says how many requests failed; add \"num_prompts\": N, with the number of requests that were sent")
	}
	prompts := m.count("num_prompts")
	rate, duration := m.need("request_throughput"), m.need("duration")
	failed := prompts.Number - completed.Number
	if v, ok := m.number("failed"); ok && v.Number != failed {
		l.fail(v.Line, "%g failed and %g completed are not %g prompts: one of the three is damaged", v.Number, completed.Number, prompts.Number)
	}
	l.agree("requests", rate, duration, completed)
	output, rated := m.number("output_throughput")
	tokens, counted := m.number("total_output_tokens")
	if rated && counted {
		l.agree("output tokens", output, duration, tokens)
	}
	s := must(l.under(rate.Line, m.vllmLoad(prompts.Number)))
	s.errors(prompts, failed, prompts.Number)
	if s.rate(rate, 1); completed.Number == 0 {
		return
	}
	s.fields(vllmFields, m.source)
}

// agree fails if a rate over a duration is another number than the count; what names what is counted.
func (l *log) agree(what string, rate, duration, count Value) {
	if own := rate.Number * duration.Number; math.Abs(own-count.Number) > 0.01*count.Number+0.01 {
		l.fail(rate.Line, "%.6g %s/s over %.6g s are %.6g %[2]s, not %.10[5]g: one of the three is damaged", rate.Number, what, duration.Number, own, count.Number)
	}
}

// vllmLoad returns the coordinates of the load, and adds a note on how it was generated.
func (m members) vllmLoad(prompts float64) map[string]float64 {
	l := m.l
	if ramp := m.of["ramp_up_strategy"]; !ramp.null() {
		l.fail(ramp.line, "the rate rose during the run (ramp_up_strategy), so its figures belong to no single rate")
	}
	most, limited := m.number("max_concurrency")
	l.note("vLLM's latencies cover answered requests only and count from the send; its rates include the end, with few requests in flight")
	asked := m.of["request_rate"]
	if asked.null() || string(asked.text) == `"inf"` || string(asked.text) == "Infinity" {
		if limited {
			l.note("vLLM's loop is closed (%g requests in flight): a stalled service delays the next requests, so latencies are too low", most.Number)
			return map[string]float64{measure.Threads: most.Number}
		}
		l.note("all %g requests were sent at once: as many are in flight at first, then fewer and fewer", prompts)
		return map[string]float64{measure.Threads: prompts}
	}
	rate := m.need("request_rate")
	burst, ok := m.number("burstiness")
	how := "at random times (Poisson)"
	if ok && burst.Number != 1 {
		how = fmt.Sprintf("at gamma-distributed intervals (burstiness %g)", burst.Number)
	}
	l.note("requests are sent %s, rescaled so that the last one is at N / rate: runs vary less than real arrivals do", how)
	if limited {
		l.note("at most %g requests were in flight; latencies leave out the time that others waited in the client", most.Number)
	}
	return map[string]float64{measure.Rate: rate.Number}
}
