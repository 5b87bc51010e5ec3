package scaling

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

// follows lists the parameters that depend on the number of workers or the repeat, or that only
// name the study. They do not separate series.
var follows = []string{"id", "study", "framework", "workers", "repeat", "attempt", "seed",
	"nodes", "workers_per_node", "worker_batch", "global_batch", "learning_rate", "workload.dp"}

// series is a set of runs and planned points that agree in all parameters that separate series.
type series struct {
	name       string
	framework  string
	parameters map[string]any
	at         []Value // positions that are planned or observed, ascending
	runs       []*Observation
	points     []string              // points, planned or observed, including those of the other parts if the series was divided
	divided    []fingerprint.Varying // facts of the fingerprints that separate it from other parts; nil if it was not divided
}

// ranOn is the prefix of parameters that hold facts of a fingerprint.
const ranOn = "fingerprint."

// divide splits the series by the facts of the fingerprints in which its runs differ. A run to
// which a fact does not apply, such as the network for a run within one node, belongs to every
// part that agrees in its other facts. A run that did not record a fact forms a separate part,
// because it is unknown where it belongs.
func (s *series) divide() []*series {
	prints := Prints(s.runs)
	mixed, _ := fingerprint.Vary(prints)
	if mixed == nil {
		return []*series{s}
	}
	have := make([]facts, len(prints))
	for i, p := range prints {
		have[i] = factsOf(p, mixed)
	}
	var list []*series
	combinations := combined(have)
	at := map[string][]int{} // combinations by their facts of each kind
	kinds := map[string]bool{}
	for i, f := range have {
		if !kinds[f.open] {
			kinds[f.open] = true
			for k, c := range combinations {
				at[c.key(f.open)] = append(at[c.key(f.open)], k)
			}
		}
		for _, k := range at[have[i].key(f.open)] {
			combinations[k].runs = append(combinations[k].runs, s.runs[i])
		}
	}
	for _, c := range combinations {
		part := &series{framework: s.framework, parameters: maps.Clone(s.parameters), at: s.at, points: s.points, divided: mixed, runs: c.runs}
		for i, v := range mixed {
			part.parameters[ranOn+v.Field] = c.values[i]
		}
		list = append(list, part)
	}
	return list
}

// facts are those facts of a run's fingerprint in which some runs differ.
type facts struct {
	values []string // "" for a fact that does not apply to the run
	open   string   // one character per fact: '-' if it does not apply, '+' otherwise
}

func factsOf(p fingerprint.Print, mixed []fingerprint.Varying) facts {
	f := facts{values: make([]string, len(mixed))}
	open := make([]byte, len(mixed))
	for i, v := range mixed {
		value, known := p[v.Field]
		if !known {
			value = "not recorded"
		}
		f.values[i], open[i] = value, '+'
		if value == "" {
			open[i] = '-'
		}
	}
	f.open = string(open)
	return f
}

// key returns a lookup key of the facts that open marks by '+'. Two sets of facts agree in these
// if their keys are equal.
func (f facts) key(open string) string {
	b := []byte(open)
	for i, v := range f.values {
		if open[i] == '+' {
			b = strconv.AppendQuote(b, v)
		}
	}
	return string(b)
}

// combination is a set of facts and the runs that agree with it.
type combination struct {
	facts
	runs []*Observation
}

// combined returns the combinations of facts that runs have, in the order in which they occur. A
// combination in which a fact does not apply is left out if another one agrees with it and has
// that fact. The function uses lookups, because every run may have a different combination.
func combined(have []facts) (list []*combination) {
	var kinds []string // sets of facts that apply
	for _, f := range have {
		if !slices.Contains(kinds, f.open) {
			kinds = append(kinds, f.open)
		}
	}
	fit := map[string]map[int]bool{} // by key: matching entries of list
	for _, f := range have {
		if len(fit[f.key(f.open)]) > 0 {
			continue
		}
		for _, open := range kinds { // a combination in which a fact does not apply gives way to one that has it
			for i := range fit[f.key(open)] {
				if c := list[i]; c.open == open {
					list[i] = nil
					for _, kind := range kinds {
						delete(fit[c.key(kind)], i)
					}
				}
			}
		}
		for _, kind := range kinds {
			key := f.key(kind)
			if fit[key] == nil {
				fit[key] = map[int]bool{}
			}
			fit[key][len(list)] = true
		}
		list = append(list, &combination{facts: f})
	}
	return slices.DeleteFunc(list, func(c *combination) bool { return c == nil })
}

