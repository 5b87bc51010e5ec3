package extract

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// named returns the mapping of columns, with the columns added that need no mapping because their
// name is one of our keys: the study, the workers, the time, and the figures of this kind of
// table. If the user has mapped a figure, it does not add the keys that make each row an epoch of
// one run.
func (t *table) named(columns map[string]Column) map[string]Column {
	all := maps.Clone(columns)
	if all == nil {
		all = map[string]Column{}
	}
	other := map[string]bool{} // columns that the user has mapped to a key
	for _, c := range columns {
		other[c.Name] = true
	}
	take := func(names []string) {
		for _, ours := range names {
			_, mapped := columns[ours]
			if name, has := t.ours(ours); has && !mapped && !other[name] && !slices.Contains(t.l.o.Given, ours) {
				all[ours] = Column{Name: name}
			}
		}
	}
	workers := []string{"workers", "replicas"}
	if !slices.ContainsFunc(workers, func(w string) bool { return columns[w].Name != "" || slices.Contains(t.l.o.Given, w) }) {
		take(workers)
	}
	take([]string{"study", "nodes", "framework"})
	take(WhenColumns)
	if hasFigure(columns) {
		take(slices.DeleteFunc(slices.Clone(TrainFigures), func(name string) bool { return slices.Contains(rowsOfTime, name) }))
		return all
	}
	take(loadFigures)
	if ofLoads(all) {
		take(Coordinates)
	} else {
		take(TrainFigures)
	}
	return all
}

