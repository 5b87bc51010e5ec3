package predict

import (
	"math"
	"math/rand/v2"
)

// This file samples the posterior distribution of the model's coefficients. Given the scatter of
// the counts about the model, the distribution is normal, truncated because coefficients cannot be
// negative. It is sampled one coordinate at a time, after a transformation that makes the
// coordinates independent (Rodriguez-Yam, Davis & Scharf, Efficient Gibbs sampling of truncated
// multivariate normal with application to constrained linear regression, 2004).

// design is the matrix of a linear regression. Row i belongs to a worker count. It has
// the time of each term there, divided by the measured step time, so that with the
// right coefficients the row adds up to 1. Columns are in units of the standard
// deviation of the coefficient's prior.
type design struct {
	rows  [][]float64
	runs  []float64 // number of runs of each row
	pure  float64   // sum of the squared relative deviations of runs from the mean of their count
	free  float64   // degrees of freedom of pure
	terms int
}

const (
	draws  = 2000
	unused = 300 // number of first draws that are not used
	// The prior of the scatter of runs: its usual relative standard deviation, and the number of
	// runs that this knowledge is worth.
	usualNoise, noiseWorth = 0.01, 2.0
	usualOdd               = 0.01
)

// draw is one sample of the posterior distribution: the coefficients, in units of the prior's
// standard deviations, and the scatter of the counts about the model.
type draw struct {
	beta []float64
	odd  float64
}

// sample returns draws from the posterior distribution. The same data gives the same
// draws.
func (d *design) sample() []draw {
	r := rand.New(rand.NewPCG(uint64(len(d.rows)), uint64(d.terms)))
	n := d.terms
	beta := make([]float64, n)
	for j := range beta {
		beta[j] = 0.1
	}
	odd := usualOdd
	l := make([][]float64, n)
	for j := range l {
		l[j] = make([]float64, n)
	}
	inverse := make([][]float64, n) // of l, transposed: beta = mean + inverse·z
	for j := range inverse {
		inverse[j] = make([]float64, n)
	}
	columns := make([][]float64, n) // of rows
	for j := range columns {
		for _, row := range d.rows {
			columns[j] = append(columns[j], row[j])
		}
	}
	mean, z := make([]float64, n), make([]float64, n)
	weights := make([]float64, len(d.rows))
	size := make([]float64, n) // of each coefficient, in prior's standard deviations
	for j := range size {
		size[j] = 1
	}
	var list []draw
	for k := range draws + unused {
		// The variance of runs within their count has an inverse gamma distribution.
		noise := (d.pure + noiseWorth*usualNoise*usualNoise) / chiSquared(r, d.free+noiseWorth)
		odd = d.oddity(r, beta, noise)
		for i := range weights {
			weights[i] = 1 / (odd*odd + noise/d.runs[i])
		}
		for j := range size {
			size[j] = magnitude(r, beta[j])
		}
		factorize(l, mean, columns, weights, size)
		invert(l, inverse)
		for j := range z { // z = lᵀ·(beta − mean)
			z[j] = 0
			for i := j; i < n; i++ {
				z[j] += l[i][j] * (beta[i] - mean[i])
			}
		}
		renew(r, beta, z, inverse)
		if k >= unused {
			list = append(list, draw{append([]float64(nil), beta...), odd})
		}
	}
	return list
}

// renew redraws each coordinate of z, between the bounds that keep every coefficient at
// 0 or more, and moves beta along.
func renew(r *rand.Rand, beta, z []float64, inverse [][]float64) {
	for j := range z {
		low, high := math.Inf(-1), math.Inf(1)
		for i := range beta {
			c := inverse[i][j]
			if c == 0 {
				continue
			}
			bound := z[j] - beta[i]/c
			if c > 0 {
				low = max(low, bound)
			} else {
				high = min(high, bound)
			}
		}
		next := cutNormal(r, low, high)
		for i := range beta {
			beta[i] = max(0, beta[i]+inverse[i][j]*(next-z[j]))
		}
		z[j] = next
	}
}

// factorize sets l·lᵀ to the precision of the coefficients, and their mean.
func factorize(l [][]float64, mean []float64, columns [][]float64, weights, size []float64) {
	n := len(columns)
	weighted := make([]float64, len(weights)) // a column times the weights
	for a, column := range columns {
		total := 0.0
		for i, x := range column {
			weighted[i] = weights[i] * x
			total += weighted[i]
		}
		la := l[a]
		for b := range a + 1 {
			sum := 0.0
			if a == b {
				sum = 1 / (size[a] * size[a])
			}
			for i, x := range columns[b] {
				sum += weighted[i] * x
			}
			lb := l[b]
			for k := range b {
				sum -= la[k] * lb[k]
			}
			if a == b {
				la[a] = math.Sqrt(max(sum, 1e-12))
			} else {
				la[b] = sum / lb[b]
			}
		}
		for k := range a { // l·y = Xᵀ·W·1
			total -= la[k] * mean[k]
		}
		mean[a] = total / la[a]
	}
	for a := n - 1; a >= 0; a-- { // lᵀ·mean = y
		for k := a + 1; k < n; k++ {
			mean[a] -= l[k][a] * mean[k]
		}
		mean[a] /= l[a][a]
	}
}

