package advice

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// limit is a limit that the user set on one value of a candidate: the value must be at most (or,
// for a floor, at least) most.
type limit struct {
	of    func(c *Candidate) *Estimate
	most  float64
	floor bool   // most is a minimum
	name  string // name of the limited value
	best  string // the candidate with the best value, in words
}

// met reports whether the candidate's value, without its interval, meets the limit.
func (l limit) met(c *Candidate) bool {
	f := l.of(c)
	return f != nil && (!l.floor && f.Value <= l.most || l.floor && f.Value >= l.most)
}

func secondsOf(c *Candidate) *Estimate    { return c.Seconds }
func costOf(c *Candidate) *Estimate       { return c.Cost }
func efficiencyOf(c *Candidate) *Estimate { return c.Efficiency }

// asked returns the limits that the user set, and their wording for the answer.
func (s *study) asked() (limits []limit, words []string) {
	if d := s.o.Deadline; d > 0 {
		limits = append(limits, limit{of: secondsOf, most: d, name: "time", best: "fastest"})
		words = append(words, "within "+number.ExactSeconds(d))
	}
	if b := s.o.Budget; b > 0 {
		limits = append(limits, limit{of: costOf, most: b, name: "cost", best: "cheapest"})
		words = append(words, "for at most "+allowed(b, s.Currency))
	}
	if e := s.o.MinEfficiency; e > 0 {
		limits = append(limits, limit{of: efficiencyOf, most: e, floor: true, name: "efficiency", best: "most efficient"})
		words = append(words, fmt.Sprintf("at an efficiency of %s or more", number.ExactPercent(e)))
	}
	return limits, words
}

// choose sets the answer. Among the candidates that probably meet all limits, it takes the
// cheapest if there is a deadline (the one with the fewest workers if prices are missing). With
// only a budget it takes the fastest, and with only a minimum efficiency the one with the most
// workers. Without limits, see byDefault.
func (s *study) choose() {
	if len(s.Candidates) == 0 {
		s.nothing()
		s.Caveats = append(s.Caveats, s.data...)
		for _, d := range s.data {
			s.Reason[1] += " " + strings.ToUpper(d.Text[:1]) + d.Text[1:] + "."
		}
		return
	}
	limits, words := s.asked()
	if len(limits) == 0 {
		s.byDefault()
		return
	}
	s.byLimits(limits, words)
	s.Unproven = s.unproven(limits)
}

// imported reports whether all runs were imported. No further runs are then suggested.
func (s *study) imported() bool {
	return scaling.AllImported(slices.Concat(slices.Collect(maps.Values(s.runs))...))
}

// nothing sets the answer for a series without candidates: the reason why none exists.
func (s *study) nothing() {
	s.Objective = "any worker count"
	s.Reason = [2]string{"No worker count can be recommended.", "No run of this series reached a steady state, so there is no throughput."}
	if s.o.Figure != nil {
		s.Reason[1] = "No run of this series has a " + s.rate() + " above 0."
		return
	}
	if len(s.runs) == 0 {
		s.Reason[1] = "No run has finished successfully yet."
		if slices.ContainsFunc(s.o.Warnings, scaling.IsUnread) {
			s.Reason[1] = "No run that could be read has finished successfully."
		}
	} else if s.imported() {
		s.Reason[1] = "Its imported runs state neither a throughput nor a time to a target."
		if s.curve.Measured(measure.TrainSeconds) {
			s.Reason[1] += " If each is a whole training, " + s.asking(measure.TrainSeconds) + " compares their times."
		}
	}
	if s.curve.Measured(measure.RunSeconds) && !slices.ContainsFunc(s.curve.Points, func(p scaling.Point) bool { return p.Of(measure.StepP50).Runs > 0 }) {
		s.Reason[1] = "Its runs report no steps and reach no target."
		s.warn("if they do the same work at each worker count, %s compares their run times", s.asking(measure.RunSeconds))
	}
	if s.curve.Measured(measure.TokensPerSecond) {
		s.Reason[1] = "Its runs state tokens/s, but not how many tokens a sample has."
		s.warn("to count throughput in tokens/s, import the runs again with --replace --set workload.sample=token, or set sample = \"token\" in [workload]")
	}
}

// asking returns the command that advises by another measure.
func (s *study) asking(name string) string {
	return fmt.Sprintf("`scalebench advise %s -m %s`", s.study, name)
}

