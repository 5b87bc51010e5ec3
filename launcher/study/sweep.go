package study

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// axis is one key of the sweep with its values.
type axis struct {
	key    string // as in [sweep]
	path   string // where the value goes, "workload.batch"
	field  pointField
	values []reflect.Value
}

// exclusion leaves out the points on which all its keys have one of the values
// named.
type exclusion struct {
	path   string                     // "exclude[0]"
	open   bool                       // names an axis that could not be read
	values map[string]map[string]bool // by path of the axis, the valueKeys
}

// pointField is one key of a Point.
type pointField struct {
	path  string // "framework", "workload.batch"
	key   string // last part of the path
	index []int
}

func (f pointField) in(p *Point) reflect.Value {
	return reflect.ValueOf(p).Elem().FieldByIndex(f.index)
}

// pointFields are the keys of a point that a user can set, by the kind of
// workload, in the order in which they stand in the documentation.
var pointFields = func() map[string][]pointField {
	point := reflect.TypeFor[Point]()
	named := func(name string) []int { f, _ := point.FieldByName(name); return f.Index }
	m := map[string][]pointField{}
	for name, k := range kinds {
		list := []pointField{
			{"framework", "framework", named("Framework")},
			{"workers", "workers", named("Workers")},
		}
		for _, part := range []string{"Workload", "Data", "Command", "Resources"} {
			f, _ := point.FieldByName(part)
			set := fieldsOf(f.Type)
			switch {
			case part == "Workload":
				set = k.fields()
			case part == "Data" && !k.data:
				continue
			}
			for key, field := range set.all() {
				list = append(list, pointField{strings.ToLower(part) + "." + key, key, slices.Concat(f.Index, field.Index)})
			}
		}
		m[name] = list
	}
	return m
}()

// sweepable are the keys that may stand in [sweep]: framework, workers, and
// every key of the workload and the resources but the kind.
func sweepable(kind string) map[string]pointField {
	m := map[string]pointField{}
	for _, f := range pointFields[kind] {
		if f.path != "workload.kind" && !strings.HasPrefix(f.path, "data.") && !strings.HasPrefix(f.path, "command.") {
			m[f.key] = f
		}
	}
	return m
}

// maxWorkers bounds a world; it is far above any cluster, and catches typing
// errors before they become a plan.
const maxWorkers = 1 << 20

var sweepRules = map[string]rule{"workers": {check: within(1, maxWorkers)}}

// sweep decodes [sweep]: the frameworks come first, then the other axes in the
// order of the file, workers last, so that the points of a curve stand
// together.
func (d *decoder) sweep(t table, k kind, s *Study) []axis {
	if t == nil && d.has("sweep") {
		return nil // it is no table
	}
	var axes []axis
	sweepable := sweepable(s.Workload.Kind)
	for _, key := range d.md.Keys() {
		if len(key) != 2 || key[0] != "sweep" {
			continue
		}
		path := "sweep." + key[1]
		f, ok := sweepable[key[1]]
		if !ok {
			if !slices.Contains(k.elsewhere(d), key[1]) {
				valid := slices.Sorted(maps.Keys(sweepable))
				d.problem(path, "cannot be swept"+choose(key[1], "valid", valid))
				d.misspelt("sweep", key[1], valid, func(meant string) bool {
					return d.has("sweep."+meant) || d.has(sweepable[meant].path)
				}, inner)
			}
			continue
		}
		if f.path != "framework" && f.path != "workers" && d.has(f.path) {
			d.problem(path, fmt.Sprintf("set both here and as %s; keep one", f.path))
		}
		if values := d.values(path, t[key[1]], f); values != nil {
			axes = append(axes, axis{key[1], f.path, f, values})
		}
	}
	if !slices.ContainsFunc(axes, func(a axis) bool { return a.key == "framework" }) && !d.has("sweep.framework") {
		axes = append(axes, axis{"framework", "framework", sweepable["framework"], []reflect.Value{reflect.ValueOf("native")}})
	}
	if !d.has("sweep.workers") {
		d.rule("sweep.workers", "missing; list the worker counts to measure, like [1, 2, 4, 8]")
	}
	names := make([]string, len(s.frameworks))
	for i, f := range s.frameworks {
		names[i] = f.Name
	}
	rank := func(a axis) int { return map[string]int{"framework": -1, "workers": 1}[a.key] }
	slices.SortStableFunc(axes, func(a, b axis) int { return rank(a) - rank(b) })
	for _, a := range axes {
		for i, v := range a.values {
			if a.key == "framework" && !slices.Contains(names, v.String()) {
				d.rule(fmt.Sprintf("sweep.framework[%d]", i), oneOf(v.String(), names))
			}
		}
	}
	return axes
}

