package trial

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
	// near is how near a passing and a failing rate are brought to each other, and the
	// step down when a rate that passed fails again.
	near = 1.04
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
		_, v, err := s.run(ctx, w, Load{Batch: batch, Threads: 1}, 0, next())
		if err != nil {
			return err
		}
		if capacity = v.Total.Rate(); capacity == 0 {
			return s.Doubt(fmt.Sprintf("batch %d: did not search for a rate within the limit: %s", batch, v.Why))
		}
	}
	var pass, fail float64
	var why string // of fail
	probe := func(rate float64) (passed bool, unknown string, err error) {
		text := fmt.Sprintf("searching for the largest rate within %s, batch %d: trying %s requests/s", w.Limit, batch, number.Significant(rate))
		if err := s.Phase(text); err != nil {
			return false, "", err
		}
		for range patience {
			var broken string
			if broken, unknown, err = s.broken(ctx, w, Load{Batch: batch, Rate: rate, probes: true}, next()); unknown != "" && err == nil {
				continue
			}
			if broken != "" {
				fail, why = rate, broken
			}
			return broken == "", "", err
		}
		return false, unknown, nil
	}
	for rate, probes := capacity/2, 0; probes < maxProbes; probes++ {
		if rate*w.Duration.Seconds() < fewRequests {
			return s.Doubt(fmt.Sprintf("batch %d: no rate keeps %s: at %s requests/s %s", batch, w.Limit, number.Significant(fail), why))
		}
		passed, unknown, err := probe(rate)
		switch {
		case err != nil:
			return err
		case unknown != "":
			return s.Doubt(fmt.Sprintf("batch %d: cannot tell whether %s requests/s keep %s: %s", batch, number.Significant(rate), w.Limit, unknown))
		case passed:
			pass = rate
		}
		switch {
		case fail == 0:
			rate = 2 * pass
		case pass == 0:
			rate = fail / 2
		case fail/pass <= near:
			return s.confirm(w, batch, pass, &fail, &why, probe)
		default:
			rate = math.Sqrt(pass * fail)
		}
	}
	return s.Doubt(fmt.Sprintf("batch %d: no largest rate within %s was found in %d tries", batch, w.Limit, maxProbes))
}

// confirm lets a rate pass again, or steps down from it, and records it.
func (s *Service) confirm(w study.Serve, batch int, rate float64, fail *float64, why *string, probe func(float64) (bool, string, error)) error {
	for passed, probes := 0, 0; passed < confirmations; probes++ {
		ok, unknown, err := probe(rate)
		switch {
		case err != nil:
			return err
		case unknown != "" || probes == maxProbes || rate*w.Duration.Seconds() < fewRequests:
			return s.Doubt(fmt.Sprintf("batch %d: %s requests/s kept %s once, but not again: %s", batch, number.Significant(rate), w.Limit, strings.TrimPrefix(unknown+"; "+*why, "; ")))
		case ok:
			passed++
		default:
			rate, passed = rate/near, 0
		}
	}
	return s.Figure(metrics.Figure{Name: measure.RateWithinLimit, Unit: "requests/s", Value: rate, At: map[string]any{measure.Batch: float64(batch)},
		Note: fmt.Sprintf("within %s; %s requests/s failed: %s", w.Limit, number.Significant(*fail), *why)})
}

// broken says in words what of the limit a rate does not keep, "" when it keeps all,
// or why that is not known.
func (s *Service) broken(ctx context.Context, w study.Serve, l Load, stream uint64) (broken, unknown string, err error) {
	_, v, err := s.run(ctx, w, l, 0, stream)
	bounds, errors := w.Limit.Of()
	switch {
	case err != nil:
		return "", "", err
	case v.Why != "" && v.Ours:
		return "", v.Why, nil
	case v.Why != "":
		return v.Why, "", nil
	case v.Total.Errors() > errors:
		return fmt.Sprintf("%.3g %% of the requests had no right answer in time", 100*v.Total.Errors()), "", nil
	}
	for _, b := range bounds {
		_, why := v.Percentile(timeOf[b.Of], b.Share)
		// A percentile that is above its limit by what was seen is so for all that is
		// not known of it; one below has to be known.
		if seen, _ := v.Total.Percentile(timeOf[b.Of], b.Share); seen > b.Seconds {
			return fmt.Sprintf("%sP%g was %s", ofStreams(b.Of), 100*b.Share, number.Seconds(seen)), "", nil
		}
		if rare, ok := v.Total.Percentile(timeOf[b.Of], 1-(1-b.Share)/rarer); why != "" && (!ok || rare > b.Seconds) {
			return "", fmt.Sprintf("no %sP%g: %s", ofStreams(b.Of), 100*b.Share, why), nil
		}
	}
	return "", "", nil
}
