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
	// nearRate is the ratio of failing to passing rate at which the search stops, and the step down if a rate
	// that passed fails when tried again.
	nearRate = 1.04
	// confirmations is the number of times that the rate found must pass again: near the limit a single try can pass by luck.
	confirmations = 2
	// maxProbes bounds a search.
	maxProbes = 48
	// patience limits how often a rate is tried until one probe can be judged.
	patience = 3
	// If there are too few stalls for the percentile itself, the share of requests over the limit must be this
	// many times smaller than the limit allows.
	rarer = 5
	// A probe with fewer requests than fewRequests cannot be judged.
	fewRequests = 50
)

// search finds the largest rate that keeps the limit for one batch size. It starts at half the capacity,
// doubles or halves until one rate passes and another fails, bisects until they are within 4 %, and then
// requires the passing rate to pass again.
//
// One search is as noisy as its probes. Repeats of the run, each with its own arrivals, show by how much it
// varies.
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
		// Recorded even if no rate was found: such a run still counts among the repeats.
		err = s.Figure(metrics.Figure{Name: measure.SearchProbes, Value: float64(probes), At: map[string]any{measure.Batch: float64(batch)}})
	}
	return err
}

// narrow brackets the largest rate at which probes keep the limit, starting at first, and records it.
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
			return s.Doubt(fmt.Sprintf("batch %d: the largest rate within %s is unknown: %s requests/s keep it, and at %s %s", batch, w.Limit, number.Significant(b.pass), number.Significant(b.ceiling), b.unjudged))
		}
		rate = try
	}
	return s.Doubt(fmt.Sprintf("batch %d: no largest rate within %s was found in %d tries", batch, w.Limit, maxProbes))
}

// An outcome is the result of probing a rate. If broken and unknown are both empty, the rate keeps the limit.
type outcome struct {
	broken  string // how the limit is exceeded
	unknown string // why the result is unknown
	client  bool   // unknown because the client is too slow for the rate
}

// A bracket holds what is known about the rates around the largest one.
type bracket struct {
	pass, fail float64 // largest rate that kept the limit, smallest that did not; 0 if none
	why        string  // why fail failed
	// ceiling is the smallest rate that was too high for the client. It neither passed nor failed; the search
	// continues below it.
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

// top returns the rate below which the search continues, or 0 for no bound.
func (b *bracket) top() float64 {
	if b.ceiling > 0 && (b.fail == 0 || b.ceiling < b.fail) {
		return b.ceiling
	}
	return b.fail
}

// next returns the rate to try next, or reports that the bracket is narrow enough.
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

// confirm requires the passing rate to pass again, steps down if it does not, and records the result.
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

// probed records the figures of a probe as those of a load. If a rate is probed several times, it records the
// first probe in a steady state.
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

// broken probes a rate and reports how it exceeds the limit, or why that is unknown.
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

// keeps reports whether one bound of the limit is kept. A client that sends late only adds to a time. So a
// value within the bound is certain, and one above it by no more than the client's delay is unknown.
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
		// The measured value decides, even if the percentile could not be reported.
		return outcome{broken: fmt.Sprintf("%s was %s", name, number.Seconds(seen))}
	case why != "" && (!ok || rare > b.Seconds):
		return outcome{unknown: fmt.Sprintf("no %s: %s", name, why)}
	}
	return outcome{}
}
