package predict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// farthestBatch is the factor beyond the largest measured batch up to which predictions are
// made.
const farthestBatch = 4

// ToTarget has the samples that one run trained on until it reached the target.
type ToTarget struct {
	Batch   float64 // global batch, samples per step
	Samples float64
}

// Convergence predicts how many samples a training needs to reach a target, for a given global
// batch. The right formula is unknown. It may be the hyperbola E_min·(1 + B/B_c) (McCandlish
// et al. 2018), a curve with a sharper or rounder bend, or another power of the batch; the
// samples may also fall before they rise (Shallue et al., JMLR 20, 2019). Therefore all
// formulas that the runs do not rule out are used. The prediction holds for the hyperparameter
// rules of the study that was measured.
type Convergence struct {
	level    float64
	batches  []measuredBatch // ascending
	perBatch map[float64][]float64
	laws     []batchLaw // formulas that the runs do not rule out; nil with one batch
	sigma    float64    // standard deviation of the logarithm of a run's samples; 0 with one run
	refused  string     // why nothing is predicted beyond the largest batch; "" if it is
}

// measuredBatch summarises the runs with one batch.
type measuredBatch struct {
	batch, samples float64 // geometric mean
	runs           float64
}

// batchLaw is one formula for the samples to the target, a·first(B) + b·second(B), fitted by
// least squares of relative errors. a and b are not negative.
type batchLaw struct {
	first, second func(batch float64) float64 // second is nil for one coefficient
	a, b          float64
	aa, ab, bb    float64 // (AᵀWA)⁻¹ of relative errors
	squares       float64 // sum of squares of the relative errors of all runs
	misfit        float64 // largest error at any batch, as a logarithm
	weight        float64
}

func (l *batchLaw) at(batch float64) float64 {
	if l.second == nil {
		return l.a * l.first(batch)
	}
	return l.a*l.first(batch) + l.b*l.second(batch)
}

// error returns the relative standard error at a batch, for runs with a scatter of 1.
func (l *batchLaw) error(batch float64) float64 {
	u, v := l.first(batch), 0.0
	if l.second != nil {
		v = l.second(batch)
	}
	return math.Sqrt(max(0, l.aa*u*u+2*l.ab*u*v+l.bb*v*v)) / l.at(batch)
}

// batchShapes returns the formulas to try. They depend on the smallest and largest measured
// batch, since bends up to a factor of 16 outside these are tried.
func batchShapes(smallest, largest float64) [][2]func(float64) float64 {
	power := func(p float64) func(float64) float64 {
		return func(b float64) float64 { return math.Pow(b/largest, p) }
	}
	one := func(float64) float64 { return 1 }
	list := [][2]func(float64) float64{{one, nil}}
	for p := 0.4; p < 2.7; p += 0.1 {
		list = append(list, [2]func(float64) float64{one, power(p)})
	}
	for _, q := range []float64{-0.3, -0.4, -0.5, -0.6, -0.7, -0.8} {
		for _, p := range []float64{0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1} {
			list = append(list, [2]func(float64) float64{power(q), power(p)})
		}
	}
	for _, p := range []float64{0.5, 0.6, 0.7, 0.85, 1.2, 1.5, 2, 2.5, 3, 4, 6, 20} {
		for critical := smallest / 4; critical <= 16*largest; critical *= math.Pow(2, 0.125) {
			at := math.Log(critical)
			list = append(list, [2]func(float64) float64{func(b float64) float64 {
				return math.Exp(math.Log1p(math.Exp(p*(math.Log(b)-at))) / p) // (1 + (b/critical)^p)^(1/p), in a third of Pow's time
			}, nil})
		}
	}
	return list
}

// exactly is the relative scatter below which numbers of samples count as exact.
const exactly = 1e-5

// closely is the relative error that a formula may have. No formula is exact, and there are
// equally good formulas between those that are tried.
const closely = 0.01