// byLimits sets the answer if there are limits. It chooses among the counts up to the largest
// measured one. If none of them qualifies, it considers up to twice as many workers, but no more,
// because something that no run shows may limit scaling there. A larger count that would be the
// best according to the fitted model is only named, as one to measure first.
func (s *study) byLimits(limits []limit, words []string) {
	best, better := s.better()
	s.Objective = best + " " + list(words)
	largest := s.largest()
	doubts := append(append(slices.Clone(s.data), s.counted()...), s.ordered(s.o.Deadline > 0 || s.o.Budget > 0)...)
	if d := s.constants(); d != nil {
		doubts = append(doubts, *d)
	}
	decide := func(upTo int, measured bool) (decision.Result, *Candidate) {
		return s.decideUpTo(limits, doubts, upTo, measured)
	}
	r, chosen := decide(largest, false)
	if chosen == nil && s.law != nil && s.law.HoldOut != nil && s.law.HoldOut.Missed() {
		// A model that was wrong about the largest count is not trusted between the measured
		// counts either.
		r, chosen = decide(largest, true)
	}
	if chosen == nil {
		r, chosen = decide(2*largest, false)
	}
	farther := ""
	if _, c := decide(math.MaxInt, false); c != nil && c.Workers > largest && c.Keeps != nil && (chosen == nil || c.Workers > chosen.Workers) && s.allowed(min(2*largest, c.Workers)) {
		s.Beyond = &c.Workers
		farther = s.perhaps(c)
	}
	if s.o.MinEfficiency > 0 && chosen != nil && slices.ContainsFunc(doubts, func(d decision.Caveat) bool { return d.Changes && d.Text == apart }) {
		// An efficiency compares worker counts. If they were measured at different times, a
		// change of the machine may explain all of the difference.
		s.Caveats = append(s.Caveats, r.Caveats...)
		s.Reason = [2]string{s.shown(words) + ": " + apart + ".", s.Limits.sentence}
		s.Beyond = nil
		return
	}
	s.take(r, func(i int) int { return s.Candidates[i].Workers })
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
	chosen = s.candidate(*s.Workers)
	passed := (*Candidate)(nil) // a candidate that would be better but may not meet the limits
	if r.Passed >= 0 && better(&s.Candidates[r.Passed], chosen) {
		passed = &s.Candidates[r.Passed]
	}
	if chosen.Keeps == nil {
		s.Probability = nil // of the decision, which took the median for the value
	}
	s.addCaveats(chosen, passed)
	s.Provisional = s.Provisional || slices.ContainsFunc(s.Caveats, func(d decision.Caveat) bool { return d.Changes })
	more, odds, use := "", "", "Use "
	if s.Provisional {
		use = "Provisional: use "
	}
	if farther == "" {
		farther = s.rival(chosen)
	}
	if chosen.Keeps != nil {
		odds = " (" + s.odds(chosen) + ")"
	}
	if passed != nil { // the question was for the most workers
		best, more = "the fastest", "; "+s.noFaster(chosen, passed)
	}
	s.Reason = [2]string{fmt.Sprintf("%s%s, %s to %s %s%s: %s%s%s.%s", use, number.Count(chosen.Workers, "worker"), best, s.does(), list(words), odds, s.figures(chosen), more, farther, s.Uncertain()), s.Limits.sentence}
}

// decideUpTo decides between the candidates up to a worker count. If measured is true, only
// measured candidates can be chosen. The candidate is nil if none is.
func (s *study) decideUpTo(limits []limit, doubts []decision.Caveat, upTo int, measured bool) (decision.Result, *Candidate) {
	q := s.question(limits, doubts, upTo)
	for i := range q.Options {
		if measured && !q.Options[i].Measured {
			q.Options[i].Keeps = nil
		}
	}
	r := decision.Decide(q)
	if r.Chosen < 0 {
		return r, nil
	}
	return r, &s.Candidates[r.Chosen]
}

// addCaveats adds the doubts that could make another count the answer.
func (s *study) addCaveats(chosen, passed *Candidate) {
	switch {
	case chosen.Basis == Extrapolated:
		s.Caveats = append(s.Caveats, decision.Caveat{Kind: decision.Beyond, Changes: true,
			Text: fmt.Sprintf("%s were not measured, and a limit may lie beyond the %d that were", number.Count(chosen.Workers, "worker"), s.largest())})
	case passed != nil && s.mayBeFaster(passed, chosen):
		s.Undecided = append(s.Undecided, Contender{passed.Workers, *passed.Keeps})
		s.Provisional = true
	case chosen.Keeps == nil && !s.withoutScatter(chosen):
		s.Caveats = append(s.Caveats, decision.Caveat{Kind: decision.FewRuns, Changes: true,
			Text: fmt.Sprintf("an interval needs %d runs, and %s", fewRuns, s.have(chosen.Workers, chosen.Runs))})
	}
}

// noFaster returns a clause that says that a larger candidate is not faster than the answer, in
// terms of what beats compares.
func (s *study) noFaster(chosen, larger *Candidate) string {
	switch {
	case chosen.Seconds != nil && s.Goal != "":
		return fmt.Sprintf("%d would reach %s no faster", larger.Workers, s.goal())
	case chosen.Seconds != nil:
		return fmt.Sprintf("%d would train %s samples no faster", larger.Workers, number.Exact(s.o.Samples))
	case s.o.Figure != nil:
		return fmt.Sprintf("%d would have no better %s", larger.Workers, s.rate())
	}
	return fmt.Sprintf("%d would have no more throughput", larger.Workers)
}