// ours returns the column that has one of our names, optionally followed by a unit in brackets,
// as in "latency_p95 (ms)". has is false if no column or two columns match.
func (t *table) ours(name string) (column string, has bool) {
	if _, has := t.at[name]; has {
		return name, true
	}
	var found []string
	for c := range t.at {
		if strings.TrimSpace(brackets.ReplaceAllString(c, "")) == name {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// rowsOfTime are the keys that make each row an epoch or a step of one run.
var rowsOfTime = []string{"epoch", "step", "elapsed", "epoch_seconds"}

// hasFigure reports whether the user mapped a column to a result of a training.
func hasFigure(columns map[string]Column) bool {
	return slices.ContainsFunc(TrainFigures, func(f string) bool { return f != "epoch" && f != "step" && columns[f].Name != "" })
}

// countsOneNode reports whether a column's name says that it counts the devices of one node.
func countsOneNode(name string) bool {
	over := number.Divided(number.Words(name))
	return len(over) == 2 && countsDevices(over[0]) && len(over[1]) > 0 && number.Kind(over[1][0]) == number.PerNode
}

// These patterns match names of columns that count the replicas of a model, and the devices of each.
var (
	replicaCount = regexp.MustCompile(`(?i)^(?:dp|data[-_ ]?parallel)(?:[-_ ]?(?:size|degree|world[-_ ]size))?$`)
	shardCount   = regexp.MustCompile(`(?i)^(?:tp|pp|cp|(?:tensor|pipeline|context)(?:[-_ ]?model)?[-_ ]?parallel)(?:[-_ ]?(?:size|degree|world[-_ ]size))?$`)
)

// allDevices returns an error if the column that is mapped to the workers counts the devices of one
// node, or replicas that have several devices. Nodes may be workers.
func (t *table) allDevices(ours string, c Column) error {
	if ours != "workers" && ours != "replicas" {
		return nil
	}
	if countsOneNode(c.Name) {
		return fmt.Errorf("column %s counts the devices of one node, judging by its name: add a column with those of all nodes, and map it to %s", clip(c.Name), ours)
	}
	if replicaCount.MatchString(c.Name) {
		for _, each := range slices.Sorted(maps.Keys(t.at)) {
			if shardCount.MatchString(each) {
				return fmt.Errorf("column %s counts replicas of the model, and column %s the devices of each, judging by their names: add a column with the number of all devices, and map it to %s; or remove %s, if it is always 1",
					clip(c.Name), clip(each), ours, clip(each))
			}
		}
	}
	return nil
}

// minimum matches the part of a name that may mean minutes or the smallest value.
var minimum = regexp.MustCompile(`(?i)(^|[^a-z])min($|[^a-z])`)

// smallest returns an error if min in a column's name may not mean minutes, because another column has
// the same name with max.
func (t *table) smallest(ours string, c Column) error {
	if tableUnits[ours] != "s" || c.Unit != "" || !minimum.MatchString(c.Name) {
		return nil
	}
	for other := range t.at {
		if strings.EqualFold(other, minimum.ReplaceAllString(c.Name, "${1}max$2")) {
			return fmt.Errorf("column %s has the smallest times, since there is a column %s: map another one; or write %s or %s", clip(c.Name), clip(other), mapping(ours, c.Name, "s"), mapping(ours, c.Name, "min"))
		}
	}
	return nil
}

// twice returns an error if a column is mapped to a figure and to something else. One column may be
// both the offered rate and the measured one: many tables of loads have no other.
func twice(ours string, c Column, columns map[string]Column) error {
	if _, figure := tableUnits[ours]; !figure || c.Label {
		return nil
	}
	for _, other := range slices.Sorted(maps.Keys(columns)) {
		_, figure := tableUnits[other]
		if other == "rate" && ours == measure.RequestsPerSecond {
			continue
		}
		if counts := slices.Contains([]string{"workers", "replicas", "nodes"}, other); other != ours && columns[other].Name == c.Name && (counts || figure && other < ours) {
			return fmt.Errorf("column %s is mapped to both %s and %s; map another column to one of them", clip(c.Name), other, ours)
		}
	}
	return nil
}

// mapped decides how to convert each mapped column and stores it in t.reads. Its error lists all
// columns that are mapped wrongly.
func (t *table) mapped(columns map[string]Column) {
	l, problems := t.l, []error(nil)
	t.reads = map[string]reading{}
	for _, ours := range slices.Sorted(maps.Keys(columns)) {
		c := columns[ours]
		if _, ok := t.at[c.Name]; !ok {
			problems = append(problems, l.errorAt(0, "no column %q for %s; the file has %s", c.Name, ours, t.names()))
			continue
		}
		r, err := l.reading(ours, c)
		if err == nil {
			err = cmp.Or(t.counted(ours, r, columns), t.allDevices(ours, c), t.smallest(ours, c), twice(ours, c, columns))
		}
		if err != nil {
			problems = append(problems, l.errorAt(0, "%w", err))
		}
		t.reads[ours] = r
	}
	failIf(errors.Join(problems...))
	mapped := func(ours string) bool { return columns[ours].Name != "" }
	if ofLoads(columns) {
		if i := slices.IndexFunc(TrainFigures, mapped); i >= 0 {
			l.fail(0, "%s belongs to a training, and the other mapped columns to a service under load; import them separately", TrainFigures[i])
		}
		return
	}
	switch {
	case len(l.o.At) > 0:
		l.fail(0, "--at is for figures of a load; map one or more of %s", strings.Join(loadFigures, ", "))
	case mapped("epoch_seconds") && mapped("elapsed"):
		l.fail(0, "elapsed and epoch_seconds both give the time; map only one")
	case mapped("epoch") && mapped("throughput") && columns["throughput"].Unit == "" && overAllSteps.MatchString(columns["throughput"].Name):
		name := columns["throughput"].Name
		l.fail(0, "column %s is a running mean, judging by its name, and its rows are epochs: map a column with the rate of each epoch; or, if the name is wrong, write %s", clip(name), mapping("throughput", name, "samples/s"))
	case mapped("epoch_seconds") && !mapped("epoch"):
		l.fail(0, "epoch_seconds needs the number of the epoch; map its column as epoch; or, if each row is a run of one epoch, write %s. The file has %s", mapping("train_seconds", columns["epoch_seconds"].Name, "s"), t.names())
	case len(coordinatesOf(columns)) > 0:
		l.fail(0, "%s describes the load of a service, but no column is mapped to one of its figures: %s", coordinatesOf(columns)[0], strings.Join(loadFigures, ", "))
	case !hasFigure(columns):
		l.fail(0, "no column is mapped to a figure; map one or more, such as %s (`scalebench import --help` lists the figures). The file has %s", t.suggested(columns), t.names())
	}
}

// wholeRun matches names of columns with the times of whole runs.
var wholeRun = regexp.MustCompile(`(?i)\b(?:train(?:ing)?[-_ ]time|run[-_ ]?time|wall[-_ ]?(?:clock)?[-_ ]?time)`)

// suggested returns the mappings of the columns whose names state a figure with its unit, or count
// devices; general examples if none does.
func (t *table) suggested(columns map[string]Column) string {
	var list []string
	taken, figure := map[string]bool{"workers": columns["workers"].Name != "" || slices.Contains(t.l.o.Given, "workers")}, false
	for _, name := range t.ordered() {
		h, ours := headingOf(name), ""
		switch {
		case len(h.dims) > 0:
			ours = figureIn(h.dims[0])
			if h.Of == "steps" {
				ours = stepSeconds
			} else if wholeRun.MatchString(name) {
				ours = "train_seconds"
			}
			if _, err := t.l.reading(ours, Column{Name: name}); err != nil {
				ours = ""
			}
			figure = figure || ours != "" && !taken[ours]
		case h.Said == "" && countsDevices(number.Words(name)) && t.allDevices("workers", Column{Name: name}) == nil:
			ours = "workers"
		}
		if ours != "" && !taken[ours] {
			list, taken[ours] = append(list, mapping(ours, name, "")), true
		}
	}
	if !figure {
		return "--map throughput=COLUMN, --map train_seconds=COLUMN or --map latency_p95=COLUMN"
	}
	return strings.Join(list, " ")
}

// devices adds a doubt if workers are nodes that have several devices each, and refuses the table
// if the number of devices of a node changes.
func (s *survey) devices() {
	workers := s.columns["workers"].Name
	if workers == "" || !countsNodes(workers) {
		return
	}
	for _, o := range s.others {
		list := number.Words(o.name)
		each := countsOneNode(o.name) || tasksName.MatchString(o.name)
		if !o.numeric || !o.whole || !each && (!countsDevices(list) || slices.Contains(list, "/") || number.TimeUnit(list[len(list)-1]) > 0) {
			continue
		}
		found := map[float64]bool{}
		s.eachRow(func(t *table, r surveyed) {
			if v, ok := t.readable(0, o.name); ok && r.workers > 0 {
				if !each {
					v.Number /= r.workers
				}
				found[v.Number] = true
			}
		})
		switch counts := slices.Sorted(maps.Keys(found)); {
		case len(counts) > 1:
			s.l.fail(0, "column %s is mapped to workers and counts nodes, and by column %s a node has %g to %g devices: add a column with the number of all devices, and write %s", clip(workers), clip(o.name), counts[0], counts[len(counts)-1], mapping("workers", "COLUMN", ""))
		case len(counts) == 1 && counts[0] > 1:
			s.say("workers are nodes here (column %s), with %g devices each by column %s: figures per worker are those of a node; for devices, map the column that counts all of them", clip(workers), counts[0], clip(o.name))
			s.doubts = append(s.doubts, fmt.Sprintf("a worker is a node with %g devices", counts[0]))
			return
		}
	}
}

var tasksName = regexp.MustCompile(`(?i)^n?(?:tasks?|ranks?|procs?)[-_ ]per[-_ ]node$|^ppn$`)
