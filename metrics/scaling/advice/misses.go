package advice

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// misses are how many runs missed the target, by the global batch that they trained
// with: the chance of it is the recipe's, whatever the number of workers.
type misses struct {
	missed, all map[float64]int
	total       int // runs that missed it
	level       float64
}

func newMisses(level float64) misses {
	return misses{missed: map[float64]int{}, all: map[float64]int{}, level: level}
}

func (m *misses) add(batch float64, missed bool) {
	m.all[batch]++
	if missed {
		m.missed[batch]++
		m.total++
	}
}

// share is the share of a measured batch's runs that miss, with its exact interval
// (Clopper & Pearson, Biometrika 26, 1934). Its upper end is below a half where
// scaling.Reached has a median of as many runs.
func (m *misses) share(batch float64) Estimate {
	k, n := float64(m.missed[batch]), float64(m.all[batch])
	low, high := 0.0, 1.0
	if k > 0 {
		low = mathext.InvRegIncBeta(k, n-k+1, (1-m.level)/2)
	}
	if k < n {
		high = mathext.InvRegIncBeta(k+1, n-k, (1+m.level)/2)
	}
	return Estimate{Value: k / n, Low: &low, High: &high}
}

// chance is the chance that a run with so large a batch misses the target; nil where
// no run of any batch does, or none of this one. A batch that was not measured has
// it from a logistic regression on the logarithm of the batch, with the interval of
// the profile likelihood.
func (m *misses) chance(batch float64) *Estimate {
	if m.total == 0 || m.all[batch] > 0 && m.missed[batch] == 0 {
		return nil
	}
	if m.all[batch] > 0 {
		e := m.share(batch)
		return &e
	}
	const lowest, highest, steepest, step = -8, 8, 8, 0.25 // of logit and slope
	var likelihood []float64                               // greatest, by the logit at the batch
	away := map[float64]float64{}
	for b := range m.all {
		away[b] = math.Log(b / batch)
	}
	for logit := float64(lowest); logit <= highest; logit += step {
		best := math.Inf(-1)
		for slope := float64(-steepest); slope <= steepest; slope += 4 * step {
			sum := 0.0
			for b, n := range m.all {
				x := logit + slope*away[b]
				// log(1 + eˣ), which does not overflow
				rest := max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
				sum += float64(m.missed[b])*x - float64(n)*rest
			}
			best = max(best, sum)
		}
		likelihood = append(likelihood, best)
	}
	top := slices.Max(likelihood)
	allowed := top - distuv.ChiSquared{K: 1}.Quantile(m.level)/2
	at := func(i int) float64 { return 1 / (1 + math.Exp(-(lowest + step*float64(i)))) }
	low, high := 0.0, 1.0 // at the ends of the grid, else a step outside what is allowed
	for i, l := range likelihood {
		if l < allowed {
			continue
		}
		if low == 0 && i > 0 {
			low = at(i - 1)
		}
		if high = 1; i+1 < len(likelihood) {
			high = at(i + 1)
		}
	}
	return &Estimate{Value: at(slices.Index(likelihood, top)), Low: &low, High: &high}
}

// later is by how much the median time of all runs, of which some miss, is above that
// of those that reach the target, which scatter by sigma (of the logarithm). A half
// of all is 0.5/(1−p) of those; +Inf where half miss.
func later(p, sigma float64) float64 {
	if p >= 0.5 {
		return math.Inf(1)
	}
	return math.Exp(sigma * distuv.UnitNormal.Quantile(0.5/(1-p)))
}

// lost is the smallest batch at which half of the runs or more miss, behind the
// largest that is shown to reach the target; +Inf for none.
func (m *misses) lost() (batch float64, what string) {
	batch = math.Inf(1)
	var batches []float64
	for b := range m.all {
		batches = append(batches, b)
	}
	slices.Sort(batches)
	for _, b := range slices.Backward(batches) {
		if *m.share(b).High < 0.5 {
			break
		}
		if 2*m.missed[b] >= m.all[b] {
			batch = b
			what = fmt.Sprintf("at a global batch of %g, %d of %d runs miss the target", b, m.missed[b], m.all[b])
		}
	}
	return batch, what
}
