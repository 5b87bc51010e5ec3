package advice

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/combin"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// A pair compares the speeds of two measured worker counts, the first divided by the second.
type pair struct {
	*scaling.Ratio                  // of the speeds, from runs that reach the target if times decide; its estimate is nil if unknown
	doubt          *decision.Caveat // why the comparison may be wrong; nil: nothing known
	speed          *decision.Belief // the ratio with its interval, or with the model's error if there are too few runs; nil: no interval
	oneSided       *decision.Belief // the ratio with its one-sided interval; nil: unknown
	constant       bool             // all runs of a count have the same value, so that there is no interval
	success        decision.Belief  // ratio of the shares of runs that reach the target
	doublings      float64          // doublings of the workers from the second to the first; negative if the first has fewer
	overlaps       bool             // some run of the first, at the price of its workers, is no faster than some run of the second
}

// byTime reports whether the time to the target decides.
func (s *study) byTime() bool { return s.Goal != "" && s.timeless == "" }

// pace returns the measure by which the speeds of counts are compared. It is the time to the
// target, including initialisation if all points recorded it, or else the throughput.
func (s *study) pace(p *scaling.Point) *scaling.Summary {
	if !s.byTime() {
		return p.Of(measure.Throughput)
	}
	if s.started {
		return p.FromStart(s.Goal)
	}
	return p.Of(s.Goal)
}

// paced reports whether a point has a speed.
func (s *study) paced(p *scaling.Point) bool { return len(s.pace(p).Values) > 0 }

// speeds returns the measures by which the speeds of points a and b are compared.
func (s *study) speeds(a, b *scaling.Point) (x, y *scaling.Summary) {
	x, y = s.pace(a), s.pace(b)
	if s.byTime() && (len(x.Values) < x.Runs || len(y.Values) < y.Runs) {
		x, y = x.Reaching(), y.Reaching()
	}
	return x, y
}

// over compares the speeds of points a and b.
func (s *study) over(a, b *scaling.Point) pair {
	x, y := s.speeds(a, b)
	p := pair{Ratio: x.Ratio(y), success: s.success(a, b), doublings: math.Log2(float64(a.Workers) / float64(b.Workers))}
	if e := p.Estimate; x.Constant() || y.Constant() {
		p.constant = true
	} else if e != nil && e.Interval != nil {
		p.speed = &decision.Belief{Value: e.Value, Low: e.Interval.Low, High: e.Interval.High, Level: s.o.Confidence}
		if in := e.OneSided; in != nil {
			p.oneSided = &decision.Belief{Value: e.Value, Low: in.Low, High: in.High, Level: in.Level}
		}
	} else if e != nil && p.Refusal == scaling.FewRuns && s.law != nil {
		p.speed = s.borrowed(a, b, e.Value)
	}
	p.overlaps = overlap(x, y, math.Pow(kneeGain, -p.doublings))
	p.doubt = s.caveat(p, a, b)
	return p
}

// overlap reports whether the slowest run of x, its speed multiplied by price, is no faster than
// the fastest run of y.
func overlap(x, y *scaling.Summary, price float64) bool {
	if len(x.Values) == 0 || len(y.Values) == 0 {
		return false
	}
	if x.Better == measure.Lower {
		return y.Values[0] <= x.Values[len(x.Values)-1]/price
	}
	return x.Values[0]*price <= y.Values[len(y.Values)-1]
}

// borrowed returns the error of the ratio of two counts, one of which has too few runs for an
// interval. It uses the intervals of the candidates, which come from the fitted model, extended to
// include the measured ratio. It returns nil without one.
func (s *study) borrowed(a, b *scaling.Point, ratio float64) *decision.Belief {
	x, y := s.candidate(a.Workers), s.candidate(b.Workers)
	if x == nil || y == nil {
		return nil
	}
	of := func(c *Candidate) *Estimate { return c.Throughput }
	if s.byTime() {
		of = func(c *Candidate) *Estimate { return c.Seconds }
		x, y = y, x
	}
	if of(x) == nil || of(y) == nil || of(x).Low == nil || of(y).Low == nil {
		return nil
	}
	q := s.belief(of(x)).Over(s.belief(of(y)))
	q.Value, q.Low, q.High = ratio, min(q.Low, ratio), max(q.High, ratio)
	return &q
}

