// Package measure says what the figures of a run are: name, unit, which way is
// better, how they are written. Each kind of workload declares its measures in
// one table, in a file of its own; tables, comparisons, histories and figures go
// through that table and keep no list of theirs. It is pure.
//
// Runs of a point are summarised by their median in every measure, with the
// exact binomial interval (package scaling): a mean is pulled by the one run
// that a neighbour disturbed, and rates and times would need different ones.
package measure

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Direction is which way a measure is better.
type Direction int8

// The directions. Neither is for what describes a run and does not judge it.
const (
	Neither Direction = iota
	Higher
	Lower
)

// directions are their words, as a study and an event file have them.
var directions = map[Direction]string{Neither: "", Higher: "higher", Lower: "lower"}

// String is "higher", "lower" or "".
func (d Direction) String() string { return directions[d] }

// ParseDirection undoes String.
func ParseDirection(word string) (Direction, error) {
	for d, w := range directions {
		if w == word {
			return d, nil
		}
	}
	return Neither, fmt.Errorf("%q is not a direction; a measure is better when it is \"higher\" or \"lower\"", word)
}

// Show is how a value is written for people.
type Show int8

// The ways to write a value.
const (
	Number  Show = iota // three significant digits: 12.3k
	Seconds             // 1.23 ms, 12.3 s, 4m05s
	Percent             // a fraction: 12.3 %
	Size                // bytes: 1.50 GiB
)

// Measure is one figure of a run.
type Measure struct {
	Name   string // as in queries, options and JSON: "throughput", "to_0.75"
	Title  string // as in tables: "throughput", "time to 0.75"
	Unit   string // base unit: "samples/s", "s"; "" for a fraction or a count
	Better Direction
	Show   Show
	// Missable is for a time to something that a run may never reach. Such a run
	// has the value +Inf and ranks behind all that reach it.
	Missable bool
	// At are the coordinates within a run that a value is of; "": a run has one value.
	At Coordinates
	// Capacity says that the best of the values within a run answers a question: how
	// much a service gives. Other values at different places are of different work.
	Capacity bool
	// Scales says that twice the resources could double it, or halve it: what is done in a
	// second, by all of them, and the time that a given work takes. Only that has an
	// efficiency: not a share, nor what is of one step, one answer or one resource, nor a
	// cost, which counts the resources already.
	Scales bool
	// Axis is the coordinate along which curves run unless another axis is asked
	// for; "" is the number of workers. Measures with equal At have equal Axis.
	Axis string
}

// Of lists the measures of a kind of workload; nil for a kind that declares
// none. Times to targets are not in it, since their names hold the target.
func Of(kind string) []Measure {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind && k.Measures != nil })
	switch {
	case i < 0:
		return nil
	case kinds[i].Trains:
		return slices.Concat(kinds[i].Measures, resources, ofSamples)
	}
	return slices.Concat(kinds[i].Measures, resources)
}

// lists are all measures that are declared.
func lists() [][]Measure {
	all := make([][]Measure, len(kinds))
	for i, k := range kinds {
		all[i] = k.Measures
	}
	return append(all, resources, ofSamples)
}

// Each is Of, one by one.
func Each(kind string) iter.Seq[Measure] { return slices.Values(Of(kind)) }

// Find finds a measure by its name, that of a time to a target ("to_0.75", "to_loss_2")
// included. The error lists the names that there are.
func Find(name string) (Measure, error) {
	for _, list := range lists() {
		if i := slices.IndexFunc(list, func(m Measure) bool { return m.Name == name }); i >= 0 {
			return list[i], nil
		}
	}
	if target, ok := TargetOf(name); ok {
		return target.Time(), nil
	}
	return Measure{}, fmt.Errorf("unknown measure %q; choose one of %s, or the time to a target: to_0.75, to_loss_2", name, strings.Join(Names(), ", "))
}

// Reported is the measure that a figure of a user's program or log is. Nobody
// but the user knows which way it is better. A rate and a time are taken to be of the
// whole run, and so is what is better when it is higher and has no unit: few rates are
// given one.
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

// utilisation reports whether a figure of that name is a share of a device's peak: as a
// log states it, or by a convention of package mfu.
func utilisation(name string) bool {
	if name == ReportedMFU {
		return true
	}
	kind, convention, _ := strings.Cut(name, "_")
	_, err := FindConvention(convention)
	return err == nil && (kind == "mfu" || kind == "hfu")
}

// Names lists the names of all measures, without times to targets.
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

// Gain is how many times better a value is than the base's: value over base
// where higher is better, base over value where lower is. It is a speedup for
// rates and for times alike.
func (m Measure) Gain(value, base float64) float64 {
	if m.Better == Lower {
		return base / value
	}
	return value / base
}

// Worse is the direction in which the measure is worse: 1 for more, -1 for less, 0
// where nobody says.
func (m Measure) Worse() int {
	switch m.Better {
	case Higher:
		return -1
	case Lower:
		return 1
	}
	return 0
}
