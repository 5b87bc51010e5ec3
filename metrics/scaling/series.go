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

// follows are the parameters that change with the number of workers or with
// the repeat, or only name the study: they do not separate series.
var follows = []string{"id", "study", "framework", "workers", "repeat", "attempt", "seed",
	"nodes", "workers_per_node", "worker_batch", "global_batch", "learning_rate", "workload.dp"}

// series is runs, and planned points, that are equal in all parameters that
// separate series.
type series struct {
	name       string
	framework  string
	parameters map[string]any
	at         []Value // planned or observed, ascending
	runs       []*Observation
	points     []string              // planned or observed, of all parts of a divided series
	divided    []fingerprint.Varying // facts by which it was divided from others; nil for none
}

// ranOn begins the parameters that are facts of a fingerprint.
const ranOn = "fingerprint."

// divide makes one series for each combination of the facts in which the runs
// differ. A run on which a fact does not bear, like one within a node, belongs
// to every combination that its other facts fit. A fact that was not recorded
// is a value of its own here: whom the run belongs to cannot be known.
func (s *series) divide() []*series {
	prints := make([]fingerprint.Print, len(s.runs))
	for i, o := range s.runs {
		prints[i] = o.Fingerprint
	}
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
	at := map[string][]int{} // combinations by what they have of a kind of facts
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

// facts are what one run ran on, of what some differ in.
type facts struct {
	values []string // "" for one that does not bear on the run
	open   string   // which those are: a '-' for each, a '+' for the others
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

// key is what facts that leave these open are looked up by: they fit all whose key
// is theirs.
func (f facts) key(open string) string {
	b := []byte(open)
	for i, v := range f.values {
		if open[i] == '+' {
			b = strconv.AppendQuote(b, v)
		}
	}
	return string(b)
}

// combination is facts, and the runs that they fit.
type combination struct {
	facts
	runs []*Observation
}

// combined are the combinations of facts that runs have, but those that others
// complete, in the order in which they came. Each is looked up, not compared with all
// others: every run may have its own.
func combined(have []facts) (list []*combination) {
	var kinds []string // of what is left open
	for _, f := range have {
		if !slices.Contains(kinds, f.open) {
			kinds = append(kinds, f.open)
		}
	}
	fit := map[string]map[int]bool{} // which of the list, by key
	for _, f := range have {
		if len(fit[f.key(f.open)]) > 0 {
			continue
		}
		for _, open := range kinds { // one that leaves a fact open makes way for one that names it
			for i := range fit[f.key(open)] {
				if c := list[i]; c != nil && c.open == open {
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

// newSeries returns a series with the values that an observation has for keys.
func newSeries(o *Observation, keys []string) *series {
	s := &series{framework: o.Framework, parameters: map[string]any{}}
	for _, k := range keys {
		if v, ok := o.Parameters[k]; ok {
			s.parameters[k] = v
		}
	}
	return s
}

// group sorts observations and planned points into series, by name.
//
// Runs that are equal in what was asked for may still have run on different
// things. They are divided by those, or with mix stay one series.
func group(obs []Observation, planned []Planned, mix bool, along axis) []*series {
	// Planned points go in like runs, and are told apart by their place.
	all := make([]*Observation, 0, len(obs)+len(planned))
	for i := range obs {
		all = append(all, &obs[i])
	}
	for _, p := range planned {
		all = append(all, &Observation{Point: p.Point, Framework: p.Framework, Workers: p.Workers, Parameters: p.Parameters})
	}
	ignored := along.follows()
	// A series may mix what bounds runs, and says so; where the study sweeps such a
	// key it separates series like any other.
	for _, k := range measure.BoundKeys() {
		if !ignored[k] && !swept(k, all, along) {
			ignored[k] = true
		}
	}
	keys := separating(all, ignored)
	byKey := map[string]*series{}
	seen := map[any]bool{} // what a series has already
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

// inSeries is something that a series has.
type inSeries[T comparable] struct {
	s  *series
	of T
}

// Series is the runs of a study that share a curve.
type Series struct {
	Name    string
	Axis    string
	Within  measure.Coordinates // that its members are places of; "" for whole runs
	Base    Value               // that the others are divided by: the least that is planned or was observed
	Members []Member
	// Points are those of curves of whole runs, planned or observed; nil for the
	// others.
	Points []string
	// Part is for one of several series of the same points, whose runs ran on
	// different things.
	Part bool
}

// Member is a run, or a place within it, on a curve.
type Member struct {
	Run   string // by id
	Place string // measure.Key of it; "{}" for the whole run
	At    Value  // on the curve's axis
}

// Arrange puts runs on their curves, as Analyse does for every measure without
// other options. Places of a run that differ along the axis alone are on one curve;
// where nothing bounds the runs differently (Bounded), one of them, the least, is
// enough to find it.
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

// Bounded reports whether runs differ in what bounds them (measure.BoundKeys): which
// may separate their curves, by what they have in common along the axis.
func Bounded(obs []Observation) bool {
	return slices.ContainsFunc(measure.BoundKeys(), func(key string) bool {
		return slices.ContainsFunc(obs, func(o Observation) bool { return text(o.Parameters[key]) != text(obs[0].Parameters[key]) })
	})
}

// ground is what the runs ran on: what they have in common, in what they
// differ.
func (s *series) ground() (fingerprint.Print, []fingerprint.Varying) {
	prints := make([]fingerprint.Print, len(s.runs))
	for i, o := range s.runs {
		prints[i] = o.Fingerprint
	}
	mixed, _ := fingerprint.Vary(prints)
	return fingerprint.Common(prints), mixed
}

// separating are the parameters that separate the given runs into series, in
// order.
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

// varyingKeys are the parameters in which some points differ, in order: not those
// that follow from the number of workers or the repeat, or only name the study.
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

// VaryingWithin are the parameters that vary within any of several studies, each
// with its points.
func VaryingWithin(studies map[string][]map[string]any) []string {
	vary := map[string]bool{}
	for _, points := range studies {
		for _, key := range varyingKeys(points) {
			vary[key] = true
		}
	}
	return slices.Sorted(maps.Keys(vary))
}

// Short are names for parameters, given by their paths: the last part of each,
// where no other one ends in it.
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

// identity writes down all that separates series.
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

// swept reports whether the study sweeps the key: two points at one place of the axis
// have different values. An edit between submissions does not change a point's identity.
// A point without a value does not count, since a sweep sets its key at every point.
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

// longName and longValue are the letters beyond which a name leaves out what varies
// with something else that it has, and a value its middle.
const longName, longValue = 80, 24
