package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// judge compares the runs of one point. points is the number of points that are tested together. If
// the point has too few runs to be significant among these, its verdict is Insufficient.
func judge(a, b place, f measure.Measure, o Options, points int, about nodes) (Pair, error) {
	p := Pair{Series: a.series, Axis: a.axis, At: a.at, Workers: a.workers, Verdict: Insufficient, NA: len(a.values), NB: len(b.values),
		Origin: [2]Origin{a.origin(), b.origin()}}
	if p.Why = incomparable(a, b, f, o); p.Why != "" {
		return p, nil
	}
	shared := about.alike(a, b)
	for _, side := range []struct {
		median **scaling.Estimate
		place
	}{{&p.A, a}, {&p.B, b}} {
		r, err := scaling.ReachOf(side.values, side.made, 0, measure.Lower, shared, o.Confidence)
		if err != nil {
			return p, err
		}
		if f.IsTail() && !shared {
			r.AllowForSkew(side.values, 0, o.Confidence)
		}
		*side.median = r.Median
	}
	xs, ys := a.values, b.values
	p.Equal = equal(xs) || equal(ys)
	if shared {
		xs, ys = scaling.ByNode(xs, a.made), scaling.ByNode(ys, b.made)
	}
	c, err := scaling.Compare(finite(ys, xs), finite(xs, ys), 1-(1-o.Confidence)/float64(points))
	if err != nil {
		p.Why = err.Error()
		return p, nil
	}
	if err := p.ratio(a, b, f, shared, o); err != nil {
		return p, err
	}
	switch p.P = c.P; {
	case p.P != nil && f.Speeds() && equal(a.values) && equal(b.values):
		p.Why = equalRuns
	case p.P != nil:
		p.Verdict = verdict(*p.P, xs, ys, f, o)
	case c.WhyNoP == scaling.AllEqual:
		p.Verdict = Same
	case len(xs) < p.NA || len(ys) < p.NB:
		p.FewRuns = true
		p.Why = fmt.Sprintf("runs that share a node count as one, so %d and %d runs count as %d and %d: %s", p.NA, p.NB, len(xs), len(ys), c.WhyNoP)
	default:
		p.FewRuns, p.Why = true, c.WhyNoP
	}
	return p, nil
}

// equalRuns is the reason for no verdict on times or rates without any scatter: ranks would tell 4 copies of one run
// from 4 copies of another. Counts and amounts of memory may well be equal.
const equalRuns = "the runs of each side are equal: copied, or rounded?"

// equal reports whether all values are the same. Missed targets (+Inf) are not values.
func equal(xs []float64) bool {
	return slices.Min(xs) == slices.Max(xs) && !math.IsInf(xs[0], 1)
}

// incomparable returns why the runs of a point cannot be compared; "" if they can.
func incomparable(a, b place, f measure.Measure, o Options) string {
	sides, name := []place{a, b}, [2]string{"A", "B"}
	for i, side := range sides {
		if mixed, _ := fingerprint.Vary(scaling.Prints(side.runs)); mixed != nil && !o.Mix {
			facts := make([]string, len(mixed))
			for k, v := range mixed {
				facts[k] = v.String()
			}
			return "the runs of " + name[i] + " differ in what they ran on: " + strings.Join(facts, "; ")
		}
	}
	if len(a.values) == 0 || len(b.values) == 0 {
		return fmt.Sprintf("%s of A and %d of B recorded %s", number.Count(len(a.values), "run"), len(b.values), f.Name)
	}
	for i, side := range sides {
		if n := side.summary.Censored(); n > 0 {
			return fmt.Sprintf("%d of %d runs of %s lack %s and may be the slow ones, so those that have it are not compared", n, n+len(side.values), name[i], f.Name)
		}
	}
	return ""
}

// ratio sets the ratio of the medians, B divided by A, and the loss.
func (p *Pair) ratio(a, b place, f measure.Measure, shared bool, o Options) error {
	before, err := a.summary.Like(a.values, a.made, 0, f.Better, shared, o.Confidence)
	if err != nil {
		return err
	}
	after, err := b.summary.Like(b.values, b.made, 0, f.Better, shared, o.Confidence)
	if err != nil {
		return err
	}
	p.Ratio = scaling.RatioOfSets(after, before, o.Confidence)
	if p.Ratio == nil || f.Better == measure.Neither {
		return nil
	}
	loss := p.Ratio.Value - 1
	if f.Better == measure.Higher {
		loss = -loss
	}
	p.Loss = &loss
	return nil
}

// verdict returns the verdict on the values xs of A and ys of B; p is the p-value of their
// difference.
func verdict(p float64, xs, ys []float64, f measure.Measure, o Options) Verdict {
	switch {
	case p > 1-o.Confidence:
		return Same
	case f.Better == measure.Neither:
		return Different
	case (scaling.Middle(ys) > scaling.Middle(xs)) == (f.Better == measure.Higher):
		return Better
	}
	return Worse
}

// finite replaces missed targets (+Inf) by a number larger than all values. The test uses ranks,
// and a run that misses the target ranks after all that reach it.
func finite(xs, others []float64) []float64 {
	top := 1.0
	for _, x := range slices.Concat(xs, others) {
		if !math.IsInf(x, 1) {
			top = max(top, 2*x)
		}
	}
	xs = slices.Clone(xs)
	for i, x := range xs {
		if math.IsInf(x, 1) {
			xs[i] = top
		}
	}
	return xs
}

// Worse reports whether B is worse by at least limit, a fraction of A.
func (p *Pair) Worse(limit float64) bool {
	// Without a ratio, most runs of B miss the target, which exceeds any limit.
	return p.Verdict == Worse && (p.Loss == nil || *p.Loss >= limit)
}

// FailAt returns an error, to stop a script, if points are worse by at least limit (a
// fraction of A), or if no point could be judged; else nil.
func (r *Comparison) FailAt(limit float64) error {
	var worse []string
	judged := 0
	for _, p := range r.Pairs {
		if p.Verdict != Insufficient {
			judged++
		}
		if p.Worse(limit) {
			worse = append(worse, p.Series+", "+scaling.Places(p.Axis, p.At))
		}
	}
	switch {
	case len(worse) > 0:
		return fmt.Errorf("%d of %s worse by %s or more: %s", len(worse), number.Count(len(r.Pairs), "point"), number.ExactPercent(limit), strings.Join(worse, "; "))
	case judged == 0 && len(r.Pairs) > 0 && (strings.Contains(r.Pairs[0].Why, otherProgram) || r.Pairs[0].Why == equalRuns):
		return errors.New(r.Pairs[0].Why)
	case judged == 0:
		return errors.New("no point has enough runs to tell whether it is worse; a single point needs 4 runs a side, several points need 5 or 6 each")
	}
	return nil
}