// fitBatchLaws fits all formulas and returns those that the runs do not rule out.
func fitBatchLaws(batches []measuredBatch, pure float64, level float64) []batchLaw {
	var list []batchLaw
	runs, least := 0.0, math.Inf(1)
	for _, b := range batches {
		runs += b.runs
	}
	for _, shape := range batchShapes(batches[0].batch, batches[len(batches)-1].batch) {
		l, ok := fitBatchLaw(batches, shape[0], shape[1])
		if !ok {
			continue
		}
		l.squares = max(l.squares+pure, runs*exactly*exactly)
		least = min(least, l.squares)
		list = append(list, l)
	}
	// Keep the parameters of a bend that the runs do not rule out.
	free := max(1, runs-3)
	most := least*(1+2/free*distuv.F{D1: 2, D2: free}.Quantile(level)) + runs*closely*closely
	list = slices.DeleteFunc(list, func(l batchLaw) bool { return l.squares > most })
	total := 0.0
	for i := range list {
		list[i].weight = math.Exp(-runs / 2 * math.Log(list[i].squares/least))
		total += list[i].weight
	}
	for i := range list {
		list[i].weight /= total
	}
	return list
}

func fitBatchLaw(batches []measuredBatch, first, second func(float64) float64) (l batchLaw, ok bool) {
	l = batchLaw{first: first, second: second}
	var s11, s12, s22, y1, y2 float64
	for _, b := range batches {
		u, v := first(b.batch)/b.samples, 0.0
		if second != nil {
			v = second(b.batch) / b.samples
		}
		s11, s12, s22 = s11+b.runs*u*u, s12+b.runs*u*v, s22+b.runs*v*v
		y1, y2 = y1+b.runs*u, y2+b.runs*v
	}
	if second == nil {
		l.a, l.aa = y1/s11, 1/s11
	} else {
		det := s11*s22 - s12*s12
		if len(batches) < 2 || !(det > 1e-9*s11*s22) {
			return l, false
		}
		l.a, l.b = (y1*s22-y2*s12)/det, (y2*s11-y1*s12)/det
		l.aa, l.ab, l.bb = s22/det, -s12/det, s11/det
		// If a coefficient is at its bound, keep the errors of both: runs that happen to show no
		// growth do not rule growth out.
		if l.b < 0 {
			l.a, l.b = y1/s11, 0
		} else if l.a < 0 {
			l.a, l.b = 0, y2/s22
		}
	}
	for _, b := range batches {
		e := l.at(b.batch)/b.samples - 1
		l.squares += b.runs * e * e
		l.misfit = max(l.misfit, math.Abs(math.Log1p(e)))
	}
	return l, true
}

// FitConvergence fits the formulas to runs. level is the confidence level of intervals.
func FitConvergence(runs []ToTarget, level float64) (*Convergence, error) {
	c := &Convergence{level: level, perBatch: map[float64][]float64{}}
	if len(runs) == 0 {
		return nil, &Refusal{Why: "no run reached the target"}
	}
	for _, r := range runs {
		if !(r.Batch > 0) || !(r.Samples > 0) || math.IsInf(r.Batch, 1) || math.IsInf(r.Samples, 1) {
			return nil, fmt.Errorf("a run with a batch of %g and %g samples; both must be above 0", r.Batch, r.Samples)
		}
		c.perBatch[r.Batch] = append(c.perBatch[r.Batch], r.Samples)
	}
	var pure float64
	for _, batch := range slices.Sorted(maps.Keys(c.perBatch)) {
		xs := c.perBatch[batch]
		m := measuredBatch{batch: batch, runs: float64(len(xs))}
		for _, x := range xs {
			m.samples += math.Log(x) / m.runs
		}
		for _, x := range xs {
			pure += math.Pow(math.Log(x)-m.samples, 2)
		}
		m.samples = math.Exp(m.samples)
		c.batches = append(c.batches, m)
	}
	if len(c.batches) > 1 {
		c.laws = fitBatchLaws(c.batches, pure, level)
		c.holdOut(pure)
	}
	if n := len(runs) - len(c.batches); n > 0 {
		c.sigma = math.Sqrt(pure / float64(n))
	}
	return c, nil
}

