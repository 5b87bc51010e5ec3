package extract

import (
	"regexp"

	"github.com/scalebench/scalebench/metrics/number"
)

// A heading is the parsed name of a column, with its units as they are stored.
type heading struct {
	number.Name
	dims []dimension // possible meanings, the most likely first; empty if the name has no known unit
}

// A dimension is a unit and the scope of its numbers (all devices, one device, one node).
type dimension struct {
	unit
	per string // number.PerDevice, number.PerNode, or "" if not stated
}

var brackets = regexp.MustCompile(`[(\[{]([^()\[\]{}]*)[)\]}]`)

// headingOf parses the name of a column.
func headingOf(name string) heading {
	n := number.ParseName(name)
	return heading{n, dimensions(n.Units)}
}

// dimensions returns units as they are stored.
func dimensions(units []number.Unit) []dimension {
	var list []dimension
	for _, u := range units {
		if stored, ok := storedUnit(u); ok {
			list = append(list, dimension{stored, u.Per})
		}
	}
	return list
}
