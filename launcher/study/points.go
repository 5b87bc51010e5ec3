package study

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// follows lists, for the TOML path of a key, other keys that may cause a problem there. For
// keys of [workload], each kind has its own list.
var follows = map[string][]string{
	"workers":                    {"resources.workers_per_node"},
	"framework":                  {"workload.kind"},
	"resources.workers_per_node": {"workers"},
	"data.path":                  {"data.kind"},
	"data.stage":                 {"data.path", "data.kind"},
	"command.run":                {"workload.model", "command.start"},
	"command.directory":          {"workload.model", "command.start"},
	"command.environment":        {"workload.model", "command.start"},
	"command.log":                {"command.extract", "command.columns", "extract"},
	"command.printed_by":         {"command.extract", "extract"},
}

// explain reports whether a problem at a path follows from a known flaw: at the path itself
// or at one of the keys that may cause it. keys are further such keys.
func (f flaws) explain(k kind, path string, keys []string) bool {
	if len(f) == 0 {
		return false
	}
	key, _, _ := strings.Cut(path, "[")
	return f.in(path) || slices.ContainsFunc(follows[key], f.in) || slices.ContainsFunc(k.follows[key], f.in) || slices.ContainsFunc(keys, f.in)
}

// plausible has the values with which checks continue if the value of a key cannot be used,
// for keys of all kinds of workload.
var plausible = map[string]any{"data.train_samples": 1, "data.test_samples": 1, "data.path": ".", "workers": 1}

// points checks the points of a study that already has problems. For that it uses the valid
// parts of the study.
func (d *decoder) points(k kind, s Study) {
	if d.anyKind {
		return
	}
	base := Point{Workload: s.Workload, Data: s.Data, Command: s.Command, Resources: s.Resources}
	standIn := Point{Workload: k.defaults, Data: defaultData, Command: defaultCommand, Resources: defaultResources}
	standIn.Command.Folder, standIn.Command.Patterns = s.Command.Folder, s.Command.Patterns
	flaws := maps.Clone(d.flaws)
	for _, f := range pointFields()[s.Workload.Kind] {
		for _, values := range []map[string]any{plausible, k.plausible} {
			if v, ok := values[f.path]; ok {
				f.set(&standIn, reflect.ValueOf(v))
			}
		}
		if d.flaws.in(f.path) || d.sweepFlawed(f) {
			f.set(&base, f.in(&standIn)) // if the key is swept, its other values also replace this one
		}
	}
	s.Workload, s.Data, s.Command, s.Resources = base.Workload, base.Data, base.Command, base.Resources
	s.Repeats = max(1, min(s.Repeats, 1000))
	s.First = max(1, min(s.First, s.Repeats))
	s.paths["."] = "."

	axes, framework := d.sound(s.axes, flaws)
	s.axes = axes
	flawed := func(e exclusion) bool { return e.open || d.flaws.in(e.path) }
	s.exclusions = slices.DeleteFunc(slices.Clone(s.exclusions), flawed)
	s.inclusions = slices.DeleteFunc(slices.Clone(s.inclusions), flawed)
	if !slices.ContainsFunc(axes, func(a axis) bool { return a.path == "workers" }) {
		f := keyOf(defaultKind, "workers")
		s.axes = append(s.axes, axis{"workers", "workers", f, []reflect.Value{reflect.ValueOf(1)}})
	}
	if slices.ContainsFunc(axes, func(a axis) bool { return a.path == "framework" }) {
		fits, _ := s.fitting(unread, flaws)
		_, problems := fits.expand(unread, flaws)
		d.problems = append(d.problems, problems...)
		return
	}
	// If the framework is unknown, several may be meant: only report problems that all of
	// them have.
	f := keyOf(defaultKind, "framework")
	var common Problems
	for i, framework := range d.meantFrameworks(k, s, framework) {
		one := s
		one.axes = slices.Concat([]axis{{"framework", "framework", f, []reflect.Value{reflect.ValueOf(framework)}}}, s.axes)
		fits, _ := one.fitting(unread, flaws)
		_, problems := fits.expand(unread, flaws)
		if i == 0 {
			common = problems
		}
		common = slices.DeleteFunc(common, func(p Problem) bool {
			return !slices.ContainsFunc(problems, func(q Problem) bool { return p.Path == q.Path })
		})
	}
	d.problems = append(d.problems, common...)
}

// sound returns the axes with only their valid values. It omits axes without valid values
// and adds these to flaws. framework is the first value of the axis "framework", or "".
func (d *decoder) sound(all []axis, flaws flaws) (axes []axis, framework string) {
	for _, a := range all {
		if a.path == "framework" && len(a.values) > 0 {
			framework = a.values[0].String()
		}
		var values []reflect.Value
		for i, v := range a.values {
			if !d.flaws.in("sweep." + a.key + "[" + strconv.Itoa(i) + "]") {
				values = append(values, v)
			}
		}
		if a.values = values; len(values) > 0 {
			axes = append(axes, a)
		} else {
			flaws.add(a.path, flawed)
		}
	}
	return axes, framework
}

// unread takes the place of a site whose file could not be read. Not even its variants are
// known.
var unread = DefaultSite()

// sweepFlawed reports whether the sweep of a key has a problem.
func (d *decoder) sweepFlawed(f pointField) bool {
	return slices.ContainsFunc([]string{"sweep." + f.key, "sweep." + f.path}, func(at string) bool { return d.has(at) && d.flaws.in(at) })
}

// keyOf returns the key with this TOML path that points of a kind have. The key must exist.
func keyOf(kind, path string) pointField {
	list := pointFields()[kind]
	return list[slices.IndexFunc(list, func(f pointField) bool { return f.path == path })]
}

// meantFrameworks returns the names of the frameworks that an unknown name may mean. It is
// the framework with a similar spelling, if there is one. Otherwise, if the study has
// [command], it is all frameworks that start a user's program, else all others.
func (d *decoder) meantFrameworks(k kind, s Study, unknown string) []string {
	var names []string
	for _, f := range s.frameworks {
		if f.Command == d.has("command") && k.runBy(f) {
			names = append(names, f.Name)
		}
	}
	if near := NearWords(unknown, names); len(near) > 0 {
		return near[:1]
	}
	return names
}
