package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// plausible is the AICc difference from the best fit beyond which a law has
// essentially no support (Burnham & Anderson 2002, 2.6) and is left out.
const plausible = 10

// hidden is how much longer a sample may take with each doubling beyond
// the data than any law fitted to it says. Costs that hide behind others (a latency
// behind the backward pass) come to light as they grow; nothing that is hidden
// makes training faster, so that this widens the interval towards lower
// throughput only. Its size is what simulated clusters call for (with other
// seeds than the tests').
const hidden = 0.05

// Extrapolator predicts throughput at worker counts that were not measured.
type Extrapolator struct {
	d       *Data
	level   float64
	fits    []fit     // that the data does not rule out, best first
	student []float64 // of each fit, Student's quantile at the interval's upper end
	largest int       // measured worker count of the tier
	before  int       // the next smaller one
	counts  []int     // all of the tier
	refused *Refusal  // why nothing is said beyond the largest; nil
	edge    float64   // lower end of the throughput at the largest, samples/s
	// HoldOut is the error that the law made on the largest measured worker
	// count, fitted to the others: predicted over measured, minus 1.
	HoldOut float64
}

// Prediction is a throughput in samples/s and its interval.
type Prediction struct {
	Workers   int
	Value     float64 // median over the laws, by their weights
	Low, High float64
	Level     float64 // asked of the interval, a fraction
	// Beyond is whether Workers is above all that were measured.
	Beyond bool
	// Steady is the lower end if no limit appears that the data does not show yet.
	// Low allows for one right behind the data: it is at most the lower end at the
	// largest measured count.
	Steady float64
	// Overlays are what Amdahl's law and the universal scalability law say, in
	// samples/s; a law that does not fit at all has no entry.
	Overlays map[Law]float64
}

// Fit chooses the laws that the data allows. The error is a *Refusal, or says
// what is wrong with the data. Where the laws only miss the largest count from the
// others, the Extrapolator comes with the Refusal, and answers up to that count.
// Level is that of the intervals.
func Fit(d Data, level float64) (*Extrapolator, error) {
	if !(level > 0 && level < 1) {
		return nil, fmt.Errorf("confidence %g is not a level; give a fraction between 0 and 1, like 0.95", level)
	}
	points, err := d.tier()
	if err != nil {
		return nil, err
	}
	last := points[len(points)-1]
	e := &Extrapolator{d: &d, level: level, largest: last.Workers, before: points[len(points)-2].Workers}
	for _, p := range points {
		e.counts = append(e.counts, p.Workers)
	}
	held := choose(candidates(&d, points[:len(points)-1]))
	e.fits = choose(candidates(&d, points))
	for _, f := range e.fits {
		e.student = append(e.student, distuv.StudentsT{Sigma: 1, Nu: f.dof}.Quantile((1+level)/2))
	}
	if len(held) == 0 || len(e.fits) == 0 {
		return nil, &Refusal{Why: "throughput rises faster than the number of workers, which no law here allows; check the points with few workers"}
	}
	e.HoldOut = float64(last.Workers)/held[0].y(&d, float64(last.Workers))/scaling.Middle(last.Throughputs) - 1
	if math.Abs(e.HoldOut) > MaxHoldOut {
		e.refused = &Refusal{HoldOut: &e.HoldOut, Why: fmt.Sprintf("fitted to the other worker counts, the law is %+.0f %% off at %s; %.0f %% is allowed", 100*e.HoldOut, number.Count(last.Workers, "worker"), 100*MaxHoldOut)}
	}
	e.edge = float64(e.largest) / e.quantile(float64(e.largest), 1)
	if e.refused != nil {
		return e, e.refused
	}
	return e, nil
}

// Terms names what the law that fits best is made of: "compute", "bandwidth".
func (e *Extrapolator) Terms() []string {
	var names []string
	for _, t := range e.fits[0].terms {
		names = append(names, t.name)
	}
	return names
}

// Largest is the largest measured worker count that was fitted.
func (e *Extrapolator) Largest() int { return e.largest }

