package launcher

import (
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Planned returns the points of planned runs for curves: repeats count as one point.
func Planned(runs []Unbegun) []scaling.Planned {
	seen := map[string]bool{}
	var list []scaling.Planned
	for _, p := range runs {
		if !seen[p.Point.ID] {
			seen[p.Point.ID] = true
			list = append(list, scaling.Planned{Point: p.Point.ID, Framework: p.Point.Framework, Workers: p.Point.Workers, Parameters: p.Point.Parameters()})
		}
	}
	return list
}
