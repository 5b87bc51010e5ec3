package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

const (
	// kneeGain is what doubling the workers must bring at least: 1.4 times the
	// throughput, about the square root of 2.
	kneeGain = 1.4
	// Without as many worker counts with as many runs, or a law, medians are
	// ranked and nothing is proven.
	provenCounts, provenRuns = 4, 6
)

// limit is something the user asked for, and by which of a candidate's figures
// it is judged: the figure must not be above (or below) most.
type limit struct {
	of    func(c *Candidate) *Estimate
	most  float64
	floor bool // least, not most
}

// met reports whether the candidate keeps the limit by the middle of its interval.
func (l limit) met(c *Candidate) bool {
	f := l.of(c)
	return f != nil && (!l.floor && f.Value <= l.most || l.floor && f.Value >= l.most)
}

func secondsOf(c *Candidate) *Estimate    { return c.Seconds }
func costOf(c *Candidate) *Estimate       { return c.Cost }
func efficiencyOf(c *Candidate) *Estimate { return c.Efficiency }

// asked are the limits, and their words.
func (s *study) asked() (limits []limit, words []string) {
	if d := s.o.Deadline; d > 0 {
		limits = append(limits, limit{of: secondsOf, most: d})
		words = append(words, "within "+number.ShortSeconds(d))
	}
	if b := s.o.Budget; b > 0 {
		limits = append(limits, limit{of: costOf, most: b})
		words = append(words, "for at most "+money(b, s.Currency))
	}
	if e := s.o.MinEfficiency; e > 0 {
		limits = append(limits, limit{of: efficiencyOf, most: e, floor: true})
		words = append(words, fmt.Sprintf("at an efficiency of %s or more", percent(e)))
	}
	return limits, words
}

// choose answers. What is asked for decides what is best among the candidates
// that are likely to keep all limits: with a deadline the cheapest (the fewest workers
// without prices), with only a budget the fastest, with only an efficiency the
// most workers; without any limit the knee.
//
// Beyond the data may lie limits that no run tells of. A count there is the answer only
// where none up to the largest measured is, and no more than twice that. What would be
// the best by the law is told beside the answer, to be measured first.
func (s *study) choose() {
	proven := 0
	for _, c := range s.Candidates {
		if c.Runs >= provenRuns {
			proven++
		}
	}
	s.Ranking = proven < provenCounts && s.law == nil && len(s.runs) > 0
	if s.Ranking {
		s.warn("%s: measured worker counts are ranked by their medians", wanting(proven))
	}
	if len(s.Candidates) == 0 {
		s.Objective = "any worker count"
		s.Reason = [2]string{"No worker count can be recommended.", "No run of this series reached a steady state, so there is no throughput."}
		if len(s.runs) == 0 {
			s.Reason[1] = "No run has finished successfully yet; `scalebench status` shows how far each has got."
		}
		if s.curve.Measured(measure.RunSeconds) && !slices.ContainsFunc(s.curve.Points, func(p scaling.Point) bool { return p.Of(measure.StepP50).Runs > 0 }) {
			s.Reason[1] = "Its runs report no steps and reach no target. If they do the same work at each worker count, compare their run times in `scalebench scaling`; otherwise have the program report its steps."
		}
		if s.curve.Measured(measure.TokensPerSecond) {
			s.Reason[1] = "Its runs state tokens/s, but not how many tokens a sample has. To count throughput in tokens/s, import them again with `--replace --set workload.sample=token`, or set sample = \"token\" in [workload]."
		}
		return
	}
	limits, words := s.asked()
	if len(limits) == 0 {
		s.knee()
		return
	}
	best, better := s.better()
	s.Objective = best + " " + list(words)
	largest := s.largest()
	chosen, passed := s.best(limits, largest)
	if chosen == nil {
		chosen, passed = s.best(limits, 2*largest)
	}
	farther := ""
	if c, _ := s.best(limits, math.MaxInt); c != nil && c.Workers > largest && (chosen == nil || c.Workers > chosen.Workers) {
		s.Beyond = &c.Workers
		farther = fmt.Sprintf("; %d may (%s likely): measure %d first", c.Workers, Likely(*c.Keeps), min(2*largest, c.Workers))
	}
	if chosen == nil {
		s.Reason = [2]string{s.undecided(words), s.Limits.sentence}
		if s.Beyond == nil {
			farther = s.foresee(limits)
		}
		if s.Beyond != nil {
			s.Reason[0] = s.shown(words) + farther + "."
		}
		return
	}
	s.Workers = &chosen.Workers
	more, odds := "", ""
	if chosen.Keeps != nil {
		odds = " (" + Likely(*chosen.Keeps) + " likely)"
	}
	if passed != nil && better(passed, chosen) { // it was the most workers that was asked for
		more = fmt.Sprintf("; %d would be no faster", passed.Workers)
	}
	s.Reason = [2]string{fmt.Sprintf("Use %s, %s to %s %s%s: %s%s%s.", number.Count(chosen.Workers, "worker"), best, s.does(), list(words), odds, s.figures(chosen), more, farther), s.Limits.sentence}
}

