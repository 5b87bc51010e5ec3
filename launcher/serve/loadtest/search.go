package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

const (
	// coarse is the ratio of failing to passing rate from which probes go where they narrow the interval most.
	coarse = 1.3
	// The search ends when the interval of the rate is within 4 %, or, if the share of requests over the limit
	// jumps, when the failing rate is within 4 % of the passing one. nearRate is also the step down if a rate that
	// passed fails when tried again.
	nearRate = 1.04
	// confirmations is the number of times that a rate must pass again if the share jumps: near the limit a
	// single try can pass by luck.
	confirmations = 2
	// maxProbes bounds a search. The probes for the interval are fitProbes, or twice as many if it is wide.
	maxProbes, fitProbes = 48, 12
	// patience limits how often a rate is tried until one probe can be judged.
	patience = 3
	// A probe with fewer requests than fewRequests cannot be judged.
	fewRequests = 50
)

// Probes for the interval alternate between rates at which the odds of being over the limit are these multiples of
// the allowed ones, which determines the rate and the slope.
var spreads = []float64{1, 0.5, 2}

// unknownSlope is used before the slope is known.
const unknownSlope = 5

// search finds the largest rate that keeps the limit for one batch size. It starts at half the capacity,
// doubles or halves until one rate passes and another fails, and bisects until they are within 30 %. Then it
// estimates, from all probes, the rate at which the share of requests over the limit equals the permitted share
// (see cross), and probes near that rate until the estimate's interval is narrow.
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
			return s.Warn(fmt.Sprintf("batch %d: did not search for a rate within the limit: %s", batch, v.Why))
		}
	}
	f := &finder{Service: s, w: w, batch: batch, next: next, bracket: bracket{ratio: coarse}}
	f.bounds, _ = w.Limit.Of()
	f.trials = make([][]trial, len(f.bounds))
	if rate := capacity / 2; rate*w.Duration.Seconds() < fewRequests {
		return s.Warn(fmt.Sprintf("batch %d: no search for a rate within %s: at %s requests/s (half of the closed loop's), %s has fewer than the %d requests of a probe; set duration to %s or more",
			batch, w.Limit, number.Significant(rate), number.Seconds(w.Duration.Seconds()), fewRequests, number.Seconds(math.Ceil(fewRequests/rate))))
	}
	err := f.narrow(ctx, capacity/2)
	if err == nil {
		// Recorded even if no rate was found: such a run still counts among the repeats.
		err = f.figure(measure.SearchProbes, "", float64(f.probes), "")
	}
	return err
}

// A finder is one search.
type finder struct {
	*Service
	w       study.Serve
	batch   int
	next    func() uint64 // stream of random numbers
	probes  int
	bracket bracket
	bounds  []study.Bound
	trials  [][]trial // trials of each bound
	hard    float64   // smallest rate that failed for another reason than a bound; 0 if none
}

// doubt records why the search has no result.
func (f *finder) doubt(format string, arguments ...any) error {
	return f.Warn(fmt.Sprintf("batch %d: ", f.batch) + fmt.Sprintf(format, arguments...))
}

func (f *finder) figure(name, unit string, value float64, note string) error {
	return f.Figure(metrics.Figure{Name: name, Unit: unit, Value: value, At: map[string]any{measure.Batch: float64(f.batch)}, Note: note})
}

// probe tries a rate, again if the result cannot be judged.
func (f *finder) probe(ctx context.Context, rate float64) (o outcome, err error) {
	rate, _ = strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 4, 64), 64) // tables and figures print all digits
	text := fmt.Sprintf("searching for the largest rate within %s, batch %d: trying %s requests/s", f.w.Limit, f.batch, number.Significant(rate))
	if err := f.Phase(text); err != nil {
		return o, err
	}
	for range patience {
		f.probes++
		var v Verdict
		if o, v, err = f.broken(ctx, f.w, Load{Batch: f.batch, Rate: rate, probes: true}, f.next()); err != nil {
			return o, err
		}
		if o.unknown == "" {
			f.learn(rate, o, &v)
			return o, nil
		}
	}
	return o, nil
}

// learn keeps what a probe says about each bound.
func (f *finder) learn(rate float64, o outcome, v *Verdict) {
	if o.hard && (f.hard == 0 || rate < f.hard) {
		f.hard = rate
	}
	if v.Total.Good == 0 {
		return
	}
	for i, b := range f.bounds {
		f.trials[i] = append(f.trials[i], v.trial(b, rate))
	}
}

