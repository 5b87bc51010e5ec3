package launcher

import (
	"os"
	"slices"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// Extend returns the plan that a study keeps after a command with keys from the command line: the file's
// points, and as Added the runs that this or an earlier command adds to them. onAxes reports whether the keys
// chose values that the file sweeps; other runs do not belong to the study. It returns nil if the study has no
// other definition yet and none of the command's points is in the file, so that the command defines the study.
func Extend(folder rundir.Study, file, given *study.Plan, onAxes bool) *study.Plan {
	points, runs := map[string]bool{}, map[study.Run]bool{}
	for _, p := range file.Points {
		points[p.Point.ID], runs[p.Point.Run()] = true, true
	}
	before, err := ReadPlan(folder)
	defined := err == nil && before.Overridden == file.Overridden
	inFile := func(p study.Planned) bool { return points[p.Point.ID] }
	if !defined && !slices.ContainsFunc(given.Points, inFile) {
		return nil
	}
	plan := *file
	plan.Points = slices.Clone(file.Points)
	add := func(p study.Planned) {
		if at := p.Point.Run(); !runs[at] {
			runs[at], p.Added = true, true
			plan.Points = append(plan.Points, p)
		}
	}
	for _, p := range given.Points {
		if onAxes || inFile(p) {
			add(p)
		}
	}
	if !defined {
		return &plan
	}
	for _, p := range before.Points {
		if _, err := os.Stat(folder.Run(p.Point.ID, p.Point.Repeat, 1).Path()); p.Added && err == nil {
			add(p)
		}
	}
	return &plan
}

// Added returns the runs that keys from the command line added to a study, without those
// that were given secrets, which a plan does not have.
func Added(folder rundir.Study) []study.Planned {
	plan, err := ReadPlan(folder)
	if err != nil {
		return nil
	}
	var list []study.Planned
	for _, p := range plan.Points {
		run := folder.Run(p.Point.ID, p.Point.Repeat, 1)
		_, command := os.Stat(run.Command())
		_, own := os.Stat(run.Parameters())
		if p.Added && command != nil && own != nil {
			p.Command, p.Own = p.Point.Command, p.Point.Own
			list = append(list, p)
		}
	}
	return list
}

// Others counts the points of a plan that are not in another.
func Others(in, plan *study.Plan) int {
	points := map[string]bool{}
	for _, p := range plan.Points {
		points[p.Point.ID] = true
	}
	for _, p := range in.Points {
		delete(points, p.Point.ID)
	}
	return len(points)
}
