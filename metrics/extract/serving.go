package extract

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A result of a load generator belongs to a load, as in studies of kind serve. A load is given by
// the requests in flight or the requests/s, and by the samples per request. Some programs state
// it; for others, Options.At must.

// Coordinates are the coordinates of a load that Options.At may set.
var Coordinates = measure.Coordinates(measure.Batch + " " + measure.Rate + " " + measure.Threads).Keys()

// loadFigures are the keys to which columns of a table can be mapped if its rows are loads.
var loadFigures = []string{measure.RequestsPerSecond, measure.LatencyMean, measure.LatencyP50, measure.LatencyP95, measure.LatencyP99, measure.Errors, measure.Timeouts,
	measure.TTFTP50, measure.TTFTP95, measure.TTFTP99, measure.TPOTP50, measure.TPOTP95, measure.TPOTP99, measure.ITLP50, measure.ITLP95, measure.ITLP99,
	measure.OutputThroughput, measure.Goodput, measure.RateWithinLimit}

// mostErrors is the largest share of failed requests at which percentiles over all requests are
// still accepted as the latencies of right answers. It equals the default of a study's error limit.
const mostErrors = 0.001

// checkAt returns an error if Options.At is not valid.
func checkAt(at map[string]float64) error {
	for _, key := range slices.Sorted(maps.Keys(at)) {
		x := at[key]
		switch {
		case !slices.Contains(Coordinates, key):
			return fmt.Errorf("%s is not a coordinate of a load; valid: %s", key, strings.Join(Coordinates, ", "))
		case !(x > 0) || x > 1e9:
			return fmt.Errorf("%s=%v; want a number above 0, up to 1e+09", key, x)
		case key != measure.Rate && x != math.Trunc(x):
			return fmt.Errorf("%s=%v; want a whole number", key, x)
		}
	}
	if at[measure.Threads] > 0 && at[measure.Rate] > 0 {
		return fmt.Errorf("threads and rate: a load has either requests in flight or a rate")
	}
	return nil
}

// served collects what a program reports about a service under one load.
type served struct {
	l     *log
	at    map[string]any
	batch float64
	// right is the share of right answers among the answers that the rate counts. wrong is the
	// share of requests that the latencies include but should not (wrong answers), or should
	// include but do not (missing answers).
	right, wrong  float64
	requests      float64 // requests sent; 0 if unknown
	answers       float64 // answers per second, right or wrong; 0 if unknown
	contradiction string  // what in the log contradicts its rate and latencies; "" if nothing does
	above         Value   // the previous percentile, and the name of the measure that it is a percentile of
	of            string
}

// under returns a collector for the figures of a load. stated has the coordinates that the log
// states; Options.At supplies the others.
func (l *log) under(line int, stated map[string]float64) (*served, error) {
	if err := checkAt(stated); err != nil {
		return nil, l.errorAt(line, "%w", err)
	}
	all := map[string]float64{measure.Batch: 1}
	maps.Copy(all, l.o.At)
	for _, key := range slices.Sorted(maps.Keys(stated)) {
		x := stated[key]
		if given, both := l.o.At[key]; both && given != x {
			return nil, l.errorAt(line, "the load has %s=%v here; --at says %v", key, x, given)
		}
		all[key] = x
	}
	threads, rate := all[measure.Threads] > 0, all[measure.Rate] > 0
	switch {
	case threads && rate:
		return nil, l.errorAt(line, "threads=%v and rate=%v: a load has either requests in flight or a rate", all[measure.Threads], all[measure.Rate])
	case !threads && !rate:
		return nil, l.errorAt(line, "the load is not stated here; say it with --at threads=N (requests in flight) or --at rate=R (requests/s)")
	}
	s := &served{l: l, at: map[string]any{}, batch: all[measure.Batch], right: 1}
	for key, x := range all {
		s.at[key] = x
	}
	key := measure.Key(s.at)
	if before, again := l.loads[key]; again {
		return nil, l.errorAt(line, "a second result of the same load; the first is on line %d. One file is one run: split it", before)
	}
	if l.loads == nil {
		l.loads = map[string]int{}
	}
	l.loads[key] = line
	return s, nil
}

func (s *served) add(name, unit string, v Value, scale float64, note string) {
	s.stated(name, unit, v, scale, note, "")
}

// stated is like add. A non-empty why says what contradicts the figure, which is then left out of
// curves.
func (s *served) stated(name, unit string, v Value, scale float64, note, why string) {
	f := metrics.Figure{Name: name, Value: scaled(v.Number, scale), Unit: unit, At: s.at, Note: note}
	if why != "" {
		f = s.l.contradicted(f, fmt.Sprintf("at %s, %s", s, why))
	}
	s.l.add(metrics.Event{Figure: &f}, scale, v)
}

