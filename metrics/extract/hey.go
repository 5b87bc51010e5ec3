package extract

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// hey reads the summary that the load generator hey prints, and its CSV output (-o csv) with a
// row per request. Neither states the number of workers (-c). hey's rate includes failed
// requests. Its latencies cover the first million requests with any status.
var hey = Extractor{
	Name:  "hey",
	Kind:  "serve",
	Reads: "Requests/sec: X with the status code distribution, or the columns of -o csv",
	read:  readHey,
}

var heySummary = textReport{
	begin: regexp.MustCompile(`^Summary:\s*$`),
	again: "a second summary; the first is on line %d. One file is one load: split it",
	lines: slices.Concat(textLines("",
		`^  Total:\s+(?P<total>\d+\.\d+) (?P<unit>\S+)\s*$`,
		`^  Average:\s+(?P<average>\d+\.\d+) (?P<unit>\S+)\s*$`,
		`^  Requests/sec:\s+(?P<rate>\d+\.\d+)\s*$`,
	),
		textLines("Latency distribution:", `^  (?P<key>\d+)%{1,2} in (?P<latency>\d+\.\d+) (?P<unit>\S+)\s*$`),
		textLines("Status code distribution:", `^  \[(?P<key>\d{3})\]\s+(?P<responses>\d+) responses\s*$`),
		textLines("Error distribution:", `^  \[(?P<errors>\d+)\]\s(?P<key>.*)$`)),
}

// heyMost is the number of requests of which hey keeps the latency and the status.
const heyMost = 1_000_000

const heyColumns = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"

const heyLoop = "hey's loop is closed: a stalled service delays the next requests instead of their latencies, so these are too low"

func readHey(l *log, r io.Reader) {
	var rows *heyRows
	summary := heySummary.reader(l, l.hey)
	l.each(r, func(ln line) {
		switch {
		case rows != nil:
			rows.read(l, ln)
		case strings.TrimRight(ln.text, " \t") == heyColumns && summary.began == 0:
			rows = &heyRows{line: ln.number}
		default:
			summary.line(ln)
		}
	})
	if rows != nil {
		rows.figures(l)
		return
	}
	summary.finish()
}

// heyAnswers counts the requests of a summary.
type heyAnswers struct {
	right, answers, lost float64
	last                 Value // the count that was read last
}

func heyCounts(t *textResult) (a heyAnswers) {
	for name, s := range t.of {
		what, status, _ := strings.Cut(name, " ")
		if what != "responses" && what != "errors" {
			continue
		}
		x := float64(t.l.count(s.line, what+":", s.text))
		switch {
		case what == "errors":
			a.lost += x
		case status[0] == '2':
			a.right += x
			fallthrough
		default:
			a.answers += x
		}
		if s.line > a.last.Line {
			a.last = Value{x, s.line}
		}
	}
	return a
}

func (l *log) hey(t *textResult) {
	for _, s := range t.of {
		if s.unit != "" && s.unit != "secs" {
			l.fail(s.line, "a time in %s; hey prints secs", clip(s.unit))
		}
	}
	a := heyCounts(t)
	of := t.numbers("total", "rate")
	total, rate := of["total"], of["rate"]
	requests, rounded := rate.Number*total.Number, 0.5+6e-5*(rate.Number+total.Number)
	counted := a.answers + a.lost
	if math.Abs(requests-a.answers) <= rounded { // older versions do not count lost requests in the rate
		counted = a.answers
	}
	switch last := t.section(); {
	case total.Line == 0 || rate.Line == 0 || last != "Status code distribution:" && last != "Error distribution:":
		l.fail(t.line, "a summary without its time, its rate or its status codes: the log was cut off")
	case a.last.Line == 0:
		l.fail(t.line, "a summary without requests")
	case a.answers < heyMost && math.Abs(requests-counted) > rounded:
		l.fail(rate.Line, "%g requests/s over %g s are %.6g requests, the answers and errors %g: a line is damaged or missing",
			rate.Number, total.Number, requests, a.answers+a.lost)
	}
	s := must(l.under(t.line, nil))
	l.note("%s", heyLoop)
	fields := heyFields
	if a.answers >= heyMost {
		l.note("hey keeps the latency and status of only the first million requests, so later ones are in no percentile")
		fields = slices.DeleteFunc(slices.Clone(fields), func(f loadField) bool { return f.theirs == "average" }) // hey's average divides the sum over all requests by a million
	}
	if a.answers > heyMost && math.Abs(requests-heyMost) <= rounded {
		s.contradiction = fmt.Sprintf("%.10g answers in %g s are %s/s: an older hey divides the first million by the time", a.answers, total.Number, number.Significant(a.answers/total.Number))
	}
	s.right = a.right / counted
	if a.answers > 0 {
		s.wrong = (a.answers - a.right) / a.answers
	}
	s.errors(a.last, a.answers-a.right+a.lost, a.answers+a.lost)
	s.fields(fields, t.number)
}

