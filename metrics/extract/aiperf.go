package extract

import (
	"io"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// aiperf reads profile_export_aiperf.json of NVIDIA's AIPerf. It also reads the JSON file of
// GenAI-Perf, its predecessor, which has the same layout but states no load that we read. Both
// programs count only answered requests, measure latencies from the time of sending, and
// interpolate percentiles.
var aiperf = Extractor{
	Name:  "aiperf",
	Kind:  "serve",
	Reads: "profile_export_aiperf.json: request_throughput, request_latency, time_to_first_token",
	read:  readAIPerf,
}

// aiperfFields maps AIPerf's statistics to our measures. The file states the unit of each.
var aiperfFields = []loadField{
	{"request_throughput.avg", measure.RequestsPerSecond, 1}, {"output_token_throughput.avg", measure.OutputThroughput, 1}, {"goodput.avg", measure.Goodput, 1},
	{"request_latency.avg", measure.LatencyMean, 1}, {"request_latency.p50", measure.LatencyP50, 1}, {"request_latency.p95", measure.LatencyP95, 1}, {"request_latency.p99", measure.LatencyP99, 1},
	{"time_to_first_token.p50", measure.TTFTP50, 1}, {"time_to_first_token.p95", measure.TTFTP95, 1}, {"time_to_first_token.p99", measure.TTFTP99, 1},
	{"inter_token_latency.p50", measure.TPOTP50, 1}, {"inter_token_latency.p95", measure.TPOTP95, 1}, {"inter_token_latency.p99", measure.TPOTP99, 1},
	{"inter_chunk_latency.p50", measure.ITLP50, 1}, {"inter_chunk_latency.p95", measure.ITLP95, 1}, {"inter_chunk_latency.p99", measure.ITLP99, 1},
}

// aiperfUnits are the expected units of metrics that are not times.
var aiperfUnits = map[string]string{"request_throughput": "requests/sec", "goodput": "requests/sec", "output_token_throughput": "tokens/sec",
	"request_count": "requests", "error_request_count": "requests"}

func readAIPerf(l *log, r io.Reader) {
	m := l.object(must(l.json(r)))
	if m.of["request_throughput"].null() && m.of["request_latency"].null() {
		return
	}
	s := must(l.under(max(m.of["request_throughput"].line, 1), m.aiperfLoad()))
	l.note("AIPerf's latencies cover answered requests only and count from the actual send time; its percentiles are interpolated")
	if string(m.of["was_cancelled"].text) == "true" {
		l.res.Failed = "AIPerf was cancelled before its end"
	}
	answered, _, counted := m.statistic("request_count.avg")
	lost, _, _ := m.statistic("error_request_count.avg")
	if counted {
		some := answered
		if some.Number == 0 {
			some = lost
		}
		s.errors(some, lost.Number, answered.Number+lost.Number)
	}
	s.fields(aiperfFields, m.statistic)
}

// statistic returns the number that the file has for a name of the form "metric.statistic", and
// the factor from the metric's unit to ours. ok is false if the file lacks it.
func (m members) statistic(name string) (v Value, scale float64, ok bool) {
	metric, statistic, _ := strings.Cut(name, ".")
	if m.of[metric].null() {
		return v, 1, false
	}
	of := m.l.object(m.of[metric])
	if v, ok = of.number(statistic); !ok {
		return v, 1, ok
	}
	unit, want := strings.Trim(string(of.of["unit"].text), `"`), aiperfUnits[metric]
	switch {
	case want == "":
		scale = m.l.unit(of.line, unit)
		return v, scale, true
	case unit != want && !(want == "requests" && unit == "count"):
		m.l.fail(max(of.line, of.of["unit"].line), "%s in %s; want %s", metric, clip(unit), want)
	}
	return v, 1, true
}

// aiperfLoad returns the coordinates of the load in the profiling phase, nil if the file does not
// state them. It adds a note on how the load was generated.
func (m members) aiperfLoad() map[string]float64 {
	l := m.l
	config := l.object(m.of["input_config"])
	of, found := members{}, 0
	config.of["phases"].entries(func(v value) {
		phase := l.object(v)
		if kind := string(phase.of["kind"].text); kind == `"profiling"` || kind == "" {
			of, found = phase, found+1
		}
	})
	if found > 1 {
		l.fail(of.line, "several phases are measured: the figures are not of one load")
	}
	rateName := "rate"
	if found == 0 {
		of, rateName = l.object(config.of["loadgen"]), "request_rate"
	}
	if of.scheduled(config) {
		if len(l.o.At) == 0 {
			l.fail(max(of.line, 1), "requests were sent by a schedule (fixed_schedule), so its concurrency is a limit and not the load; write --at rate=R with the mean rate of the schedule")
		}
		l.note("requests were sent by a schedule: the load is the one of --at")
		return nil
	}
	rate, open := of.number(rateName)
	if !open { // the rate of all users together
		rate, open = of.number("user_centric_rate")
	}
	most, limited := of.number("concurrency")
	for _, name := range []string{"request_rate_ramp_duration", "concurrency_ramp_duration", "rate_ramp", "concurrency_ramp"} {
		if x := of.of[name]; !x.null() {
			l.note("the load rose at first (%s), so the figures include smaller loads; measure without the ramp", name)
		}
	}
	switch {
	case open:
		how := strings.Trim(string(of.of["type"].text)+string(of.of["request_rate_mode"].text), `"`)
		switch how {
		case "poisson", "constant", "gamma":
			l.note("requests are sent at a rate (%s), but latency counts from the actual send time, not the scheduled one", how)
		default:
			l.note("requests are sent at a rate, but latency counts from the actual send time, not the scheduled one")
		}
		if limited {
			l.note("at most %g requests were in flight; latencies leave out the time that others waited in the client", most.Number)
		}
		return map[string]float64{measure.Rate: rate.Number}
	case limited:
		l.note("AIPerf's loop is closed: a stalled service delays the next requests, so latencies are too low; set a request rate instead")
		return map[string]float64{measure.Threads: most.Number}
	}
	return nil
}

// scheduled reports whether AIPerf sent the requests at the times of a trace.
func (m members) scheduled(config members) bool {
	input := m.l.object(config.of["input"])
	return string(input.of["fixed_schedule"].text) == "true" || string(m.of["type"].text) == `"fixed_schedule"`
}
