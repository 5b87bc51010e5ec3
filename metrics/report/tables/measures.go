package tables

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// Measures are several measures along curves: those that a kind of workload is
// about, or those that runs report. The ratios to the base are for programs, and in
// the table of one measure.
func Measures(curves []scaling.Curve, list []measure.Measure) *table.Table {
	keys := scaling.Keys(curves)
	t := &table.Table{Columns: append(seriesColumns(keys), coordinates(curves, list[0])...)}
	t.Columns = append(t.Columns, axisColumn(curves), table.Column{Key: "runs"})
	for _, m := range list {
		value := table.ColumnOf(m)
		value.Right = true
		value.Optional = len(list) > 1
		low, high := value, value
		low.Data, high.Data, low.Key, high.Key = true, true, m.Name+"_low", m.Name+"_high"
		t.Columns = append(t.Columns, value, low, high)
		for _, end := range []string{"_speedup", "_speedup_low", "_speedup_high"} {
			t.Columns = append(t.Columns, table.Column{Key: m.Name + end, Data: true})
		}
	}
	var whys []string
	for _, c := range curves {
		for _, p := range c.Points {
			cells := append(seriesCells(c, keys), located(c, list[0])...)
			runs := 0
			var values []any
			for _, m := range list {
				x := p.Of(m.Name)
				runs = max(runs, x.Runs)
				values = append(append(values, estimateCells(x.Median)...), estimateCells(x.Gain())...)
				if x.Median != nil && x.Median.Why != "" {
					if why, _, _ := strings.Cut(x.Median.Why, " ("); !slices.Contains(whys, why) {
						whys = append(whys, why)
					}
				}
			}
			t.Add(append(append(cells, p.At.Any(), runs), values...)...)
		}
	}
	t.Notes = []string{"Medians over runs; their intervals are in CSV and JSON."}
	if len(whys) > 0 {
		t.Notes = append(t.Notes, number.Absent+" for an interval: "+strings.Join(whys, "; ")+".")
	}
	return t
}

// coordinates are columns for programs: those of the measure that are not the axis.
func coordinates(curves []scaling.Curve, m measure.Measure) []table.Column {
	var list []table.Column
	for _, key := range m.At.Keys() {
		if key != axisOf(curves) {
			list = append(list, table.Column{Key: key, Data: true})
		}
	}
	return list
}

// located are a curve's cells in them.
func located(c scaling.Curve, m measure.Measure) []any {
	var cells []any
	for _, key := range m.At.Keys() {
		if key != c.Axis {
			cells = append(cells, c.Parameters[key])
		}
	}
	return cells
}

// axisColumn holds places on the axis.
func axisColumn(curves []scaling.Curve) table.Column {
	c := coordinateColumn(axisOf(curves))
	c.Right = true
	return c
}

func coordinateColumn(key string) table.Column {
	if key == measure.Bytes {
		return table.Column{Key: key, Head: "size", Show: number.Bytes}
	}
	return table.Column{Key: key, Show: number.Exact}
}

// placeSections are the values that a run has at places within it, a section for
// each combination of coordinates.
func placeSections(places []measure.Place) []table.Section {
	var list []table.Section
	for _, frame := range measure.Frames() {
		keys := slices.DeleteFunc(frame.At.Keys(), func(key string) bool { return key == frame.Axis })
		if frame.Axis != "" {
			keys = append(keys, frame.Axis)
		}
		within := frame.Within(places)
		at := func(p measure.Place, key string) scaling.Value { return scaling.ValueOf(p.At[key]) }
		slices.SortStableFunc(within, func(a, b measure.Place) int {
			for _, key := range keys {
				if c := at(a, key).Compare(at(b, key)); c != 0 {
					return c
				}
			}
			return 0
		})
		measured := slices.DeleteFunc(frame.Beside(), func(m measure.Measure) bool {
			return !slices.ContainsFunc(within, func(p measure.Place) bool { _, has := p.Values[m.Name]; return has })
		})
		t := &table.Table{}
		for _, key := range keys {
			t.Columns = append(t.Columns, coordinateColumn(key))
		}
		for _, m := range measured {
			t.Columns = append(t.Columns, table.ColumnOf(m))
		}
		for _, p := range within {
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
		list = append(list, table.Section{Key: "by_" + strings.Join(frame.At.Keys(), "_"), Table: t})
	}
	return list
}

func axisOf(curves []scaling.Curve) string {
	if len(curves) == 0 {
		return scaling.Workers
	}
	return curves[0].Axis
}
