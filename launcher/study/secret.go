package study

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/redact"
)

// Sealed returns the parameters in the form in which they are recorded, with digests in
// place of secrets.
func (o Own) Sealed(key redact.Key) Own {
	sealed := maps.Clone(o)
	for name, v := range o {
		sealed[name] = Scalar{key.Value(name, v.Value)}
	}
	return sealed
}

// Secrets returns the values, or parts of values, that Sealed replaces.
func (o Own) Secrets() []string {
	var list []string
	for _, name := range o.Names() {
		list = append(list, o[name].secrets(name)...)
	}
	return list
}

// secrets returns the secrets in the value of the parameter with this name.
func (s Scalar) secrets(name string) []string {
	var list []string
	redact.Hider(func(secret string) string {
		list = append(list, secret)
		return redact.Key(nil).Hide(secret)
	}).Value(name, s.Value)
	return list
}

// Secrets returns the values that Seal replaces.
func (p *Point) Secrets() []string { return slices.Concat(p.Command.Secrets(), p.Own.Secrets()) }

// Seal replaces the point's secrets by digests.
func (p *Point) Seal(key redact.Key) {
	p.Command, p.Own = p.Command.Sealed(key), p.Own.Sealed(key)
}

// Plain reports whether the point contains secrets that are not replaced by digests.
// Recorded points contain none, unless an earlier version or a person wrote them.
func (p *Point) Plain() bool {
	hidden := *p
	hidden.Seal(nil)
	return !slices.Equal(hidden.Command.Run, p.Command.Run) || hidden.Command.Directory != p.Command.Directory || hidden.Command.Log != p.Command.Log ||
		!maps.Equal(hidden.Command.Environment, p.Command.Environment) || !maps.Equal(hidden.Own, p.Own)
}

