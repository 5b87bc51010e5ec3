package query

import (
	"context"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// waiting returns the states of those runs that are queued or running. If the scheduler does not
// answer, the run folders decide.
func (r *Reader) waiting(ctx context.Context, open []*launcher.Attempt) []launcher.State {
	if len(open) == 0 {
		return nil
	}
	states, _ := launcher.Survey(ctx, open)
	return slices.DeleteFunc(states, func(s launcher.State) bool { return !underway(s) })
}

// underway reports whether a run is queued or running. One that the scheduler refused is neither.
func underway(s launcher.State) bool {
	return !s.Status.Terminal() && s.Status != metrics.Unknown && !s.Waits()
}

// queued counts runs by their workers. It counts those of the points of curve i, and of points
// that no curve has if they have the settings that distinguish it from the other curves.
func queued(waiting []launcher.State, curves []scaling.Curve, i int, obs []scaling.Observation) map[int]int {
	if len(waiting) == 0 {
		return nil
	}
	pointOf, curveOf := map[string]string{}, map[string]int{}
	for _, o := range obs {
		pointOf[o.Run] = o.Point
	}
	for k, c := range curves {
		for _, p := range c.Points {
			for _, run := range p.Runs {
				curveOf[pointOf[run.ID]] = k
			}
		}
	}
	keys := different(curves, i)
	counts := map[int]int{}
	for _, s := range waiting {
		k, measured := curveOf[s.Point.ID]
		if !measured {
			parameters := s.Point.Parameters()
			if !slices.ContainsFunc(keys, func(key string) bool {
				return scaling.ValueOf(parameters[key]) != scaling.ValueOf(curves[i].Parameters[key])
			}) {
				k = i
			} else {
				continue
			}
		}
		if k == i {
			counts[s.Point.Workers]++
		}
	}
	return counts
}
