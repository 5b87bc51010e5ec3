package advice

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// candidates lists the worker counts and works out what is known of each.
func (s *study) candidates() {
	s.clock()
	for _, n := range s.counts() {
		c := Candidate{Workers: n, Nodes: s.nodes(n), Why: []string{}}
		if p := s.point(n); p != nil {
			s.measuredRate(&c, p)
		} else if !s.lawsRate(&c) {
			continue
		}
		s.time(&c)
		s.price(&c)
		s.likely(&c)
		s.Candidates = append(s.Candidates, c)
	}
	if s.o.Cost != nil && s.timeless == "" {
		s.warnOfNoCost()
	}
}

// measuredRate sets the throughput and efficiency of a candidate that was measured.
func (s *study) measuredRate(c *Candidate, p *scaling.Point) {
	x := p.Of(measure.Throughput)
	c.Basis, c.Runs = Measured, x.Runs
	if x.Median == nil { // times alone, as of a table of results
		x = p.Of(s.Goal)
		c.Runs, c.Efficiency = x.Runs, figure(x.Efficiency())
		c.Why = append(c.Why, "throughput: none of its runs has one")
		return
	}
	c.Throughput = figure(x.Median)
	c.Efficiency = figure(x.Efficiency())
	if b := s.curve.Base; b != nil && b.Workers == c.Workers && c.Efficiency != nil {
		one := c.Efficiency.Value // 1 by definition, and so without error
		c.Efficiency.Low, c.Efficiency.High = &one, &one
	}
	if c.Throughput.Low == nil {
		s.borrow(c, x.Median.Why)
	}
}

// lawsRate sets those of a candidate that was not measured; it reports whether the law has them.
func (s *study) lawsRate(c *Candidate) bool {
	if c.Throughput = s.carried(c.Workers); c.Throughput == nil {
		return false
	}
	c.Basis = Interpolated
	if c.Workers > s.law.Largest() {
		c.Basis = Extrapolated
	}
	c.Efficiency = s.efficiency(c.Workers, *c.Throughput)
	return true
}

// warnOfNoCost warns once, with the first reason, if no candidate has a cost.
func (s *study) warnOfNoCost() {
	if slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Cost != nil }) {
		return
	}
	for _, c := range s.Candidates {
		for _, w := range c.Why {
			if strings.HasPrefix(w, "cost: ") {
				s.warn("no worker count has a %s", w)
				return
			}
		}
	}
}

// borrow gives a measured throughput that has too few runs for an interval of
// its own the law's, stretched to hold the median.
func (s *study) borrow(c *Candidate, why string) {
	if p := s.carried(c.Workers); p != nil {
		low, high := min(*p.Low, c.Throughput.Value), max(*p.High, c.Throughput.Value)
		c.Throughput.Low, c.Throughput.High = &low, &high
		if c.Efficiency != nil && c.Efficiency.Low == nil && c.Workers != s.curve.Base.Workers {
			c.Efficiency = s.efficiency(c.Workers, *c.Throughput)
		}
		c.Why = append(c.Why, "throughput: "+why+"; the interval is the law's")
		return
	}
	c.Why = append(c.Why, "throughput: "+why)
}

// point is the measured point with so many workers; nil with neither a
// throughput nor a time to the target.
func (s *study) point(workers int) *scaling.Point {
	i := slices.IndexFunc(s.curve.Points, func(p scaling.Point) bool { return p.Workers == workers })
	if i < 0 || !s.measured(&s.curve.Points[i]) {
		return nil
	}
	return &s.curve.Points[i]
}

// measured reports whether a point says anything that a choice can go by.
func (s *study) measured(p *scaling.Point) bool {
	return rate(p) != nil || s.Goal != "" && p.Of(s.Goal).Runs > 0
}

// rate is a point's throughput; nil where no run has a steady state.
func rate(p *scaling.Point) *scaling.Estimate { return p.Of(measure.Throughput).Median }

