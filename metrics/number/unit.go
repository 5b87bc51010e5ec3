package number

import "strings"

// A Unit is a unit of a number: a prefix, a quantity and a time. Scale converts it to
// the base unit.
type Unit struct {
	Base  string  // "s", "B", "tokens/s", "tokens"; "" for a fraction or a plain number
	Scale float64 // multiply by it to get Base; for an Inverse unit, the seconds of its time
	// Inverse reports a time per item, as in ms/step; Base is then the unit of the
	// rate.
	Inverse bool
	// Per is PerDevice or PerNode for a value of one of them, as in tokens/s/GPU; "" if
	// the unit does not say.
	Per string
	// Bare reports that the unit names no quantity, as in 12K or 3.1M/s; Base is then
	// "" or "/s".
	Bare bool
	// Unclear reports a rate that may be in bits or in bytes, such as gbps and mb/s; Scale is then
	// that of bytes.
	Unclear bool
}

// The parts of a run that a unit may name.
const (
	PerDevice = "device"
	PerNode   = "node"
)

// IsRate reports whether the unit is a rate or its inverse, a time per item.
func (u Unit) IsRate() bool { return strings.HasSuffix(u.Base, "/s") }

// In converts x from unit u to unit v. ok is false if the units measure different
// things. A bare prefix is taken to count v; if v has a prefix, the bare one replaces
// it.
func (u Unit) In(v Unit, x float64) (y float64, ok bool) {
	switch {
	case u.Bare && u.Base == "":
		if v.Base == "s" || v.Inverse || v.Scale < 1 {
			return x * u.Scale, true
		}
		return x * u.Scale / v.Scale, true
	case u.Bare:
		return x * u.Scale / v.Scale, v.IsRate() && !v.Inverse
	case v.Bare || u.Base != v.Base:
		return 0, false
	case u.Inverse == v.Inverse:
		return convert(x, u.Scale, v.Scale), true
	}
	return 1 / (x * u.Scale * v.Scale), true
}

// convert divides where that is exact: 20006 µs are 0.020006 s.
func convert(x, from, to float64) float64 {
	switch {
	case from == to:
		return x
	case from < to && to/from == float64(int64(to/from)):
		return x / (to / from)
	case from < to && from < 1 && to == 1:
		if parts := float64(int64(1/from + 0.5)); 1/parts == from {
			return x / parts
		}
	}
	return x * from / to
}
