package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// axis is a scale in base units, with its ticks.
type axis struct {
	title    string
	log      bool
	unit     float64 // unit of the title, in base units: 60 for minutes
	zero     bool    // a linear axis that starts at 0
	min, max float64
	low      float64  // the smallest value, without padding
	only     []tick   // explicit ticks; nil: computed
	at       []int    // positions of explicit ticks, such as worker counts; nil: computed
	binary   bool     // ticks at powers of two
	whole    bool     // whole numbers only
	bytes    bool     // labels are sizes: 8, 4 KiB, 1 MiB
	names    []string // categories instead of numbers: 0, 1, … in this order
	empty    bool     // nothing included yet
}

type tick struct {
	value float64 // base units
	label string
}

func newAxis(title string) axis { return axis{title: title, unit: 1, empty: true} }

func logAxis(title string) axis {
	a := newAxis(title)
	a.log = true
	return a
}

// workersAxis returns a log₂ axis with a tick at every worker count in the data.
func workersAxis() axis {
	a := logAxis("workers")
	a.at = []int{}
	return a
}

// namesAxis returns an axis with a position for each name, starting at 0.
func namesAxis(title string, names []string) axis {
	a := newAxis(title)
	a.names = names
	return a
}

// timeAxis returns an axis in the unit that suits the longest time, in seconds.
func timeAxis(what string, longest float64) axis {
	a := newAxis("")
	name := "s"
	switch {
	case longest > 5*3600:
		a.unit, name = 3600, "h"
	case longest > 5*60:
		a.unit, name = 60, "min"
	}
	a.title = what + " (" + name + ")"
	return a
}

func (a *axis) include(v float64) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0) || a.log && v <= 0:
		return
	case a.empty:
		a.min, a.max, a.empty = v, v, false
	default:
		a.min, a.max = min(a.min, v), max(a.max, v)
	}
	if a.at != nil && v == math.Trunc(v) && !slices.Contains(a.at, int(v)) {
		a.at = append(a.at, int(v))
	}
}

// pad adds room around the data; a single value gets a range too.
func (a *axis) pad() error {
	const (
		share = 0.06
		limit = 1e140 // keeps the padded range within float64
	)
	slices.Sort(a.at)
	a.low = a.min
	switch {
	case len(a.names) > 0:
		a.min, a.max = -0.6, float64(len(a.names))-0.4
	case a.empty:
		return fmt.Errorf("nothing to draw: no %s above 0", a.title)
	case a.max > limit || a.log && a.min < 1/limit:
		return fmt.Errorf("a %s from %g to %g cannot be drawn", a.title, a.min, a.max)
	case a.log:
		low, high := math.Log2(a.min), math.Log2(a.max)
		by := max((high-low)*share, 0.04)
		if high-low < 0.1 {
			by = 0.5
		}
		a.min, a.max = math.Exp2(low-by), math.Exp2(high+by)
	case a.zero:
		a.min = 0
		if a.max *= 1 + share; a.max == 0 {
			a.max = a.unit
		}
	default:
		by := max((a.max-a.min)*share, math.Abs(a.max)*1e-3, 1e-12)
		a.min, a.max = a.min-by, a.max+by
	}
	return nil
}

// norm returns the relative position of v: 0 at the start of the axis, 1 at its end.
func (a *axis) norm(v float64) float64 {
	if a.log {
		return (math.Log2(v) - math.Log2(a.min)) / (math.Log2(a.max) - math.Log2(a.min))
	}
	return (v - a.min) / (a.max - a.min)
}

// ticks computes the ticks: worker counts as they are, powers of two for ratios, and round
// numbers otherwise.
func (a *axis) ticks() []tick {
	var values []float64 // in the title's unit
	low, high := a.min/a.unit, a.max/a.unit
	switch {
	case a.only != nil:
		return a.only
	case a.names != nil:
		list := make([]tick, len(a.names))
		for i, s := range a.names {
			list[i] = tick{float64(i), s}
		}
		return list
	case a.at != nil:
		for _, n := range a.at {
			values = append(values, float64(n))
		}
	case a.log && a.binary:
		values = binaryTicks(low, high)
	case a.log:
		values = decimalTicks(low, high)
	default:
		values = linearTicks(low, high)
	}
	if a.whole {
		values = slices.DeleteFunc(values, func(v float64) bool { return math.Abs(v-math.Round(v)) > 1e-9 })
	}
	label := labels(values)
	if a.bytes {
		label = number.ShortBytes
	}
	list := make([]tick, len(values))
	for i, v := range values {
		list[i] = tick{v * a.unit, label(v)}
	}
	return list
}

// labels returns a consistent format for all values of an axis. Formatting them one by one
// would mix 5,000,000 with 1e7, and 5e-4 with 0.001.
func labels(values []float64) func(float64) string {
	least, most := math.Inf(1), 0.0
	for _, v := range values {
		if size := math.Abs(v); size > 0 {
			least, most = min(least, size), max(most, size)
		}
	}
	const digits = 6
	switch {
	case most >= 1e7 && most < 1e15:
		return func(v float64) string { return number.Prefixed(v, digits) }
	case least < 1e-3 && least >= 1e-6 && most >= 1e-3:
		decimals := digits - 1 - int(math.Floor(math.Log10(least)))
		return func(v float64) string {
			text := strings.TrimRight(strconv.FormatFloat(v, 'f', decimals, 64), "0")
			return strings.TrimSuffix(text, ".")
		}
	}
	return func(v float64) string { return number.Short(v, digits) }
}

const (
	fewTicks  = 4
	manyTicks = 9
)

func binaryTicks(low, high float64) []float64 {
	first, last := math.Ceil(math.Log2(low)), math.Floor(math.Log2(high))
	if last-first < 2 {
		return decimalTicks(low, high)
	}
	step := math.Ceil((last - first + 1) / manyTicks)
	var values []float64
	// Use multiples of the step, so that 1 is always a tick.
	for e := math.Ceil(first/step) * step; e <= last; e += step {
		values = append(values, math.Exp2(e))
	}
	return values
}

// decimalTicks returns round numbers on a log scale: the sparsest of a few common series
// that has enough of them.
func decimalTicks(low, high float64) []float64 {
	for _, steps := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}} {
		var values []float64
		for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
			for _, s := range steps {
				// Parse instead of multiplying, to get 3e-5 and not 3.0000000000000004e-05.
				v, err := strconv.ParseFloat(strconv.FormatFloat(s, 'f', -1, 64)+"e"+strconv.Itoa(int(e)), 64)
				if err == nil && v >= low && v <= high {
					values = append(values, v)
				}
			}
		}
		if len(values) < fewTicks {
			continue
		}
		every := (len(values) + manyTicks - 1) / manyTicks
		var kept []float64
		for i := 0; i < len(values); i += every {
			kept = append(kept, values[i])
		}
		return kept
	}
	return linearTicks(low, high)
}

// linearTicks returns multiples of 1, 2, 2.5 or 5 times a power of ten.
func linearTicks(low, high float64) []float64 {
	rough := (high - low) / 6
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := 10 * power
	for _, s := range []float64{1, 2, 2.5, 5} {
		if s*power >= rough {
			step = s * power
			break
		}
	}
	var values []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-12) && len(values) <= 2*manyTicks; i++ {
		values = append(values, i*step)
	}
	return values
}
