package launcher

import (
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Planned are the points of a plan as curves want them: its repeats are one point.
func Planned(plan *study.Plan) []scaling.Planned {
	seen := map[string]bool{}
	var list []scaling.Planned
	for _, p := range plan.Points {
		if !seen[p.Point.ID] {
			seen[p.Point.ID] = true
			list = append(list, scaling.Planned{Point: p.Point.ID, Framework: p.Point.Framework, Workers: p.Point.Workers, Parameters: p.Point.Parameters()})
		}
	}
	return list
}