var heyFields = slices.Concat([]loadField{{"rate", measure.RequestsPerSecond, 1}, {"average", measure.LatencyMean, 1}}, percentileFields)

// heyRows collects the requests of the CSV output, which leaves out requests without an answer.
type heyRows struct {
	line       int
	times      []Value // latencies of right answers
	wrong      int
	last       Value
	begin, end float64
}

func (h *heyRows) read(l *log, ln line) {
	cells := strings.Split(ln.text, ",")
	if len(cells) != strings.Count(heyColumns, ",")+1 {
		l.fail(ln.number, "%d cells; want %s. One file is one load", len(cells), heyColumns)
	}
	seconds, status, offset := l.parse(ln.number, cells[0]), l.parse(ln.number, cells[6]).Number, l.parse(ln.number, cells[7]).Number
	if seconds.Number < 0 || offset < 0 || status != math.Trunc(status) || status < 100 || status > 999 {
		l.fail(ln.number, "not a request of hey: %g s, status %g, at %g s", seconds.Number, status, offset)
	}
	if h.last.Line == 0 {
		h.begin = offset
	}
	h.begin, h.end = min(h.begin, offset), max(h.end, offset+seconds.Number)
	h.last = Value{status, ln.number}
	if status < 200 || status > 299 {
		h.wrong++
		return
	}
	h.times = append(h.times, seconds)
}

func (h *heyRows) figures(l *log) {
	all := len(h.times) + h.wrong
	if all == 0 {
		return
	}
	s := must(l.under(h.line, nil))
	l.note("%s", heyLoop)
	l.note("hey's CSV has only the first million answered requests: no figure includes requests without an answer")
	if s.errors(h.last, float64(h.wrong), float64(all)); len(h.times) == 0 {
		return
	}
	if seconds := h.end - h.begin; seconds > 0 {
		rate := float64(len(h.times)) / seconds
		for _, f := range []metrics.Figure{{Name: measure.RequestsPerSecond, Unit: "requests/s", Value: rate}, {Name: measure.SamplesPerSecond, Unit: "samples/s", Value: rate * s.batch}} {
			f.At, f.Note = s.at, fmt.Sprintf("%d right answers over the time from the first request to the last answer", len(h.times))
			l.add(metrics.Event{Figure: &f}, 1)
		}
	}
	slices.SortStableFunc(h.times, func(a, b Value) int { return cmp.Compare(a.Number, b.Number) })
	s.fields(percentileFields, func(name string) (Value, float64, bool) {
		p := map[string]float64{"latency 50": 0.5, "latency 95": 0.95, "latency 99": 0.99}[name]
		x := h.times[int(math.Ceil(p*float64(len(h.times))))-1].Number
		i, _ := slices.BinarySearchFunc(h.times, x, func(v Value, x float64) int { return cmp.Compare(v.Number, x) })
		return h.times[i], 1, true
	})
}