// Exposed returns the keys outside [command] and [parameters] whose values look like
// secrets; data.path may be one. These are recorded unchanged, since the run's program
// reads them from the recorded point.
func (p *Point) Exposed() []string {
	var list []string
	for path, text := range keyTexts(p) {
		var v any
		if strings.HasPrefix(path, "command.") || strings.HasPrefix(path, parameterPrefix) || json.Unmarshal([]byte(text), &v) != nil {
			continue
		}
		if !reflect.DeepEqual(Redacted(path, v), v) {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// Redacted returns the value of a key as tables show it, with secrets replaced by a word.
func Redacted(path string, v any) any { return redact.Key(nil).Value(path, v) }

// Exposed returns the keys that Point.Exposed returns for at least one point of the plan.
func (p *Plan) Exposed() []string {
	seen := map[string]bool{}
	points := map[string]bool{}
	for i := range p.Points {
		point := &p.Points[i].Point
		if points[point.ID] {
			continue
		}
		points[point.ID] = true
		for _, path := range point.Exposed() {
			seen[path] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Secret reports whether the study's points contain secrets. If so, Key must be set before
// Plan, for the digests.
func (s *Study) Secret() bool {
	if len(s.Command.Secrets()) > 0 || len(s.Own.Secrets()) > 0 {
		return true
	}
	return slices.ContainsFunc(s.axes, func(a axis) bool {
		name, own := strings.CutPrefix(a.path, parameterPrefix)
		return own && slices.ContainsFunc(a.values, func(v reflect.Value) bool { return len(v.Interface().(Scalar).secrets(name)) > 0 })
	})
}

// SecretWarnings returns a warning for each value of the study or its plan that looks like a
// secret.
func (s *Study) SecretWarnings(plan *Plan) Problems {
	const stored = " looks like a secret. Records have a keyed digest in its place, but this file and its copy in the run folder hold it. "
	const better = "Leave it out and set it where you run or submit: the program inherits it"
	var list Problems
	doubt := func(key, path, message string) {
		list = append(list, Problem{File: s.File, Line: cmp.Or(s.lines[key], s.lines["sweep."+key]), Path: path, Message: message})
	}
	hidden := s.Command.Sealed(nil)
	for i, argument := range s.Command.Run {
		if hidden.Run[i] != argument {
			doubt("command.run", fmt.Sprintf("command.run[%d]", i), "part of it"+stored+"Let the program read it from a variable that it inherits, or from a file")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Command.Environment)) {
		if value := s.Command.Environment[name]; redact.Named(name, value) || redact.Text(value) != value {
			doubt("command.environment", "command.environment", name+stored+better)
		}
	}
	for _, name := range s.Own.Names() {
		if len(s.Own[name].secrets(name)) > 0 {
			doubt(parameterPrefix+name, parameterPrefix+name, "it"+stored+better)
		}
	}
	for _, path := range plan.Exposed() {
		doubt(path, path, "it looks like a secret, and this file, point.json and plan.json contain it (only you can read these two). Use a file name or path without it")
	}
	for _, a := range s.axes {
		name, own := strings.CutPrefix(a.path, parameterPrefix)
		if own && slices.ContainsFunc(a.values, func(v reflect.Value) bool { return len(v.Interface().(Scalar).secrets(name)) > 0 }) {
			doubt("sweep."+a.key, "sweep."+a.key, "a value of it"+stored+better)
		}
	}
	return list
}

// Adopt gives points of the plan the IDs of equal earlier points, so that their results are
// found. The IDs may differ because earlier versions computed them from the digests of all
// variables, and from secrets in [parameters] themselves. keys are the keys that may have
// been used for those digests.
func (p *Plan) Adopt(earlier []Point, keys ...redact.Key) {
	planned, named := map[string]bool{}, map[string]string{}
	for i := range p.Points {
		planned[p.Points[i].Point.ID] = true
	}
	earlier = slices.DeleteFunc(slices.Clone(earlier), func(e Point) bool { return planned[e.ID] })
	taken := map[string]bool{}
	for i := range p.Points {
		id := p.Points[i].Point.ID
		name, known := named[id]
		if !known {
			for _, e := range earlier {
				if !taken[e.ID] && slices.ContainsFunc(keys, func(key redact.Key) bool { return p.Points[i].sameAs(&e, key) }) {
					name = e.ID
					taken[name] = true
					break
				}
			}
			named[id] = name
		}
		if name != "" {
			p.Points[i].Point.ID = name
		}
	}
}

// sameAs reports whether an earlier point e equals this one, if some values of e are
// digests made with key.
func (p *Planned) sameAs(e *Point, key redact.Key) bool {
	if e.Framework != p.Point.Framework || e.Workers != p.Point.Workers || e.Variant != p.Point.Variant || e.Workload.Kind != p.Point.Workload.Kind {
		return false
	}
	plain := p.whole()
	now, then := keyTexts(&plain), keyTexts(e)
	if len(now) != len(then) {
		return false
	}
	for path, text := range now {
		was, known := then[path]
		if slices.Contains(measure.BoundKeys(), path) || plain.asksOnly(path) {
			continue
		}
		if !known || was != text && !sameText(was, text, key) {
			return false
		}
	}
	return true
}

// sameText reports whether two values in JSON are equal, if the secrets of the first may be
// replaced by digests made with key.
func sameText(hidden, plain string, key redact.Key) bool {
	var then, now any
	if json.Unmarshal([]byte(hidden), &then) != nil || json.Unmarshal([]byte(plain), &now) != nil {
		return false
	}
	return sameValue(then, now, key)
}

func sameValue(hidden, plain any, key redact.Key) bool {
	switch hidden := hidden.(type) {
	case string:
		if text, is := plain.(string); is {
			return key.Matches(hidden, text)
		}
		return key.Matches(hidden, fmt.Sprint(plain))
	case []any:
		list, is := plain.([]any)
		return is && slices.EqualFunc(hidden, list, func(a, b any) bool { return sameValue(a, b, key) })
	}
	return hidden == plain
}

// whole returns the point with its secrets instead of their digests.
func (p *Planned) whole() Point {
	whole := p.Point
	whole.Command, whole.Own = p.Command, p.Own
	return whole
}