// largest is the most workers that were measured.
func (s *study) largest() int {
	largest := 0
	for _, c := range s.Candidates {
		if c.Basis == Measured {
			largest = max(largest, c.Workers)
		}
	}
	return largest
}

// beats reports whether a candidate is as fast as one with more workers: to the
// target or through the samples where times are known, else in throughput. One
// that reaches the target beats one most of whose runs do not.
func (s *study) beats(few, many *Candidate) bool {
	switch {
	case few.Workers >= many.Workers:
		return false
	case few.Seconds != nil && many.Seconds != nil:
		return few.Seconds.Value <= many.Seconds.Value
	case few.Seconds != nil:
		return many.Basis == Measured && s.batchAt(many.Workers) >= s.lost
	case many.Seconds != nil || few.Throughput == nil || many.Throughput == nil:
		return false
	}
	return few.Throughput.Value >= many.Throughput.Value
}

// does is what the chosen workers are to do, with the target where times count.
func (s *study) does() string {
	switch {
	case s.o.Deadline == 0 && s.o.Budget == 0:
		return "run"
	case s.Goal != "":
		return "reach " + s.goal()
	}
	if s.o.Samples == 0 {
		return "train"
	}
	return fmt.Sprintf("train %s samples", number.Exact(s.o.Samples))
}

// better is the order of what was asked for.
func (s *study) better() (best string, better func(a, b *Candidate) bool) {
	value := func(f *Estimate) float64 {
		if f == nil {
			return math.Inf(1)
		}
		return f.Value
	}
	priced := slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Cost != nil })
	switch {
	case s.o.Deadline > 0 && priced:
		return "the cheapest", func(a, b *Candidate) bool { return value(a.Cost) < value(b.Cost) }
	case s.o.Deadline > 0:
		return "the fewest", func(a, b *Candidate) bool { return a.Workers < b.Workers }
	case s.o.Budget > 0:
		return "the fastest", func(a, b *Candidate) bool { return value(a.Seconds) < value(b.Seconds) }
	}
	return "the most", func(a, b *Candidate) bool { return a.Workers > b.Workers }
}

// undecided says why nothing is chosen: either nothing is likely enough to keep the
// limits, or the runs do not tell what is best of that which may.
func (s *study) undecided(words []string) string {
	var sure, may *Candidate // the best that is likely to, and that is not unlikely to
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Keeps == nil || c.Workers > 2*s.largest() {
			continue
		}
		if *c.Keeps >= enough && (sure == nil || s.worth(c) > s.worth(sure)) {
			sure = c
		}
		if *c.Keeps > 1-enough && (may == nil || s.worth(c) > s.worth(may)) {
			may = c
		}
	}
	if sure == nil || sure == may {
		return s.none(words)
	}
	is := "are"
	if sure.Workers == 1 {
		is = "is"
	}
	return fmt.Sprintf("The runs cannot tell how many workers can %s %s: %s %s %s likely to, %s %s.",
		s.does(), list(words), number.Count(sure.Workers, "worker"), is, Likely(*sure.Keeps), number.Count(may.Workers, "worker"), Likely(*may.Keeps))
}

