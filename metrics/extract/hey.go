package extract

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// hey reads the summary of hey, and its -o csv, a row a request. Neither states how
// many workers it had (-c). Its rate counts failed requests, its latencies those
// with any status, of the first million.
var hey = Extractor{
	Name:  "hey",
	Kind:  "serve",
	Reads: "Requests/sec: X with the status code distribution, or the columns of -o csv",
	read:  readHey,
}

var (
	heyTotal      = regexp.MustCompile(`^  Total:\s+(\d+\.\d+) (\S+)\s*$`)
	heyAverage    = regexp.MustCompile(`^  Average:\s+(\d+\.\d+) (\S+)\s*$`)
	heyRate       = regexp.MustCompile(`^  Requests/sec:\s+(\d+\.\d+)\s*$`)
	heyPercentile = regexp.MustCompile(`^  (\d+)%{1,2} in (\d+\.\d+) (\S+)\s*$`)
	heyStatus     = regexp.MustCompile(`^  \[(\d{3})\]\s+(\d+) responses\s*$`)
	heyError      = regexp.MustCompile(`^  \[(\d+)\]\s`)
)

// heyMost is how many requests hey keeps the latency and the status of.
const heyMost = 1_000_000

const heyColumns = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"

const heyLoop = "hey's loop is closed: a worker sends its next request when it has its answer, with -q not before its turn; latency counts from the send, so when the service stalls, requests are missing"

