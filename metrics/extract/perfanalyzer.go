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

func readPerfAnalyzer(l *log, r io.Reader) {
	data := must(l.wholeFile(r))
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.HasPrefix(text, []byte("Concurrency,")) || bytes.HasPrefix(text, []byte("Request Rate,")) {
		l.perfTable(data)
		return
	}
	l.perfPrint(data)
}

func (l *log) perfTable(data []byte) {
	t := l.table(bytes.NewReader(data), ",")
	load, loads, note := "Concurrency", measure.Threads, perfClosed
	if _, rate := t.at["Request Rate"]; rate {
		load, loads, note = "Request Rate", measure.Rate, perfOpen
	}
	l.note("%s", note)
	if l.o.At[measure.Batch] == 0 {
		l.fail(1, "perf_analyzer's CSV does not state the batch (-b), and its rate counts inferences; give it with --at batch=1")
	}
	if _, decoupled := t.at["Response Throughput"]; decoupled {
		l.note("the model is decoupled: latency counts until a request's first response")
	}
	t.unread()
	for row := range t.rows {
		at, rate := t.need(row, load), t.need(row, "Inferences/Second")
		s := must(l.under(at.Line, map[string]float64{loads: at.Number}))
		s.rate(rate, 1/s.batch)
		s.fields(perfColumns, t.source(row))
	}
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
	return func(column string) (v Value, scale float64, ok bool) {
		v, ok = t.value(row, column)
		return v, 1, ok
	}
}

// need returns the number in a cell that must not be empty.
func (t *table) need(row int, column string) Value {
	v, ok := t.value(row, column)
	if !ok {
		t.l.fail(t.line[row], "no number in column %s", column)
	}
	return v
}

var (
	perfBatch   = regexp.MustCompile(`^  Batch size: (\d+)\s*$`)
	perfLoad    = regexp.MustCompile(`^Request concurrency: (?P<threads>\d+)\s*$|^Request Rate: (?P<rate>\S+) inference requests per second\s*$`)
	perfRate    = regexp.MustCompile(`^    Throughput: (?P<throughput>\S+) infer/sec\s*$`)
	perfLatency = regexp.MustCompile(`^    (?P<key>Avg|p50|p95|p99) latency: (?P<latency>\S+) (?P<unit>\S+?)(?: \(standard deviation \S+ \S+\))?\s*$`)
	perfDelayed = regexp.MustCompile(`^    \[WARNING\] Perf Analyzer was not able to keep up with the desired request rate\. (\d+\.\d+)% of the requests were delayed\.`)
	perfClient  = regexp.MustCompile(`^\[WARNING\] Perf Analyzer is not able to keep up with the desired load\.`)
	perfResult  = regexp.MustCompile(`^(?:Concurrency|Request Rate): (\S+), throughput: (\S+) infer/sec, latency (\S+) usec\s*$`)
	perfFields  = []loadField{{"latency Avg", measure.LatencyMean, 1}, {"latency p50", measure.LatencyP50, 1}, {"latency p95", measure.LatencyP95, 1}, {"latency p99", measure.LatencyP99, 1}}
)

// A perfReport holds the output's figures for one load.
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

func (l *log) perfPrint(data []byte) {
	p := &perfPrint{l: l}
	l.rules(bytes.NewReader(data),
		rule{perfBatch, p.run},
		rule{perfLoad, p.load},
		rule{perfResult, p.own(p.result)},
		rule{perfRate, p.own(func(one *perfReport, ln line, _ []string) {
			one.take(ln, perfRate)
			one.rate, _, _ = one.number("throughput")
		})},
		rule{perfLatency, p.own(func(one *perfReport, ln line, _ []string) { one.take(ln, perfLatency) })},
		rule{perfDelayed, p.own(func(one *perfReport, _ line, m []string) { one.late = m[1] + " % of the requests were sent late" })},
		rule{perfClient, p.own(func(one *perfReport, _ line, _ []string) { one.late = "its client did not keep up with the load" })})
	if p.batch.Line == 0 {
		return
	}
	p.from.note(l)
	unstable := 0
	for _, one := range p.reports {
		if one.rate.Line == 0 {
			unstable++
			continue
		}
		p.figures(one)
	}
	if unstable > 0 {
		l.note("%d of %d loads had no stable measurement and no figure", unstable, len(p.reports))
	}
}

func (p *perfPrint) run(ln line, m []string) {
	if !p.from.takes(ln) {
		return
	}
	if p.batch.Line > 0 {
		p.l.fail(ln.number, "a second run; the first begins on line %d. One file is one run: split it", p.batch.Line)
	}
	p.batch = Value{float64(p.l.count(ln.number, "a batch of", m[1])), ln.number}
}

// own limits a rule to the lines of the process that printed the batch. It passes the latest report.
func (p *perfPrint) own(take func(one *perfReport, ln line, m []string)) func(line, []string) {
	return func(ln line, m []string) {
		if p.batch.Line > 0 && ln.source == p.from.source && len(p.reports) > 0 {
			take(p.reports[len(p.reports)-1], ln, m)
		}
	}
}

func (p *perfPrint) load(ln line, _ []string) {
	if p.batch.Line == 0 || ln.source != p.from.source {
		return
	}
	one := &perfReport{textResult: newTextResult(p.l, ln.number), key: measure.Threads}
	p.reports = append(p.reports, one)
	one.take(ln, perfLoad)
	if one.has("rate") {
		one.key = measure.Rate
	}
	one.at, _, _ = one.number(one.key)
}

// result matches a line of the results at the end with the next report. Rates in these lines have
// six digits, or two decimals after a warning.
func (p *perfPrint) result(_ *perfReport, ln line, m []string) {
	for p.results < len(p.reports) && p.reports[p.results].rate.Line == 0 {
		p.results++ // the results at the end leave out unstable measurements
	}
	at, rate := p.l.parse(ln.number, m[1]).Number, p.l.parse(ln.number, m[2]).Number
	if p.results == len(p.reports) || p.reports[p.results].at.Number != at || math.Abs(p.reports[p.results].rate.Number-rate) > 1e-5*rate+0.01 {
		p.l.fail(ln.number, "the result matches no load above: lines are damaged or missing")
	}
	p.reports[p.results].stable = true
	p.results++
}

func (p *perfPrint) figures(one *perfReport) {
	l := p.l
	if !one.stable {
		l.fail(one.line, "the load is missing in the results at the end: the log was cut off")
	}
	note := perfClosed
	if one.key == measure.Rate {
		note = perfOpen
	}
	l.note("%s", note)
	s := must(l.under(one.line, map[string]float64{one.key: one.at.Number, measure.Batch: p.batch.Number}))
	if one.late != "" {
		l.note("at %s, perf_analyzer says: %s", s, one.late)
	}
	s.rate(one.rate, 1/s.batch)
	s.fields(perfFields, one.number)
}
