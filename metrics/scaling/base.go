package scaling

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A NoBaseError lists the series that have no base and therefore no speedup.
type NoBaseError struct {
	Missing []MissingBase
}

// MissingBase describes the missing base of one series.
type MissingBase struct {
	Series    string
	At        Value   // position of the base point
	Why       string  // why it cannot be the base
	Unplanned bool    // the study has no such point
	Unsteady  bool    // it has successful runs but no steady state, which more runs would not change
	Imported  bool    // all runs of the series were imported, so none can be repeated
	Resumed   bool    // all of its runs resumed from a checkpoint, whose steps are unknown
	Available []Value // other possible base points
	axis      axis
}

// Error returns a text that names the points to run. The caller adds the command.
func (e *NoBaseError) Error() string {
	var texts []string
	of := map[string][]string{} // series, by text
	for _, m := range e.Missing {
		if of[m.text()] == nil {
			texts = append(texts, m.text())
		}
		of[m.text()] = append(of[m.text()], strconv.Quote(m.Series))
	}
	for i, text := range texts {
		const shown = 3
		switch names := of[text]; {
		case len(names) == 1:
			texts[i] = fmt.Sprintf("no base for series %s: its %s", names[0], text)
		case len(names) <= shown:
			texts[i] = fmt.Sprintf("no base for series %s and %s: their %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1], text)
		default:
			texts[i] = fmt.Sprintf("no base for series %s and %d more: their %s", strings.Join(names[:shown], ", "), len(names)-shown, text)
		}
	}
	return strings.Join(texts, "\n")
}

// Remarks returns the same text as remarks, one for each series.
func (e *NoBaseError) Remarks() []Remark {
	list := make([]Remark, len(e.Missing))
	for i, m := range e.Missing {
		list[i] = Remark{Series: m.Series, Text: "no base: its " + m.text()}
	}
	return list
}

// text says what is wrong with the base, and what to do.
func (m MissingBase) text() string {
	text := fmt.Sprintf("point with %s %s", m.axis.place(m.At), m.Why)
	switch {
	case m.Unsteady:
	case m.Unplanned:
		text += "; add it"
	default:
		text += "; measure it"
	}
	if len(m.Available) > 0 {
		joint := ", or take "
		if m.Unsteady {
			joint = "; take "
		}
		text += joint + m.axis.places(m.Available) + " as the base"
	}
	return text
}

// Silent reports whether none of the given number of series has a result: all of them lack their
// base. A base without a steady state does not count as lacking, because the other points then
// still have a throughput.
func (e *NoBaseError) Silent(series int) bool {
	return len(e.Missing) == series && !slices.ContainsFunc(e.Missing, func(m MissingBase) bool { return m.Unsteady && len(m.Available) > 0 })
}

// Imported reports whether the run was imported from another program's log or table.
func (o *Observation) Imported() bool { return o.Parameters["import.format"] != nil }

// AllImported reports whether there are runs and all were imported. Users cannot make more of them here.
func AllImported(runs []*Observation) bool {
	return len(runs) > 0 && !slices.ContainsFunc(runs, func(o *Observation) bool { return !o.Imported() })
}

func (s *series) missing(a axis, base Value, runs map[Value][]*Observation, c *Curve) *MissingBase {
	m := &MissingBase{Series: s.name, At: base, axis: a}
	for i := range c.Points {
		if p := &c.Points[i]; p.judged() && (p.Of(measure.Throughput).Median != nil || !c.Measured(measure.Throughput)) {
			m.Available = append(m.Available, p.At)
		}
	}
	switch runs := runs[base]; {
	case !slices.Contains(s.at, base):
		m.Why, m.Unplanned = "is not in the plan", true
	case len(runs) == 0:
		m.Why = "has no good run"
	default:
		m.Why = fmt.Sprintf("has %s, none with a steady state", number.Count(len(runs), "run"))
		m.Unsteady = true
		if m.Imported = AllImported(s.runs); m.Imported {
			m.Why = fmt.Sprintf("has %s, none with a throughput", number.Count(len(runs), "imported run"))
		}
		if !slices.ContainsFunc(runs, func(o *Observation) bool { return o.Why[measure.RunSeconds] != measure.WhyResumed }) {
			m.Why = fmt.Sprintf("has %s, resumed from a checkpoint and so without a run time", number.Count(len(runs), "run"))
			m.Resumed = true
		}
	}
	return m
}

// A Condition is one part of the definition of a baseline: the parameter Key has the value Value.
type Condition struct {
	Key   string // "workers", a TOML path, or its last part if that is unique
	Value string
}

func (c Condition) String() string { return c.Key + "=" + c.Value }

// ParseCondition parses "key=value".
func ParseCondition(s string) (Condition, error) {
	key, value, ok := strings.Cut(s, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return Condition{}, fmt.Errorf("%q is not a baseline; write key=value, like workers=1 or platform=cpu8", s)
	}
	return Condition{Key: key, Value: strings.TrimSpace(value)}, nil
}

// A Baseline is the configuration with which another configuration is compared.
type Baseline struct {
	Index int      // index of the baseline in the list of configurations
	Why   string   // why there is no baseline; "" if there is one
	Also  []string // other parameters in which the two configurations differ
}

// Baselines returns the baseline of each configuration in the list, which are given by their
// parameters. The baseline is the configuration that meets all conditions and otherwise has the
// same parameters, so that each test, model or batch is compared with its own baseline.
// Parameters that depend on those in the conditions, such as the vCPUs of a machine, may differ.
// If no configuration meets the conditions, the error lists the values that exist.
func Baselines(conditions []Condition, list []map[string]any) ([]Baseline, error) {
	keys := map[string]bool{}
	for _, parameters := range list {
		for k := range parameters {
			keys[k] = true
		}
	}
	with, asked, err := meeting(conditions, list, keys)
	if err != nil {
		return nil, err
	}
	value := func(i int, key string) string {
		if v, ok := list[i][key]; ok {
			return text(v)
		}
		return "unset"
	}
	var rest, following []string // keys that must be equal, and keys that depend on the conditions
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case slices.Contains(asked, key):
		case follow(key, asked, value, len(list)):
			following = append(following, key)
		default:
			rest = append(rest, key)
		}
	}
	differing := func(i, j int, keys []string) []string {
		var list []string
		for _, key := range keys {
			if value(i, key) != value(j, key) {
				list = append(list, key)
			}
		}
		return list
	}
	bases := make([]Baseline, len(list))
	for i := range list {
		at := slices.IndexFunc(with, func(j int) bool { return differing(i, j, rest) == nil })
		if at >= 0 {
			bases[i] = Baseline{Index: with[at], Also: differing(i, with[at], following)}
			continue
		}
		nearest := slices.MinFunc(with, func(a, b int) int { return len(differing(i, a, rest)) - len(differing(i, b, rest)) })
		var own []string
		for _, key := range differing(i, nearest, rest) {
			own = append(own, key+"="+value(i, key))
		}
		bases[i].Why = fmt.Sprintf("no configuration with %s has %s", conditionsText(conditions), strings.Join(own, " "))
	}
	return bases, nil
}

