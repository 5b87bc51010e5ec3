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

// axis is one key that the study sweeps, with its values.
type axis struct {
	key    string // name in [sweep]
	path   string // TOML path of the value, "workload.batch"
	field  pointField
	values []reflect.Value
}

// Swept returns the TOML paths of the keys that are swept with more than one value.
func (s *Study) Swept() []string {
	var paths []string
	for _, a := range s.axes {
		if len(a.values) > 1 {
			paths = append(paths, a.path)
		}
	}
	return paths
}

// pointField is a key of a Point that a user can set.
type pointField struct {
	path  string // "framework", "workload.batch"
	key   string // last part of the path
	index []int  // index of the field in Point; nil for the study's own parameter with the name key
}

// parameterField returns the pointField of a study's own parameter.
func parameterField(name string) pointField {
	return pointField{path: parameterPrefix + name, key: name}
}

// in returns the key's value in a point.
func (f pointField) in(p *Point) reflect.Value {
	if f.index == nil {
		return reflect.ValueOf(p.Own[f.key])
	}
	return reflect.ValueOf(p).Elem().FieldByIndex(f.index)
}

// set sets the key's value in a point. For one of the study's own parameters it first
// clones Own, because copies of a point share that map.
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

// fields returns all keys of the point, including the study's own parameters.
func (p *Point) fields() []pointField {
	list := slices.Clip(pointFields()[p.Workload.Kind])
	for _, name := range p.Own.Names() {
		list = append(list, parameterField(name))
	}
	return list
}

// pointFields lists the keys of a point that a user can set, by kind of workload, in the
// order of the documentation.
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

// shortKeys returns, for the last part of each path, all paths that end with it.
func shortKeys(fields []pointField) map[string][]string {
	m := map[string][]string{}
	for _, f := range fields {
		if !strings.HasPrefix(f.path, "command.") {
			m[f.key] = append(m[f.key], f.path)
		}
	}
	return m
}

// sweepable returns the keys allowed in [sweep], by the names that they may have there.
// These are all keys of a point except the workload's kind and the command. A key's names
// are its path and, if unique, the last part of its path. valid lists the shortest name of
// each key.
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

// nested are the tables whose keys can be swept by path, as in data.kind = ["cifar10",
// "synthetic"]. TOML parses such a key in [sweep] as a nested table.
var nested = []string{"workload", "data", "resources", "parameters"}

// entry is a key of [sweep] or [[exclude]] with its value.
type entry struct {
	name  string // one of the names that sweepable returns
	value toml.Primitive
}

// entries returns the entries of a table, in no particular order.
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

// maxWorkers is the maximum number of workers. It is far above the size of any cluster,
// and catches typing errors early.
const maxWorkers = 1 << 20

var sweepRules = map[string]rule{"workers": within(1, maxWorkers)}

// sweep decodes [sweep]: frameworks first, then the other axes in file order, and workers
// last, so that the points of a curve are adjacent.
func (d *decoder) sweep(t table, k kind, s *Study) []axis {
	if t == nil && d.has("sweep") {
		return nil // not a table
	}
	byName, valid := sweepable(s.Workload.Kind, s.Own)
	if p, ok := t["design"]; ok && byName["design"].path == "" {
		delete(t, "design")
		if d.value(designPath, p, &s.design) && !slices.Contains(designs, s.design) {
			d.rule(designPath, oneOf(s.design, designs))
		}
	}
	valid = append(valid, "design")
	var axes []axis
	for _, e := range d.sweepEntries(t) {
		f, ok := sweptField(e.name, byName, s)
		if !ok {
			if !slices.Contains(k.elsewhere(d), e.name) {
				d.unknown("sweep", e.name, "cannot be swept", valid, func(meant string) bool {
					return d.has("sweep."+meant) || d.has(byName[meant].path)
				}, inner)
			}
			continue
		}
		if a, ok := d.axis(e, f, axes, k, s); ok {
			axes = append(axes, a)
		}
	}
	if !slices.ContainsFunc(axes, func(a axis) bool { return a.key == "framework" }) && !d.has("sweep.framework") {
		axes = append(axes, axis{"framework", "framework", byName["framework"], []reflect.Value{reflect.ValueOf(d.defaultFramework(s))}})
	}
	if word := cmp.Or(k.workers, "workers"); !d.has("sweep.workers") && !d.has("sweep."+word) {
		if k.alone != nil && k.alone(s.Workload) {
			axes = append(axes, axis{"workers", "workers", byName["workers"], []reflect.Value{reflect.ValueOf(1)}})
		} else {
			d.rule("sweep."+word, fmt.Sprintf("missing; list the %s counts to measure, like [1, 2, 4, 8]", strings.TrimSuffix(word, "s")))
		}
	}
	rank := func(a axis) int { return map[string]int{"framework": -1, "workers": 1}[a.path] }
	slices.SortStableFunc(axes, func(a, b axis) int { return rank(a) - rank(b) })
	d.checkFrameworks(axes, k, s.frameworks)
	return axes
}

