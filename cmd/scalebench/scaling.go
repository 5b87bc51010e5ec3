package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/spelling"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

func scalingCommand(s *session) *cli.Command {
	var o curveOptions
	var metric string
	return &cli.Command{
		Name:      "scaling",
		Usage:     "print throughput, speedup, efficiency and time to accuracy",
		ArgsUsage: "STUDY",
		Description: "STUDY is a study's name or the path of its file. Medians over runs, with their\n" +
			"confidence interval in brackets where there are runs enough for one. In CSV and\n" +
			"JSON: samples/s, seconds, fractions.",
		Flags: append(o.flags(), o.axisFlag(),
			&cli.StringFlag{Name: "metric", Aliases: []string{"m"}, Destination: &metric, Usage: "of the `MEASURE` alone, such as step_p95 or one that runs report"}),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runScaling(c.Context, s, o, metric)
		},
	}
}

func runScaling(ctx context.Context, s *session, o curveOptions, metric string) error {
	a, err := s.analyse(ctx, o)
	if err != nil {
		return err
	}
	if metric != "" {
		m, err := a.measure(metric)
		if err != nil {
			return err
		}
		if err := s.print(measureTable(a.curves, m)); err != nil {
			return err
		}
		a.warn(s)
		return nil
	}
	var nothing *noTrainingError
	if errors.As(a.nothing, &nothing) && nothing.kind == collectiveKind {
		return s.printCollectives(ctx, o.study, nothing)
	}
	if a.nothing != nil {
		return a.nothing
	}
	if a.noBase != nil {
		a.warn(s)
		return a.noBase
	}
	if s.format == table.FormatJSON {
		err = s.printRows(scaling.Rows(a.curves))
	} else if s.format == table.FormatCSV {
		err = s.print(scalingData(scaling.Rows(a.curves)))
	} else {
		err = s.print(scalingTable(a.curves))
	}
	if err != nil {
		return err
	}
	a.warn(s)
	return nil
}

// measure finds a measure of the study's runs by its name.
func (a *analysis) measure(name string) (measure.Measure, error) {
	m, err := scaling.Find(a.curves, name)
	if err == nil {
		return m, nil
	}
	known := a.measures()
	return m, &usageError{err: fmt.Errorf("unknown measure %q; choose one of %s, or the time to a target: to_0.75", name, strings.Join(known, ", ")), hint: spelling.Hint(name, known)}
}

