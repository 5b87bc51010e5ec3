package extract

import (
	"bytes"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

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
	perfOutput.read(l, bytes.NewReader(data), l.perfPrint)
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
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(t.at)), func(name string) bool {
		return name == "Inferences/Second" || name == "Response Throughput" || !perfUnread.MatchString(name) ||
			slices.ContainsFunc(perfColumns, func(c loadField) bool { return c.theirs == name })
	})
	if len(names) > 0 {
		t.l.note("ignored columns: %s", listed(names))
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

const perfLoad = `^Request concurrency: (?P<threads>\d+)\s*$|^Request Rate: (?P<rate>\S+) inference requests per second\s*$`

// perfOutput declares the output: a section for each load, and then a line for each load that was stable.
var perfOutput = textReport{
	begin:    regexp.MustCompile(`^  Batch size: (?P<batch>\d+)\s*$`),
	again:    "a second run; the first begins on line %d. One file is one run: split it",
	sections: regexp.MustCompile(perfLoad),
	lines: slices.Concat(textLines("", `^(?:Concurrency|Request Rate): (?P<key>\S+), throughput: (?P<result>\S+) infer/sec, latency \S+ usec\s*$`),
		textLines(eachSection,
			perfLoad,
			`^    Throughput: (?P<throughput>\S+) infer/sec\s*$`,
			`^    (?P<key>Avg|p50|p95|p99) latency: (?P<latency>\S+) (?P<unit>\S+?)(?: \(standard deviation \S+ \S+\))?\s*$`,
			`^    \[WARNING\] Perf Analyzer was not able to keep up with the desired request rate\. (?P<late>\d+\.\d+)% of the requests were delayed\.`,
			`^\[WARNING\] Perf Analyzer is (?P<behind>not able to keep up) with the desired load\.`)),
}

var perfFields = []loadField{{"latency Avg", measure.LatencyMean, 1}, {"latency p50", measure.LatencyP50, 1}, {"latency p95", measure.LatencyP95, 1}, {"latency p99", measure.LatencyP99, 1}}

// perfPrint adds the figures of all loads in the output.
func (l *log) perfPrint(t *textResult) {
	batch := float64(l.count(t.line, "a batch of", t.of["batch"].text))
	unstable := 0
	for _, section := range t.sections {
		if !t.has("throughput " + section) {
			unstable++
			continue
		}
		l.perfResult(t, section, batch)
	}
	for _, name := range slices.Sorted(maps.Keys(t.of)) { // perfResult removes the results of its loads
		if s := t.of[name]; s.name == "result" {
			l.fail(s.line, perfUnmatched)
		}
	}
	if unstable > 0 {
		l.note("%d of %d loads had no stable measurement and no figure", unstable, len(t.sections))
	}
}

const perfUnmatched = "the result matches no load above: lines are damaged or missing"

// perfResult adds the figures of a load. Its line at the end states the rate with six digits, or two
// decimals after a warning.
func (l *log) perfResult(t *textResult, section string, batch float64) {
	of := func(name string) (Value, float64, bool) { return t.number(name + " " + section) }
	key, note := measure.Threads, perfClosed
	at, _, closed := of(key)
	if !closed {
		key, note = measure.Rate, perfOpen
		at, _, _ = of(key)
	}
	rate, _, _ := of("throughput")
	name := "result " + strconv.FormatFloat(at.Number, 'f', -1, 64)
	result, _, stable := t.number(name)
	if !stable {
		l.fail(at.Line, "the load is missing in the results at the end: the log was cut off")
	}
	if math.Abs(rate.Number-result.Number) > 1e-5*result.Number+0.01 {
		l.fail(result.Line, perfUnmatched)
	}
	delete(t.of, name)
	l.note("%s", note)
	s := must(l.under(at.Line, map[string]float64{key: at.Number, measure.Batch: batch}))
	if late := t.of["late "+section]; late.line > 0 {
		l.note("at %s, perf_analyzer says: %s %% of the requests were sent late", s, late.text)
	}
	if t.has("behind " + section) {
		l.note("at %s, perf_analyzer says: its client did not keep up with the load", s)
	}
	s.rate(rate, 1/s.batch)
	s.fields(perfFields, of)
}
