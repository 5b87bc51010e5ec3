package extract

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// mlperfLoadgen reads mlperf_log_summary.txt of MLPerf's LoadGen. What the numbers mean depends
// on the scenario. SingleStream and MultiStream keep one query in flight. Server sends queries at
// random times and measures latencies from the scheduled time. Offline sends all samples at once.
// A result that LoadGen calls INVALID is stored as a failed run.
var mlperfLoadgen = Extractor{
	Name:  "mlperf-loadgen",
	Kind:  "serve",
	Reads: "mlperf_log_summary.txt: MLPerf Results Summary, Result is : VALID",
	read:  func(l *log, r io.Reader) { loadgenSummary.read(l, r, l.loadgen) },
}

var loadgenSummary = textReport{
	begin: regexp.MustCompile(`^MLPerf Results Summary *$`),
	end:   regexp.MustCompile(`^(?P<ended>No|\d+) (?i:errors?) encountered`),
	again: "a second summary; the first is on line %d. One file is one run: split it",
	lines: textLines("", `^ {0,2}(?P<key>`+loadgenReads()+`)\s*: *(?P<of>.*?)\s*$`),
}

// loadgenTimes maps LoadGen's names of latencies to our measures.
var loadgenTimes = []loadField{
	{"of Mean latency (ns)", measure.LatencyMean, 1e-9},
	{"of 50.00 percentile latency (ns)", measure.LatencyP50, 1e-9},
	{"of 95.00 percentile latency (ns)", measure.LatencyP95, 1e-9},
	{"of 99.00 percentile latency (ns)", measure.LatencyP99, 1e-9},
	{"of 50.00 percentile first token latency (ns)", measure.TTFTP50, 1e-9},
	{"of 95.00 percentile first token latency (ns)", measure.TTFTP95, 1e-9},
	{"of 99.00 percentile first token latency (ns)", measure.TTFTP99, 1e-9},
	{"of 50.00 percentile time to output token (ns)", measure.TPOTP50, 1e-9},
	{"of 95.00 percentile time to output token (ns)", measure.TPOTP95, 1e-9},
	{"of 99.00 percentile time to output token (ns)", measure.TPOTP99, 1e-9},
}

// loadgenChecks lists the conditions that LoadGen checks for a valid result.
var loadgenChecks = []string{"Performance constraints satisfied", "Min duration satisfied", "Min queries satisfied", "Early stopping satisfied"}

// loadgenReads returns a pattern for the names of the lines that we read.
func loadgenReads() string {
	names := append([]string{"Scenario", "Mode", "Result is", "samples_per_query", "target_qps",
		"QPS w/ loadgen overhead", "Completed samples per second", "Samples per second",
		"TPS w/ loadgen overhead", "Completed tokens per second", "Tokens per second"}, loadgenChecks...)
	for _, f := range loadgenTimes {
		names = append(names, strings.TrimPrefix(f.theirs, "of "))
	}
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	return strings.Join(names, "|")
}

// loadgenScenarios maps each scenario to the names of its rates and to its note.
var loadgenScenarios = map[string]struct{ rate, tokens, note string }{
	"SingleStream": {"QPS w/ loadgen overhead", "TPS w/ loadgen overhead", "LoadGen's SingleStream: a query is sent when the one before it is answered"},
	"MultiStream":  {"", "", "LoadGen's MultiStream: a query of several samples is sent when the one before it is answered; latency is the query's, and its rate is not stated"},
	"Server":       {"Completed samples per second", "Completed tokens per second", "LoadGen's Server: queries are sent at random times (Poisson), and latency counts from these"},
	"Offline":      {"Samples per second", "Tokens per second", "LoadGen's Offline: one query has all samples; a sample's latency says when it was ready, not how long a caller waits"},
}

func (l *log) loadgen(t *textResult) {
	said := func(name string) statedText { return t.of["of "+name] }
	of := said("Scenario")
	scenario, known := loadgenScenarios[of.text]
	switch mode := said("Mode"); {
	case !t.has("ended"):
		l.fail(t.line, "a summary without LoadGen's last lines: the file was cut off")
	case !known:
		l.fail(max(t.line, of.line), "scenario %s; known are SingleStream, MultiStream, Server and Offline", clip(of.text))
	case mode.text != "PerformanceOnly":
		l.fail(max(t.line, mode.line), "mode %s; only PerformanceOnly measures performance", clip(mode.text))
	}
	l.label("loadgen.scenario", of.text)
	l.note("%s", scenario.note)
	need := func(name string) Value {
		v, _, ok := t.number("of " + name)
		if !ok {
			l.fail(t.line, "a summary without %s: a line is damaged or missing", name)
		}
		return v
	}
	samples := need("samples_per_query")
	load := map[string]float64{measure.Batch: samples.Number, measure.Threads: 1}
	if of.text == "Server" {
		load = map[string]float64{measure.Batch: samples.Number, measure.Rate: need("target_qps").Number}
	}
	s := must(l.under(t.line, load))
	l.loadgenValid(t)
	fields := loadgenTimes
	if scenario.rate != "" {
		v := need(scenario.rate)
		fields = slices.Concat([]loadField{{"of " + scenario.tokens, measure.OutputThroughput, 1}}, fields)
		if of.text == "Offline" { // a single query has no rate
			s.add(measure.SamplesPerSecond, "samples/s", v, 1, "")
			fields = fields[:1]
		} else {
			s.rate(v, 1/s.batch)
		}
	}
	s.fields(fields, t.number)
}

// loadgenValid marks the run as failed if LoadGen calls its result invalid.
func (l *log) loadgenValid(t *textResult) {
	var why []string
	for _, check := range loadgenChecks {
		if strings.EqualFold(t.of["of "+check].text, "no") {
			why = append(why, strings.ToLower(check[:1])+check[1:]+": NO")
		}
	}
	switch result := t.of["of Result is"]; result.text {
	case "VALID":
		if ended := t.of["ended"].text; ended != "No" {
			l.res.Failed = fmt.Sprintf("LoadGen had errors: %s; see its detailed log", ended)
		}
		if len(why) > 0 {
			l.fail(result.line, "the result is VALID, and %s: a line is damaged", strings.Join(why, ", "))
		}
	case "INVALID":
		l.res.Failed = "LoadGen calls the result INVALID"
		if len(why) > 0 {
			l.res.Failed += " (" + strings.Join(why, ", ") + ")"
		}
	default:
		l.fail(max(t.line, result.line), "the result is %s; LoadGen says VALID or INVALID", clip(result.text))
	}
}
