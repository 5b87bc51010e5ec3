// Package predict predicts step times at worker counts that were not measured.
//
// The model is a sum of times: for microbatches and the pipeline's bubble, a constant cost,
// and the all-reduce of the gradients over nodes and racks (see terms). A few worker counts
// cannot determine all these times. So the package does not choose one set of coefficients.
// It samples all sets that agree with the measurements, weighted by their probability,
// including costs that no measurement has shown yet. The interval covers them. If it is too
// wide to be useful, or if the question depends on something that was not measured, the
// result is a Refusal. The package has no side effects.
package predict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Layout says how a model is divided among workers. It is the same at all worker counts.
type Layout struct {
	Replica         int     // number of workers that hold one copy of the model: tp·pp·cp
	Stages, Virtual int     // stages of the pipeline, and virtual stages on each worker (interleaving); Virtual 0: unknown
	Micro           float64 // samples per microbatch; 0: the batch of a replica is not divided
}

// A Count holds the measurements at one worker count with one batch.
type Count struct {
	Workers, Nodes int       // Nodes 0: unknown
	Batch          float64   // samples per step over all workers
	Steps          []float64 // step times in seconds, one per run
}

// rate returns the median of the runs' rates. With an even number of runs it differs from
// batch / median step time.
func (c *Count) rate() float64 {
	rates := make([]float64, len(c.Steps))
	for i, step := range c.Steps {
		rates[i] = c.Batch / step
	}
	return scaling.Middle(rates)
}

// A Study holds the measurements of one layout.
type Study struct {
	Layout
	Counts   []Count
	RackSize int // nodes per rack; 0: unknown
}

const (
	// farthest is the factor beyond the largest measured worker count up to which
	// predictions are made. The work per worker may differ from the measured ones by at
	// most the same factor.
	farthest = 8
	// widest is the maximum ratio of the ends of an interval that is still useful.
	widest = 1.6
	// missed is the maximum relative error of the prediction of the largest measured count
	// from the other counts, if the measured value is outside its interval.
	missed = 0.10
	// fallen is the share by which the rate of more workers must be lower to count as a
	// fall.
	fallen = 0.05
	// growth is the minimum factor by which the rate must grow over the last doubling of
	// the workers. If it grows less, with the same work per worker, larger counts are
	// refused.
	growth = 1.15
)

// Refusal is the error if no prediction is possible: the reason, and what to measure next.
type Refusal struct {
	Why  string
	Next string
}

func (r *Refusal) Error() string { return "not predicted: " + r.Why }

// Estimate is a predicted value, such as a step time in seconds, with its interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Rate converts a step time to the rate of a global batch.
func (e Estimate) Rate(batch float64) Estimate {
	return Estimate{batch / e.Value, batch / e.High, batch / e.Low}
}

// HoldOut compares the measured step time at the largest count with its prediction from the
// smaller counts.
type HoldOut struct {
	Workers   int
	Measured  float64 // median step time of its runs, in seconds
	Predicted Estimate
}

// Error returns the error of the prediction, a fraction of the measured step time.
func (h *HoldOut) Error() float64 { return h.Predicted.Value/h.Measured - 1 }

// Missed reports whether the measured step time is outside the interval and more than a tenth off.
// The model then does not describe this study.
func (h *HoldOut) Missed() bool {
	return math.Abs(h.Error()) > missed && (h.Measured < h.Predicted.Low || h.Measured > h.Predicted.High)
}

// A Law is the fitted model: a sample of the sets of coefficients that agree with the
// measurements.
type Law struct {
	// HoldOut is nil with two counts; it is then unknown how well the model predicts here.
	HoldOut *HoldOut

	setting
	counts []Count // ascending
	terms  []term
	scale  []float64 // for each term, the seconds of a coefficient of 1
	draws  []draw
	level  float64
	others []*Law // fits with other numbers of virtual stages, if that number is unknown

	once  sync.Once
	rates []float64 // of counts; see rate
}

// rate returns the rate at a count. Advice asks for it often, and there may be many runs.
func (l *Law) rate(i int) float64 {
	l.once.Do(func() {
		for _, c := range l.counts {
			l.rates = append(l.rates, c.rate())
		}
	})
	return l.rates[i]
}

// stages are the numbers of virtual stages per worker that are tried if the number is
// unknown.
var stages = []int{1, 2, 4, 8}

