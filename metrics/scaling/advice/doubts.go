package advice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// Sentences returns the two sentences of Reason as one text.
func (a *Advice) Sentences() string { return strings.TrimSpace(a.Reason[0] + " " + a.Reason[1]) }

// Warnings returns the warnings of all series. With several series, each warning names its
// series.
func Warnings(list []*Advice) []scaling.Remark {
	var doubts []scaling.Remark
	for _, a := range list {
		for _, w := range a.Warnings {
			r := scaling.Remark{Text: w}
			if len(list) > 1 {
				r.Series = a.Series
			}
			doubts = append(doubts, r)
		}
	}
	return doubts
}

const (
	// fewCounts is the number of worker counts with intervals that are needed to see the shape of
	// the curve between them.
	fewCounts = 4
	// fewRuns is the number of runs that an interval at 95 % needs.
	fewRuns = 6
	// unseen is the relative change by drift that cannot be excluded if runs have no time stamps.
	unseen = 0.10
)

const (
	apart   = "the worker counts were measured at different times, and a drift of the machine would look like a gain"
	untimed = "the runs do not say when they were made, so a drift of the machine cannot be excluded"
)

// caveat returns the reason why the comparison p of points a and b may be wrong; nil if there is
// none.
func (s *study) caveat(p pair, a, b *scaling.Point) *decision.Caveat {
	switch {
	case p.Estimate == nil:
		return nil
	case p.Refusal == scaling.PlanOrder:
		return &decision.Caveat{Kind: decision.Order, Text: apart, Changes: true}
	case p.Refusal == scaling.Drifting:
		return &decision.Caveat{Kind: decision.Drift, Text: "the machine drifted while the worker counts were measured: " + p.Why, Changes: true}
	case p.Refusal == scaling.FewRuns && p.speed == nil:
		return &decision.Caveat{Kind: decision.FewRuns, Text: s.tooFew(a, b, p.Why), Changes: true}
	case p.constant:
		return s.constants()
	case p.Refusal == scaling.TwoGroups:
		return &decision.Caveat{Kind: decision.TwoGroups, Text: p.Why, Changes: true}
	case p.Refusal == scaling.Missing:
		return &decision.Caveat{Kind: decision.Misses, Text: p.Why, Changes: true}
	case p.Order == scaling.OrderUnknown:
		near := math.Abs(math.Log(p.comparison().Value)) < math.Log(1+unseen)
		return &decision.Caveat{Kind: decision.Order, Text: untimed, Changes: near}
	}
	return nil
}

// constant reports whether all runs of a point have the same speed.
func (s *study) constant(p *scaling.Point) bool {
	return s.pace(p).Constant() || s.o.MinEfficiency > 0 && p.Of(measure.Throughput).Constant()
}

// withoutScatter reports whether the value of a measured candidate that the limits are about has
// an interval without width.
func (s *study) withoutScatter(c *Candidate) bool {
	p, b := s.point(c.Workers), s.curve.Base
	if p == nil {
		return false
	}
	return s.constant(p) || s.o.MinEfficiency > 0 && b != nil && b.Workers != c.Workers && b.Of(measure.Throughput).Constant()
}

// constants returns the doubt about counts whose runs all have the same speed; nil if there are
// none.
func (s *study) constants() *decision.Caveat {
	var counts []string
	var equal []*scaling.Summary
	last, what := 0, s.rate()
	for i := range s.curve.Points {
		if p := &s.curve.Points[i]; s.constant(p) {
			counts = append(counts, fmt.Sprint(p.Workers))
			last = p.Workers
			equal = append(equal, s.pace(p), p.Of(measure.Throughput))
		}
	}
	if len(counts) == 0 {
		return nil
	}
	if s.byTime() {
		what = "time to " + s.goal()
	}
	of := list(counts) + " workers"
	if len(counts) == 1 {
		of = number.Count(last, "worker")
	}
	return &decision.Caveat{Kind: decision.Constant, Changes: true,
		Text: fmt.Sprintf("%s of %s have exactly the same %s, so there is no interval: check whether the values were copied or rounded", scaling.EqualRuns(equal...), of, what)}
}

// tooFew returns a clause that says which of two counts has too few runs for an interval.
func (s *study) tooFew(a, b *scaling.Point, why string) string {
	for _, p := range []*scaling.Point{b, a} {
		if n := len(s.pace(p).Values); n < fewRuns {
			return fmt.Sprintf("an interval needs %d runs%s, and %s", fewRuns, s.reaching(), s.have(p.Workers, n))
		}
	}
	return why
}