// choose keeps the fits that the data does not rule out, the best α–β one first.
func choose(list []fit) []fit {
	slices.SortStableFunc(list, func(a, b fit) int { return cmp.Compare(a.aicc, b.aicc) })
	i := slices.IndexFunc(list, func(f fit) bool { return f.law == AlphaBeta })
	if i < 0 {
		return nil
	}
	best := list[i]
	list = slices.Delete(list, i, i+1)
	list = slices.DeleteFunc(list, func(f fit) bool { return f.aicc > best.aicc+plausible })
	return append([]fit{best}, list...)
}

// Predict is the throughput at so many workers.
func (e *Extrapolator) Predict(workers int) (Prediction, error) {
	switch {
	case workers < 1:
		return Prediction{}, fmt.Errorf("%d workers; give 1 or more", workers)
	case workers > e.largest && e.refused != nil:
		return Prediction{}, e.refused
	case workers > Farthest*e.largest:
		return Prediction{}, &Refusal{Why: fmt.Sprintf("%d workers are more than %d times the largest measured worker count, %d", workers, Farthest, e.largest)}
	case workers%max(e.d.NodeSize, 1) != 0:
		return Prediction{}, &Refusal{Why: fmt.Sprintf("%s cannot fill whole nodes of %d", number.Count(workers, "worker"), e.d.NodeSize)}
	}
	n := float64(workers)
	p := Prediction{Workers: workers, Level: e.level, Beyond: workers > e.largest, Overlays: map[Law]float64{}}
	for i := range e.fits {
		if f := &e.fits[i]; f.law != AlphaBeta {
			p.Overlays[f.law] = n / f.y(e.d, n)
		}
	}
	p.Value = n / e.quantile(n, 0)
	low, high := e.quantile(n, -1), e.quantile(n, 1) // of y
	// What the law missed on its last step it may miss again, in proportion to
	// how far away the next measured worker count is.
	away := e.away(n)
	slack := 1 + math.Abs(e.HoldOut)*away/math.Log(float64(e.largest)/float64(e.before))
	low, high = low/slack, high*slack
	if p.Beyond {
		high *= math.Pow(1+hidden, away/math.Ln2)
	}
	p.Low, p.High = n/high, n/low
	p.Steady = p.Low
	// A resource that all workers share, and that is enough for those measured, shows
	// in no throughput: it then stands still, in the worst case right behind the data.
	if p.Beyond {
		p.Low = min(p.Low, e.edge)
	}
	return p, nil
}

// quantile of the fitted time of a sample over all laws that the data does not
// rule out, each with its Akaike weight (Burnham & Anderson 2002, 4.3) and its
// own error: so the laws' disagreement is part of the interval. end is which: -1
// the interval's lower end, 0 the median, 1 its upper end.
func (e *Extrapolator) quantile(n, end float64) float64 {
	type part struct {
		weight float64
		t      distuv.StudentsT
	}
	q := (1 + end*e.level) / 2
	least := math.Inf(1)
	for _, f := range e.fits {
		least = min(least, f.aicc)
	}
	var parts []part
	var total float64
	low, high := math.Inf(1), math.Inf(-1)
	for i := range e.fits {
		f := &e.fits[i]
		p := part{math.Exp((least - f.aicc) / 2), distuv.StudentsT{Mu: math.Log(f.y(e.d, n)), Sigma: max(f.error(e.d, n), 1e-12), Nu: f.dof}}
		parts, total = append(parts, p), total+p.weight
		at := p.t.Mu + end*e.student[i]*p.t.Sigma
		low, high = min(low, at), max(high, at)
	}
	for high-low > 1e-12 { // of a logarithm, so that this is relative to y
		mid := (low + high) / 2
		if mid <= low || mid >= high {
			break // neighbouring numbers
		}
		var cdf float64
		for _, p := range parts {
			cdf += p.weight / total * p.t.CDF(mid)
		}
		if cdf < q {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// away is how far n is from the nearest measured worker count, as the natural
// logarithm of their ratio.
func (e *Extrapolator) away(n float64) float64 {
	least := math.Inf(1)
	for _, c := range e.counts {
		least = min(least, math.Abs(math.Log(n/float64(c))))
	}
	return least
}
