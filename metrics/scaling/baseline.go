package scaling

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

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
	var with []int
	for i, parameters := range list {
		with = append(with, i)
		for k := range parameters {
			keys[k] = true
		}
	}
	var asked []string
	for _, c := range conditions {
		key, err := c.resolve(keys)
		if err != nil {
			return nil, err
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
			return nil, fmt.Errorf("no configuration has %s=%s; valid: %s", key, c.Value, strings.Join(sortedKeys(values), ", "))
		}
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
