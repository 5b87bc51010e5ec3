package loadtest

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/launcher/study"
)

// A trial is the result of a probe for one bound of the limit: how many of its requests were over the bound.
type trial struct {
	rate    float64
	over, n float64
	blocks  [][2]float64 // over and n of consecutive parts of the probe
}

// blocks is the number of equal parts of a probe between which the share of slow requests is compared. A part
// must last much longer than the queue takes to forget its state, so that parts are independent.
const blocks = 8

// trial counts the requests over a bound.
func (v *Verdict) trial(b study.Bound, rate float64) trial {
	t := trial{rate: rate}
	for i := range blocks {
		part := Merge(v.windows[i*len(v.windows)/blocks : (i+1)*len(v.windows)/blocks])
		over, n := part.over(b)
		t.blocks = append(t.blocks, [2]float64{over, n})
		t.over, t.n = t.over+over, t.n+n
	}
	return t
}

// over returns how many requests are over a bound, of n. Late answers are over it.
func (w *Window) over(b study.Bound) (over, n float64) {
	if times := w.times(timeOf[b.Of]); times != nil {
		for value, count := range times.ForEachBucket {
			n += float64(count)
			if float64(value) > b.Seconds*1e9*(1+resolution) {
				over += float64(count)
			}
		}
	}
	late := float64(w.Late)
	if w.Good > 0 { // an answer can have several times
		late *= n / float64(w.Good)
	}
	return over + late, n + late
}

// share returns the share of requests over the bound.
func (t trial) share() float64 { return t.over / t.n }

// dispersion returns the sum of squares of the blocks around the probe's share, and its degrees of freedom. For
// independent requests, the ratio is the variance n·p·(1-p) of all requests.
func (t trial) dispersion() (squares, df float64) {
	for _, b := range t.blocks {
		squares += (b[0] - b[1]*t.share()) * (b[0] - b[1]*t.share())
	}
	return squares * blocks / (blocks - 1), blocks - 1
}

// A crossing is the rate at which the share of requests over a bound reaches what the limit allows, with a 95 %
// interval.
type crossing struct {
	rate, low, high float64
	slope           float64 // slope of the log odds over the logarithm of the rate
}

const (
	// Before the slope is known, probes within this factor of the crossing are taken to determine it.
	nearby = 1.35
	// Later, these are the probes at which the share over the bound is expected to be within this factor of the
	// allowed one. Further away, the share follows another curve.
	similar = 3
	// leastTrials is the number of nearby probes that an interval needs.
	leastTrials = 6
	// level is the nominal level of the interval. Probes are placed by the outcomes of earlier ones, so that a nominal
	// 95 % held in 84 to 94 % of simulated searches.
	level = 0.985
	// curved is the standard error, as a share of the rate, that the straight line and probes that start with an
	// empty queue add.
	curved = 0.0125
	// Some probe's share must be within this factor of the allowed one. If the share jumps, the rate is between
	// a probe that passed and one that failed, so no curve can be fitted.
	between = 5
)

// An estimate says whether trials determine a crossing.
type estimate int

const (
	jumps  estimate = iota // no trial is near the crossing
	vague                  // more trials near it are needed
	fitted                 // the curve was fitted
)

// cross estimates the crossing by logistic regression: the log odds of being over the bound are linear in the
// logarithm of the rate. around is a first guess of the rate.
func cross(list []trial, share, around float64) (c crossing, state estimate) {
	within := nearby
	for range 3 { // the nearby probes depend on the crossing
		var near []trial
		state = jumps
		for _, t := range list {
			if t.n == 0 || t.rate > around*within || t.rate < around/within {
				continue
			}
			near = append(near, t)
			if p := t.share(); p > share/between && p < min(share*between, 1) {
				state = vague
			}
		}
		if state == jumps || len(near) < leastTrials {
			return c, state
		}
		fit, ok := crossOf(near, share, around)
		if !ok {
			return c, vague
		}
		c, around, within = fit, fit.rate, fit.factor(similar)
	}
	return c, fitted
}

// factor returns the factor between rates whose odds of being over the bound differ by the given factor. Slopes
// that few probes would give by chance are bounded.
func (c crossing) factor(odds float64) float64 {
	return math.Exp(math.Log(odds) / min(max(c.slope, flattest), steepest))
}

// The bounds of slopes: M/M/1 at 0.4 has a slope of 2, M/D/1 at 0.7 one of 8.
const flattest, steepest = 2, 15

// crossOf fits the given trials, by Newton's method. Requests of a probe are not independent, so the binomial
// variance is multiplied by a dispersion (McCullagh and Nelder, Generalized Linear Models, 1989, section 4.5):
// that of the blocks within probes, or Pearson's chi-squared between probes if that is larger.
func crossOf(list []trial, share, around float64) (crossing, bool) {
	target := math.Log(share / (1 - share))
	a, b := target, 5.0
	var saa, sab, sbb, det float64
	for range 100 {
		var ga, gb float64
		saa, sab, sbb = 0, 0, 0
		for _, t := range list {
			x := math.Log(t.rate / around)
			p := logistic(a + b*x)
			w, r := t.n*p*(1-p), t.over-t.n*p
			ga, gb = ga+r, gb+r*x
			saa, sab, sbb = saa+w, sab+w*x, sbb+w*x*x
		}
		if det = saa*sbb - sab*sab; !(det > 0) {
			return crossing{}, false
		}
		da, db := (sbb*ga-sab*gb)/det, (saa*gb-sab*ga)/det
		step := min(1, 2/math.Hypot(da, db)) // damped, so that a far start does not diverge
		a, b = a+step*da, b+step*db
		if math.Hypot(da, db) < 1e-9 {
			break
		}
	}
	if !(b > 0.1) || math.IsInf(a, 0) {
		return crossing{}, false
	}
	chi, squares, binomial, df := 0.0, 0.0, 0.0, float64(len(list)-2)
	freedom := df
	for _, t := range list {
		p := logistic(a + b*math.Log(t.rate/around))
		chi += (t.over - t.n*p) * (t.over - t.n*p) / (t.n * p * (1 - p))
		own, more := t.dispersion()
		squares, binomial, freedom = squares+own, binomial+t.n*t.share()*(1-t.share()), freedom+more
	}
	spread := max(chi/df, squares/max(binomial, 1), 1)
	x := (target - a) / b // a + b·x = target
	variance := spread*(sbb-2*x*sab+x*x*saa)/det/(b*b) + curved*curved
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1+level)/2) * math.Sqrt(max(variance, 0))
	return crossing{around * math.Exp(x), around * math.Exp(x-half), around * math.Exp(x+half), b}, true
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