// narrow brackets the largest rate at which probes keep the limit, starting at first, and records it.
func (f *finder) narrow(ctx context.Context, first float64) error {
	b := &f.bracket
	for rate, tried := first, 0; tried < maxProbes; tried++ {
		if rate*f.w.Duration.Seconds() < fewRequests {
			if b.fail == 0 {
				return f.doubt("cannot tell whether %s requests/s keep %s: %s", number.Significant(b.ceiling), f.w.Limit, b.unjudged)
			}
			return f.doubt("no rate keeps %s: at %s requests/s %s", f.w.Limit, number.Significant(b.fail), b.why)
		}
		o, err := f.probe(ctx, rate)
		switch {
		case err != nil:
			return err
		case o.unknown != "" && !o.client:
			return f.doubt("cannot tell whether %s requests/s keep %s: %s", number.Significant(rate), f.w.Limit, o.unknown)
		}
		b.learn(rate, o)
		try, narrow := b.next()
		switch {
		case narrow && b.top() == b.fail:
			return f.refine(ctx)
		case narrow:
			return f.limitedByClient()
		}
		rate = try
	}
	return f.doubt("no largest rate within %s was found in %d tries", f.w.Limit, maxProbes)
}

func (f *finder) limitedByClient() error {
	b := f.bracket
	return f.doubt("the largest rate within %s is unknown: %s requests/s keep it, and at %s %s", f.w.Limit, number.Significant(b.pass), number.Significant(b.ceiling), b.unjudged)
}

// refine continues from a bracket of the coarse ratio. It probes near the estimated rate, or near the middle of
// the bracket until there is an estimate. If the share over the limit jumps, it narrows the bracket.
func (f *finder) refine(ctx context.Context) error {
	for tried := 0; tried < maxProbes; tried++ {
		c, state := f.cross()
		half := math.Sqrt(c.high/c.low) - 1
		if state == fitted && (half <= nearRate-1 || tried >= fitProbes && half <= wide || tried >= 2*fitProbes) {
			return f.found(c, half)
		}
		around, narrow := math.Sqrt(f.bracket.pass*f.bracket.fail), false
		rate := around * crossing{slope: unknownSlope}.factor(spreads[tried%len(spreads)])
		switch state {
		case fitted:
			rate = c.rate * c.factor(spreads[tried%len(spreads)])
		case jumps:
			f.bracket.ratio = nearRate
			if rate, narrow = f.bracket.next(); narrow {
				return f.confirm(ctx)
			}
		}
		o, err := f.probe(ctx, rate)
		if err != nil {
			return err
		}
		if state == jumps || o.client {
			f.bracket.learn(rate, o)
		}
		if f.bracket.top() != f.bracket.fail {
			return f.limitedByClient()
		}
	}
	return f.doubt("no largest rate within %s was found in %d tries", f.w.Limit, maxProbes)
}

// cross returns the lowest crossing of the bounds. None exists if a lower rate failed for another reason.
func (f *finder) cross() (lowest crossing, state estimate) {
	around := math.Sqrt(f.bracket.pass * f.bracket.fail)
	for i, b := range f.bounds {
		c, has := cross(f.trials[i], 1-b.Share, around)
		if has == fitted && (state != fitted || c.rate < lowest.rate) {
			lowest = c
		}
		state = max(state, has)
	}
	if state == fitted && f.hard > 0 && lowest.rate >= f.hard {
		return lowest, jumps
	}
	return lowest, state
}

// Half-widths of an interval as shares of the rate: from wide on, the search takes longer and a warning says
// how to narrow it; from useless on, the search has no result.
const wide, useless = 0.1, 0.5

// enough is the number of requests over the limit that a probe needs. With a third of it, intervals missed the true
// rate of simulated queues two to three times as often.
const enough = 60

// found records the result of the estimate.
func (f *finder) found(c crossing, half float64) error {
	needs := 0.0
	for _, b := range f.bounds {
		needs = max(needs, enough/(1-b.Share))
	}
	if n := c.rate * f.w.Duration.Seconds(); n < needs {
		if err := f.doubt("probes had about %s requests, and the interval of the largest rate within %s is too narrow with fewer than %.0f; set duration to %s or more",
			number.Significant(n), f.w.Limit, needs, number.Seconds(math.Ceil(needs/c.rate))); err != nil {
			return err
		}
	}
	if half <= wide {
		return f.result(c)
	}
	longer := time.Duration(math.Ceil(f.w.Duration.Seconds()*math.Pow(min(half, useless)/wide, 2))) * time.Second
	err := f.doubt("the largest rate within %s is between %s and %s requests/s; set duration to about %v to know it to ±%.0f %%", f.w.Limit,
		number.Significant(c.low), number.Significant(c.high), longer, 100*wide)
	if err != nil || half > useless {
		return err
	}
	return f.result(c)
}

