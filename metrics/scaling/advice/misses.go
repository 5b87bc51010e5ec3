package advice

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// misses counts the runs that missed the target, by their global batch. The probability of a miss
// depends on the training recipe, which includes the batch, but not on the number of workers.
type misses struct {
	missed, all map[float64]int
	total       int // runs that missed the target, over all batches
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

// share returns the share of a measured batch's runs that miss, with its exact interval (Clopper
// & Pearson, Biometrika 26, 1934). The upper end is below one half in the same cases in which
// scaling.Reached returns a median for as many runs.
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

// chance returns the probability that a run with this global batch misses the target. It is nil
// if no run misses it, or none with this batch. For a batch that was not measured it is predicted
// by a logistic regression on the logarithm of the batch, with a profile-likelihood interval.
func (m *misses) chance(batch float64) *Estimate {
	if m.total == 0 || m.all[batch] > 0 && m.missed[batch] == 0 {
		return nil
	}
	if m.all[batch] > 0 {
		return new(m.share(batch))
	}
	const lowest, highest, steepest, step = -8, 8, 8, 0.25 // ranges of the logit and the slope
	var likelihood []float64                               // at each logit, the largest over all slopes
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
				// log(1 + eˣ) in a form that does not overflow
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
	low, high := 0.0, 1.0 // one grid step outside the allowed logits, or 0 and 1 at the ends of the grid
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

// later returns the median time of all runs divided by the median time of the runs that reach the target, if
// a share p of all runs misses it. The logarithms of the times scatter by sigma. The median of
// all runs is the quantile 0.5/(1−p) of those that reach the target. It returns +Inf if half of
// them miss it.
func later(p, sigma float64) float64 {
	if p >= 0.5 {
		return math.Inf(1)
	}
	return math.Exp(sigma * distuv.UnitNormal.Quantile(0.5/(1-p)))
}

// lost returns the smallest global batch at which half of the runs or more miss the target, above
// the largest batch that is shown to reach it, and a clause with the numbers. It returns +Inf if
// none exists.
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