func (s *study) belief(e *Estimate) decision.Belief {
	return decision.Belief{Value: e.Value, Low: *e.Low, High: *e.High, Level: s.o.Confidence}
}

// comparison returns the pair in the form that package decision takes. The ratio is divided by
// kneeGain per doubling of the workers, so that a value above 1 means that the first count is
// worth it.
func (p pair) comparison() decision.Comparison {
	if p.Estimate == nil {
		return decision.Comparison{}
	}
	price := math.Pow(kneeGain, -p.doublings) * p.success.Value
	c := decision.Comparison{Value: p.Estimate.Value * price, Caveat: p.doubt}
	c.Overlaps = p.overlaps || c.Value*p.success.Low < p.success.Value // the runs that miss may make up for the lead
	if p.speed != nil {
		c.Belief = new(cmp.Or(p.oneSided, p.speed).Times(p.success).Scale(math.Pow(kneeGain, -p.doublings)))
	}
	return c
}

// success returns the ratio of the shares of runs that reach the target at two counts. It is
// exactly 1 if both have the same global batch, since runs that train alike miss the target
// equally often, or if no run misses it. Its value is also 1 unless Fisher's exact test finds a
// difference. The interval includes the errors of both shares (Jeffreys' intervals; Brown, Cai &
// DasGupta, Statistical Science 16, 2001).
func (s *study) success(a, b *scaling.Point) decision.Belief {
	one := decision.Belief{Value: 1, Low: 1, High: 1, Level: s.o.Confidence}
	if !s.byTime() {
		return one
	}
	ta, tb := a.Of(s.Goal), b.Of(s.Goal)
	batch := s.batchAt(a.Workers)
	if len(ta.Values) == ta.Runs && len(tb.Values) == tb.Runs || batch > 0 && batch == s.batchAt(b.Workers) {
		return one
	}
	share := func(t *scaling.Summary) decision.Belief {
		k, n := float64(len(t.Values)), float64(t.Runs)
		at := func(p float64) float64 { return mathext.InvRegIncBeta(k+0.5, n-k+0.5, p) }
		e := decision.Belief{Value: at(0.5), Low: at((1 - s.o.Confidence) / 2), High: at((1 + s.o.Confidence) / 2), Level: s.o.Confidence}
		if k == n {
			e.High = 1
		}
		return e
	}
	ratio := share(ta).Over(share(tb))
	if fisher(len(ta.Values), ta.Runs, len(tb.Values), tb.Runs) > 1-s.o.Confidence {
		ratio = ratio.Scale(1 / ratio.Value)
	}
	return ratio
}

// fisher returns the two-sided p-value of Fisher's exact test for the hypothesis that k of n and
// l of m have the same probability.
func fisher(k, n, l, m int) float64 {
	log := func(n, k int) float64 { return combin.LogGeneralizedBinomial(float64(n), float64(k)) }
	all := k + l
	chance := func(k int) float64 { return math.Exp(log(n, k) + log(m, all-k) - log(n+m, all)) }
	own, p := chance(k), 0.0
	for i := max(0, all-m); i <= min(n, all); i++ {
		if x := chance(i); x <= own*(1+1e-9) {
			p += x
		}
	}
	return min(1, p)
}

// Price returns how many times as fast a larger worker count must be to be worth it by default.
func Price(from, to int) float64 {
	return math.Pow(kneeGain, math.Log2(float64(to)/float64(from)))
}

// perDoubling converts a ratio of speeds into the ratio per doubling of the workers.
func (p pair) perDoubling(ratio float64) float64 { return math.Pow(ratio, 1/p.doublings) }
