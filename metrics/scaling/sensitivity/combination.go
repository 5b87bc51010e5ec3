package sensitivity

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// referenceOf is the combination that has most of everything that is counted. Of
// words, that which leads to most combinations one step away: what the others were
// varied at.
func referenceOf(c scaling.Curve, at map[string]map[string]scaling.Value, o Options) string {
	var names []string
	for _, p := range c.Points {
		if m := p.Of(o.Measure.Name); m.Median != nil {
			names = append(names, p.At.Word)
		}
	}
	neighbours := func(name string) (n int) {
		for _, other := range names {
			if steps(at[name], at[other]) == 1 {
				n++
			}
		}
		return n
	}
	amount := func(a, b string) int {
		for _, key := range o.Factors {
			if v, w := at[a][key], at[b][key]; v.Numeric() && w.Numeric() && v != w {
				return cmp.Compare(size(key, v), size(key, w))
			}
		}
		return 0
	}
	best := ""
	for _, name := range names {
		if best == "" || cmp.Or(cmp.Compare(neighbours(name), neighbours(best)), amount(name, best)) > 0 {
			best = name
		}
	}
	// In a full grid a middle has as many neighbours as the edge.
	for _, name := range names {
		if dominates(at[name], at[best], o.Factors) {
			best = name
		}
	}
	return best
}

// steps is in how many factors two combinations differ.
func steps(a, b map[string]scaling.Value) (n int) {
	for key, v := range a {
		if b[key] != v {
			n++
		}
	}
	return n
}

// dominates reports whether a has no less than b of anything, and more of something.
func dominates(a, b map[string]scaling.Value, factors []string) bool {
	more := false
	for _, key := range factors {
		v, w := a[key], b[key]
		switch {
		case v == w:
		case !v.Numeric() || !w.Numeric() || size(key, v) < size(key, w):
			return false
		default:
			more = true
		}
	}
	return more
}

// Unlimited are the keys, in bytes, of which 0 is no amount but no limit.
var Unlimited = []string{memoryKey}

// Compare orders amounts of a resource, the least first.
func Compare(key string, v, w scaling.Value) int { return cmp.Compare(size(key, v), size(key, w)) }

// size orders amounts.
func size(key string, v scaling.Value) float64 {
	if v.Number == 0 && slices.Contains(Unlimited, key) {
		return 1e300
	}
	return v.Number
}
