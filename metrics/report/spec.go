package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

// Spec returns a table for people that says for each amount of each resource whether it is
// sufficient: single resources first, then combinations. how returns the command that measures a
// combination together with the reference; "" for none.
func Spec(a sensitivity.Answer, how func(at map[string]scaling.Value) string) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Key: "resource"}, {Key: "amount", Right: true}, {Key: "ratio", Head: "of the " + gained(a.Measure), Right: true}, {Key: "runs"}, {Key: "verdict"}, {Key: "bound"}}}
	for _, f := range a.Factors {
		for _, l := range f.Levels {
			verdict, ratio := string(l.Verdict), estimate(l.Ratio, number.Percent, false)
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
		t.Add("together", amounts(c.At, a.Keys()), estimate(c.Ratio, number.Percent, false), table.NonZero(c.Runs), verdict, bound(c.Bound))
	}
	if a.Value != nil {
		t.Notes = append(t.Notes, "Base: "+referenceText(a)+".")
	}
	if n := len(a.Course); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Drift: runs with all resources became %s between two blocks (median of %s; %s to %s).",
			sensitivity.DescribeChange(scaling.Middle(a.Course)), number.Count(n, "pair"), sensitivity.DescribeChange(a.Course[0]), sensitivity.DescribeChange(a.Course[n-1])))
	}
	t.Notes = append(t.Notes, bounds(a)...)
	for _, n := range suggested(a) {
		text := "Measure next: " + amounts(n.At, a.Keys())
		if n.Verdict != "" {
			text = "More runs would decide: " + amounts(n.At, a.Keys())
		}
		command := how(n.At)
		if command == "" {
			t.Notes = append(t.Notes, text+": 6 more runs, in blocks with as many of "+amounts(a.Reference.At, a.Keys())+"; import them if they ran elsewhere.")
			continue
		}
		t.Notes = append(t.Notes, text+by(command))
	}
	return t
}

// suggested returns the combinations to measure next; none if the runs were imported.
func suggested(a sensitivity.Answer) []sensitivity.Allocation {
	if a.Imported {
		return nil
	}
	return a.Next
}

// referenceText returns the combination with which the others are compared, and its value.
func referenceText(a sensitivity.Answer) string {
	value, interval := spreadText(a.Value.Value, a.Value.Interval, a.Measure.Text)
	unit := ""
	if a.Measure.Unit != "s" && a.Measure.Unit != "" {
		unit = " " + a.Measure.Unit
	}
	return fmt.Sprintf("%s, %s %s %s%s", amounts(a.Reference.At, a.Keys()), a.Measure.Title, value, interval, unit)
}

// SpecWarnings returns the warnings about a series, and the doubts about its combinations of
// resources, one sentence each.
func SpecWarnings(a sensitivity.Answer) []string {
	list := slices.Clone(a.Warnings)
	for _, d := range a.RunWarnings {
		where := amounts(d.At[0], a.Keys())
		if n := len(d.At) - 1; n > 0 {
			where += " and " + number.Count(n, "other combination")
		}
		list = append(list, where+": "+d.Text)
	}
	return list
}

// bound returns the name of the resource that limits runs, as a cell.
func bound(b sensitivity.Bound) any {
	return cmp.Or(b.Of, "not known")
}

// bounds returns sentences that say which resource limits the runs: when every resource is at its
// maximum, and when one resource is at its largest amount that is not enough. Cases in which the
// limit is unknown for the same reason share one sentence.
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

// by returns the end of a note: ": " and a command, or a full stop without a command.
func by(command string) string {
	if command == "" {
		return "."
	}
	return ": `" + command + "`"
}

// SpecData returns a table for programs with every amount and combination of every series, and
// the machines in markets, which has one entry per series or is empty. For how, see Spec.
// warnings are the warnings that people see.
func SpecData(list []sensitivity.Answer, markets []sensitivity.Market, currency string, how func(a sensitivity.Answer, at map[string]scaling.Value) string, warnings []string) *table.Table {
	t := &table.Table{Columns: table.Keys("series", "kind", "allocation", "measure", "ratio", "ratio_low", "ratio_high", "runs", "verdict", "likely_enough", "recommended", "provisional", "machine", "hour", "currency", "text")}
	for i, a := range list {
		row := func(kind string, at map[string]scaling.Value, ratio *scaling.Estimate, keeps *float64, runs int, verdict sensitivity.Verdict, text string) {
			cells := append([]any{a.Series, kind, words(at, a.Keys(), exactly), a.Measure.Name}, estimateCells(ratio)...)
			chosen := a.Spec != nil && sensitivity.Same(at, a.Spec.At)
			t.Add(append(cells, runs, string(verdict), keeps, chosen, chosen && a.Provisional, nil, nil, nil, table.NonZero(text))...)
		}
		t.Add(a.Series, "answer", words(specAt(a), a.Keys(), exactly), a.Measure.Name, nil, nil, nil, nil, nil, nil, nil, a.Provisional, nil, nil, nil, SpecSentence(a))
		if a.Value != nil {
			row("reference", a.Reference.At, nil, a.Reference.Keeps, a.Reference.Runs, a.Reference.Verdict, "")
		}
		for _, f := range a.Factors {
			for _, l := range f.Levels {
				if l.At != f.Reference {
					row("alone", a.With(f.Key, l.At), l.Ratio, l.Keeps, l.Runs, l.Verdict, "")
				}
			}
		}
		for _, c := range a.Together {
			row("together", c.At, c.Ratio, c.Keeps, c.Runs, c.Verdict, "")
		}
		for _, n := range suggested(a) {
			row("next", n.At, nil, n.Keeps, n.Runs, n.Verdict, how(a, n.At))
		}
		if markets != nil {
			addMachines(t, a, markets[i], currency)
		}
	}
	for _, w := range warnings {
		t.Add(nil, "warning", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, w)
	}
	return t
}

