package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
	"github.com/scalebench/scalebench/metrics/table"
)

// Measures returns a table of several measures along curves: the measures of a kind of workload,
// or those that runs report. For people, it includes ratios to the base only if there is a single
// measure.
func Measures(curves []scaling.Curve, list []measure.Measure, study ...string) *table.Table {
	keys := scaling.Keys(curves)
	t := &table.Table{Columns: append(seriesColumns(keys), coordinates(curves, list[0])...)}
	t.Columns = append(t.Columns, axisColumn(curves), table.Column{Key: "runs"})
	lacking := map[string]bool{} // measures that some runs lack
	for _, m := range list {
		value := table.ColumnOf(counting(curves, m))
		value.Right = true
		value.Optional = len(list) > 1
		lacking[m.Name] = lacks(curves, m)
		if lacking[m.Name] {
			shown := value
			shown.People = true
			t.Columns = append(t.Columns, shown)
			value.Data = true
		}
		low, high := value, value
		low.Data, high.Data, low.Key, high.Key = true, true, m.Name+"_low", m.Name+"_high"
		t.Columns = append(t.Columns, value, low, high)
		for _, end := range []string{"_speedup", "_speedup_low", "_speedup_high"} {
			t.Columns = append(t.Columns, table.Column{Key: m.Name + end, Data: true})
		}
		if m.Refusable() {
			t.Columns = append(t.Columns, table.Column{Key: m.Name + "_runs", Data: true})
		}
	}
	var why reasons
	for _, c := range curves {
		for _, p := range c.Points {
			cells := append(seriesCells(c, keys), located(c, list[0])...)
			runs := 0
			var values []any
			for _, m := range list {
				x := p.Of(m.Name)
				runs = max(runs, x.Runs+x.Censored())
				if lacking[m.Name] {
					values = append(values, lackingText(x))
				}
				values = append(append(values, reachCells(x)...), estimateCells(speedup(x, m))...)
				if m.Refusable() {
					values = append(values, x.Runs)
				}
				why.add(x.Median)
			}
			t.Add(append(append(cells, p.At.Any(), runs), values...)...)
		}
	}
	t.Notes = []string{"Medians over runs; their intervals are in CSV and JSON."}
	t.Notes = append(t.Notes, why.notes(" for an interval")...)
	t.Notes = append(t.Notes, lackingNotes(curves, list)...)
	t.Notes = append(t.Notes, decisiveNotes(curves, study...)...)
	return t
}

// counting returns the measure with the unit that a rate has in these curves.
func counting(curves []scaling.Curve, m measure.Measure) measure.Measure {
	if m.RatesSamples() {
		m.Unit = scaling.RateUnit(curves...)
	}
	return m
}

// coordinates returns columns for programs with the measure's coordinates other than the axis.
func coordinates(curves []scaling.Curve, m measure.Measure) []table.Column {
	var list []table.Column
	for _, key := range m.At.Keys() {
		if key != axisOf(curves) {
			list = append(list, table.Column{Key: key, Data: true})
		}
	}
	return list
}

// located returns a curve's cells in the columns that coordinates returns.
func located(c scaling.Curve, m measure.Measure) []any {
	var cells []any
	for _, key := range m.At.Keys() {
		if key != c.Axis {
			cells = append(cells, c.Parameters[key])
		}
	}
	return cells
}

// axisColumn returns the column with the positions on the curves' axis.
func axisColumn(curves []scaling.Curve) table.Column {
	c := coordinateColumn(axisOf(curves))
	c.Right, c.ID = true, true
	if c.Key == scaling.Workers && len(curves) > 0 {
		c.Head = curves[0].Worker() + "s"
	}
	return c
}

func coordinateColumn(key string) table.Column {
	if key == measure.Bytes {
		return table.Column{Key: key, Head: "size", Show: number.Bytes}
	}
	return table.Column{Key: key, Show: number.Exact}
}

// placeSections returns tables of a run's values at places within it, one for each set of
// coordinates.
func placeSections(places []measure.Place) []table.Section {
	var list []table.Section
	for _, frame := range measure.Frames() {
		keys := slices.DeleteFunc(frame.At.Keys(), func(key string) bool { return key == frame.Axis })
		if frame.Axis != "" {
			keys = append(keys, frame.Axis)
		}
		within := frame.FilterPlaces(places)
		at := func(p measure.Place, key string) scaling.Value { return scaling.ValueOf(p.At[key]) }
		slices.SortStableFunc(within, func(a, b measure.Place) int {
			for _, key := range keys {
				if c := at(a, key).Compare(at(b, key)); c != 0 {
					return c
				}
			}
			return 0
		})
		measured := slices.DeleteFunc(frame.Siblings(), func(m measure.Measure) bool {
			return !slices.ContainsFunc(within, func(p measure.Place) bool { _, has := p.Values[m.Name]; return has })
		})
		list = append(list, table.Section{Key: "by_" + strings.Join(frame.At.Keys(), "_"), Table: placeTable(within, keys, measured)})
	}
	return list
}

