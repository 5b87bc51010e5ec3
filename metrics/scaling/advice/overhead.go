package advice

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// An overhead is a model of the training time that is not spent in steps (warm-up, evaluations), as a
// function of the worker count n. Ranks share the evaluations, which gives a term b/n. A second
// term a is the same on all ranks, or shrinks more slowly than 1/n, or grows with n (gathering
// results, for example). The zero value has no runs.
type overhead struct {
	laws    []overheadLaw // the models that the runs do not rule out, the best first
	largest float64       // largest worker count of any run
	level   float64       // confidence level of intervals
}

// overheadLaw is the model a·of(n) + b/n, with a and b not negative. It is fitted by least squares
// of the errors divided by each run's total time.
type overheadLaw struct {
	of         func(n float64) float64
	a, b       float64
	aa, ab, bb float64 // (AᵀWA)⁻¹
	squares    float64 // sum of the squared relative residuals
	sigma      float64 // relative standard deviation of a run's residual; 0 if there are no more runs than coefficients
	dof        int
	misfit     float64 // largest relative deviation of the model from the mean of a worker count
}

// runOverhead is the time outside steps of one run.
type runOverhead struct {
	workers, seconds float64 // seconds are outside steps; rounding may make them negative
	took             float64 // total time of the run in seconds
}

// besideShapes are the functions by which the coefficient a can be multiplied.
var overheadShapes = []func(n float64) float64{
	func(float64) float64 { return 1 },
	func(n float64) float64 { return 1 / math.Sqrt(n) },
	math.Log2,
}

// excluded is the difference in Akaike's criterion from the best model at which a model is ruled
// out.
const excluded = 10

func fitOverhead(runs []runOverhead, level float64) overhead {
	f := overhead{level: level}
	counts := map[float64]bool{}
	for _, r := range runs {
		counts[r.workers] = true
		f.largest = max(f.largest, r.workers)
	}
	if len(runs) == 0 {
		return f
	}
	var fitted []overheadLaw
	best := 0
	for i, of := range overheadShapes {
		if i > 0 && len(counts) < 3 {
			break // with two counts, any model with two coefficients fits
		}
		fitted = append(fitted, fitOverheadLaw(runs, counts, of))
		if fitted[i].squares < fitted[best].squares {
			best = i
		}
	}
	f.laws = append(f.laws, fitted[best])
	for i, law := range fitted {
		if i != best && float64(len(runs))*math.Log(law.squares/fitted[best].squares) <= excluded {
			f.laws = append(f.laws, law)
		}
	}
	return f
}

func fitOverheadLaw(runs []runOverhead, counts map[float64]bool, of func(float64) float64) overheadLaw {
	f := overheadLaw{of: of}
	var s11, s1n, snn, y1, yn float64
	for _, r := range runs {
		w, u, v := 1/(r.took*r.took), of(r.workers), 1/r.workers
		s11, s1n, snn = s11+w*u*u, s1n+w*u*v, snn+w*v*v
		y1, yn = y1+w*u*r.seconds, yn+w*v*r.seconds
	}
	parameters, a, b := 1, 0.0, 0.0
	det := s11*snn - s1n*s1n
	if len(counts) > 1 && det > 0 {
		a, b = (y1*snn-yn*s1n)/det, (yn*s11-y1*s1n)/det
	}
	switch {
	case a > 0 && b > 0:
		f.a, f.b, parameters = a, b, 2
		f.aa, f.ab, f.bb = snn/det, -s1n/det, s11/det
	case b > 0 || s11 == 0:
		f.b, f.bb = max(0, yn/snn), 1/snn
	default:
		f.a, f.aa = max(0, y1/s11), 1/s11
	}
	for _, r := range runs {
		e := (f.at(r.workers) - r.seconds) / r.took
		f.squares += e * e
	}
	if f.dof = len(runs) - parameters; f.dof > 0 {
		f.sigma = math.Sqrt(f.squares / float64(f.dof))
	}
	for n := range counts {
		seconds, took := 0.0, 0.0
		for _, r := range runs {
			if r.workers == n {
				seconds, took = seconds+r.seconds-f.at(n), took+r.took
			}
		}
		f.misfit = max(f.misfit, math.Abs(seconds)/took)
	}
	return f
}

func (f *overheadLaw) at(workers float64) float64 { return f.a*f.of(workers) + f.b/workers }

// predict returns the time outside steps for a worker count and a training that spends the given
// time in steps. The value is the best model's; the interval covers the intervals of all models.
// Beyond the largest measured count, no run shows how the time develops. There the interval also
// covers that it stays the same and that it shrinks as 1/n.
func (f *overhead) predict(workers, steps float64) Estimate {
	var e Estimate
	zero := 0.0
	if len(f.laws) == 0 {
		return Estimate{Low: &zero, High: &zero}
	}
	for i, law := range f.laws {
		value := law.at(workers)
		if i == 0 {
			e.Value = value
		}
		if law.dof < 1 {
			return Estimate{Value: e.Value}
		}
		u, v := law.of(workers), 1/workers
		variance := law.aa*u*u + 2*law.ab*u*v + law.bb*v*v
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(law.dof)}.Quantile((1 + f.level) / 2)
		half := t*law.sigma*math.Sqrt(max(0, variance)) + law.misfit*(steps+value)
		low, high := max(0, value-half), value+half
		if workers > f.largest {
			there := law.at(f.largest)
			low, high = min(low, there*f.largest/workers), max(high, there)
		}
		if e.Low == nil || low < *e.Low {
			e.Low = &low
		}
		if e.High == nil || high > *e.High {
			e.High = &high
		}
	}
	return e
}
