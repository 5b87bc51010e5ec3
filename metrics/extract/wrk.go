package extract

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// wrk reads the output of the load generators wrk and wrk2, for one or more loads.
//
// wrk's loop is closed: a connection waits for an answer before it sends the next request. Its
// statistics include latencies that it did not measure. After a latency of more than twice a
// connection's mean interval, it adds latencies of the requests that an open loop would have sent
// meanwhile (stats_correct in src/stats.c). So the mean violates Little's law.
//
// wrk2 sends on a schedule and measures latencies from the scheduled times, but does not print
// its rate.
var wrk = Extractor{
	Name:  "wrk",
	Kind:  "serve",
	Reads: "Requests/sec: X, with the latencies of --latency",
	read:  func(l *log, r io.Reader) { wrkReport.read(l, r, l.wrk) },
}

const (
	wrkCalibration  = "Thread calibration: "
	wrkDistribution = "Latency Distribution"
	wrk2Recorded    = "Latency Distribution (HdrHistogram - Recorded Latency)"
	wrkPercentile   = `^ *(?P<key>\d+(?:\.\d+)?)% +(?P<latency>\d+\.\d+)(?P<unit>[^\s\d]*)\s*$`
)

var wrkReport = textReport{
	begin:    regexp.MustCompile(`^Running (?P<lasts>\d+)(?P<unit>[smh]) test @ `),
	end:      regexp.MustCompile(`^Transfer/sec: +\S+B\s*$`),
	sections: regexp.MustCompile(`^  (?:` + wrkCalibration + `|` + wrkDistribution + `)`),
	several:  true,
	again:    "a test begins, but the one on line %d did not end: the log was cut off",
	cut:      "the test has no end: the log was cut off",
	lines: slices.Concat(textLines("",
		`^  (?P<threads>\d+) threads and (?P<connections>\d+) connections\s*$`,
		`^    Latency +(?P<mean>\d+\.\d+)(?P<unit>[^\s\d]*) +\d`,
		`^  (?P<requests>\d+) requests in (?P<seconds>\d+\.\d+)(?P<unit>[^\s\d]*), \S+ read\s*$`,
		`^  Socket errors: connect (?P<connect>\d+), read (?P<read>\d+), write (?P<write>\d+), timeout (?P<timeout>\d+)\s*$`,
		`^  Non-2xx or 3xx responses: (?P<status>\d+)\s*$`,
		`^Requests/sec: +(?P<rate>\d+\.\d+)\s*$`,
	), textLines(wrkDistribution, wrkPercentile), textLines(wrk2Recorded, wrkPercentile)),
}

var wrkFields = slices.Concat([]loadField{{"mean", measure.LatencyMean, 1}}, percentileFields)

func (l *log) wrk(t *textResult) {
	if !t.has("connections", "requests", "rate") {
		l.fail(t.line, "a test without its connections, its number of requests or its rate: lines are missing")
	}
	of := t.numbers("lasts", "connections", "requests", "rate", "connect", "read", "write", "timeout", "status")
	took, scale, _ := t.number("seconds")
	seconds, count, rate := took.Number*scale, of["requests"], of["rate"]
	if math.Abs(rate.Number*seconds-count.Number) > rate.Number*0.006*scale+1e-3*count.Number+0.006*seconds {
		l.fail(rate.Line, "%g requests/s, where %g requests in %g s make %.6g: one of them is damaged",
			rate.Number, count.Number, seconds, count.Number/seconds)
	}
	hdr := slices.ContainsFunc(t.sections, func(s string) bool {
		return strings.Contains(s, "HdrHistogram") || strings.HasPrefix(s, wrkCalibration)
	})
	s := must(l.under(t.line, l.wrkLoad(t.line, of["connections"].Number, hdr)))
	if lasts := of["lasts"].Number; lasts > 1 && (seconds < lasts/2 || seconds > 2*lasts) {
		s.contradiction = fmt.Sprintf("its requests took %s s by its own clock, in a test of %g s", number.Significant(seconds), lasts)
	}
	s.wrkErrors(count, of["status"].Number, of["timeout"].Number, of["connect"].Number+of["read"].Number+of["write"].Number, hdr)
	if s.rate(rate, 1); count.Number == 0 {
		return
	}
	s.fields(wrkFields, t.number)
}

// wrkLoad returns the coordinates of the load of a test, and adds a note on how it was generated.
func (l *log) wrkLoad(line int, connections float64, hdr bool) map[string]float64 {
	switch {
	case !hdr:
		l.note("wrk's loop is closed: a stalled service delays the next requests; for these, wrk adds latencies that it did not measure")
		return map[string]float64{measure.Threads: connections}
	case l.o.At[measure.Rate] == 0:
		l.fail(line, "wrk2 does not print its request rate (-R); give it with --at rate=R")
	}
	l.note("wrk2 sends at a constant rate, over %g connections, and latency counts from the time at which each request was to be sent", connections)
	return nil
}

// wrkErrors adds the share of failed requests among count answers: answers with an error status,
// timeouts, and lost requests.
func (s *served) wrkErrors(count Value, status, timeouts, lost float64, hdr bool) {
	all := count.Number
	switch {
	case hdr && timeouts > 0: // wrk counts a waiting connection repeatedly
		s.requests, s.wrong = all, 1
		s.l.note("at %s, wrk2 counted %g timeouts, possibly several per request: the share of failed requests is unknown", s, timeouts)
		return
	case all == 0:
		return
	}
	s.wrong = min(1, (status+timeouts)/all)
	s.right = 1 - s.wrong
	s.errors(count, min(all, status+timeouts)+lost, all+lost)
}
