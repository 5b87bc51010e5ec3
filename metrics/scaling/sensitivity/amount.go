package sensitivity

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Unlimited lists keys, in bytes, for which 0 means no limit.
var Unlimited = []string{memoryKey}

// An amount is the quantity of a resource that a value means.
type amount struct {
	size float64
	unit string // "" for a plain number
}

var (
	// measured matches a label that is a number with a unit: 15GB, 64 MiB, 8 cores.
	measured = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ/]*)$`)
	// things matches units that count what a run gets.
	things = regexp.MustCompile(`^(v?cpu|core|thread|gpu|node|worker|replica|rank|loader)s?$`)
)

// amountOf returns the amount that a value means. ok is false for other words.
func amountOf(key string, v scaling.Value) (a amount, ok bool) {
	switch {
	case v.Numeric() && v.Number == 0 && slices.Contains(Unlimited, key):
		return amount{size: 1e300}, true
	case v.Numeric():
		return amount{size: v.Number}, true
	}
	m := measured.FindStringSubmatch(strings.TrimSpace(v.Word))
	if m == nil {
		return a, false
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return a, false
	}
	switch u, known := number.ParseUnit(m[2]); {
	case m[2] == "":
		return amount{size: x}, true
	case known && !u.Inverse:
		return amount{x * u.Scale, u.Base}, true
	case things.MatchString(strings.ToLower(m[2])):
		return amount{x, strings.TrimSuffix(strings.ToLower(m[2]), "s")}, true
	}
	return a, false
}

// compare orders two values of a resource, smaller amount first. ok is false if one is a
// word without an amount, or if units differ.
func compare(key string, v, w scaling.Value) (order int, ok bool) {
	a, is := amountOf(key, v)
	b, also := amountOf(key, w)
	return cmp.Compare(a.size, b.size), is && also && a.unit == b.unit
}

// Compare orders values of a resource for people: amounts, smallest first, then words in
// natural order.
func Compare(key string, v, w scaling.Value) int {
	if order, ok := compare(key, v, w); ok {
		return order
	}
	return v.Compare(w)
}

// size returns the amount of a value, or 0.
func size(key string, v scaling.Value) float64 {
	a, _ := amountOf(key, v)
	return a.size
}
