package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// Scaling returns the table of scaling curves for people: medians with intervals in brackets, or
// with a dash if none exists, and notes on the base and the dashes.
func Scaling(curves []scaling.Curve, study ...string) *table.Table {
	targets := targetsOf(curves)
	main, unit, show := mainOf(curves)
	along := scaling.Workers
	if len(curves) > 0 {
		along = curves[0].Axis
	}
	keys := scaling.Keys(curves)
	t := &table.Table{Columns: append(seriesColumns(keys), []table.Column{
		{Key: along, Right: true, ID: true},
		{Key: "runs"},
		{Key: main, Head: title(main), Unit: unit, Right: true},
		{Key: "speedup", Right: true},
		{Key: "efficiency", Right: true},
	}...)}
	for _, m := range targets {
		t.Columns = append(t.Columns, table.Column{Key: m.Name, Head: m.Title, Right: true}, table.Column{Key: m.Name + "_speedup", Head: "speedup " + strings.TrimPrefix(m.Title, "time "), Right: true, Optional: true})
	}
	var why reasons
	for _, c := range curves {
		for _, p := range c.Points {
			x, atBase := p.Of(main), c.Base != nil && p.At == c.Base.At
			why.of(x, atBase)
			cells := append(seriesCells(c, keys), p.At.String(), x.Runs, estimate(x.Median, show, false),
				estimate(x.Gain(), number.Significant, atBase), estimate(x.Efficiency(), number.Percent, atBase))
			for _, m := range targets {
				a := p.Of(m.Name)
				if a.Runs == 0 {
					cells = append(cells, nil, nil)
					continue
				}
				cells = append(cells, timeText(a), estimate(a.Gain(), number.Significant, atBase))
				why.of(a, atBase)
			}
			t.Add(cells...)
		}
	}
	divided := []string{main}
	for _, m := range targets {
		divided = append(divided, m.Name)
	}
	t.Notes = slices.Concat(t.Notes, baseNotes(curves), targetClockNotes(targets), driftNotes(curves, divided...))
	if main == measure.RunSeconds {
		t.Notes = append(t.Notes, sameWork)
	}
	t.Notes = slices.Concat(t.Notes, communicationNotes(curves), why.notes(""), decisiveNotes(curves, study...))
	return t
}

// of adds the reasons why the median or its interval is missing and, unless the point is the
// base, those for its ratio to the base.
func (r *reasons) of(x *scaling.Summary, atBase bool) {
	r.add(x.Median)
	if !atBase {
		r.add(x.Gain())
	}
}

// mainOf returns the main measure of the curves, its unit and a function that formats it. The
// measure is the throughput, else tokens/s, else the run time.
func mainOf(curves []scaling.Curve) (main, unit string, show func(float64) string) {
	measured := func(name string) bool {
		return slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(name) })
	}
	switch {
	case measured(measure.Throughput):
	case slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Main == measure.TokensPerSecond }):
		return measure.TokensPerSecond, "tokens/s", number.Significant
	case measured(measure.RunSeconds):
		return measure.RunSeconds, "", number.Seconds
	}
	return measure.Throughput, scaling.RateUnit(curves...), number.Significant
}

// targetClockNotes returns notes that say from when the times to targets are counted.
func targetClockNotes(targets []measure.Measure) (notes []string) {
	stated := func(m measure.Measure) bool { return m.Name == measure.ToTarget }
	if asked := slices.DeleteFunc(slices.Clone(targets), stated); len(asked) > 0 {
		what := "an accuracy"
		if slices.ContainsFunc(asked, func(m measure.Measure) bool { t, _ := measure.TargetOf(m.Name); return t.Of != measure.OfAccuracy }) {
			what = "a target"
		}
		notes = append(notes, "Times to "+what+" and their speedups are on the training clock, which starts before the first sample; initialisation is not included.")
	}
	if slices.ContainsFunc(targets, stated) {
		notes = append(notes, "Times to target are as the program states them, on its own clock.")
	}
	return notes
}

// decisiveNotes returns the warnings about the curves and their study that can change what a
// table says.
func decisiveNotes(curves []scaling.Curve, study ...string) []string {
	if note := scaling.DecisiveNote(curves, study...); note != "" {
		return []string{note}
	}
	return nil
}

