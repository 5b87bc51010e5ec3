package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// judge compares one point's runs, one point of so many that are judged together:
// with runs too few to be told apart among these it is not judged.
func judge(a, b place, f measure.Measure, o Options, points int, about nodes) (Pair, error) {
	p := Pair{Series: a.series, Axis: a.axis, At: a.at, Workers: a.workers, Verdict: Insufficient}
	xs, ys := a.values, b.values
	p.NA, p.NB = len(xs), len(ys)
	if !o.Mix {
		for i, side := range []place{a, b} {
			if mixed, _ := fingerprint.Vary(printsOf(side.runs)); mixed != nil {
				facts := make([]string, len(mixed))
				for k, v := range mixed {
					facts[k] = v.String()
				}
				p.Why = "the runs of " + [2]string{"A", "B"}[i] + " differ in what they ran on: " + strings.Join(facts, "; ")
				return p, nil
			}
		}
	}
	if len(xs) == 0 || len(ys) == 0 {
		p.Why = fmt.Sprintf("%d runs of A and %d of B recorded %s", len(xs), len(ys), f.Name)
		return p, nil
	}
	for i, side := range []place{a, b} {
		if n := side.summary.Lacking(); n > 0 {
			p.Why = fmt.Sprintf("%d of %d runs of %s lack %s and may be the slow ones, so those that have it are not compared", n, n+len(side.values), [2]string{"A", "B"}[i], f.Name)
			return p, nil
		}
	}
	shared := about.alike(a, b)
	for _, side := range []struct {
		median **scaling.Estimate
		place
	}{{&p.A, a}, {&p.B, b}} {
		if !shared {
			side.nodes = nil
		}
		r, err := scaling.ReachedOn(side.values, side.nodes, o.Confidence)
		if err != nil {
			return p, err
		}
		*side.median = r.Median
	}
	if shared {
		xs, ys = scaling.ByNode(xs, a.nodes), scaling.ByNode(ys, b.nodes)
	}
	c, err := scaling.Compare(finite(ys, xs), finite(xs, ys), 1-(1-o.Confidence)/float64(points))
	if err != nil {
		p.Why = err.Error()
		return p, nil
	}
	before, err := a.summary.Like(a.values, a.made, 0, f.Better, shared, o.Confidence)
	if err != nil {
		return p, err
	}
	after, err := b.summary.Like(b.values, b.made, 0, f.Better, shared, o.Confidence)
	if err != nil {
		return p, err
	}
	p.Ratio = scaling.RatioOfSets(after, before, o.Confidence)
	if p.Ratio != nil && f.Better != measure.Neither {
		loss := p.Ratio.Value - 1
		if f.Better == measure.Higher {
			loss = -loss
		}
		p.Loss = &loss
	}
	if p.P = c.P; p.P == nil && c.WhyNoP == scaling.AllEqual {
		p.Verdict = Same
		return p, nil
	} else if p.P == nil {
		if p.Why = c.WhyNoP; len(xs) < p.NA || len(ys) < p.NB {
			p.Why = fmt.Sprintf("runs that share a node count as one, so %d and %d runs count as %d and %d: %s", p.NA, p.NB, len(xs), len(ys), p.Why)
		}
		return p, nil
	}
	switch {
	case *p.P > 1-o.Confidence:
		p.Verdict = Same
	case f.Better == measure.Neither:
		p.Verdict = Different
	case (scaling.Middle(ys) > scaling.Middle(xs)) == (f.Better == measure.Higher):
		p.Verdict = Better
	default:
		p.Verdict = Worse
	}
	return p, nil
}

func printsOf(runs []*scaling.Observation) []fingerprint.Print {
	p := make([]fingerprint.Print, len(runs))
	for i, o := range runs {
		p[i] = o.Fingerprint
	}
	return p
}

// finite replaces missed targets by a number above all others: the test uses ranks,
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
