package scaling

import (
	"fmt"
	"maps"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// unfold returns an observation for each place within a run at which the measure was taken.
// The coordinates become parameters, so one can be the axis and the others distinguish
// series. For a measure without coordinates, runs are unchanged.
//
// A planned point has every place that some run has, unless the places are along the axis,
// since they are unknown before a run.
//
// at are the coordinates of each observation; nil for whole runs.
func unfold(obs []Observation, planned []Planned, m measure.Measure, along axis) (list []Observation, at []map[string]any, points []Planned) {
	if m.At == "" {
		return obs, nil, planned
	}
	places := map[string]map[string]any{}
	for i := range obs {
		for _, p := range m.Within(obs[i].Places) {
			if _, has := p.At[string(along)]; !has && m.At.Has(string(along)) {
				continue // not on any curve
			}
			o := obs[i]
			o.Parameters = located(o.Parameters, p.At)
			o.Values, o.Why, o.Reported, o.Places = p.Values, nil, nil, nil
			list, at = append(list, o), append(at, p.At)
			places[measure.Key(p.At)] = p.At
		}
	}
	for _, key := range sortedKeys(places) {
		if _, along := places[key][string(along)]; along {
			return list, at, nil
		}
		for _, p := range planned {
			p.Parameters = located(p.Parameters, places[key])
			points = append(points, p)
		}
	}
	return list, at, points
}

func located(parameters, at map[string]any) map[string]any {
	all := make(map[string]any, len(parameters)+len(at))
	maps.Copy(all, parameters)
	maps.Copy(all, at)
	return all
}

// Within keeps the places of each run that meet the conditions. If none are left, the error
// lists the existing places.
func Within(obs []Observation, conditions []Condition) ([]Observation, error) {
	for _, c := range conditions {
		var list []Observation
		values := map[string]bool{}
		found := false
		for _, o := range obs {
			places := o.Places
			o.Places = nil
			for _, p := range places {
				v, has := p.At[c.Key]
				if has {
					values[text(v)] = true
				}
				if has && text(v) == c.Value {
					o.Places, found = append(o.Places, p), true
				}
			}
			list = append(list, o)
		}
		if !found && len(values) == 0 {
			return nil, fmt.Errorf("nothing was measured at a %s", c.Key)
		}
		if !found {
			return nil, fmt.Errorf("nothing was measured at %s; valid: %s", c, strings.Join(sortedKeys(values), ", "))
		}
		obs = list
	}
	return obs, nil
}

// Frames returns a measure for each combination of coordinates in the runs, that of whole
// runs first. Use each as Options.Measure.
func Frames(obs []Observation) []measure.Measure {
	list := []measure.Measure{{}}
	for _, m := range measure.Frames() {
		for i := range obs {
			if m.Within(obs[i].Places) != nil {
				list = append(list, m)
				break
			}
		}
	}
	return list
}
