package advice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// kneeGain is the smallest ratio of speeds for which doubling the workers is worth it: 1.4, about
// the square root of 2.
const kneeGain = 1.4

// byDefault sets the answer without limits: the largest measured count for which going up
// from every smaller count brings at least kneeGain per doubling. In other words, each doubling
// divides a count's speed by kneeGain, and the answer is the count with the highest result.
// Counts are compared over the whole range and not only with their neighbours, so that a plateau
// in the middle does not end the search.
func (s *study) byDefault() {
	s.compared = s.rate()
	what := "the " + s.rate()
	if s.o.Figure != nil {
		what = "improvement of " + s.rate()
	}
	if s.byTime() {
		what = "the speed to " + s.goal()
		s.compared = "the time to " + s.goal()
	}
	s.Objective = fmt.Sprintf("the most measured workers for which doubling from each smaller count brings more than %g× %s", kneeGain, what)
	var points []*scaling.Point
	q := decision.Question{Sure: s.o.Sure}
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		if s.paced(p) {
			points = append(points, p)
			q.Options = append(q.Options, decision.Option{Size: p.Workers, Runs: s.pace(p).Runs, Measured: true})
		}
	}
	pairs := make([]map[int]pair, len(points))
	for i := range pairs {
		pairs[i] = map[int]pair{}
	}
	at := func(i, j int) pair {
		p, known := pairs[i][j]
		if !known {
			p = s.over(points[i], points[j])
			pairs[i][j] = p
		}
		return p
	}
	q.Over = func(i, j int) decision.Comparison { return at(i, j).comparison() }
	q.Caveats = append(slices.Clone(s.data), s.counted()...)
	if s.o.Target != nil && s.timeless != "" {
		q.Caveats = append(q.Caveats, decision.Caveat{Kind: decision.Misses, Text: "no worker count has a time to " + s.goal(), Changes: true})
	}
	r := decision.Decide(q)
	s.take(r, func(i int) int { return points[i].Workers })
	for i := range s.curve.Points {
		if p := &s.curve.Points[i]; !s.paced(p) && s.mayReach(p.Workers) { // no run reached the target, perhaps by chance
			s.Unproven = append(s.Unproven, p.Workers)
		}
	}
	if r.Chosen < 0 {
		s.Reason = [2]string{fmt.Sprintf("No worker count can be recommended: at every one, too many runs miss %s.", s.goal()), s.Limits.sentence}
		return
	}
	s.worthwhile(points, at)
	s.Reason = [2]string{s.defaultSentence(points, r, at), s.Limits.sentence}
}

// take stores the result of a decision. count returns the worker count of an option of the
// decision.
func (s *study) take(r decision.Result, count func(option int) int) {
	s.Provisional, s.Probability = r.Provisional, r.Probability
	s.Caveats = append(s.Caveats, r.Caveats...)
	if r.Chosen >= 0 {
		s.Workers = new(count(r.Chosen))
	}
	for _, c := range r.Undecided {
		s.Undecided = append(s.Undecided, Contender{count(c.Option), c.Probability})
	}
	for _, i := range r.Equivalent {
		s.Equivalent = append(s.Equivalent, count(i))
	}
	for _, i := range r.Unproven {
		s.Unproven = append(s.Unproven, count(i))
	}
}

// worthwhile sets for each measured candidate the probability that going up to it from every
// smaller count is worth it.
func (s *study) worthwhile(points []*scaling.Point, at func(i, j int) pair) {
	for i, p := range points {
		c := s.candidate(p.Workers)
		if i == 0 || c == nil {
			continue
		}
		keeps, known := 1.0, true
		for j := range i {
			b := at(i, j).comparison().Belief
			if known = known && b != nil; !known {
				break
			}
			keeps -= b.AtMost(1)
		}
		if known {
			keeps = max(0, keeps)
			c.Keeps = &keeps
		}
	}
}

