package advice

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// candidates lists the worker counts and computes throughput, time, cost and probability of each.
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
	if x.Median == nil { // the runs have only times, as in a table of results
		x = p.Of(s.Goal)
		c.Runs, c.Efficiency = x.Runs, figure(x.Efficiency())
		c.Why = append(c.Why, "throughput: none of its runs has one")
		return
	}
	c.Throughput = figure(x.Median)
	c.Efficiency = figure(x.Efficiency())
	if b := s.curve.Base; b != nil && b.Workers == c.Workers && c.Efficiency != nil {
		one := c.Efficiency.Value // 1 by definition, and therefore without error
		c.Efficiency.Low, c.Efficiency.High = &one, &one
	}
	if c.Throughput.Low == nil {
		s.borrow(c, x.Median.Why)
	}
}

// lawsRate sets the throughput and efficiency of a candidate that was not measured, as the fitted
// model predicts them. It reports whether the model has a prediction.
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

// warnOfNoCost adds one warning, with the first candidate's reason, if no candidate has a cost.
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

// borrow is for a measured throughput with too few runs for an interval. It sets the interval
// that the fitted model predicts, extended to include the measured median.
func (s *study) borrow(c *Candidate, why string) {
	if p := s.carried(c.Workers); p != nil && why != scaling.AllEqual {
		c.Throughput.Low, c.Throughput.High = new(min(*p.Low, c.Throughput.Value)), new(max(*p.High, c.Throughput.Value))
		if c.Efficiency != nil && c.Efficiency.Low == nil && c.Workers != s.curve.Base.Workers {
			c.Efficiency = s.efficiency(c.Workers, *c.Throughput)
		}
		c.Why = append(c.Why, "throughput: "+why+"; the interval is the law's")
		return
	}
	c.Why = append(c.Why, "throughput: "+why)
}

// point returns the measured point with that many workers; nil if it has neither a throughput nor
// a time to the target.
func (s *study) point(workers int) *scaling.Point {
	i := slices.IndexFunc(s.curve.Points, func(p scaling.Point) bool { return p.Workers == workers })
	if i < 0 || !s.measured(&s.curve.Points[i]) {
		return nil
	}
	return &s.curve.Points[i]
}

// measured reports whether a point has a throughput or a run with a result for the target.
func (s *study) measured(p *scaling.Point) bool {
	return rate(p) != nil || s.Goal != "" && p.Of(s.Goal).Runs > 0
}

// rate returns the median throughput of a point; nil if no run has a steady state.
func rate(p *scaling.Point) *scaling.Estimate { return p.Of(measure.Throughput).Median }

// counts returns the measured worker counts, ascending. If there is a fitted model, it adds
// counts that fill whole nodes, at most one eighth apart, from the smallest measured count up to
// four times the largest, or up to the largest if the model does not extend beyond it.
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
			continue // too small, or the batch cannot be divided evenly
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
		return new((workers + s.nodeSize - 1) / s.nodeSize)
	case s.oneNode:
		return new(1)
	}
	return nil
}

// efficiency returns the efficiency of a predicted throughput relative to the base. Its interval
// includes the errors of both throughputs. It is nil without a base.
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
	return &Estimate{Value: e.Value * share, Low: new(*e.Low * share), High: new(*e.High * share)}
}

// clock collects the time on the training clock outside steps (warm-up and evaluations) from the
// runs that reach the target. It also sets the initialisation time, from the largest worker count
// that recorded one.
func (s *study) clock() {
	var runs []runOverhead
	for _, p := range s.curve.Points {
		var init []float64
		for _, o := range s.runs[p.Workers] {
			if x := o.Known(measure.InitSeconds); x != nil {
				init = append(init, *x)
			}
			seconds, x := o.Known(s.Goal), o.Known(measure.Throughput)
			samples, _, _ := s.outcome(o)
			if seconds != nil && x != nil && samples > 0 && *seconds > 0 && *x > 0 && predict.Batch(o) < s.lost {
				runs = append(runs, runOverhead{float64(p.Workers), *seconds - samples / *x, *seconds})
			}
		}
		if len(init) > 0 {
			s.slowStart = new(scaling.Middle(init))
		}
	}
	s.beside = fitOverhead(runs, s.o.Confidence)
	s.started = s.Goal != ""
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		s.started = s.started && (s.Goal == "" || p.Of(s.Goal).Runs == 0 || p.FromStart(s.Goal).Runs > 0)
	}
	if s.slowStart == nil && s.timeless == "" && s.Goal != measure.ToTarget {
		s.warn("initialisation was not recorded; times and costs exclude it")
	}
}

