package scaling

import (
	"fmt"
	"maps"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// unfold returns one observation for each position within a run (such as a load) at which the
// measure m was taken. The coordinates of the position become parameters, so that one can be the
// axis and the others distinguish series. For a measure without coordinates, it returns the runs
// unchanged.
//
// A planned point gets every position that some run has, except along the axis, where positions are
// unknown before a run.
//
// at are the coordinates of each observation in list; nil for whole runs.
func unfold(obs []Observation, planned []Planned, m measure.Measure, along axis) (list []Observation, at []map[string]any, points []Planned) {
	if m.At == "" {
		return obs, nil, planned
	}
	places := map[string]map[string]any{}
	for i := range obs {
		for _, p := range m.FilterPlaces(obs[i].Places) {
			if _, has := p.At[string(along)]; !has && m.At.Has(string(along)) {
				continue // the place is on no curve
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

// FilterPositions returns the runs with only those positions within them that meet the conditions. If no
// position does, the error lists the existing values.
func FilterPositions(obs []Observation, conditions []Condition) ([]Observation, error) {
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

// Frames returns a measure for each set of coordinates that measures in the runs have; the first
// one is for measures of whole runs. Each can be used as Options.Measure.
func Frames(obs []Observation) []measure.Measure {
	list := []measure.Measure{{}}
	for _, m := range measure.Frames() {
		for i := range obs {
			if m.FilterPlaces(obs[i].Places) != nil {
				list = append(list, m)
				break
			}
		}
	}
	return list
}