// defaultSentence returns the answer with its evidence: the gain of going up to it, and the gain
// that the best larger count would bring.
func (s *study) defaultSentence(points []*scaling.Point, r decision.Result, at func(i, j int) pair) string {
	i := r.Chosen
	use := "Use " + number.Count(points[i].Workers, "worker")
	if s.Provisional {
		use = "Provisional: use " + number.Count(points[i].Workers, "worker")
	}
	if s.Goal != "" && s.timeless != "" {
		use += " (by throughput alone: " + s.timeless + ")"
	}
	if t := points[i].Of(s.Goal); s.byTime() && len(t.Values) < t.Runs {
		use += fmt.Sprintf(" (%d of %d runs reach %s)", len(t.Values), t.Runs, s.goal())
	}
	// The best of the smaller counts, and the best of the larger ones.
	below, above := -1, -1
	for j := range points {
		switch {
		case j < i && (below < 0 || at(j, i).comparison().Value >= at(below, i).comparison().Value):
			below = j
		case j > i && (above < 0 || at(j, i).comparison().Value > at(above, i).comparison().Value):
			above = j
		}
	}
	var parts []string
	if below >= 0 {
		parts = append(parts, s.gained(points[below].Workers, points[i].Workers, at(i, below)))
		if c := s.candidate(points[i].Workers); c != nil && c.Keeps != nil {
			use += " (" + Likely(*c.Keeps) + " likely that " + going(points[below].Workers, points[i].Workers) + " is worth it)"
		}
	}
	switch {
	case above >= 0:
		p := at(above, i)
		parts = append(parts, s.refused(points[i].Workers, points[above].Workers, p))
		if b := p.comparison().Belief; b != nil && below < 0 {
			use += " (" + Likely(b.AtMost(1)) + " likely that " + going(points[i].Workers, points[above].Workers) + " is not worth it)"
		}
	case below >= 0:
		parts = append(parts, "more workers were not measured")
	}
	if text := s.left(points); text != "" {
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = []string{"no other worker count has a result"}
	}
	return use + ": " + strings.Join(parts, "; ") + "." + s.Uncertain()
}

// left returns a clause on the measured counts that could not be compared, with the reasons.
func (s *study) left(points []*scaling.Point) string {
	var list []string
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		if slices.Contains(points, p) {
			continue
		}
		list = append(list, s.unjudged(p))
	}
	return strings.Join(list, "; ")
}

// unjudged returns the reason why the speed of a point is unknown.
func (s *study) unjudged(p *scaling.Point) string {
	workers := number.Count(p.Workers, "worker")
	switch t := p.Of(s.Goal); {
	case !s.byTime():
		return "no run on " + workers + " has a " + s.rate()
	case t.Runs == 0:
		return "no run on " + workers + " says when it reached " + s.goal()
	default:
		return fmt.Sprintf("none of %s on %s reaches %s", number.Count(t.Runs, "run"), workers, s.goal())
	}
}

// going describes the step from one worker count to another in words.
func going(from, to int) string {
	if to == 2*from {
		return fmt.Sprintf("doubling to %d", to)
	}
	return fmt.Sprintf("going from %d to %d", from, to)
}

// gained returns a clause on the gain of going up to the answer, with its lower bound.
func (s *study) gained(from, to int, p pair) string {
	start, each := fmt.Sprintf("doubling from %d", from), ""
	if to != 2*from {
		start, each = fmt.Sprintf("going from %d to %d", from, to), " per doubling"
	}
	if s.o.Figure != nil {
		return fmt.Sprintf("%s improves %s %.3g×%s%s", start, s.rate(), p.perDoubling(p.Estimate.Value), each, s.bounds(p, true))
	}
	if s.byTime() {
		return fmt.Sprintf("%s reaches %s %.3g× as fast%s%s%s", start, s.goal(), p.perDoubling(p.Estimate.Value), each, s.clocked(), s.bounds(p, true))
	}
	return fmt.Sprintf("%s brings %.3g× the throughput%s%s", start, p.perDoubling(p.Estimate.Value), each, s.bounds(p, true))
}

