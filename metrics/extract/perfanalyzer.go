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

// perfAnalyzer reads the CSV file (-f) or the output of Triton's perf_analyzer. Latencies are
// measured from the time of sending, in µs. The rate is in inferences/s; one request is as many
// inferences as the batch has (-b). The output states the batch; the CSV file does not.
// perf_analyzer stops at the first failed request.
var perfAnalyzer = Extractor{
	Name:  "perf-analyzer",
	Kind:  "serve",
	Reads: "the CSV file of -f, or what it prints: Request concurrency: N, Throughput: X infer/sec, p50 latency",
	read:  readPerfAnalyzer,
}

const (
	perfClosed = "perf_analyzer's loop is closed where it was given a concurrency: when the service stalls, requests are missing; the last three windows of a load agreed within 10 %"
	perfOpen   = "perf_analyzer's latency counts from the actual send time, not the scheduled one, so it excludes waiting in the client"
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
	load, loads, note := "Concurrency", measure.Threads, perfClosed
	if _, rate := t.at["Request Rate"]; rate {
		load, loads, note = "Request Rate", measure.Rate, perfOpen
	}
	l.note("%s", note)
	if l.o.At[measure.Batch] == 0 {
		return l.errorAt(1, "perf_analyzer's CSV does not state the batch (-b), and its rate counts inferences; give it with --at batch=1")
	}
	if _, decoupled := t.at["Response Throughput"]; decoupled {
		l.note("the model is decoupled: latency counts until a request's first response")
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
		if err := s.fields(perfColumns, t.source(row)); err != nil {
			return err
		}
	}
	return nil
}

// perfColumns maps columns with latencies in µs to our measures. perf_client, the older name of
// the program, had other names for percentiles.
var perfColumns = []loadField{
	{"Avg latency", measure.LatencyMean, 1e-6}, {"p50 latency", measure.LatencyP50, 1e-6}, {"50-th Percentile", measure.LatencyP50, 1e-6},
	{"p95 latency", measure.LatencyP95, 1e-6}, {"95-th Percentile", measure.LatencyP95, 1e-6}, {"p99 latency", measure.LatencyP99, 1e-6}, {"99-th Percentile", measure.LatencyP99, 1e-6},
}

// perfUnread matches the names of columns with latencies and rates. A note lists those that are
// not read.
var perfUnread = regexp.MustCompile(`(?i)percentile|latency|second|throughput|token`)

// unread adds a note that lists the columns of latencies and rates that are not read.
func (t *table) unread() {
	var names []string
	for name := range t.at {
		read := name == "Inferences/Second" || name == "Response Throughput"
		for _, c := range perfColumns {
			read = read || name == c.theirs
		}
		if !read && perfUnread.MatchString(name) {
			names = append(names, clip(name))
		}
	}
	if slices.Sort(names); len(names) > 0 {
		t.l.note("ignored columns: %s", strings.Join(names, ", "))
	}
}

// source returns a source function for the numbers in a row.
func (t *table) source(row int) source {
	return func(column string) (v Value, scale float64, ok bool, err error) {
		v, ok, err = t.value(row, column)
		return v, 1, ok, err
	}
}

// missing returns err, or an error that the cell has no number if err is nil.
func (t *table) missing(row int, column string, err error) error {
	if err == nil {
		err = t.l.errorAt(t.line[row], "no number in column %s", column)
	}
	return err
}

var (
	perfBatch   = regexp.MustCompile(`^  Batch size: (\d+)\s*$`)
	perfLoad    = regexp.MustCompile(`^Request concurrency: (?P<threads>\d+)\s*$|^Request Rate: (?P<rate>\S+) inference requests per second\s*$`)
	perfLines   = textLines("", `^    Throughput: (?P<throughput>\S+) infer/sec\s*$`, `^    (?P<key>Avg|p50|p95|p99) latency: (?P<latency>\S+) (?P<unit>\S+?)(?: \(standard deviation \S+ \S+\))?\s*$`)
	perfDelayed = regexp.MustCompile(`^    \[WARNING\] Perf Analyzer was not able to keep up with the desired request rate\. (\d+\.\d+)% of the requests were delayed\.`)
	perfClient  = regexp.MustCompile(`^\[WARNING\] Perf Analyzer is not able to keep up with the desired load\.`)
	perfResult  = regexp.MustCompile(`^(?:Concurrency|Request Rate): (\S+), throughput: (\S+) infer/sec, latency (\S+) usec\s*$`)
	perfFields  = []loadField{{"latency Avg", measure.LatencyMean, 1}, {"latency p50", measure.LatencyP50, 1}, {"latency p95", measure.LatencyP95, 1}, {"latency p99", measure.LatencyP99, 1}}
)

