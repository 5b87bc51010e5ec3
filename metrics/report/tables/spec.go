package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

// Spec is what the runs say of each amount of each resource, for people: first one
// resource at a time, then the combinations. how is the command that measures one
// beside the reference; "" for none.
func Spec(a sensitivity.Answer, how func(at map[string]scaling.Value) string) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Key: "resource"}, {Key: "amount", Right: true}, {Key: "ratio", Head: "of the " + gained(a.Measure), Right: true}, {Key: "runs"}, {Key: "verdict"}, {Key: "bound"}}}
	for _, f := range a.Factors {
		for _, l := range f.Levels {
			verdict, ratio := string(l.Verdict), Estimate(l.Ratio, number.Percent, false)
			switch {
			case l.At == f.Reference:
				verdict, ratio = "all of it", number.Percent(1)
			case l.Runs == 0:
				verdict = "out of memory"
			}
			t.Add(last(f.Key), Amount(f.Key, l.At), ratio, table.NonZero(l.Runs), verdict, bound(l.Bound))
		}
	}
	for _, c := range a.Together {
		verdict := string(c.Verdict)
		switch {
		case a.Spec != nil && sensitivity.Same(c.At, a.Spec.At):
			verdict += ", recommended"
		case c.Runs == 0:
			verdict = "out of memory"
		}
		t.Add("together", Amounts(c.At, a.Keys()), Estimate(c.Ratio, number.Percent, false), table.NonZero(c.Runs), verdict, bound(c.Bound))
	}
	if a.Value != nil {
		value, interval := Spread(a.Value.Value, a.Value.Interval, a.Measure.Text)
		unit := ""
		if a.Measure.Unit != "s" && a.Measure.Unit != "" {
			unit = " " + a.Measure.Unit
		}
		t.Notes = append(t.Notes, fmt.Sprintf("Base: %s, %s %s %s%s.", Amounts(a.Reference.At, a.Keys()), a.Measure.Title, value, interval, unit))
	}
	if n := len(a.Course); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Drift: runs with all of it became %s while two blocks were run (median of %s; %s to %s).",
			sensitivity.Became(sensitivity.Middle(a.Course)), number.Count(n, "pair"), sensitivity.Became(a.Course[0]), sensitivity.Became(a.Course[n-1])))
	}
	t.Notes = append(t.Notes, bounds(a)...)
	for _, n := range a.Next {
		text := "Measure next: " + Amounts(n.At, a.Keys())
		if n.Verdict != "" {
			text = "More runs would decide: " + Amounts(n.At, a.Keys())
		}
		t.Notes = append(t.Notes, text+by(how(n.At)))
	}
	return t
}

// SpecWarnings are the warnings on a series and the doubts about its combinations' runs, a sentence each.
func SpecWarnings(a sensitivity.Answer) []string {
	list := slices.Clone(a.Warnings)
	for _, d := range a.Doubts {
		where := Amounts(d.At[0], a.Keys())
		if n := len(d.At) - 1; n > 0 {
			where += " and " + number.Count(n, "other combination")
		}
		list = append(list, where+": "+d.Text)
	}
	return list
}

// bound is what holds runs up, in a word.
func bound(b sensitivity.Bound) any {
	return cmp.Or(b.Of, "not known")
}

// bounds are the evidence on what holds runs up: with all of everything, and with the
// largest amount of each resource that is not enough. What is not known is said once.
func bounds(a sensitivity.Answer) []string {
	var list, unknown []string
	say := func(where string, b sensitivity.Bound) {
		switch {
		case b.Of != "":
			list = append(list, fmt.Sprintf("Bound, %s: %s (%s).", where, b.Of, b.Why))
		case b.Why != "" && !slices.Contains(unknown, b.Why):
			unknown = append(unknown, b.Why)
			list = append(list, fmt.Sprintf("Bound, %s: not known (%s).", where, b.Why))
		}
	}
	if a.Value != nil {
		say("with all of it", a.Reference.Bound)
	}
	for _, f := range a.Factors {
		for _, l := range f.Levels {
			if l.At != f.Reference && l.Verdict != sensitivity.Enough {
				say(last(f.Key)+"="+Amount(f.Key, l.At), l.Bound)
				break
			}
		}
	}
	return list
}

// by ends a note with a command.
func by(command string) string {
	if command == "" {
		return "."
	}
	return ": `" + command + "`"
}