// invert sets to the inverse of lᵀ, which is upper triangular.
func invert(l, to [][]float64) {
	n := len(l)
	for j := range n {
		for i := n - 1; i >= 0; i-- {
			sum := 0.0
			if i == j {
				sum = 1
			}
			for k := i + 1; k <= j; k++ {
				sum -= l[k][i] * to[k][j]
			}
			if i > j {
				to[i][j] = 0
				continue
			}
			to[i][j] = sum / l[i][i]
		}
	}
}

// oddities lists possible scatters of the counts about the model, in addition to the scatter of
// their runs. The values are equally spaced on a logarithmic scale up to 8.5 %. likely is the
// logarithm of their prior probability.
var oddities = func() (list [24]struct{ at, likely float64 }) {
	for k := range list {
		t := usualOdd * 0.05 * math.Pow(1.25, float64(k))
		list[k].at, list[k].likely = t, -t*t/(2*usualOdd*usualOdd)
	}
	return list
}()

// oddity draws one of the oddities, given the coefficients.
func (d *design) oddity(r *rand.Rand, beta []float64, noise float64) float64 {
	var weights [len(oddities)]float64
	off := make([]float64, len(d.rows))
	for i, row := range d.rows {
		off[i] = -1
		for j, x := range row {
			off[i] += beta[j] * x
		}
	}
	top := math.Inf(-1)
	for k, o := range oddities {
		likely, volume := o.likely, 1.0
		for i := range off {
			v := o.at*o.at + noise/d.runs[i]
			volume *= v * 1e4 // far from the smallest number
			likely -= off[i] * off[i] / (2 * v)
			if volume < 1e-100 || volume > 1e100 {
				likely, volume = likely-0.5*math.Log(volume), 1
			}
		}
		weights[k] = likely - 0.5*math.Log(volume)
		top = max(top, weights[k])
	}
	total := 0.0
	for k := range weights {
		weights[k] = math.Exp(weights[k] - top)
		total += weights[k]
	}
	left := r.Float64() * total
	for k, w := range weights {
		if left -= w; left <= 0 {
			return oddities[k].at
		}
	}
	return oddities[len(oddities)-1].at
}

// chiSquared draws from a chi-squared distribution (Marsaglia & Tsang, A simple method
// for generating gamma variables, 2000).
func chiSquared(r *rand.Rand, free float64) float64 {
	d := free/2 - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(1-r.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return 2 * d * v
		}
	}
}

// cutNormal draws from a standard normal distribution between two bounds.
func cutNormal(r *rand.Rand, low, high float64) float64 {
	switch {
	case !(low < high): // rounding
		return (max(low, -1e300) + min(high, 1e300)) / 2
	case high < 0:
		return -cutNormal(r, -high, -low)
	case low > 4: // in the tail, from an exponential (Robert 1995)
		for {
			x := low - math.Log(1-r.Float64())/low
			if x <= high && r.Float64() < math.Exp(-0.5*(x-low)*(x-low)) {
				return x
			}
			if high-low < 0.01/low {
				return low + r.Float64()*(high-low)
			}
		}
	}
	a, b := 0.5*math.Erfc(-low/math.Sqrt2), 0.5*math.Erfc(-high/math.Sqrt2)
	x := math.Sqrt2 * math.Erfinv(2*(a+r.Float64()*(b-a))-1)
	return min(max(x, low), high)
}

// magnitudes lists how large a cost may be, relative to its usual size, and the prior
// probability of that. Even the order of magnitude of a cost is unknown before it is
// measured, and about half of all costs are too small to matter.
var magnitudes = []struct{ size, share float64 }{{1, 0.08}, {0.4, 0.08}, {0.15, 0.08}, {0.06, 0.08}, {0.02, 0.08}, {0.007, 0.1}, {0.002, 0.2}, {0.0007, 0.3}}

// magnitude draws one of the magnitudes, given the coefficient. If the coefficient is
// NaN, it draws from the prior.
func magnitude(r *rand.Rand, beta float64) float64 {
	var weights [8]float64
	total := 0.0
	for i, m := range magnitudes {
		weights[i] = m.share
		if x := beta / m.size; !math.IsNaN(x) {
			weights[i] = m.share * math.Exp(-x*x/2) / m.size
		}
		total += weights[i]
	}
	left := r.Float64() * total
	for i, w := range weights {
		if left -= w; left <= 0 {
			return magnitudes[i].size
		}
	}
	return magnitudes[0].size
}