// measures are the names of those that are declared, and then of those that the
// runs report.
func (a *analysis) measures() []string {
	names := measure.Names()
	for _, o := range a.observations {
		for _, m := range o.Reported {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// measureTable is a measure along the curves: medians, with the ratio to the
// base in the direction in which the measure is better.
func measureTable(curves []scaling.Curve, m measure.Measure) *table.Table {
	axis := scaling.Workers
	if len(curves) > 0 {
		axis = curves[0].Axis
	}
	value := table.ColumnOf(m)
	bounds := value
	bounds.Head, bounds.Data = "", true
	low, high := bounds, bounds
	low.Key, high.Key = m.Name+"_low", m.Name+"_high"
	t := &table.Table{Columns: []table.Column{{Key: "series"}, {Key: axis, Right: true, Show: number.Exact}, {Key: "runs"}, {Key: "metric", Data: true}, {Key: "unit", Data: true},
		value, low, high, {Key: "speedup"}, {Key: "speedup_low", Data: true}, {Key: "speedup_high", Data: true},
		{Key: "efficiency", Show: number.Percent}, {Key: "efficiency_low", Data: true}, {Key: "efficiency_high", Data: true}, {Key: "base", Data: true}}}
	for _, c := range curves {
		var base any
		if c.Base != nil {
			base = c.Base.At.Any()
		}
		for _, p := range c.Points {
			x := p.Of(m.Name)
			cells := []any{c.Series, p.At.Any(), x.Runs, m.Name, table.NonZero(m.Unit)}
			for _, e := range []*scaling.Estimate{x.Median, x.Gain(), x.Efficiency()} {
				cells = append(cells, estimateCells(e)...)
			}
			t.Add(append(cells, base)...)
		}
	}
	t.Notes = []string{"Medians over runs; where there is an interval, CSV and JSON have it."}
	return t
}

// warn prints the doubts.
func (a *analysis) warn(s *session) {
	for _, doubt := range a.doubts() {
		s.warn("%s", doubt)
	}
}

// doubts are those about the study, its series and points. That an interval
// cannot be had stands in the table and in the figure's caption, and is not
// said again; what is true of several worker counts is said once.
func (a *analysis) doubts() []string {
	list := slices.Clone(a.warnings)
	for _, c := range a.curves {
		about := ""
		if len(a.curves) > 1 {
			about = c.Series + ": "
		}
		for _, w := range c.Warnings {
			list = append(list, about+w)
		}
		var texts []string // each once, in the order of its first worker count
		of := map[string][]scaling.Value{}
		for _, p := range c.Points {
			for _, w := range p.Warnings {
				if saysWhy(p, w) {
					continue
				}
				if of[w] == nil {
					texts = append(texts, w)
				}
				of[w] = append(of[w], p.At)
			}
		}
		for _, w := range texts {
			list = append(list, about+placesText(c.Axis, of[w]...)+": "+w)
		}
	}
	return list
}

// saysWhy reports whether a warning only says why an estimate of the point has
// no interval.
func saysWhy(p scaling.Point, warning string) bool {
	x := p.Of(measure.Throughput)
	for _, e := range []*scaling.Estimate{x.Median, x.Gain(), x.Efficiency()} {
		if e != nil && e.Why != "" && strings.HasSuffix(warning, e.Why) {
			return true
		}
	}
	return false
}

// scalingTable is the curves for people: medians, with the interval in
// brackets or a dash for one that cannot be had, and below it the base and
// the reasons for the dashes.
func scalingTable(curves []scaling.Curve) *table.Table {
	targets := targetsOf(curves)
	along := scaling.Workers
	if len(curves) > 0 {
		along = curves[0].Axis
	}
	t := &table.Table{Columns: []table.Column{
		{Key: "series"},
		{Key: along, Right: true},
		{Key: "runs"},
		{Key: "throughput", Unit: "samples/s", Right: true},
		{Key: "speedup", Right: true},
		{Key: "efficiency", Right: true},
	}}
	for _, m := range targets {
		t.Columns = append(t.Columns, table.Column{Key: m.Name, Head: m.Title, Right: true}, table.Column{Key: m.Name + "_speedup", Head: "speedup to " + m.Goal(), Right: true})
	}
	var whys []string
	why := func(reason string) {
		reason, _, _ = strings.Cut(reason, " (") // how many there are, the table says
		if reason != "" && !slices.Contains(whys, reason) {
			whys = append(whys, reason)
		}
	}
	for _, c := range curves {
		for _, p := range c.Points {
			atBase := c.Base != nil && p.At == c.Base.At
			x := p.Of(measure.Throughput)
			if x.Median != nil {
				why(x.Median.Why)
			}
			if x.Gain() != nil && !atBase {
				why(x.Gain().Why)
			}
			cells := []any{c.Series, p.At.String(), x.Runs, estimateText(x.Median, number.Significant, false),
				estimateText(x.Gain(), number.Significant, atBase), estimateText(x.Efficiency(), number.Percent, atBase)}
			for _, m := range targets {
				a := p.Of(m.Name)
				if a.Runs == 0 {
					cells = append(cells, nil, nil)
					continue
				}
				cells = append(cells, timeText(a), estimateText(a.Gain(), number.Significant, atBase))
				if a.Median != nil {
					why(a.Median.Why)
				}
				if a.Gain() != nil && !atBase {
					why(a.Gain().Why)
				}
			}
			t.Add(cells...)
		}
	}
	for _, c := range curves {
		if c.Base != nil {
			about := "Base"
			if len(curves) > 1 {
				about += " of " + c.Series
			}
			t.Notes = append(t.Notes, about+": "+baseText(c.Base.Row())+".")
		}
	}
	t.Notes = append(t.Notes, communicationNotes(curves)...)
	if len(whys) > 0 {
		t.Notes = append(t.Notes, number.Absent+": "+strings.Join(whys, "; ")+".")
	}
	return t
}

// baseText is the point that others are divided by, with what it measured.
func baseText(b *scaling.RowBase) string {
	text := placesText(b.Along())
	if b.Throughput != nil {
		text += fmt.Sprintf(", %s samples/s (median of %s)", number.Significant(*b.Throughput), number.Count(b.Runs, "run"))
	}
	return text
}

// estimateText is "12.3 [11.9, 12.8]", or "12.3 –" without an interval; exact
// is for a value that is so by definition.
func estimateText(e *scaling.Estimate, show func(float64) string, exact bool) any {
	switch {
	case e == nil:
		return nil
	case exact:
		return show(e.Value)
	}
	return show(e.Value) + " " + intervalText(e.Interval, show)
}

func intervalText(in *scaling.Interval, show func(float64) string) string {
	if in == nil {
		return number.Absent
	}
	return "[" + show(in.Low) + ", " + show(in.High) + "]"
}

// timeText is the time to a target; where not all runs reach it, it says how
// many do.
func timeText(a *scaling.Summary) string {
	reached := ""
	if a.Reached() < a.Runs {
		reached = fmt.Sprintf("reached %d/%d", a.Reached(), a.Runs)
	}
	if a.Median == nil {
		return reached
	}
	return strings.TrimSuffix(number.Seconds(a.Median.Value)+" "+intervalText(a.Median.Interval, number.Seconds)+" "+reached, " ")
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

func targetText(target float64) string { return strconv.FormatFloat(target, 'f', -1, 64) }

func workersText(n int) string { return number.Count(n, "worker") }

// placesText names places on an axis: "1, 2 and 4 workers", "workload.batch 64".
func placesText(axis string, places ...scaling.Value) string {
	text := ""
	last := len(places) - 1
	for i, v := range places {
		text += v.String()
		switch {
		case i < last-1:
			text += ", "
		case i < last:
			text += " and "
		}
	}
	switch {
	case axis != scaling.Workers:
		return axis + " " + text
	case text == "1":
		return "1 worker"
	}
	return text + " workers"
}

// printRows writes the rows as a JSON list, one object a line.
func (s *session) printRows(rows []scaling.Row) error {
	text, err := rowsJSON(rows)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(s.stdout, clean.JSON(text))
	return err
}

func rowsJSON(rows []scaling.Row) (string, error) {
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

// scalingData is the rows for programs that read CSV: the JSON objects laid
// flat, a group of columns for each target.
func scalingData(rows []scaling.Row) *table.Table {
	var targets []string
	for _, r := range rows {
		for target := range r.TimeToAccuracy {
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	slices.Sort(targets)
	t := &table.Table{Columns: []table.Column{{Key: "series"}}}
	other := slices.ContainsFunc(rows, func(r scaling.Row) bool { return r.Axis != "" })
	if other {
		t.Columns = append(t.Columns, table.Column{Key: "axis"}, table.Column{Key: "at"})
	}
	for _, key := range []string{"workers", "runs", "throughput", "throughput_low", "throughput_high", "speedup", "speedup_low",
		"speedup_high", "efficiency", "efficiency_low", "efficiency_high", "karp_flatt", "karp_flatt_low", "karp_flatt_high",
		"end_to_end", "end_to_end_low", "end_to_end_high", "skew", "communication", "communication_low", "communication_high",
		"communication_predicted", "communication_predicted_low", "communication_predicted_high", "communication_predicted_from", "base_workers", "base_throughput", "base_runs", "scaling", "warnings"} {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
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
