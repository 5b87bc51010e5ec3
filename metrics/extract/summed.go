package extract

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// sums returns the columns whose rates are added up, if rows are parts of a run by the column
// Options.Sum.
func (t *table) sums(columns map[string]Column) (list []string) {
	if t.l.o.Sum == "" {
		return nil
	}
	if _, has := t.at[t.l.o.Sum]; !has {
		t.l.fail(0, "no column %q to sum over; the file has %s", t.l.o.Sum, t.names())
	}
	for ours, c := range columns {
		base, figure := tableUnits[ours]
		r := t.reads[ours]
		switch {
		case c.Name == t.l.o.Sum:
			t.l.fail(0, "column %q is mapped to %s, and rows are summed over it; leave one out", c.Name, ours)
		case !figure || c.Label || ours == "rate":
		case !strings.HasSuffix(base, "/s") || r.each:
			t.l.fail(0, "rates of parts add up, and %s is none; leave it out", ours)
		case r.per != "" || ours == tokensPerGPU:
			t.l.fail(0, "column %s is of one %s by its name, and the parts add up to all of them; write %s", clip(c.Name), number.PerDevice, mapping(cmp.Or(map[string]string{tokensPerGPU: tokensPerSecond}[ours], ours), c.Name, usual[base]))
		default:
			list = append(list, c.Name)
		}
	}
	if _, epochs := columns["epoch"]; epochs {
		t.l.fail(0, "rows are epochs, and cannot be summed over %s too; leave epoch out", clip(t.l.o.Sum))
	}
	return list
}

// addUp replaces the rows of a run by one row, in which the rates are summed.
func (t *tableReader) addUp(g *tableGroup) {
	all := &table{l: t.l, at: t.at, rows: g.rows, line: g.line}
	one := slices.Clone(g.rows[0])
	for _, name := range t.sums {
		sum := 0.0
		for row := range g.rows {
			v, ok := all.value(row, name)
			if !ok {
				t.l.fail(g.line[row], "no number in column %s, and the run's is the sum over %s", clip(name), clip(t.l.o.Sum))
			}
			sum += v.Number
		}
		one[t.at[name]] = strconv.FormatFloat(sum, 'g', -1, 64)
		if t.l.o.Decimal == DecimalComma {
			one[t.at[name]] = strings.Replace(one[t.at[name]], ".", ",", 1)
		}
	}
	g.rows, g.line = [][]string{one}, g.line[:1]
}