// SpecData is every amount and combination of every series for programs, and what
// markets, one a series or none, say of machines.
func SpecData(list []sensitivity.Answer, markets []sensitivity.Market, currency string) *table.Table {
	t := &table.Table{}
	for _, key := range []string{"series", "kind", "allocation", "measure", "ratio", "ratio_low", "ratio_high", "runs", "verdict", "recommended", "machine", "hour", "currency"} {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
	for i, a := range list {
		row := func(kind string, at map[string]scaling.Value, ratio *scaling.Estimate, runs int, verdict sensitivity.Verdict) {
			cells := append([]any{a.Series, kind, words(at, a.Keys(), exactly), a.Measure.Name}, estimateCells(ratio)...)
			t.Add(append(cells, runs, string(verdict), a.Spec != nil && sensitivity.Same(at, a.Spec.At), nil, nil, nil)...)
		}
		if a.Value != nil {
			row("reference", a.Reference.At, nil, a.Reference.Runs, a.Reference.Verdict)
		}
		for _, f := range a.Factors {
			for _, l := range f.Levels {
				if l.At != f.Reference {
					row("alone", a.With(f.Key, l.At), l.Ratio, l.Runs, l.Verdict)
				}
			}
		}
		for _, c := range a.Together {
			row("together", c.At, c.Ratio, c.Runs, c.Verdict)
		}
		for _, n := range a.Next {
			if n.Verdict == "" {
				row("next", n.At, nil, 0, n.Verdict)
			}
		}
		if markets == nil {
			continue
		}
		for _, o := range markets[i].Offers {
			of := sensitivity.Allocation{}
			if o.Of != nil {
				of = *o.Of
			}
			chosen := false
			for _, c := range []*sensitivity.Offer{markets[i].Smallest, markets[i].Cheapest} {
				chosen = chosen || c != nil && c.Machine.Name == o.Machine.Name
			}
			cells := append([]any{a.Series, "machine", words(of.At, a.Keys(), exactly), a.Measure.Name}, estimateCells(of.Ratio)...)
			t.Add(append(cells, of.Runs, string(o.Verdict), chosen, o.Machine.Name, o.Hour, currency)...)
		}
	}
	return t
}

// SpecSentence is the answer for people.
func SpecSentence(a sensitivity.Answer) string {
	var list []string
	say := func(format string, parts ...any) { list = append(list, fmt.Sprintf(format, parts...)) }
	switch {
	case a.Spec == nil:
		say("%s: no answer: %s.", a.Series, a.Why)
	case a.Spec.Ratio == nil:
		say("%s needs all that was measured, %s.", a.Series, Amounts(a.Spec.At, a.Keys()))
	default:
		value, interval := Spread(a.Spec.Ratio.Value, a.Spec.Ratio.Interval, number.Percent)
		say("%s needs no more than %s: that keeps %s %s of the %s with %s (%s; up to %s %% may be lost).",
			a.Series, Amounts(a.Spec.At, a.Keys()), value, interval, gained(a.Measure), Amounts(a.Reference.At, a.Keys()), number.Count(a.Spec.Runs, "run"), number.Short(100*a.Epsilon, 3))
	}
	for _, c := range a.Also {
		say("So does %s.", Amounts(c.At, a.Keys()))
	}
	for _, f := range a.Factors {
		one := func(v scaling.Value) string { return last(f.Key) + "=" + Amount(f.Key, v) }
		switch {
		case f.TooLittle != nil:
			say("%s is too little.", one(*f.TooLittle))
		case f.Ordered && f.Enough != nil && *f.Enough == f.Levels[len(f.Levels)-1].At:
			say("No %s that was measured is too little.", last(f.Key))
		}
		for _, l := range f.Levels {
			switch {
			case f.Ordered || l.At == f.Reference:
			case l.Verdict == sensitivity.Enough:
				say("%s is enough, too.", one(l.At))
			case l.Verdict == sensitivity.TooLittle:
				say("%s is too little.", one(l.At))
			}
		}
	}
	return strings.Join(list, " ")
}

// gained is what a ratio is of: that of a time is of how fast it is.
func gained(m measure.Measure) string {
	if m.Better == measure.Lower {
		return "speed, by the " + m.Title
	}
	return m.Title
}

// Amounts is a combination in words: "cpus_per_worker=4, memory=8 GiB".
func Amounts(at map[string]scaling.Value, keys []string) string { return words(at, keys, Amount) }

func words(at map[string]scaling.Value, keys []string, show func(string, scaling.Value) string) string {
	var list []string
	for _, key := range keys {
		if v, ok := at[key]; ok {
			list = append(list, last(key)+"="+show(key, v))
		}
	}
	return strings.Join(list, ", ")
}

func exactly(_ string, v scaling.Value) string { return v.String() }

// Amount writes a resource's: memory in its units.
func Amount(key string, v scaling.Value) string {
	switch {
	case !v.Numeric():
		return v.Word
	case slices.Contains(sensitivity.Unlimited, key) && v.Number == 0:
		return "unlimited"
	case slices.Contains(sensitivity.Unlimited, key):
		return number.ShortBytes(v.Number)
	}
	return v.String()
}

func last(key string) string { return key[strings.LastIndex(key, ".")+1:] }
