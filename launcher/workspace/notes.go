package workspace

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
)

// Notes describes the size of a plan, what is left of it, and its maximum cost. points is the number of rows of
// its table.
func (k *Work) Notes(in Inventory, points int) ([]string, error) {
	most, err := atMost(in.Make, k.Site)
	if err != nil {
		return nil, err
	}
	runs := number.Count(len(k.Plan.Points), "run")
	notes := []string{fmt.Sprintf("study %s: %s, %s", k.Study.Name, number.Count(points, "point"), runs)}
	switch left := len(in.Make.Points); left {
	case len(k.Plan.Points):
		notes[0] += ", " + most
	case 0:
		notes = append(notes, "0 of "+runs+" to make")
	default:
		notes = append(notes, fmt.Sprintf("%d of %s to make: %s", left, runs, most))
	}
	if k.Plan.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%s left out: their degrees do not fit their workers", number.Count(k.Plan.LeftOut, "combination")))
	}
	if !k.typed {
		notes = append(notes, k.Overridden()...)
	}
	lengths, _ := k.Study.Lengths(k.Plan)
	notes = append(append(notes, lengths...), in.Summary(points))
	notes = append(notes, in.Outdated...)
	if _, err := exec.LookPath("sbatch"); err != nil {
		if unused := local.Unused(k.Study); len(unused) > 0 {
			notes = append(notes, "this host has no Slurm, and `run` does not use "+strings.Join(unused, ", "))
		}
	}
	return notes, nil
}

// Overridden lists the keys that differ from the study's file.
func (k *Work) Overridden() (lines []string) {
	for _, o := range k.Study.Overrides {
		lines = append(lines, "set on the command line: "+o.String())
	}
	return lines
}

// Doubts returns the warnings on the study, its plan and its site.
func (k *Work) Doubts() study.Problems {
	_, short := k.Study.Lengths(k.Plan)
	return slices.Concat(k.Study.Doubts(k.Plan), k.Study.Timeless(k.Plan), k.Study.Tails(k.Plan), short, k.Site.Doubts())
}

// atMost describes the maximum time and cost of a plan's runs.
func atMost(plan *study.Plan, site *study.Site) (string, error) {
	totals, err := pricing.Planned(plan, site)
	if err != nil {
		return "", &Error{Err: err}
	}
	var hours float64
	for _, p := range plan.Points {
		hours += p.NodeHours()
	}
	most := "at most " + number.Significant(hours) + " node-hours"
	if len(totals) > 0 {
		most += ", " + strings.Join(totals, "; ")
	}
	return most, nil
}