// refused returns a clause on the gain of going from the answer to a larger count, with its upper
// bound.
func (s *study) refused(from, to int, p pair) string {
	each, workers := "", float64(to)/float64(from)
	if to != 2*from {
		each = " per doubling"
	}
	ratio := p.Estimate.Value
	likely := ""
	if b := p.comparison().Belief; b != nil && 1-b.AtMost(1) > 1-decision.Sure {
		likely = ", " + Likely(1-b.AtMost(1)) + " likely to be worth it"
	}
	if ratio <= 1 {
		return s.noGain(from, to, p.speed != nil && p.speed.High < 1) + s.clocked() + s.bounds(p, false) + s.although(from, to) + likely
	}
	price := ""
	if s.o.Figure == nil || s.o.Figure.Name == measure.TrainSeconds {
		price = fmt.Sprintf(", for %.3g× the worker-hours", workers/ratio)
	}
	return s.smallGain(to, p.perDoubling(ratio)) + each + s.clocked() + s.bounds(p, false) + price + likely
}

// noGain returns a clause that says that a larger count is no better than a smaller one or, if
// worse is true, that it is worse.
func (s *study) noGain(from, to int, worse bool) string {
	switch {
	case s.o.Figure != nil && worse:
		return fmt.Sprintf("%d workers have a worse %s than %d", to, s.rate(), from)
	case s.o.Figure != nil:
		return fmt.Sprintf("%d have no better %s than %d", to, s.rate(), from)
	case s.byTime() && worse:
		return fmt.Sprintf("%d workers reach %s more slowly than %d", to, s.goal(), from)
	case s.byTime():
		return fmt.Sprintf("%d reach %s no faster than %d", to, s.goal(), from)
	case worse:
		return fmt.Sprintf("%d workers have less throughput than %d", to, from)
	}
	return fmt.Sprintf("%d have no more throughput than %d", to, from)
}

// smallGain returns a clause on the gain at a larger count; ratio is the gain per doubling.
func (s *study) smallGain(to int, ratio float64) string {
	switch {
	case s.o.Figure != nil:
		return fmt.Sprintf("%d would improve %s %.3g×", to, s.rate(), ratio)
	case s.byTime():
		return fmt.Sprintf("%d would reach %s %.3g× as fast", to, s.goal(), ratio)
	}
	return fmt.Sprintf("%d would have %.3g× the throughput", to, ratio)
}

// although returns a clause on the throughput of a larger count whose throughput alone would be
// worth it. It is "" if the time to the target does not decide or the throughput is lower.
func (s *study) although(from, to int) string {
	a, b := s.point(to), s.point(from)
	if !s.byTime() || a == nil || b == nil {
		return ""
	}
	e := a.Of(measure.Throughput).Ratio(b.Of(measure.Throughput)).Estimate
	if e == nil || e.Value < Price(from, to) {
		return ""
	}
	return fmt.Sprintf(", although their throughput is %.3g× as high", e.Value)
}

// clocked returns a note that a ratio of times includes initialisation. The scaling tables show
// ratios of the same runs without it.
func (s *study) clocked() string {
	if s.o.Figure == nil && s.byTime() && s.started {
		return " with initialisation"
	}
	return ""
}

// bounds returns the lower bound of a gain that was taken, the upper bound of one that was not,
// or both if the interval includes kneeGain; "" without an interval.
func (s *study) bounds(p pair, taken bool) string {
	if p.speed == nil {
		return ""
	}
	low, high := p.perDoubling(p.speed.Low), p.perDoubling(p.speed.High)
	switch {
	case low <= kneeGain && kneeGain <= high:
		return fmt.Sprintf(" (%.3g× to %.3g×)", low, high)
	case taken:
		return fmt.Sprintf(" (at least %.3g×)", low)
	}
	return fmt.Sprintf(" (at most %.3g×)", high)
}

// candidate returns the candidate with that many workers, or nil.
func (a *Advice) candidate(workers int) *Candidate {
	i := slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Workers == workers })
	if i < 0 {
		return nil
	}
	return &a.Candidates[i]
}

// measuredPoint returns the point with that many workers; nil if it does not exist or has no speed.
func (s *study) measuredPoint(workers int) *scaling.Point {
	for i := range s.curve.Points {
		if p := &s.curve.Points[i]; p.Workers == workers && s.paced(p) {
			return p
		}
	}
	return nil
}
