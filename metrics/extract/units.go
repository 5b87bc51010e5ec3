package extract

import (
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
)

// unit says how to store numbers in a unit.
type unit struct {
	base  string
	scale float64
	steps bool // counts steps instead of samples, so it needs the global batch
	each  bool // seconds per step: invert the value
}

// units lists the units that messages suggest. number.ParseUnit accepts others with any
// prefix, quantity and time.
var units = func() map[string]unit {
	all := map[string]unit{"": {scale: 1}}
	for _, name := range []string{"fraction", "%", "s", "sec", "ms", "us", "µs", "ns", "min", "h", "B/s", "MB/s", "GB/s", "tokens/s", "tok/s",
		"steps/s", "it/s", "batches/s", "s/step", "s/it", "ms/step", "ms/it", "samples/s", "samples/sec", "img/s", "img/sec", "images/s", "images/sec",
		"requests/s", "requests/sec", "req/s", "examples/s", "sequences/s"} {
		all[name], _ = parsedUnit(name)
	}
	return all
}()

// unitNames returns the units that messages suggest. Values in unknown units are stored
// unchanged.
func unitNames() []string {
	var names []string
	for name := range units {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// unitNamed returns the unit with this name, listed or not.
func unitNamed(name string) (unit, bool) {
	if u, listed := units[name]; listed {
		return u, true
	}
	return parsedUnit(name)
}

// parsedUnit parses a unit. A prefix alone is not one: K may mean kelvin. Steps become
// samples if the batch is known.
func parsedUnit(name string) (unit, bool) {
	u, ok := number.ParseUnit(name)
	if !ok || u.Bare || u.Inverse && u.Base != "steps/s" {
		return unit{}, false
	}
	if u.Base == "steps/s" {
		return unit{base: "samples/s", scale: u.Scale, steps: true, each: u.Inverse}, true
	}
	return unit{base: u.Base, scale: u.Scale}, true
}
