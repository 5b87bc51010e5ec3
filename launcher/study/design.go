package study

import (
	"fmt"
	"reflect"
	"slices"
)

// designPath is the one key of [sweep] that is no axis.
const designPath = "sweep.design"

// The designs of a sweep.
const (
	fullGrid  = "grid"       // every combination of the axes' values
	oneFactor = "one-factor" // the first value of each axis, and the others of one axis at a time
	together  = "together"   // the first value of each axis, then the second of each: machines of several sizes
	layouts   = "layouts"    // every combination whose degrees fit its workers
)

var designs = []string{fullGrid, oneFactor, together, layouts}

// factors reports whether an axis is varied on its own in a design of one factor at
// a time. Frameworks and worker counts are compared throughout.
func (a axis) factors() bool { return a.path != "framework" && a.path != "workers" }

// combinations is how many the sweep has, those that are excluded included: of one
// factor at a time with more, at most all.
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

// rows is how many values the factors have that have more than one.
func (s *Study) rows() float64 {
	n := 1
	for _, a := range s.axes {
		if a.factors() {
			n = max(n, len(a.values))
		}
	}
	return float64(n)
}

// alike checks that factors which vary together have as many values, or one.
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

// fits checks that there are layouts to choose among.
func (d *decoder) fits(axes []axis, design string) {
	if design == layouts && !slices.ContainsFunc(axes, func(a axis) bool { return slices.Contains(degreeKeys, a.path) || d.flaws.in(a.path) }) && !d.flaws.in("sweep") {
		d.rule(designPath, fmt.Sprintf("%q is for sweeps of tp, pp, cp, ep or dp, and none is swept; leave it out", layouts))
	}
}

// Holds reports whether the study's points are held to a resource, and refused where
// that is not in force: it differs between them, or the study is about resources.
func (s *Study) Holds(path string) bool {
	return slices.ContainsFunc(s.axes, func(a axis) bool {
		return a.path == path && (len(a.values) > 1 || s.design == oneFactor || s.design == together)
	})
}

// design says which combinations of the axes' values a study is of.
type design struct {
	study *Study
	away  int            // factors that are not at their first value
	first map[string]any // of each factor, by path: the valueKey
	rows  []int          // with together: which value each factor with several has
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

// enter takes the i-th value of an axis, and reports whether any combination with
// what was taken before may be one of the study's; leave undoes it.
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

// unconstrained reports whether what was taken is what the others are compared with:
// the first value of each factor.
func (d *design) unconstrained() bool {
	return d.study.design != fullGrid && d.away == 0 && d.study.rows() > 1
}

// has reports whether the combination in a point is one of the study's.
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

// included decodes [[include]]: combinations of values of the sweep that one factor
// at a time does not have. A key that a table leaves out has its first value.
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