// driftNotes returns a note if a speedup in these measures was corrected for drift, because it
// may then differ from the ratio of the medians.
func driftNotes(curves []scaling.Curve, measures ...string) []string {
	for _, c := range curves {
		for _, p := range c.Points {
			for _, name := range measures {
				if g := p.Of(name).Gain(); g != nil && g.Adjusted {
					return []string{detrended}
				}
			}
		}
	}
	return nil
}

const detrended = "Speedups: ratios of medians corrected for the machine's drift, so they may differ from the ratios of the medians in the table."

// sameWork is a note that a speedup of run times assumes equal work in every run.
const sameWork = "A run time is the program's, from its start to its end; its speedup assumes that every run does the same work, however many workers share it."

// title returns a measure's title by name.
func title(name string) string {
	m, err := measure.Find(name)
	if err != nil {
		return name
	}
	return m.Title
}

// fewSeries is the largest number of series for which each gets a sentence below a table.
const fewSeries = 3

// baseNotes returns notes that name the base of each series. If there are many series, only their
// rows name it.
func baseNotes(curves []scaling.Curve) []string {
	return basesOf(curves, func(c scaling.Curve) string {
		if c.Base.Of(measure.Throughput).Median == nil && c.Measured(measure.Throughput) {
			return "" // a doubt says so
		}
		return baseText(c.Base.Row())
	})
}

// basesIn returns notes that name the base of the speedups in a measure, for series whose base
// has a value.
func basesIn(curves []scaling.Curve, m measure.Measure) []string {
	return basesOf(curves, func(c scaling.Curve) string {
		if c.Base.Of(m.Name).Gain() == nil {
			return ""
		}
		return c.Places(c.Base.At)
	})
}

// basesOf returns a sentence about the base of each series. The function text formats it; if that
// returns "", the sentence is left out.
func basesOf(curves []scaling.Curve, text func(scaling.Curve) string) []string {
	var list []string
	of := map[scaling.Value][]string{}
	for _, c := range curves {
		if c.Base == nil {
			continue
		}
		base := text(c)
		if base == "" {
			continue
		}
		about := "Base"
		if len(curves) > 1 {
			about += " of " + c.Series
		}
		list = append(list, about+": "+base+".")
		of[c.Base.At] = append(of[c.Base.At], c.Series)
	}
	if len(list) <= fewSeries {
		return list
	}
	list = nil
	for _, at := range slices.SortedFunc(maps.Keys(of), scaling.Value.Compare) {
		about := ""
		switch n := len(of[at]); {
		case n == len(curves):
			about = fmt.Sprintf("all %d series", n)
		case n == 1:
			about = of[at][0]
		default:
			about = fmt.Sprintf("%d series", n)
		}
		list = append(list, fmt.Sprintf("Base of %s: %s.", about, curves[0].Places(at)))
	}
	return list
}

// seriesColumns returns the columns that distinguish series. For people, they are one column per
// parameter in which series differ, or the name if none exists. Programs get only the name.
func seriesColumns(keys []string) []table.Column {
	if len(keys) == 0 {
		return []table.Column{{Key: "series", ID: true}}
	}
	return append([]table.Column{{Key: "series", Data: true}, {Key: "framework", People: true, ID: true}}, keyColumns(keys)...)
}

// keyColumns returns a table column for each parameter, headed by the parameter's short name.
func keyColumns(keys []string) []table.Column {
	heads := scaling.Short(keys)
	list := make([]table.Column, len(keys))
	for i, key := range keys {
		list[i] = table.Column{Key: key, Head: heads[i], Show: number.Exact, People: true, ID: true}
	}
	return list
}

// seriesCells returns a curve's cells in the columns that seriesColumns returns.
func seriesCells(c scaling.Curve, keys []string) []any {
	cells := []any{c.Series}
	if len(keys) > 0 {
		cells = append(cells, c.Framework)
	}
	for _, key := range keys {
		cells = append(cells, c.Parameters[key])
	}
	return cells
}

// baseText returns the position of a base and its throughput.
func baseText(b *scaling.RowBase) string {
	text := scaling.Places(b.Along())
	if b.Throughput != nil {
		text += fmt.Sprintf(", %s (median of %s)", strings.TrimSpace(number.Significant(*b.Throughput)+" "+b.Unit), number.Count(b.Runs, "run"))
	}
	return text
}

