package extract

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// cell returns the number in a row for the figure or key ours, and the factor to the figure's
// unit. For a rate per device or per node, the factor includes the number of devices or nodes. ok
// is false if the cell is empty.
func (t *table) cell(row int, ours string) (v Value, scale float64, ok bool) {
	r, mapped := t.reads[ours]
	if !mapped {
		return v, 1, false
	}
	if v, ok = t.clock(row, ours, r); ok {
		return v, 1, true
	}
	text, unit := t.split(row, r.Name)
	v, ok = t.number(row, r.Name, text)
	if !ok {
		return v, 1, false
	}
	scale = t.inUnit(row, ours, unit)
	if r.per != "" {
		scale *= t.counts(row, r.per)
	}
	if r.steps {
		batch := float64(t.l.o.WorkerBatch) * t.counts(row, number.PerDevice)
		if r.each {
			return v, batch / scale, true
		}
		scale *= batch
	}
	return v, scale, true
}

// minutes matches names of columns that say how to read 31:00.
var minutes = regexp.MustCompile(`(?i)(?:^|[^a-z:])m{1,2}:s{1,2}`)

// clockName matches names of columns that say hh:mm:ss or mm:ss.
var clockName = regexp.MustCompile(`(?i)m{1,2}:s{1,2}`)

// clock returns the seconds in a cell such as 1:02:03, 1-02:03:04, 1h 2m 3s or PT1H2M, if the figure is a time. It
// fails for 31:00, which may be minutes or hours.
func (t *table) clock(row int, ours string, r reading) (v Value, ok bool) {
	text := strings.TrimSpace(t.rows[row][t.at[r.Name]])
	if tableUnits[ours] == "s" && r.Unit == "" && clockName.MatchString(r.Name) && decimal.MatchString(text) {
		t.l.fail(t.line[row], "column %s: %s is not in hours, minutes and seconds, as the column's name says (spreadsheets store a part of a day): write it so; or, if it is in s, write %s", r.Name, clip(text), mapping(ours, r.Name, "s"))
	}
	if tableUnits[ours] != "s" || !strings.ContainsAny(text, ":hmswPT") {
		return v, false
	}
	d, ok := number.Read(text)
	if !ok || !d.Clock || d.Number != text {
		return v, false
	}
	switch {
	case r.scale != 1:
		t.l.fail(t.line[row], "column %s: %s has hours, minutes and seconds, but the column is in another unit; write %s if all cells are like this one", r.Name, clip(text), mapping(ours, r.Name, "s"))
	case strings.Count(text, ":") == 1 && !strings.ContainsAny(text, "- ") && !minutes.MatchString(r.Name):
		t.l.fail(t.line[row], "column %s: %s may be minutes and seconds, or hours and minutes; write 0:%s or %s:00", r.Name, clip(text), text, text)
	}
	return Value{Number: d.Value, Line: t.line[row]}, true
}

// numberAndUnit matches a cell with a number and a unit: 204.5 ms, 1.86M, 76.1 %.
var numberAndUnit = regexp.MustCompile(`^([-+]?[\d.,'’ \x{a0}\x{202f}]*\d)[ \x{a0}\x{202f}]*([\pL%][^\d()±]*)$`)

// split returns the number and the unit in a cell; the unit is "" if the cell states none.
func (t *table) split(row int, column string) (text, unit string) {
	text = strings.TrimSpace(t.rows[row][t.at[column]])
	if m := numberAndUnit.FindStringSubmatch(text); m != nil && number.ParseUnits(m[2]) != nil {
		return m[1], m[2]
	}
	return text, ""
}

// inUnit returns the factor from the unit that a cell states, "" for none, to the figure's unit. It
// fails if the figure cannot be in that unit, if the column's name or the user states another one,
// or if only some cells of the column state a unit and nothing says that of the others.
func (t *table) inUnit(row int, ours, unit string) float64 {
	r := t.reads[ours]
	base, figure := tableUnits[ours]
	scale := r.scale
	if unit != "" {
		if r.each { // a step time
			base = "s"
		}
		d, fits := fitting(unitsNamed(unit), base)
		prefix, _ := number.ParseUnit(unit)
		switch whole := clip(t.rows[row][t.at[r.Name]]); {
		case figure && prefix.Bare && prefix.Base+prefix.Per == "" && strings.HasSuffix(base, "/s"):
			return r.scale * prefix.Scale
		case !figure || !fits:
			t.l.fail(t.line[row], "column %s: %s cannot be in %s; write a number alone", r.Name, ours, clip(unit))
		case d.steps || d.per != "":
			t.l.fail(t.line[row], "column %s: %s has its unit in the cell; write the number alone, and %s", r.Name, whole, mapping(ours, r.Name, unit))
		case (r.stated || r.scale != 1) && d.scale != r.scale:
			t.l.fail(t.line[row], "column %s: %s is in another unit than the column; write all cells in one unit", r.Name, whole)
		}
		scale = d.scale
	}
	if how := map[bool]string{true: "with", false: "without"}[unit != ""]; figure && !r.stated && r.cells != how {
		if r.cells != "" {
			t.l.fail(t.line[row], "column %s: some cells state a unit and others do not; write it in all cells or, for the whole column, as %s", r.Name, mapping(ours, r.Name, "UNIT"))
		}
		r.cells, r.unit = how, unit
		t.reads[ours] = r
	}
	return scale
}

