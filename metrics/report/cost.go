package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// Cost returns the table of costs for people. Cells are medians, with intervals in brackets or a
// dash without an interval. Notes explain them.
func Cost(rows []cost.Row, currency string, o cost.Options) *table.Table {
	c := &costTable{rows: rows, currency: currency, o: o, asked: o.Measure.Name != ""}
	c.perWork()
	c.perEnergy()
	c.perMeasure()
	c.overBaseline()
	c.perTarget()
	t := &table.Table{}
	for _, column := range c.columns {
		t.Columns = append(t.Columns, column.Column)
	}
	for _, r := range rows {
		var cells []any
		for _, column := range c.columns {
			cells = append(cells, column.cell(r))
		}
		t.Add(cells...)
	}
	t.Notes = costNotes(rows, currency, o)
	if slices.ContainsFunc(rows, func(r cost.Row) bool {
		return slices.ContainsFunc([]*scaling.Estimate{r.TimeNormalised, r.CostNormalised, r.Gain}, func(e *scaling.Estimate) bool { return e != nil && e.Adjusted })
	}) {
		t.Notes = append(t.Notes, "Ratios to the baseline: of medians corrected for the machine's drift, so they may differ from the ratios of the figures in the table.")
	}
	t.Notes = append(t.Notes, c.why.notes("")...)
	return t
}

// costTable collects the columns of a table of costs.
type costTable struct {
	rows     []cost.Row
	currency string
	o        cost.Options
	asked    bool // the user asked for the cost per unit of a measure, so that costs per epoch and per target are left out
	columns  []costColumn
	why      reasons
}

// A costColumn is a column and the function that fills its cells.
type costColumn struct {
	table.Column
	cell func(cost.Row) any
}

func (c *costTable) add(column table.Column, cell func(cost.Row) any) {
	c.columns = append(c.columns, costColumn{column, cell})
}

// estimated adds a column whose cells are estimates.
func (c *costTable) estimated(column table.Column, show func(float64) string, of func(cost.Row) *scaling.Estimate) {
	column.Right = true
	c.add(column, func(r cost.Row) any { return c.show(of(r), show) })
}

// show returns an estimate as a cell, and records the reason if its interval is missing.
func (c *costTable) show(e *scaling.Estimate, show func(float64) string) any {
	c.why.add(e)
	return estimate(e, show, e != nil && e.Why == cost.AtBaseline)
}

// perWork adds columns for the configuration and for the time and cost of the work.
func (c *costTable) perWork() {
	workers, price := table.Column{Key: "workers", ID: true}, table.Column{Key: "cost", Unit: c.currency}
	if c.o.Work.Million {
		workers.Head, price.Head = "replicas", "a million answers"
	}
	c.add(table.Column{Key: "series", ID: true}, func(r cost.Row) any { return r.Series })
	c.add(workers, func(r cost.Row) any { return r.Workers })
	c.add(table.Column{Key: "runs"}, func(r cost.Row) any { return r.Runs })
	if c.o.Work.Million {
		c.add(table.Column{Key: "per_hour", Head: "an hour", Unit: c.currency}, func(r cost.Row) any {
			if r.Rate == nil {
				return nil
			}
			return r.Rate.PerHour()
		})
	} else {
		c.estimated(table.Column{Key: "time"}, number.Seconds, func(r cost.Row) *scaling.Estimate { return r.Time })
	}
	c.estimated(price, number.Significant, func(r cost.Row) *scaling.Estimate { return r.Cost })
}

// perEnergy adds columns for the energy, its price and its emissions, if the energy is known.
func (c *costTable) perEnergy() {
	if !energyKnown(c.rows) {
		return
	}
	of := func(each *float64) func(cost.Row) *scaling.Estimate {
		return func(r cost.Row) *scaling.Estimate { return cost.PerKWh(r.Energy, each) }
	}
	one := 1.0
	c.estimated(table.Column{Key: "energy", Unit: "kWh"}, number.Significant, of(&one))
	c.estimated(table.Column{Key: "energy_cost", Head: "its price", Unit: c.o.Energy.Currency, Optional: true}, number.Significant, of(c.o.Energy.PerKWh))
	c.estimated(table.Column{Key: "co2", Head: "CO2", Unit: "g", Optional: true}, number.Significant, of(c.o.Energy.Grams))
}