// counts are the measured worker counts and, where a law holds, whole nodes in
// steps of an eighth of an octave (at most an eighth more workers), from the smallest to the farthest that
// the law answers for.
func (s *study) counts() []int {
	var counts []int
	for _, p := range s.curve.Points {
		if s.measured(&p) {
			counts = append(counts, p.Workers)
		}
	}
	if s.law == nil {
		return counts
	}
	node := max(s.nodeSize, 1)
	farthest := farthest * s.law.Largest()
	if s.Refused != "" {
		farthest = s.law.Largest()
	}
	for nodes := 1; nodes*node <= farthest; nodes += max(1, 1<<bits.Len(uint(nodes))>>4) {
		n := nodes * node
		if n < counts[0] || s.curve.Scaling == "strong" && math.Mod(s.batchAt(n), float64(n)) != 0 {
			continue // too small, or the batch cannot be shared out
		}
		counts = append(counts, n)
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// nodes returns the number of nodes that a number of workers takes; nil if unknown.
func (s *study) nodes(workers int) *int {
	for _, o := range s.runs[workers] {
		if o.Nodes > 0 {
			return &o.Nodes
		}
	}
	switch {
	case s.nodeSize > 0:
		n := (workers + s.nodeSize - 1) / s.nodeSize
		return &n
	case s.oneNode:
		n := 1
		return &n
	}
	return nil
}

// efficiency is a predicted throughput over the base's; the errors of both count.
func (s *study) efficiency(workers int, p Estimate) *Estimate {
	b := s.curve.Base
	if b == nil {
		return nil
	}
	x := b.Of(measure.Throughput).Median
	if x == nil {
		return nil
	}
	share := float64(b.Workers) / float64(workers)
	base := *figure(x)
	if base.Low == nil {
		base.Low, base.High = &base.Value, &base.Value
	}
	e := over(p, base)
	low, high := *e.Low*share, *e.High*share
	return &Estimate{e.Value * share, &low, &high}
}

// clock learns the time on the training clock outside steps (warm-up and
// evaluations), of runs that reach the target, and how long initialisation takes at
// the largest count that says so.
func (s *study) clock() {
	var runs []runBeside
	for _, p := range s.curve.Points {
		var init []float64
		for _, o := range s.runs[p.Workers] {
			if x := o.Known(measure.InitSeconds); x != nil {
				init = append(init, *x)
			}
			seconds, x := o.Known(s.Goal), o.Known(measure.Throughput)
			samples, _, _ := s.outcome(o)
			if seconds != nil && x != nil && samples > 0 && *seconds > 0 && *x > 0 && globalBatch(o) < s.lost {
				runs = append(runs, runBeside{float64(p.Workers), *seconds - samples / *x, *seconds})
			}
		}
		if len(init) > 0 {
			m := scaling.Middle(init)
			s.slowStart = &m
		}
	}
	s.beside = fitBeside(runs, s.o.Confidence)
	s.started = s.Goal != ""
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		s.started = s.started && (s.Goal == "" || p.Of(s.Goal).Runs == 0 || p.FromStart(s.Goal).Runs > 0)
	}
	if s.slowStart == nil && s.timeless == "" && s.Goal != measure.ToTarget {
		s.warn("initialisation was not recorded; times and costs exclude it")
	}
}

// reached is the measured time to the target at so many workers; nil without.
func (s *study) reached(workers int) *scaling.Summary {
	if s.Goal == "" {
		return nil
	}
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		if t := p.Of(s.Goal); p.Workers == workers && t.Median != nil {
			return t
		}
	}
	return nil
}

// initAt is the initialisation at so many workers: measured there, else at the
// largest count that was. A program's own time to its target goes as it is: by
// the rules that it was published under, initialisation is no part of it.
func (s *study) initAt(workers int) float64 {
	if s.Goal == measure.ToTarget {
		return 0
	}
	var own []float64
	for _, o := range s.runs[workers] {
		if x := o.Known(measure.InitSeconds); x != nil {
			own = append(own, *x)
		}
	}
	switch {
	case len(own) > 0:
		return scaling.Middle(own)
	case s.slowStart != nil:
		return *s.slowStart
	}
	return 0
}

