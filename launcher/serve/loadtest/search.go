package loadtest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

const (
	// nearRate is how near a passing and a failing rate are brought to each other, and the
	// step down when a rate that passed fails again.
	nearRate = 1.04
	// confirmations is how often the rate that was found has to pass again: of several
	// tries around the limit one passes by luck.
	confirmations = 2
	// maxProbes bounds a search.
	maxProbes = 48
	// patience is how often a rate is tried until a probe of it can be judged.
	patience = 3
	// rarer is how many times fewer requests than allowed have to be over the limit
	// where those are too few stalls to tell the percentile.
	rarer = 5
	// fewRequests in a probe say nothing.
	fewRequests = 50
)

// search finds the largest rate of requests of one size that keeps the limit:
// from half of the capacity it doubles, or halves, until one rate passes and
// another fails, then bisects to 4 %, and has the rate that is left pass again.
//
// One search errs: its noise is that of single probes. Repeats of the run, each with
// its own arrivals, show by how much.
func (s *Service) search(ctx context.Context, w study.Serve, batch int, capacity float64, stream uint64) error {
	next := func() uint64 { stream++; return stream - 1 }
	if capacity == 0 {
		if err := s.Phase(fmt.Sprintf("measuring 1 in flight, batch %d, to start a search", batch)); err != nil {
			return err
		}
		one := Load{Batch: batch, Threads: 1}
		r, v, err := s.run(ctx, w, one, 0, next())
		if err == nil {
			err = new(tally).add(one, r)
		}
		if err != nil {
			return err
		}
		if capacity = v.Total.Rate(); capacity == 0 {
			return s.Doubt(fmt.Sprintf("batch %d: did not search for a rate within the limit: %s", batch, v.Why))
		}
	}
	probes := 0
	probe := func(rate float64) (o outcome, err error) {
		text := fmt.Sprintf("searching for the largest rate within %s, batch %d: trying %s requests/s", w.Limit, batch, number.Significant(rate))
		if err := s.Phase(text); err != nil {
			return o, err
		}
		for range patience {
			probes++
			if o, err = s.broken(ctx, w, Load{Batch: batch, Rate: rate, probes: true}, next()); o.unknown == "" || err != nil {
				return o, err
			}
		}
		return o, nil
	}
	if rate := capacity / 2; rate*w.Duration.Seconds() < fewRequests {
		return s.Doubt(fmt.Sprintf("batch %d: did not search for a rate within %s: at %s requests/s, half of what a closed loop reached, %s has fewer than the %d requests that a probe needs; set duration to %s or more",
			batch, w.Limit, number.Significant(rate), number.Seconds(w.Duration.Seconds()), fewRequests, number.Seconds(math.Ceil(fewRequests/rate))))
	}
	err := s.narrow(w, batch, capacity/2, probe)
	if err == nil {
		// Beside the rate, and where none was found: such a run is not to be left out of
		// what the others say.
		err = s.Figure(metrics.Figure{Name: measure.SearchProbes, Value: float64(probes), At: map[string]any{measure.Batch: float64(batch)}})
	}
	return err
}

// narrow brackets the largest rate that probes keep the limit at, from the first on, and
// records it.
func (s *Service) narrow(w study.Serve, batch int, first float64, probe func(float64) (outcome, error)) error {
	var b bracket
	for rate, tried := first, 0; tried < maxProbes; tried++ {
		if rate*w.Duration.Seconds() < fewRequests {
			if b.fail == 0 {
				return s.Doubt(fmt.Sprintf("batch %d: cannot tell whether %s requests/s keep %s: %s", batch, number.Significant(b.ceiling), w.Limit, b.unjudged))
			}
			return s.Doubt(fmt.Sprintf("batch %d: no rate keeps %s: at %s requests/s %s", batch, w.Limit, number.Significant(b.fail), b.why))
		}
		o, err := probe(rate)
		switch {
		case err != nil:
			return err
		case o.unknown != "" && !o.client:
			return s.Doubt(fmt.Sprintf("batch %d: cannot tell whether %s requests/s keep %s: %s", batch, number.Significant(rate), w.Limit, o.unknown))
		}
		b.learn(rate, o)
		try, narrow := b.next()
		switch {
		case narrow && b.top() == b.fail:
			return s.confirm(w, batch, &b, probe)
		case narrow:
			return s.Doubt(fmt.Sprintf("batch %d: the largest rate within %s is not known: %s requests/s keep it, and at %s %s", batch, w.Limit, number.Significant(b.pass), number.Significant(b.ceiling), b.unjudged))
		}
		rate = try
	}
	return s.Doubt(fmt.Sprintf("batch %d: no largest rate within %s was found in %d tries", batch, w.Limit, maxProbes))
}

// outcome is what a probe of a rate came to: the limit is kept, or
type outcome struct {
	broken  string // what of it is not
	unknown string // why that is not known
	client  bool   // unknown, because the client is too slow for the rate
}