// perMeasure adds columns for the measure that the user asked about, and for its amount per unit
// of money.
func (c *costTable) perMeasure() {
	if !c.asked {
		return
	}
	c.estimated(table.ColumnOf(c.o.Measure), c.o.Measure.Text, func(r cost.Row) *scaling.Estimate { return r.Value })
	if what := c.o.Bought(); what != "" {
		c.estimated(table.Column{Key: "bought", Head: what + " per " + c.currency}, number.Significant, func(r cost.Row) *scaling.Estimate { return r.Bought })
	}
}

// overBaseline adds columns for the ratios to the baseline, if there is one.
func (c *costTable) overBaseline() {
	if c.o.Baseline == nil {
		return
	}
	c.estimated(table.Column{Key: "time_normalised", Head: "time / baseline", Data: c.o.Work.Million}, number.Significant, func(r cost.Row) *scaling.Estimate { return r.TimeNormalised })
	c.estimated(table.Column{Key: "cost_normalised", Head: "cost / baseline"}, number.Significant, func(r cost.Row) *scaling.Estimate { return r.CostNormalised })
	c.add(table.Column{Key: "break_even", Head: "break-even price", Right: true}, func(r cost.Row) any {
		if r.BreakEven == nil {
			return nil
		}
		return "× " + number.Significant(*r.BreakEven)
	})
	if c.asked && c.o.Measure.Better != measure.Neither {
		c.estimated(table.Column{Key: "gain"}, number.Significant, func(r cost.Row) *scaling.Estimate { return r.Gain })
	}
	if c.o.Matches() {
		c.estimated(table.Column{Key: "matched_gain", Head: "gain at equal cost an hour"}, number.Significant, func(r cost.Row) *scaling.Estimate { return r.Matched.Gain })
	}
}

// perTarget adds columns for the cost per epoch and per target, and for whether a row is on the
// Pareto front.
func (c *costTable) perTarget() {
	if !c.asked {
		if !c.o.Work.Epoch {
			c.estimated(table.Column{Key: "cost_per_epoch", Head: "cost of an epoch", Unit: c.currency, Optional: true}, number.Significant, func(r cost.Row) *scaling.Estimate { return r.CostPerEpoch })
		}
		for _, target := range costTargets(c.rows) {
			c.add(table.Column{Key: target.Time().Name, Head: "cost to " + target.Short(), Unit: c.currency, Right: true, Optional: true},
				func(r cost.Row) any { return targetCost(r, target, c.show) })
		}
	}
	c.add(table.Column{Key: "pareto", Head: "on the front"}, func(r cost.Row) any {
		if !c.o.Judged(r) {
			return nil
		}
		return r.Front
	})
}

// energyKnown reports whether the energy of some configuration is known.
func energyKnown(rows []cost.Row) bool {
	return slices.ContainsFunc(rows, func(r cost.Row) bool { return r.Energy != nil })
}

// energyNotes returns lines on the price and emissions of a kilowatt-hour, and on why an energy
// is unknown. It returns none if energy was neither measured nor priced.
func energyNotes(rows []cost.Row, o cost.Options) []string {
	known := energyKnown(rows)
	if !known && !o.Energy.Set() {
		return nil
	}
	var notes []string
	var without lacking
	if known && o.Energy.Set() {
		notes = append(notes, "Energy: "+o.Energy.String()+"; the cost does not include it.")
	}
	if unknown := o.Energy.Unknown(); known && unknown != "" {
		notes = append(notes, "Energy has no "+strings.Replace(unknown, "a price", "price", 1)+": the site file does not say.")
	}
	for _, r := range rows {
		for _, of := range r.EnergyOf {
			if !slices.Contains(notes, of) {
				notes = append(notes, of)
			}
		}
		if r.WhyNoEnergy != "" {
			without.add(o.Name(r), "no energy: "+r.WhyNoEnergy)
		}
	}
	return append(notes, without.notes(len(rows))...)
}

func costTargets(rows []cost.Row) []measure.Target {
	var targets []measure.Target
	for _, r := range rows {
		for _, t := range r.Targets {
			if !slices.Contains(targets, t.Of) {
				targets = append(targets, t.Of)
			}
		}
	}
	slices.SortFunc(targets, measure.Harder)
	return targets
}

// targetCost returns a cell with the cost to reach a target. If not all runs reach it, the cell
// also says how many do.
func targetCost(r cost.Row, target measure.Target, show func(*scaling.Estimate, func(float64) string) any) any {
	t, known := reached(r, target)
	switch {
	case !known:
		return nil
	case t.Reached == t.Runs:
		return show(t.Cost, number.Significant)
	case t.Cost == nil:
		return fmt.Sprintf("reached %d/%d", t.Reached, t.Runs)
	}
	return fmt.Sprintf("%v reached %d/%d", show(t.Cost, number.Significant), t.Reached, t.Runs)
}

