package extract

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// mlperfLoadgen reads mlperf_log_summary.txt of MLPerf's LoadGen. What it measured
// depends on the scenario: SingleStream and MultiStream keep one query in flight,
// Server sends at random times (latency counts from the schedule), Offline sends
// all samples at once. A result that LoadGen calls INVALID is a failed run.
var mlperfLoadgen = Extractor{
	Name:  "mlperf-loadgen",
	Kind:  "serve",
	Reads: "mlperf_log_summary.txt: MLPerf Results Summary, Result is : VALID",
	read:  readLoadgen,
}

var (
	loadgenLine = regexp.MustCompile(`^ {0,2}([A-Za-z0-9_./()][^:]*?)\s*: *(.*?)\s*$`)
	loadgenEnd  = regexp.MustCompile(`^(No|\d+) (?i:errors?) encountered`)
)

// loadgenSaid is what stands behind a name.
type loadgenSaid struct {
	text string
	line int
}

func readLoadgen(l *log, r io.Reader) error {
	var from first
	began := 0
	said := map[string]loadgenSaid{}
	var ended *loadgenSaid
	err := l.each(r, func(ln line) error {
		text := strings.TrimRight(ln.text, " ")
		if text == "MLPerf Results Summary" && from.takes(ln) {
			if began > 0 {
				return l.errorAt(ln.number, "a second summary; the first is on line %d. One file is one run: split it", began)
			}
			began = ln.number
			return nil
		}
		if began == 0 || ln.source != from.source {
			return nil
		}
		if m := loadgenEnd.FindStringSubmatch(text); m != nil {
			ended = &loadgenSaid{m[1], ln.number}
			return nil
		}
		m := loadgenLine.FindStringSubmatch(ln.text)
		if m == nil || !loadgenReads[m[1]] {
			return nil
		}
		if before, twice := said[m[1]]; twice {
			return l.errorAt(ln.number, "%s is on line %d too", m[1], before.line)
		}
		said[m[1]] = loadgenSaid{m[2], ln.number}
		return nil
	})
	if err != nil || began == 0 {
		return err
	}
	from.note(l)
	if ended == nil {
		return l.errorAt(began, "a summary without LoadGen's last lines: the file was cut off")
	}
	return l.loadgen(said, began, *ended)
}

// loadgenTimes are LoadGen's names of what are measures.
var loadgenTimes = []struct{ theirs, ours string }{
	{"Mean latency (ns)", measure.LatencyMean},
	{"50.00 percentile latency (ns)", measure.LatencyP50},
	{"95.00 percentile latency (ns)", measure.LatencyP95},
	{"99.00 percentile latency (ns)", measure.LatencyP99},
	{"50.00 percentile first token latency (ns)", measure.TTFTP50},
	{"95.00 percentile first token latency (ns)", measure.TTFTP95},
	{"99.00 percentile first token latency (ns)", measure.TTFTP99},
	{"50.00 percentile time to output token (ns)", measure.TPOTP50},
	{"95.00 percentile time to output token (ns)", measure.TPOTP95},
	{"99.00 percentile time to output token (ns)", measure.TPOTP99},
}

// loadgenChecks are what a valid result satisfies.
var loadgenChecks = []string{"Performance constraints satisfied", "Min duration satisfied", "Min queries satisfied", "Early stopping satisfied"}

// loadgenReads are the names that are read.
var loadgenReads = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range append([]string{"Scenario", "Mode", "Result is", "samples_per_query", "target_qps",
		"QPS w/ loadgen overhead", "Completed samples per second", "Samples per second",
		"TPS w/ loadgen overhead", "Completed tokens per second", "Tokens per second"}, loadgenChecks...) {
		names[name] = true
	}
	for _, t := range loadgenTimes {
		names[t.theirs] = true
	}
	return names
}()