// reached returns the measured time to the target at that many workers; nil without a
// median.
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

// initAt returns the initialisation time in seconds at that many workers. It is the median of
// their runs or, if they recorded none, of the largest count that did. It is 0 for a
// program's own time to its target, because the rules of such benchmarks exclude initialisation.
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

// stalled returns a copy of an extrapolated candidate for the case that throughput stops growing
// at the largest measured count. Something that no run shows may limit it just beyond that count.
// It returns nil for other candidates.
func (s *study) stalled(c *Candidate) *Candidate {
	if c.Basis != Extrapolated || s.edge == nil {
		return nil
	}
	slow, value := min(*s.edge.Low, *c.Throughput.Low), min(s.edge.Value, c.Throughput.Value)
	still := Candidate{Workers: c.Workers, Nodes: c.Nodes, Basis: Extrapolated, Throughput: &Estimate{Value: value, Low: &slow, High: &value}}
	still.Efficiency = s.efficiency(c.Workers, *still.Throughput)
	s.time(&still)
	s.price(&still)
	return &still
}

// price sets the cost of the candidate's time, or adds the reason why it is unknown.
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
		f.Low, f.High = new(of(*c.Seconds.Low)), new(of(*c.Seconds.High))
		if b := c.Seconds.oneSided; b != nil {
			f.oneSided = &decision.Belief{Value: f.Value, Low: of(b.Low), High: of(b.High), Level: b.Level}
		}
	}
	if err != nil {
		c.Why = append(c.Why, "cost: "+err.Error())
		return
	}
	c.Cost = &f
}

// main returns the throughput or, without one, the time; nil without either.
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
		if in := e.OneSided; in != nil {
			f.oneSided = &decision.Belief{Value: e.Value, Low: in.Low, High: in.High, Level: in.Level}
		}
	}
	return f
}

// over returns a/b. The errors of a and b are taken as independent: their logarithms are added in
// quadrature. The result has an interval only if both have one.
func over(a, b Estimate) *Estimate {
	f := &Estimate{Value: a.Value / b.Value}
	if a.Low == nil || b.Low == nil {
		return f
	}
	if a.oneSided != nil && b.oneSided != nil {
		f.oneSided = new(a.oneSided.Over(*b.oneSided))
	}
	low := f.Value * math.Exp(-math.Hypot(math.Log(a.Value / *a.Low), math.Log(*b.High/b.Value)))
	f.Low, f.High = &low, new(f.Value*math.Exp(math.Hypot(math.Log(*a.High/a.Value), math.Log(b.Value / *b.Low))))
	return f
}

// sum returns a + b. The errors of a and b are taken as independent and added in quadrature. The
// result has an interval only if both have one.
func sum(a, b Estimate) *Estimate {
	f := &Estimate{Value: a.Value + b.Value}
	if a.Low == nil || b.Low == nil {
		return f
	}
	low := f.Value - math.Hypot(a.Value-*a.Low, b.Value-*b.Low)
	f.Low, f.High = &low, new(f.Value+math.Hypot(*a.High-a.Value, *b.High-b.Value))
	return f
}

// plus returns the estimate with a number of seconds, known exactly, added.
func (f Estimate) plus(seconds float64) *Estimate {
	g := Estimate{Value: f.Value + seconds}
	if f.Low != nil {
		g.Low, g.High = new(*f.Low+seconds), new(*f.High+seconds)
	}
	if b := f.oneSided; b != nil {
		g.oneSided = &decision.Belief{Value: g.Value, Low: b.Low + seconds, High: b.High + seconds, Level: b.Level}
	}
	return &g
}