// sweepEntries returns the entries of [sweep] in file order.
func (d *decoder) sweepEntries(t table) []entry {
	place := map[string]int{}
	for i, key := range d.md.Keys() {
		place[strings.Join(key, ".")] = i
	}
	entries := d.entries("sweep", t)
	slices.SortFunc(entries, func(a, b entry) int { return place["sweep."+a.name] - place["sweep."+b.name] })
	return entries
}

// sweptField returns the key of a point that a name in [sweep] denotes. An undeclared name
// after "parameters.", or one that is a placeholder of the command, declares one of the
// study's own parameters.
func sweptField(name string, byName map[string]pointField, s *Study) (pointField, bool) {
	if f, ok := byName[name]; ok {
		return f, true
	}
	own, path := strings.CutPrefix(name, parameterPrefix)
	if !parameterName.MatchString(own) || !path && !s.Command.asksFor(own) {
		return pointField{}, false
	}
	taken := shortKeys(pointFields()[s.Workload.Kind])[own] != nil && !slices.Contains(yielding, own)
	return parameterField(own), !taken
}

// axis decodes one entry of [sweep]. It returns false if axes already has the key, or if
// its values cannot be read.
func (d *decoder) axis(e entry, f pointField, axes []axis, k kind, s *Study) (axis, bool) {
	path := "sweep." + e.name
	if i := slices.IndexFunc(axes, func(a axis) bool { return a.path == f.path }); i >= 0 {
		d.problem(path, fmt.Sprintf("is sweep.%s by another name; keep one", axes[i].key))
		return axis{}, false
	}
	values := d.axisValues(path, e.value, f, s)
	if f.path == "data.path" || slices.Contains(k.files, f.path) {
		d.files(k, f.path, path, values, s)
	}
	return axis{e.name, f.path, f, values}, values != nil
}

// axisValues decodes the values of one axis: a list, or for workers also a range.
func (d *decoder) axisValues(path string, p toml.Primitive, f pointField, s *Study) []reflect.Value {
	if f.path == "workers" {
		if r, ok := d.workerRange(path, p); ok {
			if s.counts = r; r == nil {
				return nil
			}
			return r.values(s.UntilDecided)
		}
	}
	return d.values(path, p, f, s.Own)
}

// defaultFramework returns the framework of a study without sweep.framework: that of [command] if
// the file has this table, else native.
func (d *decoder) defaultFramework(s *Study) string {
	if i := slices.IndexFunc(s.frameworks, func(f Framework) bool { return f.Command }); i >= 0 && d.has("command") {
		return s.frameworks[i].Name
	}
	return "native"
}

// checkFrameworks adds problems about unknown frameworks. Whether a framework can run this
// kind of workload is checked later, by Plan.
func (d *decoder) checkFrameworks(axes []axis, k kind, frameworks []Framework) {
	var valid []string
	known := map[string]bool{}
	for _, f := range frameworks {
		if known[f.Name] = true; k.runBy(f) {
			valid = append(valid, f.Name)
		}
	}
	for _, a := range axes {
		if a.key != "framework" {
			continue
		}
		for i, v := range a.values {
			if !known[v.String()] {
				d.rule(fmt.Sprintf("sweep.framework[%d]", i), oneOf(v.String(), valid))
			}
		}
	}
}

// values decodes the list of values of an axis. It keeps invalid values in the result, so
// that indices agree with the file.
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

// files records the absolute paths of the values of an axis such as sweep.data.path. It
// adds a problem if two values are the same file or folder.
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

// valueKey returns a string that is different for different values of an axis.
func valueKey(v reflect.Value) string { return fmt.Sprintf("%#v", v.Interface()) }
