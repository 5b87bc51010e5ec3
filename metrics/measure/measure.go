// Package measure declares the figures of a run: name, unit, which direction is
// better, and how to format them. Each kind of workload declares its measures in one
// table in its file. Tables, comparisons, histories and figures read that table and
// keep no list themselves. The package has no side effects.
//
// For every measure, the runs of a point are summarised by their median with the exact
// binomial interval (package scaling). A mean would be pulled by one run that a
// neighbour disturbed, and rates and times would need different means.
package measure

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Direction says which way a measure is better.
type Direction int8

// Neither is for measures that describe a run without judging it.
const (
	Neither Direction = iota
	Higher
	Lower
)

// directions holds the words used in studies and event files.
var directions = map[Direction]string{Neither: "", Higher: "higher", Lower: "lower"}

// String returns "higher", "lower" or "".
func (d Direction) String() string { return directions[d] }

// ParseDirection is the inverse of String.
func ParseDirection(word string) (Direction, error) {
	for d, w := range directions {
		if w == word {
			return d, nil
		}
	}
	return Neither, fmt.Errorf("%q is not a direction; a measure is better when it is \"higher\" or \"lower\"", word)
}

// Show selects how a value is formatted.
type Show int8

// The formats of a value.
const (
	Number  Show = iota // three significant digits: 12.3k
	Seconds             // 1.23 ms, 12.3 s, 4m05s
	Percent             // a fraction: 12.3 %
	Size                // bytes: 1.50 GiB
)

// A Measure is one figure of a run.
type Measure struct {
	Name   string // as in queries, options and JSON: "throughput", "to_0.75"
	Title  string // as in tables: "throughput", "time to 0.75"
	Unit   string // base unit: "samples/s", "s"; "" for a fraction or a count
	Better Direction
	Show   Show
	// Missable is set for the time to something that a run may never reach. Such a run
	// has the value +Inf and ranks last.
	Missable bool
	// At lists the coordinates within a run; "" if a run has one value.
	At Coordinates
	// Capacity reports whether the best of the values within a run answers a question,
	// such as how much load a service can handle. Otherwise values at different places
	// belong to different work and are not compared.
	Capacity bool
	// Scales reports whether twice the resources could double or halve the measure: a
	// rate over all resources, or the time of a fixed amount of work. Only such
	// measures have an efficiency. Shares do not, nor do values per step, answer or
	// resource, nor costs, which include the resources already.
	Scales bool
	// Axis is the default coordinate along which curves run; "" means the number of
	// workers. Measures with the same At have the same Axis.
	Axis string
}

// ForKind returns the measures of a kind of workload; nil for an undeclared kind. Times to
// targets are not included, because their names contain the target.
func ForKind(kind string) []Measure {
	parts := partsOf(kind)
	return slices.Concat(parts[:]...)
}

// partsOf returns the lists that ForKind joins.
func partsOf(kind string) (parts [3][]Measure) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind && k.Measures != nil })
	if i < 0 {
		return parts
	}
	parts[0], parts[1] = kinds[i].Measures, resources
	if kinds[i].Trains {
		parts[2] = ofSamples
	}
	return parts
}

// lists returns all declared measures.
func lists() [][]Measure {
	all := make([][]Measure, len(kinds))
	for i, k := range kinds {
		all[i] = k.Measures
	}
	return append(all, resources, ofSamples)
}

// Each iterates over ForKind(kind). It allocates nothing, because it is called for every run.
func Each(kind string) iter.Seq[Measure] {
	return func(yield func(Measure) bool) {
		for _, list := range partsOf(kind) {
			for _, m := range list {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Find returns the measure with the given name, including times to targets ("to_0.75",
// "to_loss_2"). The error lists the valid names.
func Find(name string) (Measure, error) {
	for _, list := range lists() {
		if i := slices.IndexFunc(list, func(m Measure) bool { return m.Name == name }); i >= 0 {
			return list[i], nil
		}
	}
	if target, ok := TargetOf(name); ok {
		return target.Time(), nil
	}
	return Measure{}, fmt.Errorf("unknown measure %q; `scalebench help measures` lists them", name)
}

// Reported returns the measure for a figure of a user's program or log. Only the user
// knows its direction. Rates, times, and unitless figures for which higher is better
// (few logs state the unit of a rate) are assumed to cover the whole run.
func Reported(name, unit string, better Direction) Measure {
	m := Measure{Name: name, Title: name, Unit: unit, Better: better}
	m.Scales = unit == "s" || strings.HasSuffix(unit, "/s") || unit == "" && better == Higher
	switch {
	case unit == "s":
		m.Show = Seconds
	case unit == "" && utilisation(name):
		m.Show = Percent
	}
	return m
}

// Speeds reports whether better means faster, so that the ratio to a base is a speedup: of rates, times and
// measures that scale. Shares, counts, losses and costs have none. If the better direction is not stated, only a
// rate that scales has one.
func (m Measure) Speeds() bool {
	rate := strings.HasSuffix(m.Unit, "/s")
	if m.Better == Neither {
		return rate && m.Scales
	}
	return rate || m.Scales || m.Unit == "s"
}

// utilisation reports whether a figure of that name is a share of a device's peak, as
// stated by a log or calculated by one of the conventions in mfu.go.
func utilisation(name string) bool {
	if name == ReportedMFU {
		return true
	}
	kind, convention, _ := strings.Cut(name, "_")
	_, err := FindConvention(convention)
	return err == nil && (kind == "mfu" || kind == "hfu")
}

// Names returns the names of all measures except times to targets.
func Names() []string {
	var names []string
	for _, list := range lists() {
		for _, m := range list {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Gain returns how many times better value is than base: value/base if higher is
// better, base/value if lower is better. It is a speedup for both rates and times.
func (m Measure) Gain(value, base float64) float64 {
	if m.Better == Lower {
		return base / value
	}
	return value / base
}

// Worse returns 1 if more is worse, -1 if less is worse, 0 if the measure has no
// direction.
func (m Measure) Worse() int {
	switch m.Better {
	case Higher:
		return -1
	case Lower:
		return 1
	}
	return 0
}