// holdOut tests the formulas: it fits them without the largest batch and predicts that batch.
// If the error is too large, it sets c.refused, so that nothing is predicted beyond the largest
// batch.
func (c *Convergence) holdOut(pure float64) {
	last := len(c.batches) - 1
	if last < 3 {
		return
	}
	held := Convergence{level: c.level, batches: c.batches[:last], laws: fitBatchLaws(c.batches[:last], pure, c.level)}
	p, own := held.carry(c.batches[last].batch), c.batches[last].samples
	if !math.IsNaN(p.Low) && (own > p.High*(1+missed) || own < p.Low*(1-missed)) {
		c.refused = fmt.Sprintf("extrapolated from the smaller batches, a global batch of %g takes %.3g samples; it took %.3g", c.batches[last].batch, p.Value, own)
	}
}

// Scatter returns the standard deviation of the logarithm of a run's samples within its batch;
// 0 with one run per batch.
func (c *Convergence) Scatter() float64 { return c.sigma }

// Batches returns the measured global batches, ascending.
func (c *Convergence) Batches() []float64 {
	var list []float64
	for _, b := range c.batches {
		list = append(list, b.batch)
	}
	return list
}

// Predict returns the samples needed to reach the target at a global batch. For a measured
// batch it is the mean of its runs. For another batch it returns an error if only one batch was
// measured, or beyond 4 times the largest. The interval is NaN if there are too few runs.
func (c *Convergence) Predict(batch float64) (Estimate, error) {
	if own := c.perBatch[batch]; own != nil {
		return ownSamples(own, c.level), nil
	}
	largest := c.batches[len(c.batches)-1].batch
	switch {
	case !(batch > 0):
		return Estimate{}, fmt.Errorf("a batch of %g; give 1 or more", batch)
	case len(c.batches) < 2:
		return Estimate{}, &Refusal{Why: fmt.Sprintf("all runs that reached the target had a global batch of %g, which says nothing about %g", largest, batch)}
	case batch > farthestBatch*largest:
		return Estimate{}, &Refusal{Why: fmt.Sprintf("a global batch of %g is more than %d times the largest that reached the target, %g", batch, farthestBatch, largest)}
	case batch > largest && c.refused != "":
		return Estimate{}, &Refusal{Why: c.refused}
	}
	return c.carry(batch), nil
}

// carry returns the median over the formulas, weighted by their likelihoods. The interval
// includes the intervals of all formulas that the runs do not rule out.
func (c *Convergence) carry(batch float64) Estimate {
	var runs float64
	var values []weighted
	s := Estimate{Low: math.Inf(1), High: 0}
	for _, b := range c.batches {
		runs += b.runs
	}
	t := math.Inf(1)
	if runs > 2 { // slow to compute, and the same for hundreds of formulas
		t = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: runs - 2}.Quantile((1 + c.level) / 2)
	}
	for i := range c.laws {
		l := &c.laws[i]
		at := l.at(batch)
		values = append(values, weighted{at, l.weight})
		half := math.Inf(1)
		if runs > 2 {
			half = t*math.Sqrt(l.squares/(runs-2))*l.error(batch) + l.misfit
		}
		s.Low, s.High = min(s.Low, at*math.Exp(-half)), max(s.High, at*math.Exp(half))
	}
	slices.SortFunc(values, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	left := 0.5
	for _, v := range values {
		s.Value = v.value
		if left -= v.weight; left <= 0 {
			break
		}
	}
	if math.IsInf(s.High, 1) {
		s.Low, s.High = math.NaN(), math.NaN()
	}
	return s
}

type weighted struct{ value, weight float64 }

// ownSamples returns the mean of the runs of one batch with its t interval.
func ownSamples(xs []float64, level float64) Estimate {
	var mean, squares float64
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	s := Estimate{Value: mean, Low: math.NaN(), High: math.NaN()}
	if n := float64(len(xs)); n > 1 {
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+level)/2) * math.Sqrt(squares/(n-1)/n)
		s.Low, s.High = max(mean-half, mean/10), mean+half
	}
	return s
}