// reached returns what a row says about a target.
func reached(r cost.Row, target measure.Target) (t cost.Target, known bool) {
	if i := slices.IndexFunc(r.Targets, func(t cost.Target) bool { return t.Of == target }); i >= 0 {
		return r.Targets[i], true
	}
	return t, false
}

// costNotes returns notes that explain the values, the prices and the baselines.
func costNotes(rows []cost.Row, currency string, o cost.Options) []string {
	var prices, bases, matched []string
	var without lacking
	once := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	for _, r := range rows {
		about := o.Name(r)
		if r.Rate != nil {
			for _, p := range r.Rate.Parts {
				once(&prices, p.Price.String())
			}
		}
		if r.Why != "" {
			without.add(about, r.Why)
		}
		if r.WhyNoValue != "" {
			without.add(about, r.WhyNoValue)
		}
		if r.WhyNoBase != "" {
			without.add(about, "no baseline: "+r.WhyNoBase)
		} else if r.Base != "" {
			once(&bases, r.Base)
		}
		switch m := r.Matched; {
		case m == nil || m.Why != "" && m.Why == r.WhyNoBase:
		case m.Why != "":
			without.add(about, "no gain at equal cost an hour: "+m.Why)
		case m.Base != o.Name(r):
			once(&matched, fmt.Sprintf("%s (%s) over %s (%s)", o.Name(r), number.Significant(r.Rate.PerHour()), m.Base, number.Significant(m.BasePerHour)))
		}
	}
	notes := []string{"Time and cost of " + o.Work.String() + ": medians over runs."}
	if o.Work.Million {
		notes[0] = "Cost of a million answers at the " + loadOf(o.Measure) + ", all replicas busy: medians over runs."
	}
	if note := frontNote(o.Measure); note != "" {
		notes = append(notes, note)
	}
	if what := o.Bought(); what != "" {
		notes = append(notes, fmt.Sprintf("%s per %s: what an hour's price buys at that rate, before granularity and minimum.", what, currency))
	}
	if prices != nil {
		notes = append(notes, "Prices: "+strings.Join(prices, "; ")+".")
	}
	if bases != nil {
		notes = append(notes, "Baseline: "+strings.Join(bases, "; ")+". Break-even price: the factor by which a price may rise before the baseline is as cheap.")
	}
	if matched != nil {
		notes = append(notes, fmt.Sprintf("Gain at equal cost an hour: how many times as many %s the same money buys, over as much of the baseline as costs about the same (within %g %%; in %s an hour): %s.", o.Bought(), 100*cost.MatchedWithin, currency, strings.Join(matched, "; ")))
	}
	return append(append(notes, energyNotes(rows, o)...), without.notes(len(rows))...)
}

// lacking records why rows have no value, one note per reason.
type lacking struct {
	reasons []string
	rows    map[string][]string // names of the rows by reason
}

func (l *lacking) add(row, reason string) {
	if l.rows == nil {
		l.rows = map[string][]string{}
	}
	if l.rows[reason] == nil {
		l.reasons = append(l.reasons, reason)
	}
	if !slices.Contains(l.rows[reason], row) {
		l.rows[reason] = append(l.rows[reason], row)
	}
}

// notes returns a note for each reason. all is the number of rows in the table.
func (l *lacking) notes(all int) []string {
	var list []string
	for _, reason := range l.reasons {
		about := number.Absent + " "
		switch names := l.rows[reason]; {
		case len(names) == all && all > 1:
			about += "all rows"
		case len(names) > 3:
			about += fmt.Sprintf("%s and %d other rows", names[0], len(names)-1)
		default:
			about += strings.Join(names, "; ")
		}
		list = append(list, about+": "+reason+".")
	}
	return list
}

// frontNote returns a note on what the Pareto front is of; "" if the user asked about no measure.
func frontNote(m measure.Measure) string {
	switch {
	case m.Name == "":
		return ""
	case m.Better != measure.Neither:
		return fmt.Sprintf("The front is of cost and %s (%s is better).", m.Title, m.Better)
	}
	if _, err := measure.Find(m.Name); err != nil { // a measure that runs report
		return "No front: it is not known which way " + m.Title + " is better; set better = \"higher\" or \"lower\" in its [[extract]]."
	}
	return "No front: " + m.Title + " is neither better nor worse."
}

