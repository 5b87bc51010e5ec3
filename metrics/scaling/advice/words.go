package advice

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// figures returns a candidate's values, in words, that the user's limits are about.
func (s *study) figures(c *Candidate) string {
	var parts []string
	sure := percent(s.o.Confidence)
	equal := s.withoutScatter(c) // then there is no bound
	add := func(text, atMost string, bound *float64, show func(float64) string) {
		if bound != nil && !equal {
			text += ", " + atMost + " " + show(*bound)
		}
		parts = append(parts, text)
	}
	if s.o.Deadline > 0 || s.o.Budget > 0 {
		if f := c.Seconds; f != nil {
			show := number.ShortSeconds
			if f.High != nil && !equal {
				show = number.Alike(show, f.Value, *f.High)
			}
			add(show(f.Value)+" "+string(s.Clock()), "at most", f.High, show)
		}
		if f := c.Cost; f != nil {
			show := func(v float64) string { return money(v, s.Currency) }
			add(show(f.Value), "at most", f.High, show)
		}
	}
	if f := c.Efficiency; f != nil && s.o.MinEfficiency > 0 {
		add("an efficiency of "+percent(f.Value), "at least", f.Low, percent)
	}
	if text := s.missing(c); text != "" && c.Seconds != nil && (s.o.Deadline > 0 || s.o.Budget > 0) {
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ") + " (" + string(c.Basis)
	if f := c.main(); f != nil && f.Low != nil && !equal {
		text += ", " + sure + " confidence"
		if c.Basis == Extrapolated {
			text += ", even if throughput stops growing"
		}
		return text + ")"
	}
	return text + ", without an interval)"
}

// Likely returns a probability in words: "97 %", never "100 %" or "0 %".
func Likely(p float64) string { return decision.Likely(p) }

// missing returns, if some runs miss the target, a clause on how many runs of a measured count
// reach it (in time, if there is a deadline) or on the expected share that misses it at other
// counts. It returns "" if none is known to miss it.
func (s *study) missing(c *Candidate) string {
	if p := s.point(c.Workers); p != nil && p.Of(s.Goal).Runs > 0 {
		t := p.Of(s.Goal)
		in, all := t.Reached(), t.Runs
		if in == all {
			return ""
		}
		if s.o.Deadline == 0 {
			return fmt.Sprintf("%d of %d runs reach it", in, all)
		}
		in = 0
		for _, seconds := range t.Values {
			if seconds+s.initAt(c.Workers) <= s.o.Deadline {
				in++
			}
		}
		return fmt.Sprintf("%d of %d runs were in time", in, all)
	}
	if c.Miss == nil {
		return ""
	}
	return fmt.Sprintf("%s of runs miss it, at most %s", percent(c.Miss.Value), percent(*c.Miss.High))
}

func money(x float64, currency string) string { return number.Money(x) + " " + currency }

// allowed formats an amount that the user gave: with two decimals, or with all of its digits if
// it has more.
func allowed(x float64, currency string) string {
	if exact := strconv.FormatFloat(x, 'f', 2, 64); number.Exact(x) == strings.TrimSuffix(strings.TrimRight(exact, "0"), ".") {
		return exact + " " + currency
	}
	return number.Exact(x) + " " + currency
}

func list(words []string) string { return number.List(words, "and") }

func percent(x float64) string { return number.Short(100*x, 3) + " %" }