func readHey(l *log, r io.Reader) error {
	var from first
	var began int
	var section string
	var total, average, rate, some Value
	var ranks []string
	var times []Value
	var right, answers, lost float64
	var rows *heyRows
	number := func(into *Value, ln line, text string, unit string) error {
		if into.Line > 0 {
			return l.errorAt(ln.number, "this is on line %d too. One file is one load: split it", into.Line)
		}
		if unit != "secs" && unit != "" {
			return l.errorAt(ln.number, "a time in %s; hey prints secs", clip(unit))
		}
		v, err := l.parse(ln.number, text)
		*into = v
		return err
	}
	err := l.each(r, func(ln line) error {
		text := strings.TrimRight(ln.text, " \t")
		if rows != nil {
			return rows.read(l, ln)
		}
		switch {
		case text == heyColumns && began == 0 && from.takes(ln):
			rows = &heyRows{line: ln.number}
			return nil
		case text == "Summary:" && from.takes(ln):
			if began > 0 {
				return l.errorAt(ln.number, "a second summary; the first is on line %d. One file is one load: split it", began)
			}
			began = ln.number
			return nil
		case began == 0 || ln.source != from.source:
			return nil
		case strings.HasSuffix(text, ":") && !strings.HasPrefix(text, " "):
			section = text
			return nil
		}
		if m := heyTotal.FindStringSubmatch(ln.text); m != nil {
			return number(&total, ln, m[1], m[2])
		}
		if m := heyAverage.FindStringSubmatch(ln.text); m != nil {
			return number(&average, ln, m[1], m[2])
		}
		if m := heyRate.FindStringSubmatch(ln.text); m != nil {
			return number(&rate, ln, m[1], "")
		}
		if m := heyPercentile.FindStringSubmatch(ln.text); m != nil && section == "Latency distribution:" {
			var v Value
			if err := number(&v, ln, m[2], m[3]); err != nil {
				return err
			}
			if slices.Contains(ranks, m[1]) {
				return l.errorAt(ln.number, "a second line for %s%%", m[1])
			}
			ranks, times = append(ranks, m[1]), append(times, v)
			return nil
		}
		if m := heyStatus.FindStringSubmatch(ln.text); m != nil && section == "Status code distribution:" {
			n, err := l.count(ln.number, "responses:", m[2])
			answers += float64(n)
			if m[1][0] == '2' {
				right += float64(n)
			}
			some = Value{float64(n), ln.number}
			return err
		}
		if m := heyError.FindStringSubmatch(ln.text); m != nil && section == "Error distribution:" {
			n, err := l.count(ln.number, "errors:", m[1])
			lost += float64(n)
			some = Value{float64(n), ln.number}
			return err
		}
		return nil
	})
	if err != nil || began == 0 && rows == nil {
		return err
	}
	from.note(l)
	if rows != nil {
		return rows.figures(l)
	}
	all := rate.Number * total.Number
	switch {
	case total.Line == 0 || rate.Line == 0 || section != "Status code distribution:" && section != "Error distribution:":
		return l.errorAt(began, "a summary without its time, its rate or its status codes: the log was cut off")
	case answers+lost == 0:
		return l.errorAt(began, "a summary without requests")
	case answers < heyMost && math.Abs(all-answers-lost) > 0.5+6e-5*(rate.Number+total.Number):
		return l.errorAt(rate.Line, "%g requests/s over %g s are %.6g requests, the answers and errors %g: a line is damaged or missing",
			rate.Number, total.Number, all, answers+lost)
	}
	s, err := l.under(began, nil)
	if err != nil {
		return err
	}
	l.note("%s", heyLoop)
	if answers >= heyMost {
		l.note("hey keeps the latency and the status of only the first million requests")
		average = Value{} // of all, divided by a million
	}
	s.right = right / (answers + lost)
	if answers > 0 {
		s.wrong = (answers - right) / answers
	}
	if err := s.errors(some, answers-right+lost, answers+lost); err != nil {
		return err
	}
	if err := s.rate(rate, 1); err != nil {
		return err
	}
	if average.Line > 0 {
		if err := s.time(measure.LatencyMean, average, 1); err != nil {
			return err
		}
	}
	for i, rank := range ranks {
		if name := latencies[rank]; name != "" {
			if err := s.time(name, times[i], 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// heyRows are the requests of -o csv; those without an answer are not in it.
type heyRows struct {
	line       int
	times      []Value // of right answers
	wrong      int
	last       Value
	begin, end float64
}

func (h *heyRows) read(l *log, ln line) error {
	cells := strings.Split(ln.text, ",")
	if len(cells) != strings.Count(heyColumns, ",")+1 {
		return l.errorAt(ln.number, "%d cells; want %s. One file is one load", len(cells), heyColumns)
	}
	var v []Value
	if err := l.parseAll(ln.number, &v, cells[0], cells[6], cells[7]); err != nil {
		return err
	}
	seconds, status, offset := v[0], v[1].Number, v[2].Number
	if seconds.Number < 0 || offset < 0 || status != math.Trunc(status) || status < 100 || status > 999 {
		return l.errorAt(ln.number, "not a request of hey: %g s, status %g, at %g s", seconds.Number, status, offset)
	}
	if h.last.Line == 0 {
		h.begin = offset
	}
	h.begin, h.end = min(h.begin, offset), max(h.end, offset+seconds.Number)
	h.last = v[1]
	if status < 200 || status > 299 {
		h.wrong++
		return nil
	}
	h.times = append(h.times, seconds)
	return nil
}

func (h *heyRows) figures(l *log) error {
	all := len(h.times) + h.wrong
	if all == 0 {
		return nil
	}
	s, err := l.under(h.line, nil)
	if err != nil {
		return err
	}
	l.note("%s", heyLoop)
	l.note("hey's CSV has the first million requests that got an answer: those without one are in no figure")
	if err := s.errors(h.last, float64(h.wrong), float64(all)); err != nil || len(h.times) == 0 {
		return err
	}
	if seconds := h.end - h.begin; seconds > 0 {
		rate := float64(len(h.times)) / seconds
		for _, f := range []metrics.Figure{{Name: measure.RequestsPerSecond, Unit: "requests/s", Value: rate}, {Name: measure.SamplesPerSecond, Unit: "samples/s", Value: rate * s.batch}} {
			f.At, f.Note = s.at, fmt.Sprintf("%d right answers over the time from the first request to the last answer", len(h.times))
			l.add(metrics.Event{Figure: &f}, 1)
		}
	}
	sorted := numbers(h.times)
	slices.Sort(sorted)
	for _, rank := range []string{"50", "95", "99"} {
		p := map[string]float64{"50": 0.5, "95": 0.95, "99": 0.99}[rank]
		x := sorted[int(math.Ceil(p*float64(len(sorted))))-1]
		i := slices.IndexFunc(h.times, func(v Value) bool { return v.Number == x })
		if err := s.time(latencies[rank], h.times[i], 1); err != nil {
			return err
		}
	}
	return nil
}