// timeText returns the time to a target as a cell. If not all runs reach it, the cell also says
// how many do.
func timeText(a *scaling.Summary) string {
	reached := ""
	if a.Reached() < a.Runs {
		reached = fmt.Sprintf("reached %d/%d", a.Reached(), a.Runs)
	}
	switch {
	case a.AtLeast != nil && a.Median == nil:
		return "at least " + number.Seconds(*a.AtLeast) + " " + reached
	case a.AtLeast != nil:
		return number.Seconds(a.Median.Value) + " [at least " + number.Seconds(*a.AtLeast) + "] " + reached
	case a.Median == nil:
		return reached
	}
	value, interval := spreadText(a.Median.Value, a.Median.Interval, number.Seconds)
	return strings.TrimSuffix(value+" "+interval+" "+reached, " ")
}

func targetsOf(curves []scaling.Curve) []measure.Measure {
	var targets []measure.Measure
	for _, c := range curves {
		for _, p := range c.Points {
			for _, a := range p.Targets() {
				if !slices.Contains(targets, a.Measure) {
					targets = append(targets, a.Measure)
				}
			}
		}
	}
	slices.SortFunc(targets, measure.ByGoal)
	return targets
}

// add appends a sentence to the list, unless it is in the list already.
func add(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// ScalingData returns the rows as a flat table for programs, with a group of columns for each
// target.
func ScalingData(rows []scaling.Row) *table.Table {
	var targets []string
	for _, r := range rows {
		for target := range r.TimeToAccuracy {
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	slices.Sort(targets)
	t := &table.Table{Columns: table.Keys("series")}
	other := slices.ContainsFunc(rows, func(r scaling.Row) bool { return r.Axis != "" })
	if other {
		t.Columns = append(t.Columns, table.Keys("axis", "at")...)
	}
	t.Columns = append(t.Columns, table.Keys("workers", "runs", "throughput", "throughput_low", "throughput_high", "speedup", "speedup_low",
		"speedup_high", "efficiency", "efficiency_low", "efficiency_high", "karp_flatt", "karp_flatt_low", "karp_flatt_high",
		"end_to_end", "end_to_end_low", "end_to_end_high", "skew", "communication", "communication_low", "communication_high",
		"communication_predicted", "communication_predicted_low", "communication_predicted_high", "communication_predicted_from", "base_workers", "base_throughput", "base_runs", "scaling", "warnings")...)
	for _, target := range targets {
		for _, part := range []string{"seconds", "seconds_low", "seconds_high", "speedup", "speedup_low", "speedup_high", "reached", "runs"} {
			t.Columns = append(t.Columns, table.Column{Key: "to_" + target + "_" + part})
		}
	}
	for _, r := range rows {
		cells := []any{r.Series}
		if other {
			cells = append(cells, r.Axis, r.At)
		}
		cells = append(cells, r.Workers, r.Runs, r.Throughput, r.ThroughputLow, r.ThroughputHigh, r.Speedup, r.SpeedupLow,
			r.SpeedupHigh, r.Efficiency, r.EfficiencyLow, r.EfficiencyHigh, r.KarpFlatt, r.KarpFlattLow, r.KarpFlattHigh,
			r.EndToEnd, r.EndToEndLow, r.EndToEndHigh, r.Skew, r.Communication, r.CommunicationLow, r.CommunicationHigh,
			r.CommunicationPredicted, r.CommunicationPredictedLow, r.CommunicationPredictedHigh, table.NonZero(r.CommunicationPredictedFrom))
		if r.Base != nil {
			cells = append(cells, r.Base.Workers, r.Base.Throughput, r.Base.Runs)
		} else {
			cells = append(cells, nil, nil, nil)
		}
		cells = append(cells, r.Scaling, r.Warnings)
		for _, target := range targets {
			if a, ok := r.TimeToAccuracy[target]; ok {
				cells = append(cells, a.Seconds, a.SecondsLow, a.SecondsHigh, a.Speedup, a.SpeedupLow, a.SpeedupHigh, a.Reached, a.Runs)
			} else {
				cells = append(cells, nil, nil, nil, nil, nil, nil, nil, nil)
			}
		}
		t.Add(cells...)
	}
	return t
}

// ScalingJSON returns the rows as a JSON list, with one object per line.
func ScalingJSON(rows []scaling.Row) (string, error) {
	list := make([]string, len(rows))
	for i, r := range rows {
		line, err := table.EncodeJSON(r)
		if err != nil {
			return "", err
		}
		list[i] = "\n  " + line
	}
	end := "]\n"
	if len(list) > 0 {
		end = "\n]\n"
	}
	return "[" + strings.Join(list, ",") + end, nil
}