// placeTable returns a table with a row for each place: its coordinates and its values.
func placeTable(places []measure.Place, keys []string, measured []measure.Measure) *table.Table {
	t := &table.Table{}
	for _, key := range keys {
		t.Columns = append(t.Columns, coordinateColumn(key))
	}
	for _, m := range measured {
		t.Columns = append(t.Columns, table.ColumnOf(m))
	}
	for _, p := range places {
		var cells []any
		for _, key := range keys {
			cells = append(cells, p.At[key])
		}
		for _, m := range measured {
			var cell any
			if v, has := p.Values[m.Name]; has {
				cell = v
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	return t
}

func axisOf(curves []scaling.Curve) string {
	if len(curves) == 0 {
		return scaling.Workers
	}
	return curves[0].Axis
}

// Measure returns a table of one measure along the curves: medians, and speedups over the base if better means
// faster.
func Measure(curves []scaling.Curve, obs []scaling.Observation, m measure.Measure, study ...string) *table.Table {
	value := table.ColumnOf(m)
	bounds := value
	lacking := lacks(curves, m)
	bounds.Head, bounds.Data = "", true
	low, high := bounds, bounds
	low.Key, high.Key = m.Name+"_low", m.Name+"_high"
	keys := scaling.Keys(curves)
	t := &table.Table{Columns: append(seriesColumns(keys), coordinates(curves, m)...)}
	t.Columns = append(t.Columns, axisColumn(curves), table.Column{Key: "runs"}, table.Column{Key: "metric", Data: true}, table.Column{Key: "unit", Data: true})
	if lacking {
		shown := value
		shown.People, shown.Right = true, true
		value.Data = true
		t.Columns = append(t.Columns, shown)
	}
	t.Columns = append(t.Columns, value, low, high, table.Column{Key: "speedup", Data: !m.Speeds()}, table.Column{Key: "speedup_low", Data: true}, table.Column{Key: "speedup_high", Data: true})
	// Positions within one run are not amounts of resources, so they have no efficiency.
	t.Columns = append(t.Columns, table.Column{Key: "efficiency", Show: number.Percent, Data: m.At.Has(axisOf(curves)) || !m.Scales || !m.Speeds()}, table.Column{Key: "efficiency_low", Data: true}, table.Column{Key: "efficiency_high", Data: true}, table.Column{Key: "base", Data: true})
	knees := capacity.FindSaturations(curves, m)
	if knees != nil {
		t.Columns = append(t.Columns, table.Column{Key: "knee", Data: true}, table.Column{Key: "knee_at_least", Data: true}, table.Column{Key: "knee_why", Data: true})
	}
	for _, c := range curves {
		var base any
		if c.Base != nil {
			base = c.Base.At.Any()
		}
		for _, p := range c.Points {
			x := p.Of(m.Name)
			cells := append(append(seriesCells(c, keys), located(c, m)...), p.At.Any(), x.Runs, m.Name, table.NonZero(m.Unit))
			if lacking {
				cells = append(cells, lackingText(x))
			}
			cells = append(cells, reachCells(x)...)
			for _, e := range []*scaling.Estimate{speedup(x, m), x.Efficiency()} {
				cells = append(cells, estimateCells(e)...)
			}
			cells = append(cells, base)
			if knees != nil {
				cells = append(cells, saturationCells(knees, c)...)
			}
			t.Add(cells...)
		}
	}
	if !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(m.Name) }) {
		t.Notes = []string{unmeasured(curves, obs, m)}
		return t
	}
	t.Notes = []string{"Medians over runs; their intervals are in CSV and JSON."}
	if m.Speeds() {
		t.Notes = append(t.Notes, basesIn(curves, m)...)
	}
	t.Notes = append(t.Notes, driftNotes(curves, m.Name)...)
	t.Notes = append(t.Notes, lackingNotes(curves, []measure.Measure{m})...)
	t.Notes = append(t.Notes, saturations(curves, m)...)
	t.Notes = append(t.Notes, decisiveNotes(curves, study...)...)
	return t
}

// speedup returns the ratio to the base, which is above 1 where the measure is faster; nil if faster says nothing
// about it.
func speedup(x *scaling.Summary, m measure.Measure) *scaling.Estimate {
	if !m.Speeds() {
		return nil
	}
	return x.Gain()
}

// lacks reports whether some runs lack the measure for a reason that depends on its value.
func lacks(curves []scaling.Curve, m measure.Measure) bool {
	return slices.ContainsFunc(curves, func(c scaling.Curve) bool {
		return slices.ContainsFunc(c.Points, func(p scaling.Point) bool { return p.Of(m.Name).Censored() > 0 })
	})
}

// lackingText returns a median as a cell for people. If some runs lack the measure, the cell also
// says how many have it: "12.3 ms (9 of 10)", or "≥ 12.3 ms (2 of 6)".
func lackingText(s *scaling.Summary) any {
	runs := ""
	if n := s.Censored(); n > 0 {
		runs = fmt.Sprintf(" (%d of %d)", s.Runs, s.Runs+n)
	}
	switch {
	case s.Median != nil:
		return s.Text(s.Median.Value) + runs
	case s.AtLeast != nil:
		return "≥ " + s.Text(*s.AtLeast) + runs
	case runs == "":
		return nil
	}
	return number.Absent + runs
}

// lackingNotes returns a note that explains the cells of lackingText, if a cell needs it.
func lackingNotes(curves []scaling.Curve, list []measure.Measure) []string {
	if !slices.ContainsFunc(list, func(m measure.Measure) bool { return lacks(curves, m) }) {
		return nil
	}
	return []string{"(5 of 6): number of runs with a value. The others were refused one and may be the slow ones: the median ranks them last, and is missing if its interval depends on them. ≥: a lower bound."}
}

// reachCells is like estimateCells for a median whose interval may have only a lower bound.
func reachCells(s *scaling.Summary) []any {
	cells := estimateCells(s.Median)
	if s.AtLeast != nil {
		cells[1] = *s.AtLeast
	}
	return cells
}

// saturationCells returns the cells for programs with the saturation point of a curve. They are the
// same in each row of the curve.
func saturationCells(knees []*capacity.Saturation, c scaling.Curve) []any {
	i := slices.IndexFunc(knees, func(k *capacity.Saturation) bool { return k.Series == c.Series })
	switch {
	case i < 0:
		return []any{nil, nil, nil}
	case knees[i].At == 0:
		return []any{nil, nil, knees[i].Why}
	}
	return []any{knees[i].At, knees[i].AtLeast, nil}
}

// saturations returns a sentence for each curve on where its throughput saturates.
func saturations(curves []scaling.Curve, m measure.Measure) []string {
	var list []string
	for _, k := range capacity.FindSaturations(curves, m) {
		text := k.Sentence()
		if len(curves) > 1 {
			text = k.Series + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// unmeasured returns a sentence that no run has a value of the measure, and what to use instead.
func unmeasured(curves []scaling.Curve, obs []scaling.Observation, m measure.Measure) string {
	text := "No run has a value of " + m.Name
	if target, is := measure.TargetOf(m.Name); is {
		return text + ": " + untimed(obs, m.Name, target) + "."
	}
	has := map[string]bool{}
	for _, c := range curves {
		for _, p := range c.Points {
			for _, s := range p.Measures {
				if s.Runs > 0 {
					has[s.Name] = true
				}
			}
		}
	}
	switch {
	case len(has) == 0:
		return text + "."
	case has[m.Name]: // bounds, as the table shows
		return "Too many runs lack " + m.Name + " for a median; `-v` says why."
	}
	return text + ". The runs have: " + strings.Join(slices.Sorted(maps.Keys(has)), ", ") + "."
}

// untimed returns why no run has a time to a target.
func untimed(obs []scaling.Observation, name string, target measure.Target) string {
	imported := true
	why := ""
	for i := range obs {
		o := &obs[i]
		imported = imported && o.Imported()
		if _, asked := o.Value(name); asked {
			return "none reached " + target.Text()
		}
		why = cmp.Or(why, o.Why[name])
	}
	switch {
	case why != "":
		return why
	case imported:
		return "workload.targets does not have " + target.Short() + "; import the logs again with --replace --set 'workload.targets=" + target.String() + "'"
	}
	return "workload.targets does not have " + target.Short() + ". To evaluate the existing runs for it, add it, then `submit` and `collect` the study: nothing runs again"
}