func (s *study) shown(words []string) string {
	return "No worker count is shown to " + s.does() + " " + list(words)
}

// none says that no candidate keeps the limits, with the one that comes
// closest: the fastest, cheapest or most efficient, by the first limit.
func (s *study) none(words []string) string {
	what := s.shown(words)
	if s.timeless != "" && (s.o.Deadline > 0 || s.o.Budget > 0) {
		return what + ": " + s.timeless + "."
	}
	of, name, figure := efficiencyOf, "most efficient", "efficiency"
	order := func(a, b *Candidate) int { return cmp.Compare(efficiencyOf(b).Value, efficiencyOf(a).Value) }
	switch {
	case s.o.Deadline > 0:
		of, name, figure = secondsOf, "fastest", "time"
		order = func(a, b *Candidate) int { return cmp.Compare(a.Seconds.Value, b.Seconds.Value) }
	case s.o.Budget > 0:
		of, name, figure = costOf, "cheapest", "cost"
		order = func(a, b *Candidate) int { return cmp.Compare(a.Cost.Value, b.Cost.Value) }
	}
	var known []*Candidate
	for i := range s.Candidates {
		if of(&s.Candidates[i]) != nil {
			known = append(known, &s.Candidates[i])
		}
	}
	if len(known) == 0 {
		return what + ": no " + figure + " is known."
	}
	closest := slices.MinFunc(known, order)
	return fmt.Sprintf("%s; the %s is %s: %s.", what, name, number.Count(closest.Workers, "worker"), s.figures(closest))
}

// pace is what a doubling must raise, or else, as time, lower: the time to the
// target, initialisation included, where there is one, else throughput. Runs that
// miss the target rank behind those that reach it (scaling.Reached).
func (s *study) pace() (of func(p *scaling.Point) *scaling.Estimate, faster func(a, b *scaling.Estimate) *scaling.Estimate, name string) {
	if s.Goal == "" || s.timeless != "" {
		return rate, scaling.Quotient, "the throughput"
	}
	of = func(p *scaling.Point) *scaling.Estimate {
		t := s.reached(p.Workers)
		if t == nil {
			return nil // too many runs miss it
		}
		var xs []float64
		var nodes [][]string
		for _, o := range s.runs[p.Workers] {
			if seconds, ok := o.Value(s.Goal); ok {
				xs = append(xs, seconds+s.initAt(p.Workers))
				if s.curve.ByNode {
					nodes = append(nodes, o.Hosts)
				}
			}
		}
		r, err := scaling.ReachedOn(xs, nodes, s.o.Confidence)
		if err != nil {
			return nil
		}
		return r.Median
	}
	return of, func(a, b *scaling.Estimate) *scaling.Estimate { return scaling.Quotient(b, a) }, "the speed to " + s.goal()
}

// unjudged says why what a point brings is not known.
func (s *study) unjudged(p *scaling.Point) string {
	switch {
	case s.Goal == "" || s.timeless != "":
		return fmt.Sprintf("no run on %s has a throughput", number.Count(p.Workers, "worker"))
	case p.Of(s.Goal).Runs == 0:
		return fmt.Sprintf("no run on %s says when it reached %s", number.Count(p.Workers, "worker"), s.goal())
	}
	return fmt.Sprintf("too many runs on %s miss %s", number.Count(p.Workers, "worker"), s.goal())
}

// loads reports whether so many workers train faster than others and only their
// initialisation makes them no faster: the table shows both times.
func (s *study) loads(workers, than int) bool {
	var own, other *Candidate
	for i := range s.Candidates {
		switch c := &s.Candidates[i]; c.Workers {
		case workers:
			own = c
		case than:
			other = c
		}
	}
	return own != nil && other != nil && own.Training != nil && other.Training != nil && own.Seconds != nil && other.Seconds != nil &&
		own.Training.Value < other.Training.Value && own.Seconds.Value >= other.Seconds.Value
}

