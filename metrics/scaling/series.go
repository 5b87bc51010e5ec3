package scaling

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/maruel/natural"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/pointkey"
)

// follows are the parameters that change with the number of workers or with
// the repeat, or only name the study: they do not separate series.
var follows = []string{"id", "study", "framework", "workers", "repeat", "attempt", "seed",
	"nodes", "workers_per_node", "worker_batch", "global_batch", "learning_rate"}

// series is runs, and planned points, that are equal in all parameters that
// separate series.
type series struct {
	name       string
	framework  string
	parameters map[string]any
	at         []Value // planned or observed, ascending
	runs       []Observation
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
	const unknown = "not recorded"
	facts := func(p fingerprint.Print) []string {
		list := make([]string, len(mixed))
		for i, v := range mixed {
			value, known := p[v.Field]
			if !known {
				value = unknown
			}
			list[i] = value
		}
		return list
	}
	fits := func(have, want []string) bool {
		for i := range have {
			if have[i] != "" && have[i] != want[i] {
				return false
			}
		}
		return true
	}
	var combinations [][]string
	for _, p := range prints {
		have := facts(p)
		if !slices.ContainsFunc(combinations, func(c []string) bool { return fits(have, c) }) {
			// One that leaves a fact open makes way for one that names it.
			combinations = slices.DeleteFunc(combinations, func(c []string) bool { return fits(c, have) })
			combinations = append(combinations, have)
		}
	}
	var list []*series
	for _, c := range combinations {
		part := &series{framework: s.framework, parameters: maps.Clone(s.parameters), at: s.at, points: s.points, divided: mixed}
		for i, v := range mixed {
			part.parameters[ranOn+v.Field] = c[i]
		}
		for i, p := range prints {
			if fits(facts(p), c) {
				part.runs = append(part.runs, s.runs[i])
			}
		}
		list = append(list, part)
	}
	return list
}