// Fit fits the model to a study and returns it. level is the confidence level of intervals.
// The error is a *Refusal, or says what is wrong with the study.
func Fit(s Study, level float64) (*Law, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !(level > 0 && level < 1) {
		return nil, fmt.Errorf("confidence %g is not a level; give a fraction between 0 and 1, like 0.95", level)
	}
	if s.Virtual == 0 && (s.Stages == 1 || s.Micro == 0) { // there is no bubble that depends on them
		s.Virtual = 1
	}
	if s.Virtual == 0 {
		var laws []*Law
		for _, v := range stages {
			one := s
			one.Virtual = v
			l, err := Fit(one, level)
			if err != nil {
				return nil, err
			}
			laws = append(laws, l)
		}
		laws[0].others = laws[1:]
		return laws[0], nil
	}
	l := s.fit(level)
	if n := len(l.counts); n > 2 && l.counts[n-3].Workers < l.counts[n-1].Workers {
		last := l.counts[n-1]
		smaller := s
		smaller.Counts = slices.DeleteFunc(slices.Clone(l.counts), func(c Count) bool { return c.Workers == last.Workers })
		if smaller.check() == nil {
			l.HoldOut = &HoldOut{last.Workers, scaling.Middle(last.Steps), smaller.fit(level).estimate(last.Workers, last.Batch)}
		}
	}
	return l, nil
}

// check returns an error if the study is invalid, or a *Refusal if it does not suffice for
// predictions.
func (s *Study) check() error {
	if s.Replica < 1 || s.Stages < 1 || s.Virtual < 0 || !(s.Micro >= 0) || s.RackSize < 0 {
		return fmt.Errorf("a layout of %d workers a replica, %d pipeline stages, %d virtual stages and microbatches of %g samples; the first two are 1 or more", s.Replica, s.Stages, s.Virtual, s.Micro)
	}
	workers := map[int]bool{}
	for _, c := range s.Counts {
		if err := s.shares(c.Workers, c.Batch); err != nil {
			return err
		}
		if len(c.Steps) == 0 {
			return fmt.Errorf("%s without a run", number.Count(c.Workers, "worker"))
		}
		for _, x := range c.Steps {
			if !(x > 0) || math.IsInf(x, 1) {
				return fmt.Errorf("%s: a step time of %g s; want more than 0", number.Count(c.Workers, "worker"), x)
			}
		}
		workers[c.Workers] = true
	}
	switch len(workers) {
	case 0:
		return &Refusal{"no run has a step time", "two worker counts, with 3 runs each"}
	case 1:
		n := s.Counts[0].Workers
		return &Refusal{fmt.Sprintf("runs on %s alone do not tell how step time changes with the number", number.Count(n, "worker")),
			fmt.Sprintf("%d workers, 3 runs: one more count, twice or four times as large", 2*n)}
	}
	return nil
}

// shares returns an error if the batch cannot be divided among the workers.
func (s *Study) shares(workers int, batch float64) error {
	replicas := workers / s.Replica
	switch own := batch / float64(max(1, replicas)); {
	case workers < 1 || workers%s.Replica != 0:
		return fmt.Errorf("%s cannot be divided into replicas of %d (tp·pp·cp); give a multiple of %d", number.Count(workers, "worker"), s.Replica, s.Replica)
	case !(batch > 0) || math.IsInf(batch, 1):
		return fmt.Errorf("a global batch of %g; want more than 0", batch)
	case s.Micro > 0 && (own < s.Micro || own != s.Micro*math.Round(own/s.Micro)):
		return fmt.Errorf("a global batch of %g over %s is %g samples each, which are no whole microbatches of %g; give a multiple of %g", batch, number.Count(replicas, "replica"), own, s.Micro, s.Micro*float64(replicas))
	}
	return nil
}

