package extract

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// A summing groups rows that are parts of one run, such as its ranks.
type summing struct {
	column  int
	columns []string          // columns with rates, which are added up
	open    map[string]int    // number of the latest run with these labels
	seen    []map[string]bool // for each run, the parts found so far
}

// summing returns the grouping by the column Options.Sum; nil if that is unset.
func (t *table) summing(columns map[string]Column) *summing {
	if t.l.o.Sum == "" {
		return nil
	}
	at, has := t.at[t.l.o.Sum]
	if !has {
		fail(fmt.Errorf("%s: no column %q to sum over; the file has %s", t.l.o.File, t.l.o.Sum, t.names()))
	}
	s := &summing{column: at, open: map[string]int{}}
	for ours, c := range columns {
		base, figure := baseUnit(ours)
		r := t.reads[ours]
		switch {
		case c.Name == t.l.o.Sum:
			fail(fmt.Errorf("%s: column %q is mapped to %s, and rows are summed over it; leave one out", t.l.o.File, c.Name, ours))
		case !figure || c.Label || ours == "rate":
		case !strings.HasSuffix(base, "/s") || r.each:
			fail(fmt.Errorf("%s: rates of parts add up, and %s is none; leave it out", t.l.o.File, ours))
		case r.per != "" || ours == tokensPerGPU:
			fail(fmt.Errorf("%s: column %s is of one %s by its name, and the parts add up to all of them; write %s", t.l.o.File, clip(c.Name), number.PerDevice, mapping(figureOfAll(ours), c.Name, usual[base])))
		default:
			s.columns = append(s.columns, c.Name)
		}
	}
	if _, epochs := columns["epoch"]; epochs {
		fail(fmt.Errorf("%s: rows are epochs, and cannot be summed over %s too; leave epoch out", t.l.o.File, clip(t.l.o.Sum)))
	}
	return s
}

// figureOfAll returns the figure of all devices that corresponds to ours, which may be per
// device.
func figureOfAll(ours string) string {
	if ours == tokensPerGPU {
		return tokensPerSecond
	}
	return ours
}

// takes returns the number of the run to which a row belongs. known is false if the row starts a
// new run, which gets the number next.
func (s *summing) takes(labels map[string]any, row []string, next int) (run int, known bool) {
	text, err := json.Marshal(labels)
	if err != nil {
		text = []byte(fmt.Sprint(labels))
	}
	part := strings.TrimSpace(row[s.column])
	if i, open := s.open[string(text)]; open && !s.seen[i][part] {
		s.seen[i][part] = true
		return i, true
	}
	s.open[string(text)] = next
	s.seen = append(s.seen, map[string]bool{part: true})
	return next, false
}

// add replaces the rows of a run by one row, in which the rates are summed.
func (s *summing) add(t *table, g *tableGroup) {
	all := &table{l: t.l, at: t.at, rows: g.rows, line: g.line}
	one := slices.Clone(g.rows[0])
	for _, name := range s.columns {
		sum := 0.0
		for row := range g.rows {
			v, ok := all.value(row, name)
			if !ok {
				t.l.fail(g.line[row], "no number in column %s, and the run's is the sum over %s", clip(name), clip(t.l.o.Sum))
			}
			sum += v.Number
		}
		if math.IsInf(sum, 0) {
			t.l.fail(g.line[0], "the sum of column %s is not a finite number", clip(name))
		}
		one[t.at[name]] = strconv.FormatFloat(sum, 'g', -1, 64)
		if t.l.o.Decimal == DecimalComma {
			one[t.at[name]] = strings.Replace(one[t.at[name]], ".", ",", 1)
		}
	}
	g.rows, g.line = [][]string{one}, g.line[:1]
}