// asked records a contradiction if there are more answers/s than requests/s were asked for. The
// rate of N random arrivals scatters by a share of 1/√N, so four times that share is allowed in
// addition to mostAnswers. If N is unknown, a fifth is allowed.
func (s *served) asked() {
	most := 1.2
	if s.requests > 0 {
		most = mostAnswers + 4/math.Sqrt(s.requests)
	}
	if rate, open := s.at[measure.Rate].(float64); open && s.contradiction == "" && s.answers > most*rate {
		s.contradiction = fmt.Sprintf("%s answers/s are more than the %s requests/s asked for", number.Significant(s.answers), number.Significant(rate))
	}
}

// rate adds the rate of right answers. v times scale is the rate of all answers in requests/s.
func (s *served) rate(v Value, scale float64) {
	if v.Number < 0 || math.IsInf(v.Number*scale*s.batch, 0) {
		s.l.fail(v.Line, "a rate of %g; want 0 or more", v.Number)
	}
	s.answers = v.Number * scale
	scale *= s.right
	if v.Number*scale == 0 {
		s.l.note("at %s no request had a right answer, so the rate is unknown", s)
		return
	}
	note := ""
	if s.right < 1 {
		note = fmt.Sprintf("of all answers, times the share of right ones, %s", number.Significant(s.right))
	}
	s.asked()
	s.stated(measure.RequestsPerSecond, "requests/s", v, scale, note, s.contradiction)
	s.stated(measure.SamplesPerSecond, "samples/s", v, scale*s.batch, note, s.contradiction)
}

// errors adds the share of failed requests, failed / all. v is the value in the log from which it
// was computed.
func (s *served) errors(v Value, failed, all float64) {
	if failed < 0 || all < failed || !(all > 0) || !(v.Number > 0) {
		s.l.fail(v.Line, "%g failed of %g requests", failed, all)
	}
	s.requests = all
	if failed > 0 {
		s.l.note("at %s, %.10g of %.10g requests failed", s, failed, all)
	}
	s.add(measure.Errors, "", v, failed/all/v.Number, "")
}

// time adds a latency; v times scale is in seconds. Percentiles must come in ascending order. If
// too many of the answers that it covers were wrong, it gets another name, so that curves leave
// it out.
func (s *served) time(name string, v Value, scale float64) {
	of, rank, percentile := strings.Cut(name, "_p")
	switch {
	case v.Number < 0:
		s.l.fail(v.Line, "%s is %g; want 0 or more", name, v.Number)
	case v.Number == 0:
		s.l.note("%s is stated as 0, below the program's precision, and is left out", name)
		return
	case percentile && of == s.of && scaled(v.Number, scale) < s.above.Number:
		s.l.fail(v.Line, "P%s of %s is less than the percentile before it, on line %d: one of the two is damaged", rank, of, s.above.Line)
	case percentile:
		s.of, s.above = of, Value{scaled(v.Number, scale), v.Line}
	}
	if name == measure.LatencyMean {
		s.little(scaled(v.Number, scale))
	}
	s.markov(name, scaled(v.Number, scale))
	why := s.contradiction
	if s.wrong > mostErrors && why == "" {
		why = fmt.Sprintf("%s %% of the answers are wrong and counted, or late and left out: not the latency of right answers", number.Significant(100*s.wrong))
	}
	s.stated(name, "s", v, scale, "", why)
}

// mostOff is the largest relative difference that is allowed between the rate multiplied by the
// mean latency and the requests in flight. Our own load generator has the same limit.
const mostOff = 0.05

// little checks the mean latency by Little's law if the number of requests in flight is fixed,
// and adds a note if they disagree.
func (s *served) little(mean float64) {
	threads, closed := s.at[measure.Threads].(float64)
	if inFlight := s.answers * mean; closed && s.answers > 0 && math.Abs(inFlight-threads) > mostOff*threads {
		s.l.note("at %s, answers/s times the mean latency are %s requests in flight, not %g (Little's law): requests wait in the client, or the latencies are not those of the requests", s, number.Significant(inFlight), threads)
	}
}

// latencyShare is the largest possible ratio of a percentile of the latency to its mean: half of
// the requests take at most twice the mean, and 19 of 20 at most 20 times the mean (Markov's
// inequality).
var latencyShare = map[string]float64{measure.LatencyMean: 1, measure.LatencyP50: 2, measure.LatencyP95: 20, measure.LatencyP99: 100}

// markov adds a note if a percentile of the latency is longer than the requests in flight and the
// rate allow: by Little's law, they give the mean.
func (s *served) markov(name string, seconds float64) {
	threads, closed := s.at[measure.Threads].(float64)
	share, is := latencyShare[name]
	if most := share * threads / s.answers; is && closed && s.answers > 0 && name != measure.LatencyMean && seconds > 2*most {
		s.l.note("at %s, %s of %s s is impossible at %s answers/s, which allow at most %s s: requests wait in the client, or one of the numbers is wrong", s, name, write(seconds), write(s.answers), write(most))
	}
}