// values decodes the list of one axis. A value that cannot be used is among
// them all the same, so that their indices are those of the file.
func (d *decoder) values(path string, p toml.Primitive, f pointField) []reflect.Value {
	element := reflect.TypeFor[Point]().FieldByIndex(f.index).Type
	list := reflect.New(reflect.SliceOf(element))
	d.value(path, p, list.Interface())
	var values []reflect.Value
	first := map[string]int{} // index by value
	for i := range list.Elem().Len() {
		v := list.Elem().Index(i)
		values = append(values, v)
		at := path + "[" + strconv.Itoa(i) + "]"
		if d.flaws.in(at) {
			continue
		}
		key := valueKey(v)
		if j, ok := first[key]; ok {
			d.problem(at, fmt.Sprintf("the same value as [%d]; every point is measured once, repeats are study.repeats", j))
			continue
		}
		first[key] = i
	}
	if len(values) == 0 && !d.flaws.in(path) {
		d.problem(path, "an empty list leaves no point")
	}
	return values
}

// valueKey tells the values of one axis apart.
func valueKey(v reflect.Value) string { return fmt.Sprintf("%#v", v.Interface()) }

// exclude decodes [[exclude]]. Its keys are axes of the sweep; a value may be a
// list.
func (d *decoder) exclude(axes []axis) []exclusion {
	p, ok := d.top["exclude"]
	if !ok {
		return nil
	}
	var tables []table
	if !d.value("exclude", p, &tables) {
		return nil
	}
	var list []exclusion
	for i, t := range tables {
		e := exclusion{path: fmt.Sprintf("exclude[%d]", i), values: map[string]map[string]bool{}}
		if len(t) == 0 {
			d.problem(e.path, "is empty and would leave out every point")
		}
		for key, p := range t {
			path := e.path + "." + key
			j := slices.IndexFunc(axes, func(a axis) bool { return a.key == key })
			if j < 0 && (key == "workers" || d.has("sweep."+key) || d.flaws.in("sweep."+key)) {
				e.open = true // what is wrong with the axis was said
				continue
			}
			if j < 0 {
				keys := make([]string, len(axes))
				for k, a := range axes {
					keys[k] = a.key
				}
				d.problem(path, "is not swept; keys of this study's sweep: "+strings.Join(keys, ", "))
				continue
			}
			list := reflect.New(reflect.SliceOf(axes[j].field.in(&Point{}).Type()))
			if d.md.PrimitiveDecode(p, list.Interface()) != nil {
				one := reflect.New(list.Elem().Type().Elem())
				if !d.value(path, p, one.Interface()) {
					continue
				}
				list.Elem().Set(reflect.Append(list.Elem(), one.Elem()))
			}
			set := map[string]bool{}
			for k := range list.Elem().Len() {
				set[valueKey(list.Elem().Index(k))] = true
			}
			e.values[axes[j].path] = set
		}
		list = append(list, e)
	}
	return list
}

// excluder finds the exclusion that leaves a point out. Each is filed under its
// values on the longest of its axes, so that thousands of them need not be held
// against every point.
type excluder struct {
	axes  []axis
	list  []exclusion
	filed []map[string][]int // by axis and value: indexes of list, ascending
	keys  []string           // of the point that is looked at, by axis
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
			continue // leaves out nothing
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

// out is the first exclusion that leaves the point out, if any does.
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