// time works out how long the candidate takes: measured if it was, else the samples to the
// measuredTime is the median of a candidate's times. With too few runs for an interval it has
// stalled is an extrapolated candidate if throughput grows no further: what limits it
// may lie just behind the largest measured count, and no run there tells. nil for
// others.
func (s *study) stalled(c *Candidate) *Candidate {
	if c.Basis != Extrapolated || s.edge == nil {
		return nil
	}
	slow, value := min(*s.edge.Low, *c.Throughput.Low), min(s.edge.Value, c.Throughput.Value)
	still := Candidate{Workers: c.Workers, Nodes: c.Nodes, Basis: Extrapolated, Throughput: &Estimate{value, &slow, &value}}
	still.Efficiency = s.efficiency(c.Workers, *still.Throughput)
	s.time(&still)
	s.price(&still)
	return &still
}

// missedAt reports whether runs with so many workers had the target and no
// price works out what the candidate's time costs.
func (s *study) price(c *Candidate) {
	if s.o.Cost == nil || c.Seconds == nil {
		return
	}
	if c.Nodes == nil {
		c.Why = append(c.Why, "cost: its number of nodes is not known")
		return
	}
	var err error
	of := func(seconds float64) float64 {
		var x float64
		if err == nil {
			x, err = s.o.Cost(c.Workers, *c.Nodes, seconds)
		}
		return x
	}
	f := Estimate{Value: of(c.Seconds.Value)}
	if c.Seconds.High != nil {
		low, high := of(*c.Seconds.Low), of(*c.Seconds.High)
		f.Low, f.High = &low, &high
	}
	if err != nil {
		c.Why = append(c.Why, "cost: "+err.Error())
		return
	}
	c.Cost = &f
}

// main is the figure that the others rest on: throughput, or time where there is
// nothing else; nil without either.
func (c *Candidate) main() *Estimate {
	if c.Throughput != nil {
		return c.Throughput
	}
	return c.Seconds
}

func figure(e *scaling.Estimate) *Estimate {
	if e == nil {
		return nil
	}
	f := &Estimate{Value: e.Value}
	if e.Interval != nil {
		f.Low, f.High = &e.Interval.Low, &e.Interval.High
	}
	return f
}

// over is a/b; the errors of both, taken as independent, add in quadrature on
// the logarithm. The result has an interval only if both have one.
func over(a, b Estimate) *Estimate {
	f := &Estimate{Value: a.Value / b.Value}
	if a.Low == nil || b.Low == nil {
		return f
	}
	low := f.Value * math.Exp(-math.Hypot(math.Log(a.Value / *a.Low), math.Log(*b.High/b.Value)))
	high := f.Value * math.Exp(math.Hypot(math.Log(*a.High/a.Value), math.Log(b.Value / *b.Low)))
	f.Low, f.High = &low, &high
	return f
}

// sum is a + b; the errors of both, taken as independent, add in quadrature.
// The result has an interval only if both have one.
func sum(a, b Estimate) *Estimate {
	f := &Estimate{Value: a.Value + b.Value}
	if a.Low == nil || b.Low == nil {
		return f
	}
	low := f.Value - math.Hypot(a.Value-*a.Low, b.Value-*b.Low)
	high := f.Value + math.Hypot(*a.High-a.Value, *b.High-b.Value)
	f.Low, f.High = &low, &high
	return f
}

// plus moves the figure by a time that is known.
func (f Estimate) plus(seconds float64) *Estimate {
	g := Estimate{Value: f.Value + seconds}
	if f.Low != nil {
		low, high := *f.Low+seconds, *f.High+seconds
		g.Low, g.High = &low, &high
	}
	return &g
}