// addMachines adds rows to a table for programs that say for each machine of a market whether it
// is sufficient.
func addMachines(t *table.Table, a sensitivity.Answer, market sensitivity.Market, currency string) {
	for _, o := range market.Offers {
		of := sensitivity.Allocation{}
		if o.Of != nil {
			of = *o.Of
		}
		chosen := slices.ContainsFunc([]*sensitivity.Offer{market.Smallest, market.Cheapest}, func(c *sensitivity.Offer) bool {
			return c != nil && c.Machine.Name == o.Machine.Name
		})
		cells := append([]any{a.Series, "machine", words(of.At, a.Keys(), exactly), a.Measure.Name}, estimateCells(of.Ratio)...)
		t.Add(append(cells, of.Runs, string(o.Verdict), nil, chosen, nil, o.Machine.Name, o.Hour, currency, nil)...)
	}
}

// specAt returns the combination of resources that is the answer; nil: none.
func specAt(a sensitivity.Answer) map[string]scaling.Value {
	if a.Spec == nil {
		return nil
	}
	return a.Spec.At
}

// SpecSentence returns the answer as sentences for people.
func SpecSentence(a sensitivity.Answer) string {
	var list []string
	say := func(format string, parts ...any) { list = append(list, fmt.Sprintf(format, parts...)) }
	provisional := ""
	if a.Provisional {
		provisional = "Provisional: "
	}
	switch {
	case a.Spec == nil:
		say("%s: no answer: %s.", a.Series, a.Why)
	case a.Spec.Ratio == nil:
		say("%s%s needs all that was measured, %s: each smaller amount is too little.", provisional, a.Series, amounts(a.Spec.At, a.Keys()))
	default:
		value, interval := spreadText(a.Spec.Ratio.Value, a.Spec.Ratio.Interval, number.Percent)
		if a.Spec.Ratio.Interval != nil {
			value += " " + interval
		}
		odds := ""
		if a.Spec.Keeps != nil {
			odds = " (" + decision.Likely(*a.Spec.Keeps) + " likely to be enough)"
		}
		say("%s%s needs no more than %s%s: that keeps %s of the %s with %s (%s; up to %s may be lost).",
			provisional, a.Series, amounts(a.Spec.At, a.Keys()), odds, value, gained(a.Measure), amounts(a.Reference.At, a.Keys()), number.Count(a.Spec.Runs, "run"), number.ExactPercent(a.Epsilon))
	}
	for _, c := range a.Also {
		say("So does %s.", amounts(c.At, a.Keys()))
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
	if why := provisionally(a); why != "" {
		say("Provisional because %s.", why)
	}
	return strings.Join(list, " ")
}

// provisionally returns a clause that says which warnings can change the answer, and which smaller
// amounts may suffice; "" if the answer is final.
func provisionally(a sensitivity.Answer) string {
	if !a.Provisional {
		return ""
	}
	why := slices.Clone(a.Because)
	for _, u := range a.Undecided {
		why = append(why, fmt.Sprintf("%s may be enough (%s likely)", amounts(u.At, a.Keys()), decision.Likely(u.Keeps)))
	}
	for _, n := range a.Next {
		switch {
		case n.Verdict == "":
			why = append(why, amounts(n.At, a.Keys())+" may be enough and was not measured")
		case n.Keeps == nil:
			why = append(why, amounts(n.At, a.Keys())+" may be enough and has too few runs for an interval")
		}
	}
	return strings.Join(why, "; ")
}

// gained returns a word for the quantity that a ratio of the measure compares: for a time, that is
// a speed.
func gained(m measure.Measure) string {
	if m.Better == measure.Lower {
		return "speed, by the " + m.Title
	}
	return m.Title
}

// amounts returns a combination of resources as text: "cpus_per_worker=4, memory=8 GiB".
func amounts(at map[string]scaling.Value, keys []string) string { return words(at, keys, Amount) }

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

// Amount returns an amount of a resource as text; memory has a unit.
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
