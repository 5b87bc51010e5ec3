package study

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// axis is one key of the sweep with its values.
type axis struct {
	key    string // as in [sweep]
	path   string // where the value goes, "workload.batch"
	field  pointField
	values []reflect.Value
}

// Swept are the TOML paths of the keys in which the study's points differ.
func (s *Study) Swept() []string {
	var paths []string
	for _, a := range s.axes {
		if len(a.values) > 1 {
			paths = append(paths, a.path)
		}
	}
	return paths
}

// exclusion is a table of [[exclude]], which leaves out the points on which all its
// keys have one of the values named, or of [[include]].
type exclusion struct {
	path   string                     // "exclude[0]"
	open   bool                       // names an axis that could not be read
	values map[string]map[string]bool // by path of the axis, the valueKeys
}

// pointField is one key of a Point.
type pointField struct {
	path  string // "framework", "workload.batch"
	key   string // last part of the path
	index []int  // in Point; nil of a parameter of the study's own, called key
}

// parameterField is a parameter of the study's own as a key of its points.
func parameterField(name string) pointField {
	return pointField{path: parameterPrefix + name, key: name}
}

// in is the key's value in a point.
func (f pointField) in(p *Point) reflect.Value {
	if f.index == nil {
		return reflect.ValueOf(p.Own[f.key])
	}
	return reflect.ValueOf(p).Elem().FieldByIndex(f.index)
}

// set gives a point that value. Points are copied, and share the parameters that
// they were copied with.
func (f pointField) set(p *Point, v reflect.Value) {
	if f.index != nil {
		f.in(p).Set(v)
		return
	}
	own := maps.Clone(p.Own)
	if own == nil {
		own = Own{}
	}
	own[f.key] = v.Interface().(Scalar)
	p.Own = own
}

// fields are the point's keys.
func (p *Point) fields() []pointField {
	list := slices.Clip(pointFields()[p.Workload.Kind])
	for _, name := range p.Own.Names() {
		list = append(list, parameterField(name))
	}
	return list
}

