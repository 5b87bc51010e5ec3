package extract

import (
	"io"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// aiperf reads profile_export_aiperf.json of NVIDIA's AIPerf, and the JSON of
// GenAI-Perf before it, which has the same form but no load that is read.
// Percentiles are interpolated, of answered requests alone, from the send.
var aiperf = Extractor{
	Name:  "aiperf",
	Kind:  "serve",
	Reads: "profile_export_aiperf.json: request_throughput, request_latency, time_to_first_token",
	read:  readAIPerf,
}

// aiperfTimes are its distributions, and what they are by percentile.
var aiperfTimes = []struct {
	theirs             string
	mean, p50, p95, p9 string
}{
	{"request_latency", measure.LatencyMean, measure.LatencyP50, measure.LatencyP95, measure.LatencyP99},
	{"time_to_first_token", "", measure.TTFTP50, measure.TTFTP95, measure.TTFTP99},
	{"inter_token_latency", "", measure.TPOTP50, measure.TPOTP95, measure.TPOTP99},
	{"inter_chunk_latency", "", measure.ITLP50, measure.ITLP95, measure.ITLP99},
}

func readAIPerf(l *log, r io.Reader) error {
	doc, err := l.json(r)
	if err != nil {
		return err
	}
	m := l.object(doc)
	if m.of["request_throughput"].null() && m.of["request_latency"].null() {
		return nil
	}
	load, err := m.aiperfLoad()
	if err != nil {
		return err
	}
	rate := l.object(m.of["request_throughput"])
	s, err := l.under(max(rate.line, 1), load)
	if err != nil {
		return err
	}
	l.note("AIPerf's latencies are of answered requests only and count from the send; its percentiles are interpolated between two requests")
	if string(m.of["was_cancelled"].text) == "true" {
		l.res.Failed = "AIPerf was cancelled before its end"
	}
	answered, counted, err := m.aiperf("request_count", "avg", "requests")
	if err != nil {
		return err
	}
	lost, _, err := m.aiperf("error_request_count", "avg", "requests")
	if err != nil {
		return err
	}
	if counted {
		some := answered
		if some.Number == 0 {
			some = lost
		}
		if err := s.errors(some, lost.Number, answered.Number+lost.Number); err != nil {
			return err
		}
	}
	if v, ok, err := m.aiperf("request_throughput", "avg", "requests/sec"); err != nil {
		return err
	} else if ok {
		if err := s.rate(v, 1); err != nil {
			return err
		}
	}
	for _, f := range []struct{ theirs, unit, ours, base string }{{"output_token_throughput", "tokens/sec", measure.OutputThroughput, "tokens/s"},
		{"goodput", "requests/sec", measure.Goodput, "requests/s"}} {
		v, ok, err := m.aiperf(f.theirs, "avg", f.unit)
		switch {
		case err != nil:
			return err
		case ok && v.Number < 0:
			return l.errorAt(v.Line, "%s is %g; want 0 or more", f.theirs, v.Number)
		case ok:
			s.add(f.ours, f.base, v, 1, "")
		}
	}
	for _, t := range aiperfTimes {
		of := l.object(m.of[t.theirs])
		if len(of.of) == 0 {
			continue
		}
		scale, err := l.unit(of.line, strings.Trim(string(of.of["unit"].text), `"`))
		if err != nil {
			return err
		}
		for _, p := range []struct{ theirs, ours string }{{"avg", t.mean}, {"p50", t.p50}, {"p95", t.p95}, {"p99", t.p9}} {
			if p.ours == "" {
				continue
			}
			v, ok, err := of.number(p.theirs)
			if err == nil && ok {
				err = s.time(p.ours, v, scale)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// aiperf is a statistic of a metric, which has to be in that unit.
func (m members) aiperf(name, statistic, unit string) (v Value, ok bool, err error) {
	of := m.l.object(m.of[name])
	if v, ok, err = of.number(statistic); err != nil || !ok {
		return v, ok, err
	}
	if said := strings.Trim(string(of.of["unit"].text), `"`); said != unit && !(unit == "requests" && said == "count") {
		return v, false, m.l.errorAt(max(of.line, of.of["unit"].line), "%s in %s; want %s", name, clip(said), unit)
	}
	return v, true, nil
}

// aiperfLoad is the load of the phase that is measured, and notes how it was made;
// none where the file does not have it.
func (m members) aiperfLoad() (map[string]float64, error) {
	l := m.l
	config := l.object(m.of["input_config"])
	of, found := members{}, 0
	if err := config.of["phases"].entries(func(v value) error {
		phase := l.object(v)
		if kind := string(phase.of["kind"].text); kind == `"profiling"` || kind == "" {
			of, found = phase, found+1
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if found > 1 {
		return nil, l.errorAt(of.line, "several phases are measured: the figures are not of one load")
	}
	rateName := "rate"
	if found == 0 {
		of, rateName = l.object(config.of["loadgen"]), "request_rate"
	}
	rate, open, err := of.number(rateName)
	if err != nil {
		return nil, err
	}
	most, limited, err := of.number("concurrency")
	if err != nil {
		return nil, err
	}
	switch {
	case open:
		how := strings.Trim(string(of.of["type"].text)+string(of.of["request_rate_mode"].text), `"`)
		switch how {
		case "poisson", "constant", "gamma":
			l.note("requests are sent at a rate (%s); latency does not count from the time at which one was to be sent", how)
		default:
			l.note("requests are sent at a rate; latency does not count from the time at which one was to be sent")
		}
		if limited {
			l.note("no more than %g requests were in flight; what waited for its turn in the client is not in the latencies", most.Number)
		}
		return map[string]float64{measure.Rate: rate.Number}, nil
	case limited:
		l.note("AIPerf's loop is closed: a request is sent when one is answered, so when the service stalls, requests are missing")
		return map[string]float64{measure.Threads: most.Number}, nil
	}
	return nil, nil
}