// A perfReport is what the output reports about one load.
type perfReport struct {
	*textResult
	key      string
	at, rate Value  // the load and the rate; rate.Line 0: no stable measurement
	late     string // perf_analyzer's warning that it sent requests late
	stable   bool   // the results at the end include the load
}

// perfPrint is the parser's state while it reads the output of perf_analyzer.
type perfPrint struct {
	l       *log
	from    first
	batch   Value
	reports []*perfReport
	results int // number of reports that were matched with the results at the end
}

func (l *log) perfPrint(data []byte) error {
	p := &perfPrint{l: l}
	if err := l.each(bytes.NewReader(data), p.line); err != nil || p.batch.Line == 0 {
		return err
	}
	p.from.note(l)
	unstable := 0
	for _, one := range p.reports {
		if one.rate.Line == 0 {
			unstable++
			continue
		}
		if err := p.figures(one); err != nil {
			return err
		}
	}
	if unstable > 0 {
		l.note("%d of %d loads had no stable measurement and no figure", unstable, len(p.reports))
	}
	return nil
}

func (p *perfPrint) line(ln line) (err error) {
	if m := perfBatch.FindStringSubmatch(ln.text); m != nil && p.from.takes(ln) {
		if p.batch.Line > 0 {
			return p.l.errorAt(ln.number, "a second run; the first begins on line %d. One file is one run: split it", p.batch.Line)
		}
		n, err := p.l.count(ln.number, "a batch of", m[1])
		p.batch = Value{float64(n), ln.number}
		return err
	}
	if p.batch.Line == 0 || ln.source != p.from.source {
		return nil
	}
	if perfLoad.MatchString(ln.text) {
		return p.load(ln)
	}
	if len(p.reports) == 0 {
		return nil
	}
	if m := perfResult.FindStringSubmatch(ln.text); m != nil {
		return p.result(ln.number, m)
	}
	one := p.reports[len(p.reports)-1]
	for _, d := range perfLines {
		if taken, err := one.take(ln, d.re); taken || err != nil {
			if err == nil && one.rate.Line == 0 {
				one.rate, _, _, err = one.number("throughput")
			}
			return err
		}
	}
	if m := perfDelayed.FindStringSubmatch(ln.text); m != nil {
		one.late = m[1] + " % of the requests were sent late"
	}
	if perfClient.MatchString(ln.text) {
		one.late = "its client did not keep up with the load"
	}
	return nil
}

// load starts the report of a load.
func (p *perfPrint) load(ln line) error {
	one := &perfReport{textResult: newTextResult(p.l, ln.number), key: measure.Threads}
	p.reports = append(p.reports, one)
	if _, err := one.take(ln, perfLoad); err != nil {
		return err
	}
	if one.has("rate") {
		one.key = measure.Rate
	}
	var err error
	one.at, _, _, err = one.number(one.key)
	return err
}

// result matches a line of the results at the end with the next report. Rates in these lines have
// six digits, or two decimals after a warning.
func (p *perfPrint) result(line int, m []string) error {
	for p.results < len(p.reports) && p.reports[p.results].rate.Line == 0 {
		p.results++ // the results at the end leave out unstable measurements
	}
	var v []Value
	if err := p.l.parseAll(line, &v, m[1], m[2]); err != nil {
		return err
	}
	at, rate := v[0].Number, v[1].Number
	if p.results == len(p.reports) || p.reports[p.results].at.Number != at || math.Abs(p.reports[p.results].rate.Number-rate) > 1e-5*rate+0.01 {
		return p.l.errorAt(line, "the result matches no load above: lines are damaged or missing")
	}
	p.reports[p.results].stable = true
	p.results++
	return nil
}

// figures adds the figures of one load.
func (p *perfPrint) figures(one *perfReport) error {
	l := p.l
	if !one.stable {
		return l.errorAt(one.line, "the load is missing in the results at the end: the log was cut off")
	}
	note := perfClosed
	if one.key == measure.Rate {
		note = perfOpen
	}
	l.note("%s", note)
	s, err := l.under(one.line, map[string]float64{one.key: one.at.Number, measure.Batch: p.batch.Number})
	if err != nil {
		return err
	}
	if one.late != "" {
		l.note("at %s, perf_analyzer says: %s", s, one.late)
	}
	if err := s.rate(one.rate, 1/s.batch); err != nil {
		return err
	}
	return s.fields(perfFields, one.number)
}