// readable returns the number in a cell. ok is false also if the cell is not a number, which the
// reader of the rows reports.
func (t *table) readable(row int, column string) (v Value, ok bool) {
	err := try(func() { v, ok = t.value(row, column) })
	return v, ok && err == nil
}

// times converts a number of the column to the figure's unit. A step time is inverted first.
func (r reading) times(x, scale float64) float64 {
	if r.each {
		return scaled(1/x, scale)
	}
	return scaled(x, scale)
}

// from returns a note that names the column from which a figure was read.
func (t *table) from(ours string) string {
	r := t.reads[ours]
	note := "from column " + r.Name
	if r.per != "" {
		note += ", one " + r.per + "'s rate times their number"
	}
	return note
}

// counts returns the number of devices or of nodes of a row; per says which of the two.
func (t *table) counts(row int, per string) float64 {
	if columns := t.countedBy(per); columns != nil {
		n := 1.0
		for _, name := range columns {
			v, ok := t.value(row, name)
			if !ok || v.Number < 1 || v.Number != math.Trunc(v.Number) {
				t.l.fail(t.line[row], "no count in column %s, and the rate is one %s's", name, per)
			}
			n *= v.Number
		}
		return n
	}
	if per == number.PerNode {
		return float64(t.l.o.Nodes)
	}
	return float64(t.l.o.Workers)
}

// countedBy returns the columns whose product is the number of devices or nodes (per says which).
// It returns nil if no column states it.
func (t *table) countedBy(per string) []string {
	workers := t.reads["workers"].Name
	if workers == "" {
		workers = t.reads["replicas"].Name
	}
	ofNodes := workers != "" && countsNodes(workers)
	switch {
	case per == number.PerNode && t.reads["nodes"].Name != "":
		return []string{t.reads["nodes"].Name}
	case per == number.PerNode && ofNodes:
		return []string{workers}
	case per == number.PerNode:
		for _, name := range t.ordered() {
			if countsNodes(name) {
				return []string{name}
			}
		}
		return nil
	case ofNodes:
		for _, name := range t.ordered() {
			if countsOneNode(name) {
				return []string{workers, name}
			}
		}
		return nil
	case workers != "":
		return []string{workers}
	}
	return nil
}

// countsNodes reports whether a column counts nodes, according to its name: "nodes", "# hosts".
func countsNodes(name string) bool {
	list := number.Words(name)
	return len(list) > 0 && !slices.Contains(list, "/") && slices.ContainsFunc(list, func(word string) bool { return number.Kind(word) == number.PerNode }) &&
		!slices.ContainsFunc(list, func(word string) bool { return number.Kind(word) == number.PerDevice || number.TimeUnit(word) > 0 })
}

func countsDevices(list []string) bool {
	return slices.ContainsFunc(list, func(word string) bool { return number.Kind(word) == number.PerDevice })
}

// counted returns an error if a column holds a rate per device or per node, but the table does
// not state how many there are.
func (t *table) counted(ours string, r reading, columns map[string]Column) error {
	per := r.per
	if ours == tokensPerGPU || r.steps {
		per = number.PerDevice
	}
	if per == "" || columns[tokensPerSecond].Name != "" && ours == tokensPerGPU {
		return nil
	}
	for _, key := range []string{"workers", "replicas", "nodes"} {
		if c, mapped := columns[key]; mapped && t.reads[key].Name == "" {
			t.reads[key] = reading{Column: c, scale: 1}
		}
	}
	switch {
	case t.countedBy(per) != nil, per == number.PerDevice && t.l.o.Workers > 0 && columns["workers"].Name+columns["replicas"].Name == "", per == number.PerNode && t.l.o.Nodes > 0:
		return nil
	case per == number.PerNode:
		return fmt.Errorf("column %s is the rate of one node: give the number of nodes with --map nodes=COLUMN or --set nodes=N; if it is the rate of all nodes, use %s", clip(r.Name), mapping(ours, r.Name, usual[tableUnits[ours]]))
	}
	if workers := columns["workers"].Name; workers != "" {
		return fmt.Errorf("column %s is the rate of one device, but column %s counts nodes, judging by its name: map the number of devices with --map workers=COLUMN; or, if it is the rate of one node, use %s",
			clip(r.Name), clip(workers), mapping(ours, r.Name, usual[tableUnits[ours]]+"/node"))
	}
	return fmt.Errorf("column %s is the rate of one device: give the number of devices with --map workers=COLUMN or --set workers=N; if it is the rate of all devices, use %s", clip(r.Name), mapping(ours, r.Name, usual[tableUnits[ours]]))
}