// fit returns the model with samples of its coefficients.
func (s *Study) fit(level float64) *Law {
	l := &Law{setting: setting{Layout: s.Layout, rackSize: float64(s.RackSize)}, counts: slices.Clone(s.Counts), level: level}
	slices.SortFunc(l.counts, func(a, b Count) int { return cmp.Or(cmp.Compare(a.Workers, b.Workers), cmp.Compare(a.Batch, b.Batch)) })
	for _, c := range l.counts {
		if c.Nodes > 1 {
			l.nodeSize = max(l.nodeSize, math.Ceil(float64(c.Workers)/float64(c.Nodes)))
		}
	}
	last := l.counts[len(l.counts)-1]
	start, edge := l.place(0), l.place(len(l.counts)-1)
	least := edge.work
	for i := range l.counts {
		least = min(least, l.place(i).work)
	}
	l.terms = slices.Clone(terms)
	for i, c := range l.counts {
		p := l.place(i)
		if i > 0 && p.parties > 1 || p == edge {
			l.terms = append(l.terms, bend(p, p == edge))
		}
		if p.work < start.work || p.work == least {
			l.terms = append(l.terms, uncover(p.work, mean(c.Steps)/mean(last.Steps)))
		}
	}
	var seen []int // terms that some count has
	for j, t := range l.terms {
		l.scale = append(l.scale, t.usual*mean(last.Steps)/t.unit(&l.setting, start, edge))
		for i := range l.counts {
			if t.of(&l.setting, l.place(i)) != 0 {
				seen = append(seen, j)
				break
			}
		}
	}
	r := rand.New(rand.NewPCG(uint64(len(l.counts)), uint64(last.Workers)))
	for _, some := range l.design(seen).sample() {
		all := draw{make([]float64, len(l.terms)), some.odd}
		for j := range all.beta { // terms that no measured count has keep their prior distribution
			all.beta[j] = magnitude(r, math.NaN()) * math.Abs(r.NormFloat64())
		}
		for k, j := range seen {
			all.beta[j] = some.beta[k]
		}
		l.draws = append(l.draws, all)
	}
	return l
}

// design returns the regression of the measured step times on the terms seen, which at
// least one count has, and on drift.
func (l *Law) design(seen []int) *design {
	d := &design{terms: len(seen) + 2}
	for i, c := range l.counts {
		own := mean(c.Steps)
		row := make([]float64, d.terms)
		for k, j := range seen {
			row[k] = l.scale[j] * l.terms[j].of(&l.setting, l.place(i)) / own
		}
		// A change from the first count to the last that has other causes than the worker count. It
		// can have either sign, and is not extrapolated.
		row[len(seen)] = drift * (float64(i)/float64(len(l.counts)-1) - 0.5)
		row[len(seen)+1] = -row[len(seen)]
		d.rows = append(d.rows, row)
		d.runs = append(d.runs, float64(len(c.Steps)))
		d.free += float64(len(c.Steps) - 1)
		for _, x := range c.Steps {
			d.pure += (x/own - 1) * (x/own - 1)
		}
	}
	return d
}

func (l *Law) place(i int) place { return l.at(l.counts[i].Workers, l.counts[i].Batch) }

// Terms returns the names of the terms that make up at least 2 % of the step at the largest
// measured count, largest first.
func (l *Law) Terms() []string {
	p := l.place(len(l.counts) - 1)
	parts := map[string]float64{}
	total := 0.0
	for j, t := range l.terms {
		unit := l.scale[j] * t.of(&l.setting, p) / float64(len(l.draws))
		for _, d := range l.draws {
			parts[t.name] += d.beta[j] * unit
			total += d.beta[j] * unit
		}
	}
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(names, func(name string) bool { return parts[name] < total/50 })
}

// Largest returns the largest measured worker count.
func (l *Law) Largest() int { return l.counts[len(l.counts)-1].Workers }

// estimate returns the step time of a number of workers with a global batch, without
// checking whether the model may be used there.
func (l *Law) estimate(workers int, batch float64) Estimate {
	p := l.at(workers, batch)
	r := rand.New(rand.NewPCG(uint64(workers), 1))
	unit := make([]float64, len(l.terms))
	for j, t := range l.terms {
		unit[j] = l.scale[j] * t.of(&l.setting, p)
	}
	steps := make([]float64, len(l.draws))
	for i, d := range l.draws {
		for j, u := range unit {
			steps[i] += d.beta[j] * u
		}
		steps[i] *= math.Exp(d.odd * r.NormFloat64())
	}
	slices.Sort(steps)
	at := func(q float64) float64 { return steps[int(q*float64(len(steps)-1)+0.5)] }
	return Estimate{Value: at(0.5), Low: at((1 - l.level) / 2), High: at((1 + l.level) / 2)}
}

