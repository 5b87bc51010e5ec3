package report

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

// Machines returns a table for people with a row for each machine of a price list, which says
// whether it is sufficient. It is sorted by price. For how, see Spec.
func Machines(a sensitivity.Answer, m sensitivity.Market, currency string, how func(at map[string]scaling.Value) string) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Key: "machine"}, {Key: "vcpus", Head: "vCPUs", Right: true}, {Key: "memory", Right: true}, {Key: "gpus", Head: "GPUs", Right: true},
		{Key: "hour", Head: currency + " per hour", Right: true}, {Key: "verdict"}, {Key: "by"}, {Key: "ratio", Head: "of the " + gained(a.Measure), Right: true}}}
	million := perSample(a)
	if million {
		t.Columns = append(t.Columns, table.Column{Key: "million", Head: currency + " per million samples", Right: true})
	}
	for _, o := range m.Offers {
		verdict, by := string(o.Verdict), o.Why
		var ratio, price any
		if o.Of != nil {
			by = amounts(o.Of.At, a.Keys())
			ratio = estimate(o.Of.Ratio, number.Percent, false)
		}
		switch {
		case o.Verdict == "":
			verdict = "not known"
		case o.Verdict == sensitivity.Undecided && o.Of.Verdict == "":
			by += ", not measured"
		case o.Verdict == sensitivity.TooLittle && o.Of != nil && o.Of.Runs == 0:
			by += ", out of memory"
		case o.Verdict == sensitivity.Enough:
			if sensitivity.Same(o.Of.At, a.Reference.At) {
				ratio = number.Percent(1)
			}
			price = estimate(perMillion(o, a), number.Significant, false)
		}
		for _, c := range []struct {
			chosen *sensitivity.Offer
			word   string
		}{{m.Smallest, "smallest"}, {m.Cheapest, "cheapest"}} {
			if c.chosen != nil && c.chosen.Machine.Name == o.Machine.Name {
				verdict += ", " + c.word
			}
		}
		cells := []any{o.Machine.Name, number.Exact(o.VCPUs), number.ShortBytes(o.Bytes), number.Exact(o.GPUs), number.Significant(o.Hour), verdict, by, ratio}
		if million {
			cells = append(cells, price)
		}
		t.Add(cells...)
	}
	t.Notes = append(t.Notes, "This assumes that each core of a machine is as fast as those that were measured.")
	if million {
		t.Notes = append(t.Notes, "A million samples: at the throughput of the measured combination that the machine holds.")
	}
	if len(m.Next) > 0 {
		if command := how(m.Next[0].Of.At); command != "" {
			t.Notes = append(t.Notes, "To decide about "+m.Next[0].Machine.Name+by(command))
		}
	}
	if a.Load.Machines > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("Prices are of one machine; the runs used %d.", a.Load.Machines))
	}
	return t
}

// perSample reports whether the answer's measure is the throughput, so that a price per sample
// exists.
func perSample(a sensitivity.Answer) bool { return a.Measure.Name == measure.Throughput }

// perMillion returns the price of a million samples on a machine that is sufficient; nil if it is
// unknown.
func perMillion(o sensitivity.Offer, a sensitivity.Answer) *scaling.Estimate {
	rate := o.Of.Value
	if rate == nil || !(rate.Value > 0) {
		return nil
	}
	price := func(throughput float64) float64 { return o.Hour * float64(a.Load.Machines) / 3600 / throughput * 1e6 }
	e := &scaling.Estimate{Value: price(rate.Value), Runs: rate.Runs}
	if in := rate.Interval; in != nil && in.Low > 0 {
		e.Interval = &scaling.Interval{Low: price(in.High), High: price(in.Low), Level: in.Level}
	}
	return e
}

// MachinesSentence returns sentences for people on which machine to choose.
func MachinesSentence(a sensitivity.Answer, m sensitivity.Market, currency string) string {
	var list []string
	say := func(format string, parts ...any) { list = append(list, fmt.Sprintf(format, parts...)) }
	named := func(o *sensitivity.Offer) string { return offered(&o.Machine, currency) }
	switch {
	case m.Smallest == nil:
		say("No machine of the price list is shown to be enough.")
	case m.Smallest.Machine.Name == m.Cheapest.Machine.Name:
		say("The smallest machine of the price list that is enough, and the cheapest, is %s.", named(m.Smallest))
	default:
		say("The smallest machine of the price list that is enough is %s, the cheapest %s.", named(m.Smallest), named(m.Cheapest))
	}
	if len(m.Next) > 0 {
		names := make([]string, 0, 3)
		for _, o := range m.Next[:min(3, len(m.Next))] {
			names = append(names, o.Machine.Name)
		}
		if more := len(m.Next) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		what := "cheaper or smaller, and may be"
		if m.Smallest == nil {
			what = "may be"
		}
		verb := "are "
		if len(m.Next) == 1 {
			verb = "is "
		}
		if m.Smallest == nil {
			verb = ""
		}
		measure := ": measure "
		if a.Imported {
			measure = "; unmeasured: "
		}
		say("%s %s%s enough%s%s.", strings.Join(names, ", "), verb, what, measure, amounts(m.Next[0].Of.At, a.Keys()))
	}
	return strings.Join(list, " ")
}

// offered returns a machine with its resources and its price: "c4 (4 vCPUs, 8 GiB) at 0.200 USD
// an hour".
func offered(m *sensitivity.Machine, currency string) string {
	has := number.Count(int(m.VCPUs), "vCPU") + ", " + number.ShortBytes(m.Bytes)
	if m.GPUs > 0 {
		has += ", " + number.Count(int(m.GPUs), "GPU")
	}
	return fmt.Sprintf("%s (%s) at %s %s an hour", m.Name, has, number.Significant(m.Hour), currency)
}
