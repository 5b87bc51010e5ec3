package extract

import (
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/scalebench/scalebench/metrics/number"
)

// unit says how numbers in a unit are converted for storage.
type unit struct {
	base  string
	scale float64
	steps bool // it counts steps instead of samples, so the conversion needs the global batch
	each  bool // the unit is a time per step, so the value is inverted
	// unclear is true for a unit that may be in bits or in bytes.
	unclear bool
	per     string // number.PerDevice or number.PerNode if the numbers are of one of these; "" if not stated
}

// units lists the units that messages suggest. number.ParseUnit also accepts other combinations
// of a prefix, a quantity and a time.
var units = func() map[string]unit {
	all := map[string]unit{"": {scale: 1}}
	for _, name := range []string{"fraction", "%", "s", "sec", "ms", "us", "µs", "ns", "min", "h", "B/s", "MB/s", "GB/s", "tokens/s", "tok/s",
		"steps/s", "it/s", "batches/s", "s/step", "s/it", "ms/step", "ms/it", "samples/s", "samples/sec", "img/s", "img/sec", "images/s", "images/sec",
		"requests/s", "requests/sec", "req/s", "examples/s", "sequences/s"} {
		all[name], _ = parsedUnit(name)
	}
	return all
}()

// unitsOf returns the listed units with a base unit, for messages.
func unitsOf(base string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(units)) {
		if units[name].base == base {
			list = append(list, strconv.Quote(name))
		}
	}
	return list
}

// unitNamed returns the unit with this name, whether or not units lists it.
func unitNamed(name string) (unit, bool) {
	if u, listed := units[name]; listed {
		return u, true
	}
	return parsedUnit(name)
}

// parsedUnit parses a unit.
func parsedUnit(name string) (unit, bool) {
	u, ok := number.ParseUnit(name)
	if !ok {
		return unit{}, false
	}
	return storedUnit(u)
}

// storedUnit returns how numbers in a unit are stored. A prefix alone is not a unit: K may mean
// kelvin. A rate of steps becomes one of samples, for which the batch is needed.
func storedUnit(u number.Unit) (unit, bool) {
	switch {
	case u.Bare || u.Inverse && u.Base != "steps/s":
		return unit{}, false
	case u.Base == "steps/s":
		return unit{base: "samples/s", scale: u.Scale, steps: true, each: u.Inverse, per: u.Per}, true
	}
	return unit{base: u.Base, scale: u.Scale, unclear: u.Unclear, per: u.Per}, true
}

// storedUnits returns how numbers in each of the units are stored.
func storedUnits(list []number.Unit) (stored []unit) {
	for _, u := range list {
		if one, ok := storedUnit(u); ok {
			stored = append(stored, one)
		}
	}
	return stored
}

// A heading is the parsed name of a column, with its units as they are stored.
type heading struct {
	number.Name
	dims []unit // possible meanings, the most likely first; empty if the name has no known unit
}

var brackets = regexp.MustCompile(`[(\[{]([^()\[\]{}]*)[)\]}]`)

// headingOf parses the name of a column.
func headingOf(name string) heading {
	n := number.ParseName(name)
	return heading{n, storedUnits(n.Units)}
}