// Predict returns the step time of a number of workers with a global batch. The error is a
// *Refusal, or says why these workers cannot share the batch.
func (l *Law) Predict(workers int, batch float64) (Estimate, error) {
	s := Study{Layout: l.Layout}
	if err := s.shares(workers, batch); err != nil {
		return Estimate{}, err
	}
	if why := l.beyond(workers, batch); why != nil {
		return Estimate{}, why
	}
	e := l.estimate(workers, batch)
	for _, o := range l.others { // whichever number of virtual stages it is
		if why := o.beyond(workers, batch); why != nil {
			return Estimate{}, why
		}
		one := o.estimate(workers, batch)
		e.Low, e.High = min(e.Low, one.Low), max(e.High, one.High)
	}
	if len(l.others) > 0 {
		e.Value = math.Sqrt(e.Low * e.High)
	}
	if e.High > widest*e.Low {
		next := fmt.Sprintf("%d workers, 3 runs: nearer to %d", l.nearer(workers), workers)
		if workers <= l.Largest() {
			next = fmt.Sprintf("%d workers, 3 runs", workers)
		}
		return Estimate{}, &Refusal{fmt.Sprintf("the measurements allow any step time from %.3g to %.3g s at %d workers", e.Low, e.High, workers), next}
	}
	return e, nil
}

// beyond returns a Refusal if the prediction depends on something that was not measured;
// else nil.
func (l *Law) beyond(workers int, batch float64) *Refusal {
	p := l.at(workers, batch)
	most, least, racks, nodes := 0.0, math.Inf(1), 0.0, 0
	for i, c := range l.counts {
		at := l.place(i)
		most, least, racks = max(most, at.work), min(least, at.work), max(racks, at.racks)
		nodes = max(nodes, c.Nodes)
		if c.Nodes == 0 {
			nodes = math.MaxInt // not known
		}
	}
	largest := l.Largest()
	next := func(why string) string {
		return fmt.Sprintf("%d workers, 3 runs: %s", l.nearer(workers), why)
	}
	h := l.HoldOut
	why, from := l.stalled()
	switch {
	case workers > farthest*largest:
		return &Refusal{fmt.Sprintf("%d workers are more than %d times the largest measured worker count, %d", workers, farthest, largest), next("nearer to the requested count")}
	case workers > largest && nodes == 1:
		return &Refusal{fmt.Sprintf("everything was measured on one node; beyond %s comes a network that was not measured", number.Count(largest, "worker")), next("on two nodes or more")}
	case why != "" && workers > from:
		return &Refusal{why + ", and larger counts are unknown", next("to see how the rate continues")}
	case p.racks > 1 && racks <= 1:
		return &Refusal{fmt.Sprintf("%d workers take %g racks; what crosses their border was not measured", workers, p.racks), next("on more than one rack")}
	case p.work > farthest*most || p.work*farthest < least:
		return &Refusal{fmt.Sprintf("with a global batch of %g each replica has %g samples, more than %d times away from all that were measured", batch, batch/p.replicas, farthest), "a batch of each replica nearer to it"}
	case h != nil && workers > largest && h.Missed():
		return &Refusal{fmt.Sprintf("fitted to the smaller counts, the law is %+.0f %% off at %d workers: the model lacks a cost that appears there", 100*h.Error(), h.Workers), next("to see how the rate continues")}
	}
	return nil
}

// stalled returns why there is no prediction above a count (from) because something is saturated,
// which no term describes. That is so if the largest count has a lower rate than a smaller one, by
// more than noise, or hardly a higher rate than half as many workers with the same work each.
// Otherwise why is "".
func (l *Law) stalled() (why string, from int) {
	n := len(l.counts) - 1
	last, rate := l.counts[n], l.rate(n)
	for i, c := range l.counts[:n] {
		switch {
		case c.Workers < last.Workers && rate < l.rate(i)*(1-fallen):
			return fmt.Sprintf("the rate falls, from %.3g at %d to %.3g at %d workers", l.rate(i), c.Workers, rate, last.Workers), c.Workers
		case 2*c.Workers <= last.Workers && l.place(i).work <= l.place(n).work && rate < l.rate(i)*growth:
			return fmt.Sprintf("%d workers get %.3g times as much done as %d: something is saturated", last.Workers, rate/l.rate(i), c.Workers), c.Workers
		}
	}
	return "", 0
}

// nearer returns a worker count to measure before the requested count can be predicted:
// twice or four times the largest measured count.
func (l *Law) nearer(workers int) int {
	n := 2 * l.Largest()
	if 2*n < workers {
		n *= 2
	}
	return n
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
