package study

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// exclusion is one [[exclude]] or [[include]] table. It matches the points at which each of
// its keys has one of the listed values.
type exclusion struct {
	path   string                     // "exclude[0]"
	open   bool                       // it names an axis that could not be read
	values map[string]map[string]bool // set of the listed values (as returned by valueKey), by path of the axis
}

// exclusions decodes the tables [[exclude]] or [[include]]. Their keys are axes of the
// sweep, each with a value or a list of values.
func (d *decoder) exclusions(name string, axes []axis) []exclusion {
	p, ok := d.top[name]
	if !ok {
		return nil
	}
	var tables []table
	if !d.value(name, p, &tables) {
		return nil
	}
	var list []exclusion
	for i, t := range tables {
		e := exclusion{path: fmt.Sprintf("%s[%d]", name, i), values: map[string]map[string]bool{}}
		if len(t) == 0 {
			d.problem(e.path, fmt.Sprintf("is empty and would %s every point", name))
		}
		for _, entry := range d.entries(e.path, t) {
			a, ok := axisNamed(entry.name, axes)
			switch {
			case ok:
				if set := d.valueSet(e.path+"."+entry.name, entry.value, a); set != nil {
					e.values[a.path] = set
				}
			case entry.name == "workers" || d.has("sweep."+entry.name) || d.flaws.in("sweep."+entry.name):
				e.open = true // the axis has a problem that was reported
			default:
				keys := make([]string, len(axes))
				for k, a := range axes {
					keys[k] = a.key
				}
				d.problem(e.path+"."+entry.name, "is not swept; keys of this study's sweep: "+strings.Join(keys, ", "))
			}
		}
		list = append(list, e)
	}
	return list
}

// axisNamed returns the axis with this name. The name is its key in [sweep], its path, or
// the last part of its path if that is unique.
func axisNamed(name string, axes []axis) (axis, bool) {
	fields := make([]pointField, len(axes))
	for i, a := range axes {
		fields[i] = a.field
	}
	unique := len(shortKeys(fields)[name]) == 1
	i := slices.IndexFunc(axes, func(a axis) bool { return a.key == name || a.path == name || a.field.key == name && unique })
	if i < 0 {
		return axis{}, false
	}
	return axes[i], true
}

// valueSet decodes a value, or a list of values, of an axis to a set of valueKeys. It
// returns nil if the value cannot be read.
func (d *decoder) valueSet(path string, p toml.Primitive, a axis) map[string]bool {
	list := reflect.New(reflect.SliceOf(a.field.in(&Point{}).Type()))
	if d.md.PrimitiveDecode(p, list.Interface()) != nil {
		one := reflect.New(list.Elem().Type().Elem())
		if !d.value(path, p, one.Interface()) {
			return nil
		}
		list.Elem().Set(reflect.Append(list.Elem(), one.Elem()))
	}
	if scalars, ok := list.Interface().(*[]Scalar); ok && len(a.values) > 0 {
		if like, _ := a.values[0].Interface().(Scalar); like.kind() == (Scalar{0.0}).kind() {
			for k := range *scalars {
				(*scalars)[k] = (*scalars)[k].real()
			}
		}
	}
	set := map[string]bool{}
	for k := range list.Elem().Len() {
		set[valueKey(list.Elem().Index(k))] = true
	}
	return set
}

// excluder finds the exclusion that matches a point. It indexes each exclusion by its
// values on one axis, the axis with the most values, to avoid comparing thousands of
// exclusions with every point.
type excluder struct {
	axes  []axis
	list  []exclusion
	filed []map[string][]int // by axis and value: ascending indices into list
	keys  []string           // valueKeys of the current point, by axis
}

func newExcluder(list []exclusion, axes []axis) *excluder {
	x := &excluder{axes: axes, list: list, filed: make([]map[string][]int, len(axes)), keys: make([]string, len(axes))}
	for i, e := range list {
		longest := -1
		for j, a := range axes {
			if e.values[a.path] != nil && (longest < 0 || len(a.values) > len(axes[longest].values)) {
				longest = j
			}
		}
		if longest < 0 {
			continue // excludes nothing
		}
		if x.filed[longest] == nil {
			x.filed[longest] = map[string][]int{}
		}
		for key := range e.values[axes[longest].path] {
			x.filed[longest][key] = append(x.filed[longest][key], i)
		}
	}
	return x
}

// out returns the index of the first exclusion that matches the point; found is false if
// none does.
func (x *excluder) out(p *Point) (first int, found bool) {
	for j, a := range x.axes {
		x.keys[j] = valueKey(a.field.in(p))
	}
	for j, key := range x.keys {
		for _, i := range x.filed[j][key] {
			if found && i >= first {
				break
			}
			if x.matches(x.list[i]) {
				first, found = i, true
			}
		}
	}
	return first, found
}

func (x *excluder) matches(e exclusion) bool {
	for j, a := range x.axes {
		if values, named := e.values[a.path]; named && !values[x.keys[j]] {
			return false
		}
	}
	return true
}
