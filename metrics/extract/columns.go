package extract

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// named adds what goes without a mapping, since the table's column has our name:
// all, if no figure is mapped, and always the workers, without which there is no
// run. Which of several figures are meant is up to a mapping that names one.
func (t *table) named(columns map[string]Column) map[string]Column {
	all := maps.Clone(columns)
	if all == nil {
		all = map[string]Column{}
	}
	other := map[string]bool{} // columns that the user has named for something
	for _, c := range columns {
		other[c.Name] = true
	}
	take := func(names []string) {
		for _, ours := range names {
			_, mapped := columns[ours]
			if _, has := t.at[ours]; has && !mapped && !other[ours] && !slices.Contains(t.l.o.Given, ours) {
				all[ours] = Column{Name: ours}
			}
		}
	}
	workers := []string{"workers", "replicas"}
	if !slices.ContainsFunc(workers, func(w string) bool { return columns[w].Name != "" || slices.Contains(t.l.o.Given, w) }) {
		take(workers)
	}
	if hasFigure(columns) || ofLoads(columns) {
		return all
	}
	take([]string{"study", "nodes", "framework"})
	take(LoadFigures)
	if ofLoads(all) {
		take(Coordinates)
	} else {
		take(TrainFigures)
	}
	return all
}

// hasFigure reports whether anything that is a result of a training is mapped.
func hasFigure(columns map[string]Column) bool {
	return slices.ContainsFunc(TrainFigures, func(f string) bool { return f != "epoch" && f != "step" && columns[f].Name != "" })
}

// unusedColumns are those that nothing is taken from, and which of them have
// different values in different rows.
type unusedColumns struct {
	t      *table
	at     []int
	first  []string
	differ []bool // nil: no row seen yet
}

func (t *table) unused(columns map[string]Column) *unusedColumns {
	u := &unusedColumns{t: t}
	used := map[string]bool{}
	for _, c := range columns {
		used[c.Name] = true
	}
	for name, i := range t.at {
		if !used[name] {
			u.at = append(u.at, i)
		}
	}
	slices.Sort(u.at)
	return u
}

func (u *unusedColumns) see(row []string) {
	if u.differ == nil {
		u.differ = make([]bool, len(u.at))
		for _, i := range u.at {
			u.first = append(u.first, row[i])
		}
	}
	for n, i := range u.at {
		u.differ[n] = u.differ[n] || row[i] != u.first[n]
	}
}

// names are those whose values differ, for a message.
func (u *unusedColumns) names() string {
	byPlace := map[int]string{}
	for name, i := range u.t.at {
		byPlace[i] = name
	}
	var names []string
	for n, i := range u.at {
		if u.differ[n] {
			names = append(names, byPlace[i])
		}
	}
	return listed(names)
}

// mapped says what is wrong with a mapping of the table's columns.
func (t *table) mapped(columns map[string]Column) error {
	var problems []error
	file := t.l.o.File
	for _, ours := range slices.Sorted(maps.Keys(columns)) {
		c := columns[ours]
		if _, ok := t.at[c.Name]; !ok {
			problems = append(problems, fmt.Errorf("%s: no column %q for %s; the file has %s", file, c.Name, ours, t.names()))
		}
		if err := fits(ours, c); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if ofLoads(columns) {
		for _, ours := range TrainFigures {
			if _, both := columns[ours]; both {
				return fmt.Errorf("%s: %s is a training's, and what else is mapped is of a service under load; import them apart", file, ours)
			}
		}
		return nil
	}
	if len(t.l.o.At) > 0 {
		return fmt.Errorf("%s: --at is for figures of a load; map one or more of %s", file, strings.Join(LoadFigures, ", "))
	}
	if _, both := columns["elapsed"]; columns["epoch_seconds"].Name != "" {
		switch {
		case both:
			return fmt.Errorf("%s: elapsed and epoch_seconds both tell the time; map one", file)
		case columns["epoch"].Name == "":
			return fmt.Errorf("%s: epoch_seconds needs the number of the epoch; map its column as epoch. The file has %s", file, t.names())
		}
	}
	for _, ours := range Coordinates {
		if c, mapped := columns[ours]; mapped && !c.Label {
			return fmt.Errorf("%s: %s is of a load, and no column is mapped to a figure of one: %s", file, ours, strings.Join(LoadFigures, ", "))
		}
	}
	if !hasFigure(columns) {
		return fmt.Errorf("%s: no column is mapped to a figure; map one or more of %s, like throughput=img_s. The file has %s",
			file, strings.Join(TableFigures, ", "), t.names())
	}
	return nil
}

// fits says what is wrong with a column's unit.
func fits(ours string, c Column) error {
	name := c.Unit
	base, figure := map[string]string{"throughput": "samples/s", "end_to_end": "samples/s", "train_seconds": "s", "elapsed": "s", "epoch_seconds": "s", "accuracy": "", "rate": "requests/s"}[ours]
	if i := slices.IndexFunc(modelFigures, func(f metrics.Figure) bool { return f.Name == ours }); i >= 0 {
		base, figure = modelFigures[i].Unit, true
	}
	if slices.Contains(LoadFigures, ours) {
		m, err := measure.Find(ours)
		base, figure = m.Unit, err == nil
	}
	if name == "" {
		if !figure || c.Label {
			return nil
		}
		return headFits(ours, c, base)
	}
	u := units[name]
	if !figure || u.base != base || u.steps {
		var valid []string
		for _, n := range unitsOf(base) {
			if figure && !units[strings.Trim(n, `"`)].steps {
				valid = append(valid, n)
			}
		}
		return fmt.Errorf("%s cannot be in %q; it may be in %s", ours, name, strings.Join(append(valid, "its base unit"), ", "))
	}
	return nil
}
