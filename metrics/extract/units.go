package extract

import (
	"slices"

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

// unitNames returns the units that messages suggest. Values in unknown units are also accepted,
// and stored unchanged.
func unitNames() []string {
	var names []string
	for name := range units {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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
		return unit{base: "samples/s", scale: u.Scale, steps: true, each: u.Inverse}, true
	}
	return unit{base: u.Base, scale: u.Scale, unclear: u.Unclear}, true
}