// group sorts observations and planned points into series, by name.
//
// Runs that are equal in what was asked for may still have run on different
// things. They are divided by those, or with mix stay one series.
func group(obs []Observation, planned []Planned, mix bool, along axis) []*series {
	// Planned points go in like runs, and are told apart by their place.
	all := slices.Clone(obs)
	for _, p := range planned {
		all = append(all, Observation{Point: p.Point, Framework: p.Framework, Workers: p.Workers, Parameters: p.Parameters})
	}
	ignored := along.follows()
	// A series may mix what bounds runs, and says so; where the study sweeps such a
	// key it separates series like any other.
	for _, k := range pointkey.Bounds() {
		if !ignored[k] && !swept(k, all, along) {
			ignored[k] = true
		}
	}
	keys := separating(all, ignored)
	byKey := map[string]*series{}
	for i, o := range all {
		key := identity(o.Framework, o.Parameters, keys)
		s := byKey[key]
		if s == nil {
			s = &series{framework: o.Framework, parameters: map[string]any{}}
			for _, k := range keys {
				if v, ok := o.Parameters[k]; ok {
					s.parameters[k] = v
				}
			}
			byKey[key] = s
		}
		if at := along.of(&o); !slices.Contains(s.at, at) {
			s.at = append(s.at, at)
		}
		if !slices.Contains(s.points, o.Point) {
			s.points = append(s.points, o.Point)
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

// Series is the runs of a study that share a curve.
type Series struct {
	Name    string
	Axis    string
	Base    Value // that the others are divided by: the least that is planned or was observed
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
// other options.
func Arrange(obs []Observation, planned []Planned) []Series {
	var list []Series
	for _, m := range Frames(obs) {
		along := axis(cmp.Or(m.Axis, Workers))
		placed, points := unfold(obs, planned, m, along)
		for _, s := range group(placed, points, false, along) {
			one := Series{Name: s.name, Axis: string(along), Base: s.at[0], Part: s.divided != nil}
			if m.At == "" {
				one.Points = s.points
			}
			for i := range s.runs {
				at := map[string]any{}
				for _, key := range m.At.Keys() {
					if v, stated := s.runs[i].Parameters[key]; stated {
						at[key] = v
					}
				}
				one.Members = append(one.Members, Member{s.runs[i].Run, measure.Key(at), along.of(&s.runs[i])})
			}
			list = append(list, one)
		}
	}
	return list
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
func separating(all []Observation, ignored map[string]bool) []string {
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

// Varying are the parameters in which some points differ, in order: not those
// that follow from the number of workers or the repeat, or only name the study.
func Varying(points []map[string]any) []string {
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

// swept reports whether the study sweeps the key: two points that differ in it
// at one place of the axis. An edit between submissions changes no point's identity.
func swept(key string, obs []Observation, along axis) bool {
	varies := slices.ContainsFunc(obs, func(o Observation) bool {
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
	first := map[place]Observation{}
	for _, o := range obs {
		at := place{identity(o.Framework, o.Parameters, keys), along.of(&o)}
		f, ok := first[at]
		if !ok {
			first[at] = o
		} else if f.Point != o.Point && text(f.Parameters[key]) != text(o.Parameters[key]) {
			return true
		}
	}
	return false
}

// name names every series by its framework and the parameters in which series
// differ, and returns the paths of those. A parameter goes by the last part of
// its path where that is unambiguous. One that a framework's runs do not have at
// all says no more than the framework does, where it has one value for each.
func name(list []*series) (differing []string) {
	paths := map[string]bool{}
	for _, s := range list {
		for k := range s.parameters {
			paths[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(paths)) {
		for _, s := range list[1:] {
			if literal(s.parameters[k]) != literal(list[0].parameters[k]) {
				if !byFramework(list, k) {
					differing = append(differing, k)
				}
				break
			}
		}
	}
	named := differing
	wide := slices.Clone(differing) // the longest values first
	slices.SortStableFunc(wide, func(a, b string) int { return cmp.Compare(widest(list, b), widest(list, a)) })
	for _, key := range wide {
		if longest(list, named) <= longName {
			break
		}
		if fewer := slices.DeleteFunc(slices.Clone(named), func(k string) bool { return k == key }); distinguish(list, fewer) {
			named = fewer // it varies with others that are named
		}
	}
	show := map[string]func(any) string{}
	for _, k := range named {
		show[k] = shortened(list, k)
	}
	labels := Short(named)
	for _, s := range list {
		s.name = s.framework
		for i, k := range named {
			s.name += " " + labels[i] + "=" + show[k](s.parameters[k])
		}
		s.name = strings.TrimSpace(s.name)
	}
	return differing
}

// longName and longValue are the letters beyond which a name leaves out what varies
// with something else that it has, and a value its middle.
const longName, longValue = 80, 24

// widest is the length of a parameter's longest value.
func widest(list []*series, key string) int {
	most := 0
	for _, s := range list {
		most = max(most, utf8.RuneCountInString(text(s.parameters[key])))
	}
	return most
}

// longest is the length of the longest name that is made of some parameters.
func longest(list []*series, keys []string) int {
	most := 0
	for _, s := range list {
		n := utf8.RuneCountInString(s.framework)
		for _, k := range keys {
			n += 2 + utf8.RuneCountInString(last(k)) + min(longValue, utf8.RuneCountInString(text(s.parameters[k])))
		}
		most = max(most, n)
	}
	return most
}

// distinguish reports whether the framework and some parameters tell all series
// apart.
func distinguish(list []*series, keys []string) bool {
	seen := map[string]bool{}
	for _, s := range list {
		id := identity(s.framework, s.parameters, keys)
		if seen[id] {
			return false
		}
		seen[id] = true
	}
	return true
}

// shortened writes the values of a parameter: without the middle of long ones, and
// with a number behind it where two would read alike.
func shortened(list []*series, key string) func(any) string {
	cut := func(v any) string {
		r := []rune(text(v))
		if len(r) <= longValue {
			return string(r)
		}
		return string(r[:longValue/2]) + "…" + string(r[len(r)-longValue/2+1:])
	}
	of := map[string][]string{} // by what they are cut to
	for _, s := range list {
		v := s.parameters[key]
		if short := cut(v); !slices.Contains(of[short], literal(v)) {
			of[short] = append(of[short], literal(v))
		}
	}
	for _, values := range of {
		slices.SortFunc(values, natural.Compare)
	}
	return func(v any) string {
		short := cut(v)
		if values := of[short]; len(values) > 1 && short != text(v) {
			short += fmt.Sprintf("#%d", slices.Index(values, literal(v))+1)
		}
		return short
	}
}

// Keys are the parameters in which the curves differ, beside the framework, in
// order.
func Keys(curves []Curve) []string {
	list := make([]*series, len(curves))
	for i, c := range curves {
		list[i] = &series{framework: c.Framework, parameters: c.Parameters}
	}
	if len(list) == 0 {
		return nil
	}
	return name(list)
}

// byFramework reports whether the parameter has one value for each framework, and
// none for some.
func byFramework(list []*series, key string) bool {
	of := map[string]string{}
	unset := false
	for _, s := range list {
		v, set := s.parameters[key]
		unset = unset || !set
		if other, seen := of[s.framework]; seen && other != literal(v) {
			return false
		}
		of[s.framework] = literal(v)
	}
	return unset
}

// Rename names curves by what tells them apart among themselves, but for some
// parameters, which whoever shows them says otherwise.
func Rename(curves []Curve, but ...string) []Curve {
	if len(curves) == 0 {
		return nil
	}
	list := make([]*series, len(curves))
	for i, c := range curves {
		list[i] = &series{framework: c.Framework, parameters: maps.Clone(c.Parameters)}
		for _, key := range but {
			delete(list[i].parameters, key)
		}
	}
	name(list)
	renamed := slices.Clone(curves)
	for i := range renamed {
		renamed[i].Series = list[i].name
	}
	return renamed
}

// Alike reports whether the curves are of series that are equal but for one
// parameter.
func Alike(a, b Curve, but string) bool {
	keys := map[string]bool{}
	for k := range a.Parameters {
		keys[k] = true
	}
	for k := range b.Parameters {
		keys[k] = true
	}
	delete(keys, but)
	for k := range keys {
		if literal(a.Parameters[k]) != literal(b.Parameters[k]) {
			return false
		}
	}
	return a.Framework == b.Framework
}

func last(path string) string {
	if file, ok := strings.CutPrefix(path, ranOn+fingerprint.FilePrefix); ok {
		return file // whose dots part nothing
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// text is a parameter's value for people. Equal numbers read alike, whether
// they came as integers or not.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "unset"
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = text(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprint(v)
}

// literal is a parameter's value such that equal means the same: "64" is not
// 64.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return text(v)
}

// numeric is a parameter's value, if it is a number.
func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
