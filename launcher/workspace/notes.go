package workspace

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
)

// Notes returns sentences about a plan: how many points and runs it has, how many runs are left,
// and what they may cost at most. points is the number of rows in the table of the plan.
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
	notes = append(notes, k.Range()...)
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

// Range returns notes about a study with a range of workers (1..64): which worker counts are
// measured, and which are left out and why. It returns nil if the study lists its worker counts.
func (k *Work) Range() (notes []string) {
	text, between := k.Study.Range()
	if text == "" {
		return nil
	}
	var first, later []string
	for _, p := range k.Plan.Points {
		list := &first
		if p.Between {
			list = &later
		}
		if n := strconv.Itoa(p.Point.Workers); !slices.Contains(*list, n) {
			*list = append(*list, n)
		}
	}
	line := fmt.Sprintf("workers %s: %s", text, strings.Join(first, ", "))
	switch {
	case len(later) > 0:
		line += fmt.Sprintf("; then, among %s, those next to the answer that may be better", strings.Join(later, ", "))
	case between == nil:
		line += "; --until-decided also measures counts next to the answer"
	}
	notes = append(notes, line)
	for _, u := range k.Plan.Unfit {
		notes = append(notes, fmt.Sprintf("left out of %s: %d: %s", text, u.Workers, u.Why))
	}
	return notes
}

// dropUnfit removes from a range of workers the worker counts that cannot run here, if at least
// one other worker count can.
func (k *Work) dropUnfit(fits func(study.Point) error) {
	if text, _ := k.Study.Range(); text == "" {
		return
	}
	why := map[int]error{}
	for _, p := range k.Plan.Points {
		if err := fits(p.Point); err != nil && why[p.Point.Workers] == nil {
			why[p.Point.Workers] = err
		}
	}
	drop := func(p study.Planned) bool { return why[p.Point.Workers] != nil }
	if !slices.ContainsFunc(k.Plan.Points, func(p study.Planned) bool { return !drop(p) }) {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(why)) {
		k.Plan.Unfit = append(k.Plan.Unfit, study.Unfit{Workers: n, Why: why[n].Error()})
	}
	k.Plan.Points = slices.DeleteFunc(k.Plan.Points, drop)
	if k.filePlan != nil {
		k.filePlan.Points = slices.DeleteFunc(k.filePlan.Points, drop)
	}
}

// Overridden returns one line for each key that a KEY=VALUE argument sets.
func (k *Work) Overridden() (lines []string) {
	for _, o := range k.Study.Overrides {
		lines = append(lines, "set on the command line: "+o.String())
	}
	return lines
}

// Warnings returns the warnings about the study, its plan and its site.
func (k *Work) Warnings() study.Problems {
	_, short := k.Study.Lengths(k.Plan)
	return slices.Concat(k.Study.SecretWarnings(k.Plan), k.Study.Timeless(k.Plan), k.Study.Tails(k.Plan), short, k.Site.SecretWarnings())
}

// atMost returns a text with the maximum time and cost of a plan's runs.
func atMost(plan *study.Plan, site *study.Site) (string, error) {
	totals, err := plannedCosts(plan, site)
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