// newSeries returns a series with the values that an observation has for the parameters in keys.
func newSeries(o *Observation, keys []string) *series {
	s := &series{framework: o.Framework, parameters: map[string]any{}}
	for _, k := range keys {
		if v, ok := o.Parameters[k]; ok {
			s.parameters[k] = v
		}
	}
	return s
}

// group sorts observations and planned points into series, sorted by name.
//
// Runs with equal parameters may have different fingerprints. If mix is true, they stay in one
// series; otherwise the series is divided.
func group(obs []Observation, planned []Planned, mix bool, along axis) []*series {
	// Treat planned points like runs.
	all := make([]*Observation, 0, len(obs)+len(planned))
	for i := range obs {
		all = append(all, &obs[i])
	}
	for _, p := range planned {
		all = append(all, &Observation{Point: p.Point, Framework: p.Framework, Workers: p.Workers, Parameters: p.Parameters})
	}
	ignored := along.follows()
	// The runs of a series may have different limits, and a warning says so. If the study sweeps
	// the key of such a limit, it separates series like any other parameter.
	for _, k := range measure.BoundKeys() {
		if !ignored[k] && !swept(k, all, along) {
			ignored[k] = true
		}
	}
	keys := separating(all, ignored)
	byKey := map[string]*series{}
	seen := map[any]bool{} // facts that the series already contains
	for i, o := range all {
		key := identity(o.Framework, o.Parameters, keys)
		s := byKey[key]
		if s == nil {
			s = newSeries(o, keys)
			byKey[key] = s
		}
		if at := (inSeries[Value]{s, along.of(o)}); !seen[at] {
			seen[at], s.at = true, append(s.at, at.of)
		}
		if point := (inSeries[string]{s, o.Point}); !seen[point] {
			seen[point], s.points = true, append(s.points, o.Point)
		}
		if i < len(obs) {
			s.runs = append(s.runs, o)
		}
	}
	var list []*series
	for _, s := range byKey {
		if mix {
			list = append(list, s)
		} else {
			list = append(list, s.divide()...)
		}
	}
	differing := name(list)
	slices.SortFunc(list, func(a, b *series) int {
		c := cmp.Compare(a.framework, b.framework)
		for _, k := range differing {
			if c == 0 {
				c = ValueOf(a.parameters[k]).Compare(ValueOf(b.parameters[k]))
			}
		}
		return c
	})
	for _, s := range list {
		slices.SortFunc(s.at, Value.Compare)
	}
	return list
}

// inSeries is a map key for something within a series.
type inSeries[T comparable] struct {
	s  *series
	of T
}

// A Series lists the runs of a study that are on one curve.
type Series struct {
	Name    string
	Axis    string
	Within  measure.Coordinates // coordinates of the places that are its members; "" if its members are whole runs
	Base    Value               // position of the base: the smallest planned or observed one
	Members []Member
	// Points are the planned or observed points of a curve of whole runs; nil for other curves.
	Points []string
	// Part is true if other series have the same points, but runs with different fingerprints.
	Part bool
}

// A Member is a run, or a place within it, on a curve.
type Member struct {
	Run   string // ID of the run
	Place string // measure.Key of the place; "{}" for the whole run
	At    Value  // position on the curve's axis
}

// Arrange assigns runs to their curves, as Analyse does with default options for every measure.
// Places of a run that differ only along the axis are on one curve. If runs do not differ in
// their limits (see Bounded), the first of these places is enough to find the curve.
func Arrange(obs []Observation, planned []Planned) []Series {
	var list []Series
	for _, m := range Frames(obs) {
		along := axis(cmp.Or(m.Axis, Workers))
		placed, at, points := unfold(obs, planned, m, along)
		place := map[*Observation]string{}
		for i := range at {
			place[&placed[i]] = measure.Key(at[i])
		}
		for _, s := range group(placed, points, false, along) {
			one := Series{Name: s.name, Axis: string(along), Within: m.At, Base: s.at[0], Part: s.divided != nil}
			if m.At == "" {
				one.Points = s.points
			}
			for _, o := range s.runs {
				one.Members = append(one.Members, Member{o.Run, cmp.Or(place[o], measure.Key(nil)), along.of(o)})
			}
			list = append(list, one)
		}
	}
	return list
}