// bracket is what is known of the rates around the largest one.
type bracket struct {
	pass, fail float64 // the largest that kept the limit, the smallest that did not; 0: none
	why        string  // of fail
	// ceiling is the smallest rate that was too much for the client: neither a pass nor a
	// failure, but the search goes on below it.
	ceiling  float64
	unjudged string
}

func (b *bracket) learn(rate float64, o outcome) {
	switch {
	case o.client:
		b.ceiling, b.unjudged = rate, o.unknown
	case o.broken != "":
		b.fail, b.why = rate, o.broken
	default:
		b.pass = rate
	}
}

// top is the rate that the search goes on below; 0 for none.
func (b *bracket) top() float64 {
	if b.ceiling > 0 && (b.fail == 0 || b.ceiling < b.fail) {
		return b.ceiling
	}
	return b.fail
}

// next is the rate to try, or narrow says that the bracket is.
func (b *bracket) next() (rate float64, narrow bool) {
	top := b.top()
	switch {
	case top == 0:
		return 2 * b.pass, false
	case b.pass == 0:
		return top / 2, false
	case top/b.pass <= nearRate:
		return 0, true
	}
	return math.Sqrt(b.pass * top), false
}

// confirm lets the rate that passed pass again, or steps down from it, and records it.
func (s *Service) confirm(w study.Serve, batch int, b *bracket, probe func(float64) (outcome, error)) error {
	rate := b.pass
	for passed, probes := 0, 0; passed < confirmations; probes++ {
		o, err := probe(rate)
		switch {
		case err != nil:
			return err
		case o.unknown != "" || probes == maxProbes || rate*w.Duration.Seconds() < fewRequests:
			return s.Doubt(fmt.Sprintf("batch %d: %s requests/s kept %s once, but not again: %s", batch, number.Significant(rate), w.Limit, strings.TrimPrefix(o.unknown+"; "+b.why, "; ")))
		case o.broken == "":
			passed++
		default:
			b.fail, b.why = rate, o.broken
			rate, passed = rate/nearRate, 0
		}
	}
	return s.Figure(metrics.Figure{Name: measure.RateWithinLimit, Unit: "requests/s", Value: rate, At: map[string]any{measure.Batch: float64(batch)},
		Note: fmt.Sprintf("within %s; %s requests/s failed: %s", w.Limit, number.Significant(b.fail), b.why)})
}

// probed records what a probe came to, as a load's figures are; of several at one rate
// the first that was in a steady state.
func (s *Service) probed(l Load, v Verdict) error {
	if v.Why != "" || s.probes[l] {
		return nil
	}
	if s.probes == nil {
		s.probes = map[Load]bool{}
	}
	s.probes[l] = true
	var err error
	figure := func(name, unit string, value float64) {
		if err == nil {
			err = s.Figure(metrics.Figure{Name: measure.Probe + name, Unit: unit, Value: value, At: l.At()})
		}
	}
	figure(measure.RequestsPerSecond, "requests/s", v.Total.Rate())
	figure(measure.Errors, "", v.Total.Errors())
	percentiles(&v, figure)
	return err
}

// broken says in words what of the limit a rate does not keep, or why that is not known.
func (s *Service) broken(ctx context.Context, w study.Serve, l Load, stream uint64) (outcome, error) {
	_, v, err := s.run(ctx, w, l, 0, stream)
	if err == nil {
		err = s.probed(l, v)
	}
	bounds, errors := w.Limit.Of()
	switch {
	case err != nil:
		return outcome{}, err
	case v.Why != "" && v.Ours:
		return outcome{unknown: v.Why, client: v.Client}, nil
	case v.Why != "":
		return outcome{broken: v.Why}, nil
	case v.Total.Errors() > errors:
		return outcome{broken: fmt.Sprintf("%.3g %% of the requests had no right answer in time", 100*v.Total.Errors())}, nil
	}
	for _, b := range bounds {
		if o := v.keeps(b); o != (outcome{}) {
			return o, nil
		}
	}
	return outcome{}, nil
}

// keeps says whether a bound of the limit is kept. A client that sends late only adds to a
// time, so that what is within the bound is so in truth, and what is beyond it by no more
// than the client may have added is not known.
func (v *Verdict) keeps(b study.Bound) outcome {
	of := timeOf[b.Of]
	name := fmt.Sprintf("%sP%g", ofStreams(b.Of), 100*b.Share)
	_, why := v.known(of, b.Share)
	seen, _ := v.Total.Percentile(of, b.Share)
	rare, ok := v.Total.Percentile(of, 1-(1-b.Share)/rarer)
	least, bounded := v.Total.least(of, b.Share)
	switch {
	case seen > b.Seconds && bounded && least <= b.Seconds && v.lateAt(of, b.Share, seen) != "":
		return outcome{unknown: fmt.Sprintf("no %s: %s", name, v.lateAt(of, b.Share, seen)), client: true}
	case seen > b.Seconds:
		// By what was seen: so it is for all that is not known of it.
		return outcome{broken: fmt.Sprintf("%s was %s", name, number.Seconds(seen))}
	case why != "" && (!ok || rare > b.Seconds):
		return outcome{unknown: fmt.Sprintf("no %s: %s", name, why)}
	}
	return outcome{}
}