// CostData returns the table of costs for programs, with unrounded values and times in seconds.
func CostData(rows []cost.Row, currency string, o cost.Options) *table.Table {
	t := &table.Table{}
	var parts []func(cost.Row) []any // the cells of one or more columns
	add := func(cells func(cost.Row) []any, keys ...string) {
		t.Columns = append(t.Columns, table.Keys(keys...)...)
		parts = append(parts, cells)
	}
	estimated := func(key string, of func(cost.Row) *scaling.Estimate) {
		add(func(r cost.Row) []any { return estimateCells(of(r)) }, key, key+"_low", key+"_high")
	}
	add(func(r cost.Row) []any { return []any{r.Series, r.Workers, r.Runs, o.Work.String()} }, "series", "workers", "runs", "of")
	estimated("time_seconds", func(r cost.Row) *scaling.Estimate { return r.Time })
	estimated("cost", func(r cost.Row) *scaling.Estimate { return r.Cost })
	add(func(r cost.Row) []any {
		if r.Rate == nil {
			return []any{currency, nil, nil}
		}
		return []any{currency, r.Rate.PerHour(), r.Rate.String()}
	}, "currency", "price_per_hour", "price")
	estimated("time_normalised", func(r cost.Row) *scaling.Estimate { return r.TimeNormalised })
	estimated("cost_normalised", func(r cost.Row) *scaling.Estimate { return r.CostNormalised })
	if o.Measure.Name != "" {
		add(func(cost.Row) []any { return []any{o.Measure.Name, table.NonZero(o.Measure.Unit)} }, "metric", "unit")
		estimated("value", func(r cost.Row) *scaling.Estimate { return r.Value })
		estimated("bought", func(r cost.Row) *scaling.Estimate { return r.Bought })
		estimated("gain", func(r cost.Row) *scaling.Estimate { return r.Gain })
	}
	if o.Matches() {
		estimated("matched_gain", func(r cost.Row) *scaling.Estimate { return r.Matched.Gain })
		add(func(r cost.Row) []any {
			return []any{table.NonZero(r.Matched.Base), table.NonZero(r.Matched.BasePerHour)}
		}, "matched_baseline", "matched_baseline_per_hour")
	}
	add(func(r cost.Row) []any { return []any{r.BreakEven, table.NonZero(r.Base)} }, "break_even_price_multiple", "baseline")
	estimated("cost_per_epoch", func(r cost.Row) *scaling.Estimate { return r.CostPerEpoch })
	estimated("energy_joules", func(r cost.Row) *scaling.Estimate { return r.Energy })
	estimated("energy_cost", func(r cost.Row) *scaling.Estimate { return cost.PerKWh(r.Energy, o.Energy.PerKWh) })
	add(func(cost.Row) []any { return []any{table.NonZero(o.Energy.Currency)} }, "energy_currency")
	estimated("co2_grams", func(r cost.Row) *scaling.Estimate { return cost.PerKWh(r.Energy, o.Energy.Grams) })
	for _, target := range costTargets(rows) {
		key := target.Time().Name
		add(func(r cost.Row) []any {
			t, known := reached(r, target)
			if !known {
				return make([]any, 8)
			}
			return append(append(estimateCells(t.Time), estimateCells(t.Cost)...), t.Reached, t.Runs)
		}, key+"_seconds", key+"_seconds_low", key+"_seconds_high", key+"_cost", key+"_cost_low", key+"_cost_high", key+"_reached", key+"_runs")
	}
	energy := o.Energy.Set() || energyKnown(rows)
	add(func(r cost.Row) []any {
		var front any
		if o.Judged(r) {
			front = r.Front
		}
		return []any{front, table.NonZero(strings.Join(missingOf(r, energy), "; ")), append([]string{}, r.Warnings...)}
	}, "pareto", "why", "warnings")
	for _, r := range rows {
		var cells []any
		for _, part := range parts {
			cells = append(cells, part(r)...)
		}
		t.Add(cells...)
	}
	return t
}

// missingOf returns why a row lacks values.
func missingOf(r cost.Row, energy bool) []string {
	why := []string{r.Why, r.WhyNoValue, r.WhyNoBase}
	if r.Matched != nil && r.Matched.Why != r.WhyNoBase {
		why = append(why, r.Matched.Why)
	}
	if energy {
		why = append(why, r.WhyNoEnergy)
	}
	return slices.DeleteFunc(why, func(s string) bool { return s == "" })
}

// loadOf describes the load at which a million answers are priced.
func loadOf(m measure.Measure) string {
	if m.Name == measure.RateWithinLimit {
		return "largest rate within the limit"
	}
	return "rate that was measured"
}
