package extract

import (
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
)

// unit is how a unit is stored.
type unit struct {
	base  string
	scale float64
	steps bool // counts steps, not samples: needs the global batch
	each  bool // of a step: the value is inverted
}

// units are those that messages list. Others are known too: number.ParseUnit reads any
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

// unitNames are those that are listed; values in a unit that is not known are kept as they are.
func unitNames() []string {
	var names []string
	for name := range units {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// unitNamed is the unit of that name, listed or not.
func unitNamed(name string) (unit, bool) {
	if u, listed := units[name]; listed {
		return u, true
	}
	return parsedUnit(name)
}

// parsedUnit is a unit as it is stored. A prefix alone is none: K may be kelvin. Steps
// become samples by the batch.
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