// result records a rate with its interval.
func (f *finder) result(c crossing) error {
	note := fmt.Sprintf("within %s, 95 %% interval %s to %s; %s requests/s failed: %s", f.w.Limit, number.Significant(c.low), number.Significant(c.high), number.Significant(f.bracket.fail), f.bracket.why)
	return errors.Join(f.figure(measure.RateWithinLimit, "requests/s", c.rate, note), f.figure(measure.RateAtLeast, "requests/s", c.low, ""), f.figure(measure.RateAtMost, "requests/s", c.high, ""))
}

// An outcome is the result of probing a rate. If broken and unknown are both empty, the rate keeps the limit.
type outcome struct {
	broken  string // how the limit is exceeded
	unknown string // why the result is unknown
	client  bool   // unknown because the client is too slow for the rate
	hard    bool   // broken for another reason than a percentile
}

// A bracket holds what is known about the rates around the largest one.
type bracket struct {
	pass, fail float64 // largest rate that kept the limit, smallest that did not; 0 if none
	why        string  // why fail failed
	// ceiling is the smallest rate that was too high for the client. It neither passed nor failed; the search
	// continues below it.
	ceiling  float64
	unjudged string
	ratio    float64 // sufficient ratio of failing to passing rate; 0 means nearRate
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
	case top/b.pass <= cmp.Or(b.ratio, nearRate):
		return 0, true
	}
	return math.Sqrt(b.pass * top), false
}

// confirm requires the passing rate to pass again, steps down if it does not, and records the result.
func (f *finder) confirm(ctx context.Context) error {
	b := &f.bracket
	rate := b.pass
	for passed, probes := 0, 0; passed < confirmations; probes++ {
		o, err := f.probe(ctx, rate)
		switch {
		case err != nil:
			return err
		case o.unknown != "" || probes == maxProbes || rate*f.w.Duration.Seconds() < fewRequests:
			return f.doubt("%s requests/s kept %s once, but not again: %s", number.Significant(rate), f.w.Limit, strings.TrimPrefix(o.unknown+"; "+b.why, "; "))
		case o.broken == "":
			passed++
		default:
			b.fail, b.why = rate, o.broken
			rate, passed = rate/nearRate, 0
		}
	}
	return f.result(crossing{rate: rate, low: rate, high: b.fail})
}

// probed records the results of a probe as for a load. If a rate is probed several times, it
// records the first probe in a steady state.
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
func (s *Service) broken(ctx context.Context, w study.Serve, l Load, stream uint64) (o outcome, v Verdict, err error) {
	_, v, err = s.run(ctx, w, l, 0, stream)
	if err == nil {
		err = s.probed(l, v)
	}
	bounds, mostErrors := w.Limit.Of()
	switch {
	case err != nil:
		return o, v, err
	case v.Why != "" && v.Ours:
		return outcome{unknown: v.Why, client: v.Client}, v, nil
	case v.Why != "" && !v.Drifts:
		return outcome{broken: v.Why, hard: true}, v, nil
	case v.Total.Errors() > mostErrors:
		return outcome{broken: fmt.Sprintf("%.3g %% of the requests had no right answer in time", 100*v.Total.Errors()), hard: true}, v, nil
	}
	for _, b := range bounds {
		if o := v.keeps(b); o != (outcome{}) {
			return o, v, nil
		}
	}
	return outcome{}, v, nil
}

// keeps reports whether one bound of the limit is kept. The measured value decides, even if it could not be
// reported, since a search pools its probes. A client that sends late only adds to a time. So a value within the
// bound is certain, and one above it by no more than the client's delay is unknown.
func (v *Verdict) keeps(b study.Bound) outcome {
	of := timeOf[b.Of]
	name := fmt.Sprintf("%sP%g", ofStreams(b.Of), 100*b.Share)
	seen, ok := v.Total.Percentile(of, b.Share)
	least, bounded := v.Total.least(of, b.Share)
	switch {
	case !ok:
		return outcome{broken: fmt.Sprintf("fewer than %g %% of the requests had an answer in time", 100*b.Share)}
	case seen > b.Seconds && bounded && least <= b.Seconds && v.lateAt(of, b.Share, seen) != "":
		return outcome{unknown: fmt.Sprintf("no %s: %s", name, v.lateAt(of, b.Share, seen)), client: true}
	case seen > b.Seconds:
		return outcome{broken: fmt.Sprintf("%s was %s", name, number.Seconds(seen))}
	}
	return outcome{}
}
