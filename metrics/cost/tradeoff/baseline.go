package tradeoff

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/cost"
)

// Condition is a part of what the baseline is: the configuration whose
// parameter Key has the value Value. Each configuration is divided by the one
// for which all conditions hold and that is otherwise the same as itself, or by
// the only one for which they hold.
type Condition struct {
	Key   string // "workers", a TOML path, or its last part where only one ends so
	Value string
}

// ParseCondition reads "key=value".
func ParseCondition(s string) (Condition, error) {
	key, value, ok := strings.Cut(s, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return Condition{}, fmt.Errorf("%q is no baseline; write key=value, like workers=1 or platform=cpu8", s)
	}
	return Condition{Key: key, Value: strings.TrimSpace(value)}, nil
}

// place is the index of a configuration's baseline, or why it has none.
type place struct {
	index int
	why   string
}

// baselines looks up each configuration's baseline. The error says what values
// there are when no configuration has the one asked for.
func baselines(conditions []Condition, list []Configuration) ([]place, error) {
	all := make([]map[string]any, len(list))
	keys := map[string]bool{}
	for i, c := range list {
		all[i] = maps.Clone(c.Parameters)
		if all[i] == nil {
			all[i] = map[string]any{}
		}
		all[i]["workers"] = int64(c.Workers)
		for k := range all[i] {
			keys[k] = true
		}
	}
	var with []int
	for i := range list {
		with = append(with, i)
	}
	asked := map[string]bool{}
	for _, c := range conditions {
		key, err := c.resolve(keys)
		if err != nil {
			return nil, err
		}
		asked[key] = true
		values := map[string]bool{}
		for _, i := range with {
			if v, ok := all[i][key]; ok {
				values[fmt.Sprint(v)] = true
			}
		}
		with = slices.DeleteFunc(with, func(i int) bool {
			v, ok := all[i][key]
			return !ok || !cost.Equal(v, c.Value)
		})
		if len(with) == 0 {
			return nil, fmt.Errorf("no configuration has %s=%s; there are %s", key, c.Value, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
		}
	}
	same := func(a, b map[string]any) bool {
		for k := range keys {
			v, ok := a[k]
			w, also := b[k]
			if !asked[k] && (ok != also || ok && !cost.Equal(v, w)) {
				return false
			}
		}
		return true
	}
	places := make([]place, len(list))
	for i := range list {
		at := slices.IndexFunc(with, func(j int) bool { return same(all[i], all[j]) })
		switch {
		case at >= 0:
			places[i].index = with[at]
		case len(with) == 1:
			places[i].index = with[0]
		default:
			places[i].why = fmt.Sprintf("%d configurations fit the baseline, and none is otherwise the same; say more of it", len(with))
		}
	}
	return places, nil
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
		return "", fmt.Errorf("nothing is called %s; the configurations have %s", c.Key, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
	}
	return "", fmt.Errorf("%s may be %s; write it in full", c.Key, strings.Join(fits, " or "))
}

func trim(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
