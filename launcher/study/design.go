package study

import (
	"fmt"
	"reflect"
	"slices"
)

// designPath is the only key of [sweep] that is not an axis.
const designPath = "sweep.design"

// The designs of a sweep.
const (
	fullGrid  = "grid"       // every combination of values
	oneFactor = "one-factor" // the first value of each axis, varying one axis at a time
	together  = "together"   // the first values of all axes, then the second values, and so on: machines of several sizes
	layouts   = "layouts"    // every combination whose degrees fit its workers
)

var designs = []string{fullGrid, oneFactor, together, layouts}

// factors reports whether the design one-factor varies the axis. Frameworks and worker
// counts are always crossed.
func (a axis) factors() bool { return a.path != "framework" && a.path != "workers" }

// combinations returns the number of combinations in the sweep, including excluded ones.
// For one-factor with [[include]], it is an upper bound.
func (s *Study) combinations() float64 {
	all, crossed, others := 1.0, 1.0, 0.0
	for _, a := range s.axes {
		n := float64(len(a.values))
		all *= n
		if a.factors() {
			others += n - 1
		} else {
			crossed *= n
		}
	}
	if s.design == together {
		return crossed * s.rows()
	}
	if s.design != oneFactor || len(s.inclusions) > 0 {
		return all
	}
	return crossed * (1 + others)
}

// rows returns the largest number of values of a factor.
func (s *Study) rows() float64 {
	n := 1
	for _, a := range s.axes {
		if a.factors() {
			n = max(n, len(a.values))
		}
	}
	return float64(n)
}

// alike checks that factors that vary together have the same number of values, or one.
func (d *decoder) alike(axes []axis, design string) {
	var first *axis
	for i, a := range axes {
		switch {
		case design != together || !a.factors() || len(a.values) <= 1:
		case first == nil:
			first = &axes[i]
		case len(a.values) != len(first.values):
			d.conflict("sweep."+a.key, fmt.Sprintf("has %d values and sweep.%s %d; with design = %q, which takes the first of each, then the second of each, write as many, or one", len(a.values), first.key, len(first.values), together), "sweep."+first.key)
		}
	}
}

// fits checks that a sweep of layouts sweeps a degree.
func (d *decoder) fits(axes []axis, design string) {
	if design == layouts && !slices.ContainsFunc(axes, func(a axis) bool { return slices.Contains(degreeKeys, a.path) || d.flaws.in(a.path) }) && !d.flaws.in("sweep") {
		d.rule(designPath, fmt.Sprintf("%q is for sweeps of tp, pp, cp, ep or dp, and none is swept; leave it out", layouts))
	}
}

// Holds reports whether a resource must be enforced for the study's points, because it
// differs between them or the study is about resources.
func (s *Study) Holds(path string) bool {
	return slices.ContainsFunc(s.axes, func(a axis) bool {
		return a.path == path && (len(a.values) > 1 || s.design == oneFactor || s.design == together)
	})
}

// design selects the combinations of values that a study has.
type design struct {
	study *Study
	away  int            // number of factors that are not at their first value
	first map[string]any // valueKey of each factor's first value, by path
	rows  []int          // for together: the index of each factor's value
}

func newDesign(s *Study) *design {
	d := &design{study: s, first: map[string]any{}}
	for _, a := range s.axes {
		if a.factors() && len(a.values) > 0 {
			d.first[a.path] = valueKey(a.values[0])
		}
	}
	return d
}

// enter takes the i-th value of an axis. It reports whether the values taken so far can be
// part of a combination of the study. leave reverses it.
func (d *design) enter(a axis, i int) bool {
	if a.factors() && i > 0 {
		d.away++
	}
	if a.factors() && len(a.values) > 1 {
		d.rows = append(d.rows, i)
		if d.study.design == together && i != d.rows[0] {
			return false
		}
	}
	return d.study.design != oneFactor || d.away <= 1 || len(d.study.inclusions) > 0
}

func (d *design) leave(a axis, i int) {
	if a.factors() && i > 0 {
		d.away--
	}
	if a.factors() && len(a.values) > 1 {
		d.rows = d.rows[:len(d.rows)-1]
	}
}

// unconstrained reports whether every factor has its first value, which the others are
// compared with.
func (d *design) unconstrained() bool {
	return d.study.design != fullGrid && d.away == 0 && d.study.rows() > 1
}

// has reports whether the study has the combination in p.
func (d *design) has(p *Point) bool {
	if d.study.design != oneFactor || d.away <= 1 {
		return true
	}
	return slices.ContainsFunc(d.study.inclusions, func(e exclusion) bool {
		return !slices.ContainsFunc(d.study.axes, func(a axis) bool {
			key := valueKey(a.field.in(p))
			if values := e.values[a.path]; values != nil {
				return !values[key]
			}
			return a.factors() && key != d.first[a.path]
		})
	})
}

// included decodes [[include]]: combinations of swept values that the design one-factor
// does not have. A missing key has its first value.
func (d *decoder) included(axes []axis, design string) []exclusion {
	list := d.exclusions("include", axes)
	if len(list) > 0 && design != oneFactor {
		d.rule("include", fmt.Sprintf("adds nothing to a sweep of every combination; set sweep.design = %q to vary one key at a time, or remove it", oneFactor))
		return nil
	}
	for _, e := range list {
		for _, a := range axes {
			for key := range e.values[a.path] {
				if !slices.ContainsFunc(a.values, func(v reflect.Value) bool { return valueKey(v) == key }) {
					d.rule(e.path+"."+a.key, "has a value that sweep."+a.key+" does not list; add it there")
				}
			}
		}
	}
	return list
}
