package extract

import (
	"bytes"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// perfAnalyzer reads Triton's perf_analyzer: the file of -f, or what it prints.
// Latencies count from the send, in µs; the rate is of inferences, as many to a
// request as the batch (-b) has, which only the print states. It ends at the first
// failed request.
var perfAnalyzer = Extractor{
	Name:  "perf-analyzer",
	Kind:  "serve",
	Reads: "the CSV file of -f, or what it prints: Request concurrency: N, Throughput: X infer/sec, p50 latency",
	read:  readPerfAnalyzer,
}

const (
	perfClosed = "perf_analyzer's loop is closed where it was given a concurrency: when the service stalls, requests are missing; the last three windows of a load agreed within 10 %"
	perfOpen   = "perf_analyzer's latency counts from the actual send, not from the time at which the request was to be sent: waiting in the client is left out"
)

func readPerfAnalyzer(l *log, r io.Reader) error {
	data, err := l.wholeFile(r)
	if err != nil {
		return err
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.HasPrefix(text, []byte("Concurrency,")) || bytes.HasPrefix(text, []byte("Request Rate,")) {
		return l.perfTable(data)
	}
	return l.perfPrint(data)
}

func (l *log) perfTable(data []byte) error {
	t, err := l.table(bytes.NewReader(data), ",")
	if err != nil {
		return err
	}
	load, loads := "Concurrency", measure.Threads
	if _, rate := t.at["Request Rate"]; rate {
		load, loads = "Request Rate", measure.Rate
		l.note("%s", perfOpen)
	} else {
		l.note("%s", perfClosed)
	}
	if l.o.At[measure.Batch] == 0 {
		return l.errorAt(1, "perf_analyzer's CSV does not state the batch (-b), and its rate is of inferences; say it with --at batch=1")
	}
	if _, decoupled := t.at["Response Throughput"]; decoupled {
		l.note("the model is decoupled: latency is that of a request's first response")
	}
	t.unread()
	for row := range t.rows {
		at, ok, err := t.value(row, load)
		if err != nil || !ok {
			return t.missing(row, load, err)
		}
		rate, ok, err := t.value(row, "Inferences/Second")
		if err != nil || !ok {
			return t.missing(row, "Inferences/Second", err)
		}
		s, err := l.under(at.Line, map[string]float64{loads: at.Number})
		if err != nil {
			return err
		}
		if err := s.rate(rate, 1/s.batch); err != nil {
			return err
		}
		for _, c := range perfColumns {
			if _, there := t.at[c.column]; !there {
				continue
			}
			v, ok, err := t.value(row, c.column)
			if err == nil && ok {
				err = s.time(c.name, v, 1e-6)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// perfColumns are the latencies that are measures. perf_client wrote percentiles otherwise.
var perfColumns = []struct{ column, name string }{
	{"Avg latency", measure.LatencyMean}, {"p50 latency", measure.LatencyP50}, {"50-th Percentile", measure.LatencyP50},
	{"p95 latency", measure.LatencyP95}, {"95-th Percentile", measure.LatencyP95}, {"p99 latency", measure.LatencyP99}, {"99-th Percentile", measure.LatencyP99},
}

// perfUnread matches columns of latencies and rates, of which some are not read.
var perfUnread = regexp.MustCompile(`(?i)percentile|latency|second|throughput|token`)

// unread notes the columns of latencies and rates that are not read.
func (t *table) unread() {
	var names []string
	for name := range t.at {
		read := name == "Inferences/Second" || name == "Response Throughput"
		for _, c := range perfColumns {
			read = read || name == c.column
		}
		if !read && perfUnread.MatchString(name) {
			names = append(names, clip(name))
		}
	}
	if slices.Sort(names); len(names) > 0 {
		t.l.note("columns that are not read: %s", strings.Join(names, ", "))
	}
}

// missing is the error of a cell that has no number.
func (t *table) missing(row int, column string, err error) error {
	if err == nil {
		err = t.l.errorAt(t.line[row], "no number in column %s", column)
	}
	return err
}

var (
	perfBatch   = regexp.MustCompile(`^  Batch size: (\d+)\s*$`)
	perfLoad    = regexp.MustCompile(`^Request concurrency: (\d+)\s*$|^Request Rate: (\S+) inference requests per second\s*$`)
	perfRate    = regexp.MustCompile(`^    Throughput: (\S+) infer/sec\s*$`)
	perfLatency = regexp.MustCompile(`^    (Avg|p50|p95|p99) latency: (\S+) (\S+?)(?: \(standard deviation \S+ \S+\))?\s*$`)
	perfDelayed = regexp.MustCompile(`^    \[WARNING\] Perf Analyzer was not able to keep up with the desired request rate\. (\d+\.\d+)% of the requests were delayed\.`)
	perfClient  = regexp.MustCompile(`^\[WARNING\] Perf Analyzer is not able to keep up with the desired load\.`)
	perfResult  = regexp.MustCompile(`^(?:Concurrency|Request Rate): (\S+), throughput: (\S+) infer/sec, latency (\S+) usec\s*$`)
)

// perfReport is what is printed of one load.
type perfReport struct {
	line     int
	key      string
	at, rate Value
	names    []string
	times    []Value
	scales   []float64
	late     string // what perf_analyzer says of its own delay
	stable   bool   // it is among the results at the end
}

func (l *log) perfPrint(data []byte) error {
	var from first
	var batch Value
	var reports []*perfReport
	var one *perfReport
	results := 0
	twice := func(ln line) error { return l.errorAt(ln.number, "this is twice in the report of a load") }
	err := l.each(bytes.NewReader(data), func(ln line) error {
		if m := perfBatch.FindStringSubmatch(ln.text); m != nil && from.takes(ln) {
			if batch.Line > 0 {
				return l.errorAt(ln.number, "a second run; the first begins on line %d. One file is one run: split it", batch.Line)
			}
			n, err := l.count(ln.number, "a batch of", m[1])
			batch = Value{float64(n), ln.number}
			return err
		}
		if batch.Line == 0 || ln.source != from.source {
			return nil
		}
		if m := perfLoad.FindStringSubmatch(ln.text); m != nil {
			one = &perfReport{line: ln.number, key: measure.Threads}
			if m[2] != "" {
				one.key = measure.Rate
			}
			v, err := l.parse(ln.number, m[1]+m[2])
			one.at = v
			reports = append(reports, one)
			return err
		}
		if one == nil {
			return nil
		}
		if m := perfResult.FindStringSubmatch(ln.text); m != nil {
			for results < len(reports) && reports[results].rate.Line == 0 {
				results++ // not stable: not reported
			}
			at, err := l.parse(ln.number, m[1])
			if err != nil {
				return err
			}
			rate, err := l.parse(ln.number, m[2])
			if err != nil {
				return err
			}
			// They are printed with six digits, one with two decimals after a warning.
			if results == len(reports) || reports[results].at.Number != at.Number ||
				math.Abs(reports[results].rate.Number-rate.Number) > 1e-5*rate.Number+0.01 {
				return l.errorAt(ln.number, "a result that is not that of a load above: lines are damaged or missing")
			}
			reports[results].stable = true
			results++
			return nil
		}
		if m := perfRate.FindStringSubmatch(ln.text); m != nil {
			if one.rate.Line > 0 {
				return twice(ln)
			}
			v, err := l.parse(ln.number, m[1])
			one.rate = v
			return err
		}
		if m := perfLatency.FindStringSubmatch(ln.text); m != nil {
			name := map[string]string{"Avg": measure.LatencyMean, "p50": measure.LatencyP50, "p95": measure.LatencyP95, "p99": measure.LatencyP99}[m[1]]
			for _, before := range one.names {
				if before == name {
					return twice(ln)
				}
			}
			scale, err := l.unit(ln.number, m[3])
			if err != nil {
				return err
			}
			v, err := l.parse(ln.number, m[2])
			one.names, one.times, one.scales = append(one.names, name), append(one.times, v), append(one.scales, scale)
			return err
		}
		if m := perfDelayed.FindStringSubmatch(ln.text); m != nil {
			one.late = m[1] + " % of the requests were sent late"
		}
		if perfClient.MatchString(ln.text) {
			one.late = "its client did not keep up with the load"
		}
		return nil
	})
	if err != nil || batch.Line == 0 {
		return err
	}
	from.note(l)
	unstable := 0
	for _, p := range reports {
		switch {
		case p.rate.Line == 0:
			unstable++
			continue
		case !p.stable:
			return l.errorAt(p.line, "a load that is not among the results at the end: the log was cut off")
		}
		if p.key == measure.Rate {
			l.note("%s", perfOpen)
		} else {
			l.note("%s", perfClosed)
		}
		s, err := l.under(p.line, map[string]float64{p.key: p.at.Number, measure.Batch: batch.Number})
		if err != nil {
			return err
		}
		if p.late != "" {
			l.note("at %s, perf_analyzer says: %s", s, p.late)
		}
		if err := s.rate(p.rate, 1/s.batch); err != nil {
			return err
		}
		for i, name := range p.names {
			if err := s.time(name, p.times[i], p.scales[i]); err != nil {
				return err
			}
		}
	}
	if unstable > 0 {
		l.note("%d of %d loads had no stable measurement and no figure", unstable, len(reports))
	}
	return nil
}