// loadgenScenarios are what the scenarios measure.
var loadgenScenarios = map[string]struct{ rate, tokens, note string }{
	"SingleStream": {"QPS w/ loadgen overhead", "TPS w/ loadgen overhead", "LoadGen's SingleStream: a query is sent when the one before it is answered"},
	"MultiStream":  {"", "", "LoadGen's MultiStream: a query of several samples is sent when the one before it is answered; latency is the query's, and its rate is not stated"},
	"Server":       {"Completed samples per second", "Completed tokens per second", "LoadGen's Server: queries are sent at random times (Poisson), and latency counts from these"},
	"Offline":      {"Samples per second", "Tokens per second", "LoadGen's Offline: one query has all samples; a sample's latency says when it was ready, not how long a caller waits"},
}

func (l *log) loadgen(said map[string]loadgenSaid, began int, ended loadgenSaid) error {
	number := func(name string) (v Value, ok bool, err error) {
		text, ok := said[name]
		if !ok {
			return v, false, nil
		}
		v, err = l.parse(text.line, text.text)
		return v, err == nil, err
	}
	scenario, known := loadgenScenarios[said["Scenario"].text]
	switch {
	case !known:
		return l.errorAt(max(began, said["Scenario"].line), "scenario %s; known are SingleStream, MultiStream, Server and Offline", clip(said["Scenario"].text))
	case said["Mode"].text != "PerformanceOnly":
		return l.errorAt(max(began, said["Mode"].line), "mode %s; only PerformanceOnly measures performance", clip(said["Mode"].text))
	}
	l.label("loadgen.scenario", said["Scenario"].text)
	l.note("%s", scenario.note)
	samples, ok, err := number("samples_per_query")
	if err != nil || !ok {
		return l.loadgenMissing(began, "samples_per_query", err)
	}
	load := map[string]float64{measure.Batch: samples.Number, measure.Threads: 1}
	if said["Scenario"].text == "Server" {
		qps, ok, err := number("target_qps")
		if err != nil || !ok {
			return l.loadgenMissing(began, "target_qps", err)
		}
		load = map[string]float64{measure.Batch: samples.Number, measure.Rate: qps.Number}
	}
	s, err := l.under(began, load)
	if err != nil {
		return err
	}
	if err := l.loadgenValid(said, began, ended); err != nil {
		return err
	}
	if scenario.rate != "" {
		v, ok, err := number(scenario.rate)
		if err != nil || !ok {
			return l.loadgenMissing(began, scenario.rate, err)
		}
		if scenario.rate == "Samples per second" { // of one query there is no rate
			s.add(measure.SamplesPerSecond, "samples/s", v, 1, "")
		} else if err := s.rate(v, 1/s.batch); err != nil {
			return err
		}
		if v, ok, err = number(scenario.tokens); err != nil {
			return err
		} else if ok {
			s.add(measure.OutputThroughput, "tokens/s", v, 1, "")
		}
	}
	if said["Scenario"].text == "Offline" {
		return nil
	}
	for _, t := range loadgenTimes {
		v, ok, err := number(t.theirs)
		if err != nil {
			return err
		}
		if ok {
			if err := s.time(t.ours, v, 1e-9); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *log) loadgenMissing(began int, name string, err error) error {
	if err == nil {
		err = l.errorAt(began, "a summary without %s: a line is damaged or missing", name)
	}
	return err
}

// loadgenValid takes LoadGen's own verdict.
func (l *log) loadgenValid(said map[string]loadgenSaid, began int, ended loadgenSaid) error {
	var why []string
	for _, check := range loadgenChecks {
		if strings.EqualFold(said[check].text, "no") {
			why = append(why, strings.ToLower(check[:1])+check[1:]+": NO")
		}
	}
	switch result := said["Result is"]; result.text {
	case "VALID":
		if ended.text != "No" {
			l.res.Failed = fmt.Sprintf("LoadGen had errors: %s; see its detailed log", ended.text)
		}
		if len(why) > 0 {
			return l.errorAt(result.line, "the result is VALID, and %s: a line is damaged", strings.Join(why, ", "))
		}
	case "INVALID":
		l.res.Failed = "LoadGen calls the result INVALID"
		if len(why) > 0 {
			l.res.Failed += " (" + strings.Join(why, ", ") + ")"
		}
	default:
		return l.errorAt(max(began, result.line), "the result is %s; LoadGen says VALID or INVALID", clip(result.text))
	}
	return nil
}
