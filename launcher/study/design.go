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
	layouts   = "layouts"    // every combination in which the degrees of parallelism fit the number of workers
)

var designs = []string{fullGrid, oneFactor, together, layouts}

// factors reports whether the axis is a factor, which the design one-factor varies
// separately. Frameworks and worker counts are not factors: they are combined with
// everything.
func (a axis) factors() bool { return a.path != "framework" && a.path != "workers" }

// combinations returns the number of combinations in the sweep, including those that
// [[exclude]] removes. For the design one-factor with [[include]], it is an upper bound.
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

// rows returns the number of values of the factor that has the most values.
func (s *Study) rows() float64 {
	n := 1
	for _, a := range s.axes {
		if a.factors() {
			n = max(n, len(a.values))
		}
	}
	return float64(n)
}

// alike checks, for the design together, that all factors have the same number of values,
// or a single value.
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

// fits checks, for the design layouts, that at least one degree of parallelism is swept.
func (d *decoder) fits(axes []axis, design string) {
	if design == layouts && !slices.ContainsFunc(axes, func(a axis) bool { return slices.Contains(degreeKeys, a.path) || d.flaws.in(a.path) }) && !d.flaws.in("sweep") {
		d.rule(designPath, fmt.Sprintf("%q is for sweeps of tp, pp, cp, ep or dp, and none is swept; leave it out", layouts))
	}
}

// MustEnforce reports whether the resource with this TOML path must be enforced (with cgroups or
// the like): because it differs between the study's points, or because the design compares
// resources.
func (s *Study) MustEnforce(path string) bool {
	return slices.ContainsFunc(s.axes, func(a axis) bool {
		return a.path == path && (len(a.values) > 1 || s.design == oneFactor || s.design == together)
	})
}

// design decides which combinations of swept values belong to a study.
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

// enter chooses the i-th value of an axis. It reports whether the values chosen so far can
// be part of a combination that belongs to the study. leave undoes it.
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

// unconstrained reports whether every factor has its first value, in a design that
// compares the other values with the first ones.
func (d *design) unconstrained() bool {
	return d.study.design != fullGrid && d.away == 0 && d.study.rows() > 1
}

// has reports whether the combination of values in p belongs to the study.
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

// included decodes [[include]]: combinations of swept values to measure in addition to
// those of the design one-factor. A key that is not given has the first value of its
// sweep.
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
