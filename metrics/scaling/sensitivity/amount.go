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

// Unlimited are the keys, in bytes, of which 0 is no amount but no limit.
var Unlimited = []string{memoryKey}

// An amount is how much of a resource a value stands for.
type amount struct {
	size float64
	unit string // "" for a plain number
}

var (
	// measured is a label that is a number with a unit: 15GB, 64 MiB, 8 cores.
	measured = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ/]*)$`)
	// things are units that count what a run gets.
	things = regexp.MustCompile(`^(v?cpu|core|thread|gpu|node|worker|replica|rank|loader)s?$`)
)

// amountOf returns the amount that a value stands for. ok is false for a word that is none.
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

// compare orders two values of a resource, the smaller amount first. ok is false where
// one is a word without an amount, or their units differ.
func compare(key string, v, w scaling.Value) (order int, ok bool) {
	a, is := amountOf(key, v)
	b, also := amountOf(key, w)
	return cmp.Compare(a.size, b.size), is && also && a.unit == b.unit
}

// Compare orders values of a resource for people: amounts, the least first, and words as
// people count.
func Compare(key string, v, w scaling.Value) int {
	if order, ok := compare(key, v, w); ok {
		return order
	}
	return v.Compare(w)
}

// size is the amount of a value that has one; 0 for others.
func size(key string, v scaling.Value) float64 {
	a, _ := amountOf(key, v)
	return a.size
}