// meeting returns the indices of the configurations that meet all conditions, and the keys of the
// conditions.
func meeting(conditions []Condition, list []map[string]any, keys map[string]bool) (with []int, asked []string, err error) {
	for i := range list {
		with = append(with, i)
	}
	for _, c := range conditions {
		key, err := c.resolve(keys)
		if err != nil {
			return nil, nil, err
		}
		asked = append(asked, key)
		values := map[string]bool{}
		for _, i := range with {
			if v, ok := list[i][key]; ok {
				values[text(v)] = true
			}
		}
		with = slices.DeleteFunc(with, func(i int) bool {
			v, ok := list[i][key]
			return !ok || text(v) != c.Value
		})
		if len(with) == 0 {
			return nil, nil, fmt.Errorf("no configuration has %s=%s; valid: %s", key, c.Value, strings.Join(sortedKeys(values), ", "))
		}
	}
	return with, asked, nil
}

// follow reports whether a parameter's value is determined by the values of other parameters.
func follow(key string, others []string, value func(int, string) string, n int) bool {
	seen := map[string]string{}
	for i := range n {
		var at strings.Builder
		for _, k := range others {
			fmt.Fprintf(&at, "%q", value(i, k))
		}
		v, ok := seen[at.String()]
		if ok && v != value(i, key) {
			return false
		}
		seen[at.String()] = value(i, key)
	}
	return true
}

func conditionsText(list []Condition) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = c.String()
	}
	return strings.Join(words, " ")
}

func (c Condition) resolve(keys map[string]bool) (string, error) {
	if keys[c.Key] {
		return c.Key, nil
	}
	var fits []string
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if strings.HasSuffix(k, "."+c.Key) {
			fits = append(fits, k)
		}
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		return "", fmt.Errorf("no configuration has the key %s; valid: %s", c.Key, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
	}
	return "", fmt.Errorf("%s could be %s; write it in full", c.Key, strings.Join(fits, " or "))
}

// divideBy computes the ratio of every point to its baseline, which may be on another curve. It
// adds a warning to points without a baseline.
func (an *analysis) divideBy(conditions []Condition, curves []Curve) error {
	type place struct {
		curve *Curve
		point *Point
	}
	var places []place
	var list []map[string]any
	for i := range curves {
		c := &curves[i]
		c.Base = nil
		for k := range c.Points {
			p := &c.Points[k]
			parameters := maps.Clone(c.Parameters)
			parameters["framework"] = c.Framework
			if p.Workers > 0 {
				parameters[Workers] = p.Workers
			}
			if an.axis != Workers {
				parameters[string(an.axis)] = p.At.String()
			}
			places, list = append(places, place{c, p}), append(list, parameters)
		}
	}
	if list == nil {
		return errors.New("no point to compare with the baseline")
	}
	bases, err := Baselines(conditions, list)
	if err != nil {
		return err
	}
	for i, b := range bases {
		p := places[i].point
		if b.Why != "" {
			p.Warnings = append(p.Warnings, "no baseline: "+b.Why)
			continue
		}
		if b.Also != nil {
			p.Warnings = append(p.Warnings, "also differs from its baseline in "+strings.Join(b.Also, ", "))
		}
		base := places[b.Index].point
		for _, s := range p.Measures {
			if of := base.Of(s.Name); of.Median != nil && s.Better != measure.Neither {
				s.base = of
			}
		}
	}
	return nil
}
