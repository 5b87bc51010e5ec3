package sensitivity

import (
	"cmp"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// referenceOf returns the combination with the most of every countable resource. For words,
// it takes the one with the most combinations one step away, from which the others were
// varied.
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
			if order, ok := compare(key, at[a][key], at[b][key]); ok && order != 0 {
				return order
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
	// In a full grid, a point in the middle has as many neighbours as one at the edge.
	for _, name := range names {
		if dominates(at[name], at[best], o.Factors) {
			best = name
		}
	}
	return best
}

// steps returns the number of factors in which two combinations differ.
func steps(a, b map[string]scaling.Value) (n int) {
	for key, v := range a {
		if b[key] != v {
			n++
		}
	}
	return n
}

// atLeast reports whether a value of a resource is at least another.
func atLeast(key string, v, w scaling.Value) bool {
	order, ok := compare(key, v, w)
	return ok && order >= 0
}

// dominates reports whether a has at least as much of everything as b, and more of
// something.
func dominates(a, b map[string]scaling.Value, factors []string) bool {
	more := false
	for _, key := range factors {
		v, w := a[key], b[key]
		switch {
		case v == w:
		case !atLeast(key, v, w):
			return false
		default:
			more = true
		}
	}
	return more
}