// mayBeFaster reports whether a may be faster than b according to the interval of a.
func (s *study) mayBeFaster(a, b *Candidate) bool {
	switch {
	case a.Keeps == nil:
		return false
	case a.Seconds != nil && b.Seconds != nil:
		return a.Seconds.Low == nil || *a.Seconds.Low < b.Seconds.Value
	case a.Throughput != nil && b.Throughput != nil:
		return a.Throughput.High == nil || *a.Throughput.High > b.Throughput.Value
	}
	return false
}

// rival returns a clause that names another count: one that may be better than the answer or, if
// the answer itself is uncertain, one that is more likely to meet the limits.
func (s *study) rival(chosen *Candidate) string {
	for _, u := range s.Undecided {
		c := s.candidate(u.Workers)
		if c == nil || c.Keeps == nil || chosen.Keeps == nil {
			continue
		}
		if *c.Keeps > *chosen.Keeps {
			return fmt.Sprintf("; %d are surer (%s)", c.Workers, s.odds(c))
		}
		return fmt.Sprintf("; %d may, too (%s)", c.Workers, s.odds(c))
	}
	return ""
}

// question returns the candidates in the form that package decision takes. A measured candidate
// without an interval from runs or a model is taken to meet the limits if its medians do.
func (s *study) question(limits []limit, doubts []decision.Caveat, upTo int) decision.Question {
	q := decision.Question{Limits: true, UpTo: upTo, Caveats: doubts, Sure: s.o.Sure,
		Beats: func(i, j int) bool { return s.beats(&s.Candidates[i], &s.Candidates[j]) }}
	yes, no := 1.0, 0.0
	for i := range s.Candidates {
		c := &s.Candidates[i]
		o := decision.Option{Size: c.Workers, Runs: c.Runs, Measured: c.Basis == Measured, Keeps: c.Keeps, Worth: s.worth(c)}
		if c.Keeps == nil && c.Basis == Measured && (s.law == nil || s.withoutScatter(c)) {
			o.Keeps = &yes
			if slices.ContainsFunc(limits, func(l limit) bool { return !l.met(c) }) {
				o.Keeps = &no
			}
		}
		q.Options = append(q.Options, o)
	}
	return q
}

// largest returns the largest measured worker count.
func (a *Advice) largest() int {
	largest := 0
	for _, c := range a.Candidates {
		if c.Basis == Measured {
			largest = max(largest, c.Workers)
		}
	}
	return largest
}

// beats reports whether a candidate is at least as fast as one with more workers. It compares
// times if they are known, and else throughputs. A candidate that reaches the target beats a
// measured one at whose batch at least half of the runs miss it.
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

// does returns the chosen workers' task in words, with the target if times count.
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

// better returns the criterion of the question in words, and a function that reports whether a is
// better than b by it.
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

// undecided returns the sentence for the case that nothing is chosen. Either no candidate is
// likely enough to meet the limits, or the runs cannot tell which of the possible ones is best.
func (s *study) undecided(words []string) string {
	var sure, may *Candidate // the best candidate that is likely to meet the limits, and the best that is not unlikely to
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
		return s.noneMeetsLimits(words)
	}
	is := "are"
	if sure.Workers == 1 {
		is = "is"
	}
	return fmt.Sprintf("The runs cannot tell how many workers can %s %s: %s %s %s, %s %s.",
		s.does(), list(words), number.Count(sure.Workers, "worker"), is, s.oddsTo(sure, " to"), number.Count(may.Workers, "worker"), strings.Replace(s.odds(may), " likely", "", 1))
}

func (s *study) shown(words []string) string {
	return "No worker count is shown to " + s.does() + " " + list(words)
}

// noneMeetsLimits returns the sentence for the case that no candidate meets the limits. With several limits
// that exclude each other, it names a count for each. Otherwise it names the count that comes
// closest: to a limit that no count meets, else to the first one.
func (s *study) noneMeetsLimits(words []string) string {
	what := s.shown(words)
	if s.timeless != "" && (s.o.Deadline > 0 || s.o.Budget > 0) {
		return what + ": " + s.timeless + "."
	}
	limits, _ := s.asked()
	if text := s.conflict(limits, words); text != "" {
		return what + text + "."
	}
	missed, name := limits[0], limits[0].best
	if u := s.unmet(limits); u != nil {
		missed, name = *u, u.best
	}
	var known []*Candidate
	for i := range s.Candidates {
		if missed.of(&s.Candidates[i]) != nil {
			known = append(known, &s.Candidates[i])
		}
	}
	if len(known) == 0 {
		return what + ": no " + missed.name + " is known."
	}
	closest := slices.MinFunc(known, func(a, b *Candidate) int {
		if missed.floor {
			a, b = b, a
		}
		return cmp.Compare(missed.of(a).Value, missed.of(b).Value)
	})
	odds := ""
	if closest.Keeps != nil {
		odds = ", " + s.oddsTo(closest, " to")
	}
	return fmt.Sprintf("%s; the %s is %s%s: %s.", what, name, number.Count(closest.Workers, "worker"), odds, s.figures(closest))
}