// pointFields are the keys of a point that a user can set, by the kind of
// workload, in the order in which they stand in the documentation.
var pointFields = sync.OnceValue(func() map[string][]pointField {
	point := reflect.TypeFor[Point]()
	named := func(name string) []int { f, _ := point.FieldByName(name); return f.Index }
	m := map[string][]pointField{}
	for name, k := range kinds() {
		list := []pointField{
			{"framework", "framework", named("Framework")},
			{"workers", "workers", named("Workers")},
			{"variant", "variant", named("Variant")},
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
})

// shortKeys are the paths that each last part of a path stands for.
func shortKeys(fields []pointField) map[string][]string {
	m := map[string][]string{}
	for _, f := range fields {
		if !strings.HasPrefix(f.path, "command.") {
			m[f.key] = append(m[f.key], f.path)
		}
	}
	return m
}

// sweepable are the keys that may stand in [sweep], by the names that they have
// there: every key of a point but the workload's kind and the command, by its
// path and, where that is enough, by the last part of it. valid are the shorter
// names of all.
func sweepable(kind string, own Own) (byName map[string]pointField, valid []string) {
	fields := (&Point{Workload: Workload{Kind: kind}, Own: own}).fields()
	short := shortKeys(fields)
	byName = map[string]pointField{}
	for _, f := range fields {
		if f.path == "workload.kind" || strings.HasPrefix(f.path, "command.") {
			continue
		}
		byName[f.path] = f
		if _, mine := own[f.key]; len(short[f.key]) == 1 || mine && strings.HasPrefix(f.path, parameterPrefix) {
			byName[f.key] = f
			valid = append(valid, f.key)
		} else {
			valid = append(valid, f.path)
		}
	}
	if word := kinds()[kind].workers; word != "" {
		byName[word] = byName["workers"]
		valid = append(valid, word)
	}
	slices.Sort(valid)
	return byName, valid
}

// nested are the tables whose keys may be swept by their path: in [sweep] they
// are tables within it, data.kind = ["cifar10", "synthetic"].
var nested = []string{"workload", "data", "resources", "parameters"}

// entry is a key of [sweep] or [[exclude]] with its value.
type entry struct {
	name  string // as sweepable has it
	value toml.Primitive
}

// entries returns the entries of a table, in no order.
func (d *decoder) entries(at string, t table) []entry {
	var list []entry
	for key, p := range t {
		if !slices.Contains(nested, key) {
			list = append(list, entry{key, p})
			continue
		}
		var sub table
		if d.value(join(at, key), p, &sub) {
			for inner, p := range sub {
				list = append(list, entry{join(key, inner), p})
			}
		}
	}
	return list
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
	byName, valid := sweepable(s.Workload.Kind, s.Own)
	if p, ok := t["design"]; ok && byName["design"].path == "" {
		delete(t, "design")
		if d.value(designPath, p, &s.design) && !slices.Contains(designs, s.design) {
			d.rule(designPath, oneOf(s.design, designs))
		}
	}
	valid = append(valid, "design")
	entries := d.entries("sweep", t)
	place := map[string]int{} // in the file
	for i, key := range d.md.Keys() {
		place[strings.Join(key, ".")] = i
	}
	slices.SortFunc(entries, func(a, b entry) int { return place["sweep."+a.name] - place["sweep."+b.name] })
	for _, e := range entries {
		path := "sweep." + e.name
		f, ok := byName[e.name]
		if name, own := strings.CutPrefix(e.name, parameterPrefix); !ok && own && parameterName.MatchString(name) && (shortKeys(pointFields()[s.Workload.Kind])[name] == nil || slices.Contains(yielding, name)) {
			f, ok = parameterField(name), true
		}
		if !ok {
			if slices.ContainsFunc(s.Command.Run, func(argument string) bool { return strings.Contains(argument, "{"+e.name+"}") }) {
				d.problem(path, fmt.Sprintf("is a key of your own, which {%s} in command.run asks for: write %s%s here, or declare it in [parameters]", e.name, parameterPrefix, e.name))
			} else if !slices.Contains(k.elsewhere(d), e.name) {
				d.unknown("sweep", e.name, "cannot be swept", valid, func(meant string) bool {
					return d.has("sweep."+meant) || d.has(byName[meant].path)
				}, inner)
			}
			continue
		}
		if i := slices.IndexFunc(axes, func(a axis) bool { return a.path == f.path }); i >= 0 {
			d.problem(path, fmt.Sprintf("is sweep.%s by another name; keep one", axes[i].key))
			continue
		}
		if !slices.Contains([]string{"framework", "workers", "variant"}, f.path) && f.index != nil && d.has(f.path) {
			d.problem(path, fmt.Sprintf("set both here and as %s; keep one", f.path))
		}
		values := d.values(path, e.value, f, s.Own)
		if f.path == "data.path" || slices.Contains(k.files, f.path) {
			d.files(k, f.path, path, values, s)
		}
		if values != nil {
			axes = append(axes, axis{e.name, f.path, f, values})
		}
	}
	if !slices.ContainsFunc(axes, func(a axis) bool { return a.key == "framework" }) && !d.has("sweep.framework") {
		axes = append(axes, axis{"framework", "framework", byName["framework"], []reflect.Value{reflect.ValueOf("native")}})
	}
	if word := cmp.Or(k.workers, "workers"); !d.has("sweep.workers") && !d.has("sweep."+word) {
		d.rule("sweep."+word, fmt.Sprintf("missing; list the %s counts to measure, like [1, 2, 4, 8]", strings.TrimSuffix(word, "s")))
	}
	var names []string // that can run the kind of workload; of others a point says more
	known := map[string]bool{}
	for _, f := range s.frameworks {
		if known[f.Name] = true; k.runBy(f) {
			names = append(names, f.Name)
		}
	}
	rank := func(a axis) int { return map[string]int{"framework": -1, "workers": 1}[a.path] }
	slices.SortStableFunc(axes, func(a, b axis) int { return rank(a) - rank(b) })
	for _, a := range axes {
		for i, v := range a.values {
			if a.key == "framework" && !known[v.String()] {
				d.rule(fmt.Sprintf("sweep.framework[%d]", i), oneOf(v.String(), names))
			}
		}
	}
	return axes
}

// values decodes the list of one axis. A value that cannot be used is among
// them all the same, so that their indices are those of the file.
func (d *decoder) values(path string, p toml.Primitive, f pointField, own Own) []reflect.Value {
	list := reflect.New(reflect.SliceOf(f.in(&Point{}).Type()))
	d.value(path, p, list.Interface())
	if scalars, ok := list.Interface().(*[]Scalar); ok {
		d.sameType(path, f.key, *scalars, own)
	}
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
			d.problem(at, fmt.Sprintf("the same value as [%d]; to repeat points, set study.repeats", j))
			continue
		}
		first[key] = i
	}
	if len(values) == 0 && !d.flaws.in(path) {
		d.problem(path, "an empty list leaves no points")
	}
	return values
}

// files makes the values of an axis such as sweep.data.path absolute, each of
// which must be another file or folder.
func (d *decoder) files(k kind, key, path string, values []reflect.Value, s *Study) {
	first := map[string]int{} // index by folder
	for i, v := range values {
		at := path + "[" + strconv.Itoa(i) + "]"
		folder := d.located(k, key, at, v.String())
		if j, ok := first[folder]; ok {
			d.rule(at, fmt.Sprintf("is the path of [%d], %s, by another name", j, folder))
		} else {
			first[folder] = i
		}
		s.paths[v.String()] = folder
	}
}

// valueKey tells the values of one axis apart.
func valueKey(v reflect.Value) string { return fmt.Sprintf("%#v", v.Interface()) }

// exclusions decodes [[exclude]] or [[include]]. Its keys are axes of the sweep; a
// value may be a list.
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
	fields := make([]pointField, len(axes))
	for i, a := range axes {
		fields[i] = a.field
	}
	short := shortKeys(fields)
	for i, t := range tables {
		e := exclusion{path: fmt.Sprintf("%s[%d]", name, i), values: map[string]map[string]bool{}}
		if len(t) == 0 {
			d.problem(e.path, fmt.Sprintf("is empty and would %s every point", name))
		}
		for _, entry := range d.entries(e.path, t) {
			key, p := entry.name, entry.value
			path := e.path + "." + key
			j := slices.IndexFunc(axes, func(a axis) bool { return a.key == key || a.path == key || a.field.key == key && len(short[key]) == 1 })
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
			if scalars, ok := list.Interface().(*[]Scalar); ok && len(axes[j].values) > 0 {
				if like, _ := axes[j].values[0].Interface().(Scalar); like.kind() == (Scalar{0.0}).kind() {
					for k := range *scalars {
						(*scalars)[k] = (*scalars)[k].real()
					}
				}
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
