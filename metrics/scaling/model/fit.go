package model

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fit is one law fitted to the runs.
type fit struct {
	law    Law
	terms  []term
	beta   []float64     // non-negative, worker-seconds a sample
	cov    *mat.SymDense // (AᵀA)⁻¹ of the weighted design
	sigma  float64       // relative standard deviation of a run about the law
	dof    float64
	aicc   float64
	factor float64 // Birge ratio: how much more the points scatter than their runs explain, at least 1
}

// Law is a family of forms.
type Law string

// The laws.
const (
	AlphaBeta Law = "alpha-beta"
	Amdahl    Law = "amdahl"
	USL       Law = "usl"
)

// rows are the points as 1/y = X/N, samples a worker-second. A fit ŷ misses a run
// by ŷ/y − 1, so that a point's runs bear on it by their number, their mean and
// their squares about it alone: as much work for a million runs as for ten.
type rows struct {
	d      *Data
	points []row
	runs   int
}

type row struct {
	workers, runs float64
	mean          float64 // of 1/y
	squares       float64 // of 1/y less the mean, summed
}

// all is the sum of the squares of 1/y.
func (w *row) all() float64 { return w.runs*w.mean*w.mean + w.squares }

func newRows(d *Data, points []Measured) *rows {
	r := &rows{d: d}
	for _, p := range points {
		w := row{workers: float64(p.Workers), runs: float64(len(p.Throughputs))}
		for _, x := range p.Throughputs {
			w.mean += x / w.workers / w.runs
		}
		for _, x := range p.Throughputs {
			off := x/w.workers - w.mean
			w.squares += off * off
		}
		r.points = append(r.points, w)
		r.runs += len(p.Throughputs)
	}
	return r
}

// least fits the terms by least squares of relative errors, since throughput
// varies by a share of itself. ok is false when a coefficient comes out
// negative or cannot be told from the others: of all sets of terms, those that
// remain are the candidates for the non-negative least squares solution.
func (r *rows) least(law Law, terms []term, hidden int) (f fit, ok bool) {
	m, p := len(r.points), len(terms)
	if m <= p+hidden-1 || m < p {
		return f, false
	}
	// The normal equations are those of a row t/y for each run with 1 on the right.
	a := mat.NewDense(m, p, nil)
	right := mat.NewVecDense(m, nil)
	for i, w := range r.points {
		root := math.Sqrt(w.all())
		for j, t := range terms {
			a.Set(i, j, t.of(r.d, w.workers)*root)
		}
		right.SetVec(i, w.runs*w.mean/root)
	}
	var qr mat.QR
	qr.Factorize(a)
	if cond := qr.Cond(); !(cond < 1e8) {
		return f, false
	}
	var beta mat.VecDense
	if qr.SolveVecTo(&beta, false, right) != nil {
		return f, false
	}
	f = fit{law: law, terms: terms, beta: beta.RawVector().Data}
	for _, b := range f.beta {
		if !(b > 0) {
			return f, false
		}
	}
	var gram mat.SymDense
	gram.SymOuterK(1, a.T())
	var chol mat.Cholesky
	if !chol.Factorize(&gram) {
		return f, false
	}
	f.cov = new(mat.SymDense)
	if chol.InverseTo(f.cov) != nil {
		return f, false
	}
	f.judge(r, p+hidden)
	return f, true
}

// judge computes how well the fit does with so many free parameters.
func (f *fit) judge(r *rows, p int) {
	n, m := r.runs, len(r.points)
	var lack, pure float64 // of fit, what the points' means are off; what runs are off their point's
	for _, w := range r.points {
		y := f.y(r.d, w.workers)
		e := y*w.mean - 1
		lack += w.runs * e * e
		pure += y * y * w.squares
	}
	rss := lack + pure
	f.dof = float64(n - p)
	f.sigma = math.Sqrt(rss / f.dof)
	f.factor = 1
	if m > p && pure > 0 {
		f.factor = math.Sqrt(max(1, lack/float64(m-p)/(pure/float64(n-m))))
	}
	// Hurvich & Tsai 1989; one parameter more for the variance.
	k := float64(p + 1)
	f.aicc = float64(n)*math.Log(max(rss, 1e-300)/float64(n)) + 2*k + 2*k*(k+1)/(float64(n)-k-1)
}

// y is the fitted time of a sample, in worker-seconds.
func (f *fit) y(d *Data, n float64) float64 {
	var y float64
	for j, t := range f.terms {
		y += f.beta[j] * t.of(d, n)
	}
	return y
}

// error is the standard error of the fitted y, relative to it.
func (f *fit) error(d *Data, n float64) float64 {
	v := make([]float64, len(f.terms))
	for j, t := range f.terms {
		v[j] = t.of(d, n)
	}
	x := mat.NewVecDense(len(v), v)
	return f.sigma * f.factor * math.Sqrt(mat.Inner(x, f.cov, x)) / f.y(d, n)
}

// candidates fits every set of terms of the α–β model, with and without a
// shared resource that runs out, and the overlays.
func candidates(d *Data, points []Measured) []fit {
	r := newRows(d, points)
	free := alphaBeta
	if d.Strong {
		free = append([]term{launch}, alphaBeta...)
	}
	var list []fit
	for set := range 1 << len(free) {
		terms := []term{compute}
		for j, t := range free {
			if set>>j&1 == 1 {
				terms = append(terms, t)
			}
		}
		if f, ok := r.least(AlphaBeta, terms, 0); ok {
			list = append(list, f)
		}
		if f, ok := r.knee(terms); ok {
			list = append(list, f)
		}
	}
	for _, o := range overlays {
		if f, ok := r.least(o.law, o.terms(d), 0); ok {
			list = append(list, f)
		}
	}
	return list
}

// kneeSteps are the places between two worker counts where the knee is looked for.
const kneeSteps = 4

// knee adds to the terms a shared resource that runs out somewhere between the
// smallest and the last but one of the points; two lie beyond it, which its
// slope needs.
func (r *rows) knee(terms []term) (best fit, found bool) {
	var at []float64
	for i, w := range r.points {
		if m := r.d.parties(w.workers); i == 0 || m != at[len(at)-1] {
			at = append(at, m)
		}
	}
	for i := 0; i+2 < len(at); i++ {
		for s := range kneeSteps {
			m := at[i] * math.Pow(at[i+1]/at[i], float64(s)/kneeSteps)
			f, ok := r.least(AlphaBeta, append(terms[:len(terms):len(terms)], beyond(m)), 1)
			if ok && (!found || f.aicc < best.aicc) {
				best, found = f, true
			}
		}
	}
	return best, found
}

// overlays are the laws that describe. Both are linear in N/X: Amdahl's
// X = γN/(1+σ(N−1)), and Gunther's X = γN/(1+α(N−1)+βN(N−1)).
var overlays = []struct {
	law   Law
	terms func(d *Data) []term
}{
	{Amdahl, func(d *Data) []term { return []term{compute, contention} }},
	{USL, func(d *Data) []term { return []term{compute, contention, coherency} }},
}

var (
	contention = term{"contention", func(d *Data, n float64) float64 { return d.parties(n) - 1 }}
	coherency  = term{"coherency", func(d *Data, n float64) float64 { m := d.parties(n); return m * (m - 1) }}
)
