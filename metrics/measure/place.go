package measure

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Coordinates are names of what values of one run differ in, sorted, with a space
// between: "bytes in_place op". As one text they keep measures comparable.
type Coordinates string

// Keys are the single names.
func (c Coordinates) Keys() []string { return strings.Fields(string(c)) }

// Has reports whether key is one of them.
func (c Coordinates) Has(key string) bool { return slices.Contains(c.Keys(), key) }

// Place is where in a run something was measured, and what was. A run has as many
// values of a measure with coordinates as places at which it measured it: the bus
// bandwidth of each operation and size, the latency under each load.
type Place struct {
	// At is the value of each coordinate, a float64 or a string. One that a log does
	// not state is not in it.
	At     map[string]any
	Values map[string]float64 // by the measure's name, in its base unit
}

// Key is At as one text, equal for equal places: a JSON object, its keys sorted.
func Key(at map[string]any) string {
	if len(at) == 0 {
		return "{}"
	}
	text, err := json.Marshal(at)
	if err != nil {
		panic(err) // neither a float64 nor a string, or no finite one: events hold no such thing
	}
	return string(text)
}

// Places collects values by where they were measured.
type Places struct {
	list []Place
	at   map[string]int // key to index
}

// Add adds a value, and says whether it is the first of its measure there: another
// one is not taken.
func (p *Places) Add(at map[string]any, name string, value float64) (added bool) {
	key := Key(at)
	i, known := p.at[key]
	if !known {
		if p.at == nil {
			p.at = map[string]int{}
		}
		i = len(p.list)
		p.at[key] = i
		p.list = append(p.list, Place{At: maps.Clone(at), Values: map[string]float64{}})
	}
	if _, has := p.list[i].Values[name]; has {
		return false
	}
	p.list[i].Values[name] = value
	return true
}

// List are the places in the order in which they came; nil for none.
func (p *Places) List() []Place { return p.list }

// Holds reports whether values of the measure can be at a place with these
// coordinates: they are among its own, and its axis is one of them.
func (m Measure) Holds(at map[string]any) bool {
	if _, stated := at[m.Axis]; m.Axis != "" && !stated {
		return false
	}
	for key := range at {
		if !m.At.Has(key) {
			return false
		}
	}
	return len(at) > 0
}

// Placed lists the measures with coordinates, of all kinds of workload: what a log
// states of one is a value of it, whatever the run is of.
func Placed() []Measure {
	var list []Measure
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for m := range Each(kind) {
			if m.At != "" {
				list = append(list, m)
			}
		}
	}
	return list
}

// Beside lists the measures that are at the same places as m, m included, in the
// order of their declaration; nil for one without coordinates.
func (m Measure) Beside() []Measure {
	return slices.DeleteFunc(Placed(), func(other Measure) bool { return other.At != m.At })
}

// Frames lists, for each combination of coordinates that measures have, the first
// of them.
func Frames() []Measure {
	var list []Measure
	for _, m := range Placed() {
		if !slices.ContainsFunc(list, func(f Measure) bool { return f.At == m.At }) {
			list = append(list, m)
		}
	}
	return list
}

// Within are the places of a list that hold values of measures beside m.
func (m Measure) Within(places []Place) []Place {
	beside := m.Beside()
	return slices.DeleteFunc(slices.Clone(places), func(p Place) bool {
		return !slices.ContainsFunc(beside, func(other Measure) bool { _, has := p.Values[other.Name]; return has })
	})
}