// Bounded reports whether runs differ in what limits them (measure.BoundKeys), which may separate
// their curves.
func Bounded(obs []Observation) bool {
	return slices.ContainsFunc(measure.BoundKeys(), func(key string) bool {
		return slices.ContainsFunc(obs, func(o Observation) bool { return text(o.Parameters[key]) != text(obs[0].Parameters[key]) })
	})
}

// ground returns the facts of the fingerprints that all runs share, and those in which they
// differ.
func (s *series) ground() (fingerprint.Print, []fingerprint.Varying) {
	prints := Prints(s.runs)
	mixed, _ := fingerprint.Vary(prints)
	return fingerprint.Common(prints), mixed
}

// Prints returns the fingerprints of runs.
func Prints(runs []*Observation) []fingerprint.Print {
	prints := make([]fingerprint.Print, len(runs))
	for i, o := range runs {
		prints[i] = o.Fingerprint
	}
	return prints
}

// separating returns the sorted parameters that separate the runs into series.
func separating(all []*Observation, ignored map[string]bool) []string {
	keys := map[string]bool{}
	for _, o := range all {
		for k := range o.Parameters {
			if !keys[k] && !ignored[k] && !strings.HasPrefix(k, "study.") {
				keys[k] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// varyingKeys returns the sorted parameters in which some points differ. It leaves out parameters
// that depend on the number of workers or the repeat, and those that only name the study.
func varyingKeys(points []map[string]any) []string {
	first := map[string]string{}
	differ := map[string]bool{}
	for i, p := range points {
		for k, v := range p {
			if text, seen := first[k]; !seen && i > 0 || seen && text != literal(v) {
				differ[k] = true
			}
			if i == 0 {
				first[k] = literal(v)
			}
		}
		for k := range first {
			if _, has := p[k]; !has {
				differ[k] = true
			}
		}
	}
	for k := range differ {
		if slices.Contains(follows, k) || strings.HasPrefix(k, "study.") {
			delete(differ, k)
		}
	}
	return slices.Sorted(maps.Keys(differ))
}

// VaryingWithin returns the parameters that vary within at least one of several studies. studies
// has the parameters of each study's points.
func VaryingWithin(studies map[string][]map[string]any) []string {
	vary := map[string]bool{}
	for _, points := range studies {
		for _, key := range varyingKeys(points) {
			vary[key] = true
		}
	}
	return slices.Sorted(maps.Keys(vary))
}

// Short returns short names for parameter paths: the last part of each, if it is unique.
func Short(paths []string) []string {
	ends := map[string]int{}
	for _, p := range paths {
		ends[last(p)]++
	}
	names := slices.Clone(paths)
	for i, p := range paths {
		if ends[last(p)] == 1 {
			names[i] = last(p)
		}
	}
	return names
}

// identity returns a text that is equal for runs of the same series and different for others.
func identity(framework string, parameters map[string]any, keys []string) string {
	b := make([]byte, 0, 512)
	b = strconv.AppendQuote(b, framework)
	for _, k := range keys {
		v, ok := parameters[k]
		if !ok {
			b = append(b, " -"...)
			continue
		}
		b = append(append(b, ' '), literal(v)...)
	}
	return string(b)
}

// swept reports whether the study sweeps a parameter: two points at the same position on the axis
// have different values of it. A point without a value does not count, because a sweep sets the
// parameter at every point.
func swept(key string, obs []*Observation, along axis) bool {
	varies := slices.ContainsFunc(obs, func(o *Observation) bool {
		return text(o.Parameters[key]) != text(obs[0].Parameters[key])
	})
	if !varies {
		return false
	}
	ignored := along.follows()
	ignored[key] = true
	keys := separating(obs, ignored)
	type place struct {
		rest string
		at   Value
	}
	first := map[place]*Observation{}
	for _, o := range obs {
		at := place{identity(o.Framework, o.Parameters, keys), along.of(o)}
		f, ok := first[at]
		if !ok {
			first[at] = o
		} else if a, b := f.Parameters[key], o.Parameters[key]; f.Point != o.Point && a != nil && b != nil && text(a) != text(b) {
			return true
		}
	}
	return false
}

// longName is the length above which redundant parameters are left out of a name. longValue is
// the length above which the middle of a value is cut out.
const longName, longValue = 80, 24
