package extract

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// 10 of 40 requests failed, a quarter. There cannot be more failures than requests, and the
// stated value must be above 0.
func TestErrorsOfALoad(t *testing.T) {
	for _, c := range []struct {
		v, failed, all float64
		valid          bool
	}{
		{10, 10, 40, true}, {40, 40, 40, true}, {0.25, 10, 40, true}, {1, 0, 1, true},
		{0, 0, 40, false}, {-1, 1, 40, false}, {10, -1, 40, false}, {10, 41, 40, false}, {1, 0, 0, false}, {1, 0, math.NaN(), false}, {math.NaN(), 1, 40, false},
	} {
		l := newLog(Options{File: "log"})
		s, err := l.under(1, map[string]float64{measure.Threads: 4})
		if err != nil {
			t.Fatal(err)
		}
		err = try(func() { s.errors(Value{c.v, 7}, c.failed, c.all) })
		if (err == nil) != c.valid || err != nil && !strings.Contains(err.Error(), "log:7: ") {
			t.Errorf("%g failed of %g, stated as %g: %v, want valid: %v", c.failed, c.all, c.v, err, c.valid)
		}
		if err == nil {
			for f := range l.res.Findings() {
				if g := f.Event.Figure; g.Name != measure.Errors || math.Abs(g.Value-c.failed/c.all) > 1e-12 {
					t.Errorf("%g failed of %g: %s %g", c.failed, c.all, g.Name, g.Value)
				}
			}
			if s.requests != c.all || (len(l.res.Notes) > 0) != (c.failed > 0) {
				t.Errorf("%g failed of %g: %g requests, notes %q", c.failed, c.all, s.requests, l.res.Notes)
			}
		}
	}
}

// The log or the user states a load's requests in flight or its rate; they must not
// contradict each other.
func TestLoadOfALog(t *testing.T) {
	at := func(pairs ...any) map[string]float64 {
		m := map[string]float64{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = float64(pairs[i+1].(int))
		}
		return m
	}
	for _, c := range []struct {
		name        string
		stated, say map[string]float64
		batch       float64
		why         string
	}{
		{"in flight", at(measure.Threads, 4), nil, 1, ""},
		{"a rate and a batch", at(measure.Rate, 4, measure.Batch, 8), nil, 8, ""},
		{"as the user says", nil, at(measure.Threads, 4, measure.Batch, 2), 2, ""},
		{"both say the same", at(measure.Threads, 4), at(measure.Threads, 4), 1, ""},
		{"the log says the batch", at(measure.Batch, 8), at(measure.Threads, 4), 8, ""},
		{"the user says otherwise", at(measure.Threads, 4), at(measure.Threads, 5), 0, "the load has threads=4 here; --at says 5"},
		{"both kinds", at(measure.Threads, 4, measure.Rate, 5), nil, 0, "a load has either requests in flight or a rate"},
		{"neither", nil, nil, 0, "the load is not stated here"},
		{"a rate of 0", at(measure.Rate, 0), nil, 0, ":3: "},
	} {
		l := newLog(Options{File: "log", At: c.say})
		s, err := l.under(3, c.stated)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", c.name, err, c.why)
		}
		if err == nil && s.batch != c.batch {
			t.Errorf("%s: a batch of %g, want %g", c.name, s.batch, c.batch)
		}
	}
	l := newLog(Options{File: "log"})
	if _, err := l.under(3, at(measure.Threads, 4)); err != nil {
		t.Error(err)
	}
	if _, err := l.under(5, at(measure.Threads, 8)); err != nil {
		t.Error(err)
	}
	if _, err := l.under(9, at(measure.Threads, 4)); err == nil || !strings.Contains(err.Error(), "log:9: a second result of the same load; the first is on line 3") {
		t.Error(err)
	}
}

// At a rate of 100, up to 1.2 times as many answers are possible if the number of requests
// is unknown; with 400 requests, 1.05 + 4/√400 = 1.25 times.
func TestAnswersAboveTheRate(t *testing.T) {
	for _, c := range []struct {
		requests, answers float64
		contradicts       bool
	}{{0, 119, false}, {0, 121, true}, {400, 124, false}, {400, 126, true}, {1e6, 105.3, false}, {1e6, 106, true}} {
		s, err := newLog(Options{File: "log"}).under(1, map[string]float64{measure.Rate: 100})
		if err != nil {
			t.Fatal(err)
		}
		s.requests, s.answers = c.requests, c.answers
		if s.asked(); (s.contradiction != "") != c.contradicts {
			t.Errorf("%g answers/s of %g requests: %q", c.answers, c.requests, s.contradiction)
		}
	}
}

// With one request in flight and 1000 answers/s, the mean latency is at most 1 ms, and P50 at most
// 2 ms.
func TestPercentilesAgainstTheRate(t *testing.T) {
	for cells, said := range map[string]bool{"1000.0,900": false, "1000.0,3900": false, "1000.0,4100": true, "100.0,9800": false} {
		log := "Concurrency,Inferences/Second,Client Send,p50 latency\n1," + strings.Replace(cells, ",", ",1,", 1) + "\n"
		r, err := perfAnalyzer.Extract(strings.NewReader(log), Options{File: "log", At: map[string]float64{"batch": 1}})
		if err != nil || strings.Contains(strings.Join(r.Notes, "\n"), "latency_p50 of") != said {
			t.Errorf("%s: %q, %v", cells, r.Notes, err)
		}
	}
}