// knee recommends the most workers that were measured and still gain from their
// last doubling.
func (s *study) knee() {
	pace, faster, name := s.pace()
	s.Objective = fmt.Sprintf("the most measured workers whose last doubling brings more than %g× %s", kneeGain, name)
	var chosen, before, fastest *scaling.Point
	var gain, stop string
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		own := pace(p)
		if own == nil {
			if before != nil && stop == "" {
				stop = s.unjudged(p)
			}
			continue
		}
		if before == nil {
			chosen, before, fastest = p, p, p
			continue
		}
		ratio := faster(own, pace(before))
		if ratio == nil {
			if stop == "" {
				stop = fmt.Sprintf("the gain from %s is not known", number.Count(p.Workers, "worker"))
			}
			continue
		}
		over := faster(own, pace(fastest))
		step := s.doubling(before.Workers, p.Workers, *ratio)
		switch least := step.least; {
		case over == nil || over.Value <= 1: // whatever it brings over the point before
			if stop == "" {
				stop = fmt.Sprintf("%d were no faster than %d", p.Workers, fastest.Workers)
				if over != nil && over.Interval != nil && over.Interval.High < 1 {
					stop = fmt.Sprintf("%d workers are slower than %d", p.Workers, fastest.Workers)
				}
				if s.loads(p.Workers, fastest.Workers) {
					stop += ", initialisation included"
				}
			}
		case least > kneeGain:
			chosen, gain, stop = p, step.gain, ""
		case stop == "":
			stop = step.stop
		}
		before = p
		if over != nil && over.Value > 1 {
			fastest = p
		}
	}
	if chosen == nil {
		s.Reason = [2]string{fmt.Sprintf("No worker count can be recommended: at every one, too many runs miss %s.", s.goal()), s.Limits.sentence}
		return
	}
	s.Workers = &chosen.Workers
	use := "Use " + number.Count(chosen.Workers, "worker")
	if s.Goal != "" && s.timeless != "" {
		use += " (by throughput alone: " + s.timeless + ")"
	}
	if t := s.reached(chosen.Workers); t != nil && s.timeless == "" && t.Reached() < t.Runs {
		use += fmt.Sprintf(" (%d of %d runs reach %s)", t.Reached(), t.Runs, s.goal())
	}
	switch {
	case gain == "" && stop == "":
		stop = "nothing else was measured"
	case stop == "":
		stop = "more workers were not measured"
	}
	why := stop
	if gain != "" {
		why = gain + "; " + stop
	}
	s.Reason = [2]string{use + ": " + why + ".", s.Limits.sentence}
}

// A step is what going from one worker count to the next brings: per doubling,
// for sure or, in a ranking, by the medians, and in words.
type step struct {
	least      float64
	gain, stop string
}

// doubling is the step between two measured worker counts, of which c is the
// ratio of speeds. Where it is no doubling, what it brings is said for one.
func (s *study) doubling(from, to int, c scaling.Estimate) step {
	factor := float64(to) / float64(from)
	perDoubling := func(ratio float64) float64 { return math.Pow(ratio, 1/math.Log2(factor)) }
	ratio := perDoubling(c.Value)
	least, sure := ratio, ""
	if in := c.Interval; in != nil && !s.Ranking {
		least = perDoubling(in.Low)
		sure = fmt.Sprintf(" (at least %.3g×)", least)
	} else if !s.Ranking {
		least = 0 // too few runs to show it
	}
	start, each := fmt.Sprintf("doubling from %d", from), ""
	if to != 2*from {
		start, each = fmt.Sprintf("going from %d to %d", from, to), " per doubling"
	}
	does := "trains"
	if s.Goal != "" && s.timeless == "" {
		does = "reaches " + s.goal()
	}
	return step{least,
		fmt.Sprintf("%s %s %.3g× as fast%s%s", start, does, ratio, each, sure),
		fmt.Sprintf("%d would be %.3g× as fast%s%s, for %.3g× the worker-hours", to, ratio, each, sure, factor/c.Value)}
}

// wanting says how much a proof needs and that so many worker counts, too few,
// have it.
func wanting(proven int) string {
	have := fmt.Sprintf("%d have", proven)
	switch proven {
	case 0:
		have = "none has"
	case 1:
		have = "one has"
	}
	return fmt.Sprintf("a proof needs %d worker counts with %d runs or more each; %s", provenCounts, provenRuns, have)
}
