package extract

import (
	"fmt"
	"io"
	"math"
	"regexp"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// wrk reads what wrk and wrk2 print, of one or more loads. wrk's loop is closed.
// For its statistics it adds latencies that it did not measure: where one is over
// twice a connection's mean interval, those of the requests that an open loop would
// have sent meanwhile (stats_correct in src/stats.c), so that the mean breaks
// Little's law. wrk2 sends by a schedule, and its recorded latency counts from it;
// it does not print its rate.
var wrk = Extractor{
	Name:  "wrk",
	Kind:  "serve",
	Reads: "Requests/sec: X, with the latencies of --latency",
	read:  readWrk,
}

var (
	wrkBegin        = regexp.MustCompile(`^Running (\d+)([smh]) test @ `)
	wrkThreads      = regexp.MustCompile(`^  (\d+) threads and (\d+) connections\s*$`)
	wrkMean         = regexp.MustCompile(`^    Latency +(\d+\.\d+)([^\s\d]*) +\d`)
	wrk2Calibration = regexp.MustCompile(`^  Thread calibration: `)
	wrkDistribution = regexp.MustCompile(`^  Latency Distribution(?: \(HdrHistogram - (.*)\))?\s*$`)
	wrkPercentile   = regexp.MustCompile(`^ *(\d+(?:\.\d+)?)% +(\d+\.\d+)([^\s\d]*)\s*$`)
	wrkCount        = regexp.MustCompile(`^  (\d+) requests in (\d+\.\d+)([^\s\d]*), \S+ read\s*$`)
	wrkSocket       = regexp.MustCompile(`^  Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)\s*$`)
	wrkStatus       = regexp.MustCompile(`^  Non-2xx or 3xx responses: (\d+)\s*$`)
	wrkRate         = regexp.MustCompile(`^Requests/sec: +(\d+\.\d+)\s*$`)
	wrkEnd          = regexp.MustCompile(`^Transfer/sec: +\S+B\s*$`)
)

// wrkResult is one load's, as it is read.
type wrkResult struct {
	line        int
	connections float64
	names       []string // of times
	times       []Value
	scales      []float64
	count, rate Value
	lasts       float64 // seconds that it was to last
	seconds     float64 // that the requests took, and half of what its last digit is
	half        float64
	socket      [4]float64 // connect, read, write, timeout
	status      float64
	hdr         bool // wrk2
	ignore      bool // the distribution that is being read
}

func readWrk(l *log, r io.Reader) error {
	var from first
	var one *wrkResult
	err := l.each(r, func(ln line) error {
		if m := wrkBegin.FindStringSubmatch(ln.text); m != nil && from.takes(ln) {
			if one != nil {
				return l.errorAt(ln.number, "a test begins, and that on line %d did not end: the log was cut off", one.line)
			}
			n, err := l.parse(ln.number, m[1])
			one = &wrkResult{line: ln.number, lasts: n.Number * timeUnits[m[2]]}
			return err
		}
		if one == nil || ln.source != from.source {
			return nil
		}
		ended, err := one.read(l, ln)
		if err == nil && ended {
			err = one.figures(l)
			one = nil
		}
		return err
	})
	if err == nil && one != nil {
		return l.errorAt(one.line, "a test that does not end: the log was cut off")
	}
	from.note(l)
	return err
}

// read takes a line.
func (w *wrkResult) read(l *log, ln line) (ended bool, err error) {
	var numbers []Value
	once := func(what bool, texts ...string) error {
		if what {
			return l.errorAt(ln.number, "this is twice in the test that begins on line %d", w.line)
		}
		return l.parseAll(ln.number, &numbers, texts...)
	}
	switch text := ln.text; {
	case wrkThreads.MatchString(text):
		m := wrkThreads.FindStringSubmatch(text)
		n, err := l.count(ln.number, "connections:", m[2])
		if err == nil {
			err = once(w.connections > 0)
		}
		w.connections = float64(n)
		return false, err
	case wrkMean.MatchString(text):
		m := wrkMean.FindStringSubmatch(text)
		return false, w.time(l, ln.number, measure.LatencyMean, m[1], m[2])
	case wrk2Calibration.MatchString(text):
		w.hdr = true
	case wrkDistribution.MatchString(text):
		m := wrkDistribution.FindStringSubmatch(text)
		w.hdr, w.ignore = w.hdr || m[1] != "", m[1] != "" && m[1] != "Recorded Latency"
	case wrkPercentile.MatchString(text):
		m := wrkPercentile.FindStringSubmatch(text)
		rank, err := l.parse(ln.number, m[1])
		if name := latencies[fmt.Sprint(rank.Number)]; err == nil && name != "" && !w.ignore {
			err = w.time(l, ln.number, name, m[2], m[3])
		}
		return false, err
	case wrkCount.MatchString(text):
		m := wrkCount.FindStringSubmatch(text)
		if err := once(w.count.Line > 0, m[1], m[2]); err != nil {
			return false, err
		}
		scale, err := l.unit(ln.number, m[3])
		w.count, w.seconds, w.half = numbers[0], numbers[1].Number*scale, 0.006*scale
		return false, err
	case wrkSocket.MatchString(text):
		if err := once(false, wrkSocket.FindStringSubmatch(text)[1:]...); err != nil {
			return false, err
		}
		for i, v := range numbers {
			w.socket[i] = v.Number
		}
	case wrkStatus.MatchString(text):
		if err := once(false, wrkStatus.FindStringSubmatch(text)[1]); err != nil {
			return false, err
		}
		w.status = numbers[0].Number
	case wrkRate.MatchString(text):
		if err := once(w.rate.Line > 0, wrkRate.FindStringSubmatch(text)[1]); err != nil {
			return false, err
		}
		w.rate = numbers[0]
	case wrkEnd.MatchString(text):
		return true, nil
	}
	return false, nil
}

func (w *wrkResult) time(l *log, ln int, name, text, unit string) error {
	for _, before := range w.names {
		if before == name {
			return l.errorAt(ln, "a second %s in the test that begins on line %d", name, w.line)
		}
	}
	scale, err := l.unit(ln, unit)
	if err != nil {
		return err
	}
	v, err := l.parse(ln, text)
	w.names, w.times, w.scales = append(w.names, name), append(w.times, v), append(w.scales, scale)
	return err
}

// figures makes figures of a test that was read to its end.
func (w *wrkResult) figures(l *log) error {
	switch {
	case w.connections == 0 || w.count.Line == 0 || w.rate.Line == 0:
		return l.errorAt(w.line, "a test without its connections, its number of requests or its rate: lines are missing")
	case math.Abs(w.rate.Number*w.seconds-w.count.Number) > w.rate.Number*w.half+1e-3*w.count.Number+0.006*w.seconds:
		return l.errorAt(w.rate.Line, "%g requests/s, where %g requests in %g s make %.6g: one of them is damaged",
			w.rate.Number, w.count.Number, w.seconds, w.count.Number/w.seconds)
	}
	var load map[string]float64
	switch {
	case !w.hdr:
		load = map[string]float64{measure.Threads: w.connections}
		l.note("wrk's loop is closed: a connection sends its next request when it has its answer, so when the service stalls, requests are missing. To its latencies wrk adds some for these, which it did not measure")
	case l.o.At[measure.Rate] == 0:
		return l.errorAt(w.line, "wrk2 does not print the rate that it was asked for; say it with --at rate=R, its -R")
	default:
		l.note("wrk2 sends at a constant rate, over %g connections, and latency counts from the time at which each request was to be sent", w.connections)
	}
	s, err := l.under(w.line, load)
	if err != nil {
		return err
	}
	if w.lasts > 1 && (w.seconds < w.lasts/2 || w.seconds > 2*w.lasts) {
		s.contradiction = fmt.Sprintf("its requests took %s s by its own clock, in a test of %g s", number.Significant(w.seconds), w.lasts)
	}
	timeouts := w.socket[3]
	lost := w.socket[0] + w.socket[1] + w.socket[2]
	all := w.count.Number
	if w.hdr && timeouts > 0 { // it looks again and again at a connection that waits
		s.requests = all
		l.note("at %s, wrk2 counted %g timeouts, one request's more than once: the share that failed is not known", s, timeouts)
		s.wrong = 1
	} else if all > 0 {
		s.wrong = min(1, (w.status+timeouts)/all)
		s.right = 1 - s.wrong
		failed := min(all, w.status+timeouts) + lost
		if err := s.errors(w.count, failed, all+lost); err != nil {
			return err
		}
	}
	if err := s.rate(w.rate, 1); err != nil || all == 0 {
		return err
	}
	for i, name := range w.names {
		if err := s.time(name, w.times[i], w.scales[i]); err != nil {
			return err
		}
	}
	return nil
}