func (s *study) have(workers, runs int) string {
	has := "have"
	if workers == 1 {
		has = "has"
	}
	return fmt.Sprintf("%s %s %d", number.Count(workers, "worker"), has, runs)
}

// enoughRuns reports whether the value that decides has an interval, or would have one if its runs
// differed.
func (s *study) enoughRuns(c *Candidate) bool {
	f := c.main()
	return f != nil && (f.Low != nil || s.withoutScatter(c))
}

// counted returns a doubt if so few counts were measured that another one, which could be
// measured, may be better; nil otherwise.
func (s *study) counted() []decision.Caveat {
	full := 0
	for i := range s.Candidates {
		if c := &s.Candidates[i]; c.Basis == Measured && s.enoughRuns(c) {
			full++
		}
	}
	if full >= fewCounts || s.law != nil || s.unmeasured() == 0 {
		return nil
	}
	have := fmt.Sprintf("%d worker counts have", full)
	switch full {
	case 0:
		have = "no worker count has"
	case 1:
		have = "one worker count has"
	}
	return []decision.Caveat{{Kind: decision.FewCounts, Text: fmt.Sprintf("%s the %d runs of an interval, and %d are needed to know the shape of the curve", have, fewRuns, fewCounts), Changes: true}}
}

// ordered returns the doubts about an answer within limits that follow from when the runs were
// made. If time is true, a trend over the whole study counts too, because times change with it.
func (s *study) ordered(time bool) (list []decision.Caveat) {
	add := func(d decision.Caveat) {
		i := slices.IndexFunc(list, func(e decision.Caveat) bool { return e.Kind == d.Kind && e.Text == d.Text })
		switch {
		case d.Kind != decision.Order && d.Kind != decision.Drift:
		case i < 0:
			list = append(list, d)
		default:
			list[i].Changes = list[i].Changes || d.Changes
		}
	}
	var before *scaling.Point
	for i := range s.curve.Points {
		p := &s.curve.Points[i]
		if !s.paced(p) {
			continue
		}
		if before != nil {
			pair := s.over(p, before)
			if d := s.caveat(pair, p, before); d != nil {
				d.Changes = d.Changes && d.Text != untimed
				add(*d)
			}
			for _, f := range pair.Drift {
				if f.Link == scaling.DriftTrend && time {
					add(decision.Caveat{Kind: decision.Drift, Changes: s.tight(f.Change),
						Text: fmt.Sprintf("throughput changed by %s while the study ran, and times change with it", percent(math.Abs(f.Change)))})
				}
			}
		}
		before = p
	}
	return list
}

// tight reports whether some candidate is so close to a limit that a relative change of its speed
// decides whether it meets the limit.
func (s *study) tight(change float64) bool {
	limits, _ := s.asked()
	by := 1 + math.Abs(change)
	for i := range s.Candidates {
		for _, l := range limits {
			if f := l.of(&s.Candidates[i]); f != nil && l.most/by < f.Value && f.Value < l.most*by {
				return true
			}
		}
	}
	return false
}

// Uncertain says why the answer is provisional: the doubts that can change it, or else the count
// that may be better. It begins with a space, and is "" if the answer is not provisional.
func (a *Advice) Uncertain() string {
	var why []string
	for _, d := range a.Caveats {
		if d.Changes {
			why = append(why, d.Text)
		}
	}
	if len(why) == 0 && a.Workers != nil {
		for _, c := range a.Undecided {
			why = append(why, a.contender(c))
			break
		}
	}
	if len(why) == 0 {
		return ""
	}
	return " Provisional because " + strings.Join(why, "; ") + "."
}

// contender returns a clause with the probability that another count is better than the answer
// or, with limits, that it meets them.
func (a *Advice) contender(c Contender) string {
	workers := number.Count(c.Workers, "worker")
	if a.Limited() {
		return fmt.Sprintf("%s may be the better choice (%s likely to keep the limits%s)", workers, Likely(c.Probability), a.unlessNewLimit(a.candidate(c.Workers)))
	}
	may := "may be worth it"
	if c.Workers < *a.Workers {
		may = "may be enough"
	}
	return fmt.Sprintf("%s %s by %s (%s likely by a margin of more than %s)", workers, may, a.compared, Likely(c.Probability), number.ExactPercent(decision.Equivalent))
}
