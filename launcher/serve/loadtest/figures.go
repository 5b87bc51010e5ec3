package loadtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// shares lists the percentiles that are recorded as figures.
var shares = []struct {
	name string
	of   string // a name of study.Bound
	at   float64
}{
	{measure.LatencyP50, "", 0.5}, {measure.LatencyP95, "", 0.95}, {measure.LatencyP99, "", 0.99},
	{measure.TTFTP50, study.TTFT, 0.5}, {measure.TTFTP95, study.TTFT, 0.95}, {measure.TTFTP99, study.TTFT, 0.99},
	{measure.TTFOP50, study.TTFO, 0.5}, {measure.TTFOP95, study.TTFO, 0.95}, {measure.TTFOP99, study.TTFO, 0.99},
	{measure.TPOTP50, study.TPOT, 0.5}, {measure.TPOTP95, study.TPOT, 0.95}, {measure.TPOTP99, study.TPOT, 0.99},
	{measure.ITLP50, study.ITL, 0.5}, {measure.ITLP95, study.ITL, 0.95}, {measure.ITLP99, study.ITL, 0.99},
}

// percentiles records the percentiles that are known, and returns why the others are not.
func percentiles(v *Verdict, figure func(name, unit string, value float64)) (doubts []string) {
	tokens, _ := v.Total.Tokens()
	for _, p := range shares {
		if p.of != "" && tokens == 0 || p.of == study.TTFO && !v.Total.Reasoned() {
			continue
		}
		if seconds, why := v.Percentile(timeOf[p.of], p.at); why == "" {
			figure(p.name, "s", seconds)
		} else {
			doubts = append(doubts, fmt.Sprintf("no %sP%g: %s", ofStreams(p.of), 100*p.at, why))
		}
	}
	return doubts
}

// timeOf maps the time that a limit names to a Time.
var timeOf = map[string]Time{"": Latency, study.TTFT: FirstToken, study.TTFO: FirstOutput, study.TPOT: PerToken, study.ITL: Gap}

// ofStreams returns the name of a time as a prefix for a percentile, such as "TTFT ".
func ofStreams(of string) string {
	if of == "" {
		return ""
	}
	return strings.ToUpper(of) + " "
}

// each returns the limits that an answer must keep to count for the goodput: its own times must be within those
// of the percentiles.
func each(l study.Limit) map[Time]time.Duration {
	bounds, _ := l.Of()
	most := map[Time]time.Duration{}
	for _, b := range bounds {
		d := time.Duration(b.Seconds * float64(time.Second))
		if had, ok := most[timeOf[b.Of]]; !ok || d > had { // keep the widest of several percentiles
			most[timeOf[b.Of]] = d
		}
	}
	return most
}

// A recorder records the figures of one load. After an error it records nothing more.
type recorder struct {
	service *Service
	load    Load
	doubts  []string
	err     error
}

func (r *recorder) figure(name, unit string, value float64) {
	if r.err == nil {
		r.err = r.service.Figure(metrics.Figure{Name: name, Unit: unit, Value: value, At: r.load.At()})
	}
}

// client records errors and what the client itself did.
func (r *recorder) client(result *Result, v *Verdict) {
	r.figure(measure.Errors, "", v.Total.Errors())
	r.figure(measure.Timeouts, "", v.Total.Timeouts())
	r.figure(measure.ClientCPUs, "", result.ClientCPU)
	if n := v.Total.Cancelled; n > 0 {
		r.figure(measure.CancelledShare, "", float64(n)/float64(n+v.Total.Requests()))
	}
	if alone, known := r.service.client[r.load.Batch]; known {
		r.figure(measure.ClientRate, "requests/s", alone.rate)
		r.figure(measure.ClientOverhead, "s", alone.overhead)
	}
	if result.FirstError != nil && v.Total.Good > 0 { // otherwise the reason includes it
		r.doubts = append(r.doubts, "the first request without a right answer in time: "+result.FirstError.Error())
	}
}

// steady records throughput and latencies.
func (r *recorder) steady(w study.Serve, v *Verdict) {
	rate := v.Total.Rate()
	r.figure(measure.RequestsPerSecond, "requests/s", rate)
	r.figure(measure.SamplesPerSecond, "samples/s", rate*float64(r.load.Batch))
	if mean, _ := v.Total.Mean(); v.lateMean() == "" {
		r.figure(measure.LatencyMean, "s", mean)
	} else {
		r.doubts = append(r.doubts, "no mean latency: "+v.lateMean())
	}
	if r.load.Threads == 0 {
		r.figure(measure.SendLagP99, "s", v.Lag())
	}
	r.figure(measure.LongestStall, "s", v.Total.Stall.Seconds())
	if cv, ok := v.WindowCV(); ok {
		r.figure(measure.WindowCV, "", cv)
	}
	r.tokens(v)
	if w.Limit != "" {
		r.figure(measure.Goodput, "requests/s", v.Total.Goodput())
	}
	r.doubts = append(r.doubts, percentiles(v, r.figure)...)
}
