// Package cluster examines a cluster. It writes a site file from what Slurm reports (sitefile.go), finds points
// of a plan that must fail as seen from this host (precheck.go), and tests the cluster before a study:
// partitions and limits, whether sbatch accepts the study's scripts, and, with one short job per partition,
// what a training would find on the compute nodes. Every check gives a Finding with the result and advice. A
// check that could not be made says why, and is never "ok".
package cluster

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/slurm"
)

// A Verdict is the outcome of a check.
type Verdict string

const (
	OK        Verdict = "ok"
	Warn      Verdict = "warn"
	Fail      Verdict = "fail"
	NotTested Verdict = "not tested"
)

// A Finding is the result of one check.
type Finding struct {
	Check   string // what was checked, "clock"
	Subject string // partition, node or file; "" for the whole cluster
	Verdict Verdict
	Found   string
	Advice  string // what to do; "" if nothing
}

// Count returns the number of findings with a verdict.
func Count(list []Finding, r Verdict) int {
	n := 0
	for _, f := range list {
		if f.Verdict == r {
			n++
		}
	}
	return n
}

// Folded returns the findings for a reader: those that are not ok, the worst first, then one for all that are ok
// on this host, in Slurm and on the compute nodes.
func Folded(list []Finding) []Finding {
	var folded []Finding
	for _, v := range []Verdict{Fail, Warn, NotTested} {
		folded = append(folded, slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return f.Verdict != v })...)
	}
	groups := []string{"this host", "Slurm", "compute nodes"}
	checks, group := map[string][]string{}, groups[0]
	for _, f := range list {
		switch f.Check { // the first checks of a group
		case "scheduler", "partition":
			group = groups[1]
		case "probe job":
			group = groups[2]
		}
		if f.Verdict == OK {
			checks[group] = append(checks[group], f.Check)
		}
	}
	for _, g := range groups {
		if n := len(checks[g]); n > 0 {
			folded = append(folded, Finding{Check: g, Verdict: OK, Found: number.Count(n, "check") + ": " + strings.Join(distinct(checks[g]), ", ")})
		}
	}
	return folded
}

// distinct returns the words without repetitions, in their order.
func distinct(words []string) (list []string) {
	for _, w := range words {
		if !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// Advice returns one line per kind of advice, prefixed with its subjects: "GPU n1: …".
func Advice(list []Finding) []string {
	type kind struct{ check, advice string }
	subjects := map[kind][]string{}
	var kinds []kind
	for _, f := range list {
		k := kind{f.Check, f.Advice}
		if f.Advice == "" {
			continue
		}
		if subjects[k] == nil {
			kinds = append(kinds, k)
		}
		subjects[k] = append(subjects[k], f.Subject)
	}
	var lines []string
	for _, k := range kinds {
		about := strings.TrimSpace(k.check + " " + strings.Join(subjects[k], ", "))
		lines = append(lines, about+": "+k.advice)
	}
	return lines
}

// An Examiner is a backend that doctor can test.
type Examiner interface {
	// Examine reports what works. It returns an error if the scheduler cannot be reached or a folder cannot be
	// written, together with the findings so far.
	Examine(context.Context, Examination) ([]Finding, error)
}

// An Examination configures what doctor tests.
type Examination struct {
	Plan  *study.Plan   // of the study; nil without one
	Runs  string        // runs folder, absolute
	Wait  time.Duration // timeout of the jobs, from submission to the end
	NoJob bool          // submit nothing
	Note  func(format string, a ...any)
}

// A Cluster is a Slurm cluster to be examined.
type Cluster struct {
	Client *slurm.Client
	Site   *study.Site
	Script func(study.Planned) (slurm.Script, error) // of a run
	Render func(io.Writer, slurm.Script) error       // writes a script with the site's template
	Examination
}

// A use is a partition to test and the job to test it with.
type use struct {
	partition study.Partition
	shape     study.Planned // shape of the job: the largest point's, on few nodes
	known     *slurm.Partition
}

// subject returns the partition's name for display.
func (u use) subject() string {
	if u.partition.Name != "" {
		return u.partition.Name
	}
	if u.known != nil {
		return u.known.Name
	}
	return "default partition"
}

// uses returns the partitions that the plan's points go to; without a plan the site's, and without those the
// cluster's default.
func (c Cluster) uses(d *slurm.Description) []use {
	var list []use
	add := func(p study.Partition, shape study.Planned) {
		list = append(list, use{p, shape, d.Partition(p.Name)})
	}
	site := c.Site
	if c.Plan == nil {
		for i, p := range site.Partitions {
			same := func(q study.Partition) bool { return q.Name == p.Name }
			if !slices.ContainsFunc(site.Partitions[:i], same) { // a partition may be listed several times, for points of different sizes
				add(p, sample(p, d))
			}
		}
		if len(site.Partitions) == 0 {
			add(study.Partition{}, sample(study.Partition{}, d))
		}
		return list
	}
	largest := map[string]study.Planned{}
	var names []string
	for _, p := range c.Plan.Points {
		before, seen := largest[p.Partition]
		if !seen {
			names = append(names, p.Partition)
		}
		if !seen || p.Point.Workers > before.Point.Workers {
			largest[p.Partition] = p
		}
	}
	for _, name := range names {
		p := study.Partition{Name: name}
		if i := slices.IndexFunc(site.Partitions, func(q study.Partition) bool { return q.Name == name }); i >= 0 {
			p = site.Partitions[i]
		}
		add(p, largest[name])
	}
	return list
}

// sample returns a point to test a partition without a study: two nodes if the partition has them, with two
// tasks each if the nodes have the CPUs.
func sample(p study.Partition, d *slurm.Description) study.Planned {
	point := study.Point{ID: "probe", Framework: "native", Repeat: 1, Nodes: 2, WorkersPerNode: 2,
		Resources: study.Resources{Device: "cpu", CPUsPerWorker: 1}}
	if p.MaxNodes > 0 {
		point.Nodes = min(point.Nodes, p.MaxNodes)
	}
	if known := d.Partition(p.Name); known != nil {
		point.Nodes = max(1, min(point.Nodes, len(known.Nodes)))
		if known.MaxNodes != nil {
			point.Nodes = max(1, min(point.Nodes, *known.MaxNodes))
		}
	}
	if p.CPUsPerNode > 0 {
		point.WorkersPerNode = min(point.WorkersPerNode, p.CPUsPerNode)
	}
	if p.GPUsPerNode > 0 {
		point.Resources.Device = "gpu"
		point.WorkersPerNode = min(point.WorkersPerNode, p.GPUsPerNode)
	}
	point.Workers = point.Nodes * point.WorkersPerNode
	return study.Planned{Point: point, Partition: p.Name}
}

// oneLine joins the lines of a program's output.
func oneLine(s string) string {
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "; ")
}