// String returns the coordinates of the load for messages.
func (s *served) String() string {
	var parts []string
	for _, key := range []string{measure.Threads, measure.Rate, measure.Batch} {
		if x, ok := s.at[key]; ok && (key != measure.Batch || x != 1.0) {
			parts = append(parts, fmt.Sprintf("%s=%v", key, x))
		}
	}
	return strings.Join(parts, ", ")
}

// A loadField declares a number in a report of a load: its name in the report, our measure, and
// the factor to the measure's unit.
type loadField struct {
	theirs, ours string
	scale        float64
}

// percentileFields maps the percentiles in a report to our measures. The names are those that
// textLines gives them.
var percentileFields = []loadField{{"latency 50", measure.LatencyP50, 1}, {"latency 95", measure.LatencyP95, 1}, {"latency 99", measure.LatencyP99, 1}}

// A source returns a number of a report by its name in the report. scale is the factor to the
// unit in the number's loadField; ok is false if the report lacks the number.
type source func(theirs string) (v Value, scale float64, ok bool)

// fields adds the declared numbers that a report has.
func (s *served) fields(list []loadField, read source) {
	for _, f := range list {
		v, scale, ok := read(f.theirs)
		if ok {
			s.field(f.ours, f.theirs, v, f.scale*scale)
		}
	}
}

// field adds one number of a report; v times scale is in the unit of the measure ours.
func (s *served) field(ours, theirs string, v Value, scale float64) {
	m := must(measure.Find(ours))
	switch {
	case m.Unit == "s":
		s.time(ours, v, scale)
		return
	case ours == measure.RequestsPerSecond:
		s.rate(v, scale)
		return
	case v.Number < 0:
		s.l.fail(v.Line, "%s is %g; want 0 or more", theirs, v.Number)
	}
	s.add(ours, m.Unit, v, scale, "")
}

// unit returns the length of a unit of time in seconds.
func (l *log) unit(ln int, name string) float64 {
	if name == "m" { // wrk
		return 60
	}
	u, known := number.ParseUnit(name)
	if !known || u.Base != "s" || u.Bare || u.Inverse {
		l.fail(ln, "a time in %s; valid units are h, min, s, ms, us, ns and their names", clip(name))
	}
	return u.Scale
}

// ofLoads reports whether the rows of a table are loads, according to its mapped columns.
func ofLoads(columns map[string]Column) bool {
	return slices.ContainsFunc(loadFigures, func(f string) bool { _, mapped := columns[f]; return mapped })
}

// load adds the figures of a row that describes a load. Its rate and its latencies are taken to
// cover right answers only, because a table does not say.
func (t *table) load(columns map[string]Column) {
	l := t.l
	cell := func(ours string) (v Value, scale float64, ok bool) {
		v, scale, ok = t.cell(0, ours)
		if ok && v.Number < 0 {
			l.fail(v.Line, "%s is %g; want 0 or more", ours, v.Number)
		}
		return v, scale, ok
	}
	at := map[string]float64{}
	for _, key := range Coordinates {
		v, scale, ok := cell(key)
		if ok {
			at[key] = scaled(v.Number, scale)
		}
	}
	if _, within := columns[measure.RateWithinLimit]; within {
		t.within(columns, at, cell)
		return
	}
	s := must(l.under(t.line[0], at))
	for _, name := range loadFigures {
		v, scale, ok := cell(name)
		if !ok {
			continue
		}
		if name == measure.Errors && scaled(v.Number, scale) > 1 {
			l.fail(v.Line, "errors of %g; they are a share of the requests, not a count: divide a count by the requests; for percent write %s", v.Number, mapping(name, columns[name].Name, "%"))
		}
		s.field(name, name, v, scale)
	}
}

// within adds the figure of a row that states, for a batch, the highest rate within a latency
// limit.
func (t *table) within(columns map[string]Column, at map[string]float64, cell func(string) (Value, float64, bool)) {
	for _, other := range slices.Concat(loadFigures, []string{measure.Rate, measure.Threads}) {
		if _, mapped := columns[other]; mapped && other != measure.RateWithinLimit {
			t.l.fail(t.line[0], "%s belongs to a batch, and %s to a load: put them into two tables", measure.RateWithinLimit, other)
		}
	}
	v, scale, ok := cell(measure.RateWithinLimit)
	if !ok {
		return
	}
	if !(v.Number > 0) {
		t.l.fail(v.Line, "%s is %g; want more than 0, or an empty cell where none was found", measure.RateWithinLimit, v.Number)
	}
	if err := checkAt(at); err != nil {
		t.l.fail(v.Line, "%w", err)
	}
	batch := map[string]any{measure.Batch: 1.0}
	for key, x := range at {
		batch[key] = x
	}
	t.l.add(metrics.Event{Figure: &metrics.Figure{Name: measure.RateWithinLimit, Value: scaled(v.Number, scale), Unit: "requests/s", At: batch}}, scale, v)
}
