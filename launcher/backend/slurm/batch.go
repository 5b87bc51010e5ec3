package slurm

import (
	"cmp"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// warning is the time before its limit at which a job gets SIGUSR1, so that it can end properly and keep its
// results.
const warning = 90 * time.Second

// shortJob is the time limit below which a job gets no warning: Slurm may send it up to a minute early, and
// SIGTERM at the limit leaves enough time to end.
const shortJob = 5 * time.Minute

// Script returns the batch script of an attempt.
func (b *Backend) Script(p study.Planned, a *launcher.Attempt) (slurm.Script, error) {
	f, err := framework.Find(p.Point.Framework)
	if err != nil {
		return slurm.Script{}, err
	}
	site, r := b.SiteOf(p.Point), p.Point.Resources
	q := partition(site, p.Partition)
	nodes, ranks := p.Point.Shape()
	s := slurm.Script{
		JobName: a.Record.JobName, StepName: a.Run.Name(), Partition: p.Partition, Account: cmp.Or(q.Account, site.Account), QOS: cmp.Or(q.QOS, site.QOS),
		Nodes: nodes, TasksPerNode: ranks, CPUsPerTask: r.CPUsPerWorker,
		MemoryPerNodeMB: megabytes(r.Memory) * ranks,
		Time:            time.Duration(r.Time), Exclusive: p.Exclusive, Requeue: a.Record.Requeue,
		CPUBind: cmp.Or(r.CPUBind, site.CPUBind), Output: a.Run.JobLog(), Options: over(site.Options, q.Options),
		Modules: site.Modules, Setup: site.Setup, Environment: site.Environment,
		Container: slurm.Container{Runtime: site.Container.Runtime, Image: site.Container.Image,
			Mounts: site.Container.Mounts, Workdir: site.Container.Workdir},
		RunDir: a.Run.Path(), Worker: b.Worker, Shared: b.Shared, Interface: site.Interface,
		Command: append([]string{b.Worker}, launcher.Supervise(a.Run, a.Record)...),
	}
	if len(a.Record.Exclude) > 0 { // added to the nodes that the site file excludes
		nodes := strings.Join(a.Record.Exclude, ",")
		if more := s.Options["exclude"]; more != "" {
			nodes = more + "," + nodes
		}
		s.Options["exclude"] = nodes
	}
	if s.Time >= shortJob {
		s.SignalBefore = warning
	}
	if s.CPUBind == "" { // Slurm takes one of the two
		s.Hint = site.Hint
	}
	if r.Device == "gpu" {
		s.GPUsPerNode, s.GPUType = p.Point.WorkersPerNode, q.GPUType
	}
	if !f.Once(p.Point) { // with Once, WholeJob sets it for the program, which may be srun
		s.MPI = r.MPI
	}
	if f.OncePerNode(p.Point) {
		s.TasksPerNode, s.CPUsPerTask = 1, r.CPUsPerWorker*p.Point.WorkersPerNode
	}
	if launcher.Stages(site.Stage, p.Point, f) {
		return s, b.stage(&s, site.Stage, cmp.Or(a.Record.JobName, a.Record.ID))
	}
	return s, nil
}

// Render writes the batch script of an attempt.
func (b *Backend) Render(w io.Writer, p study.Planned, a *launcher.Attempt) error {
	s, err := b.Script(p, a)
	if err != nil {
		return err
	}
	return b.render(w, s)
}

func (b *Backend) render(w io.Writer, s slurm.Script) error {
	if b.Template != "" {
		return s.RenderWith(w, b.Site.Template, b.Template)
	}
	return s.Render(w)
}

// Draft returns what an attempt would be, to render a script without running it.
func (b *Backend) Draft(p study.Planned) *launcher.Attempt {
	run := b.Folder.Run(p.Point.ID, p.Point.Repeat, 1)
	return &launcher.Attempt{Run: run, Number: 1, Point: p.Point, Record: launcher.Record{ID: run.ID(), JobName: run.ID() + "-draft", Partition: p.Partition, Exclusive: p.Exclusive, Requeue: b.requeue, Python: b.SiteOf(p.Point).Interpreter(p.Point.Framework), Commit: b.Commit}}
}

func partition(site *study.Site, name string) study.Partition {
	for _, p := range site.Partitions {
		if p.Name == name {
			return p
		}
	}
	return study.Partition{Name: name}
}

// megabytes rounds up: a job that asks for less than it needs is killed.
func megabytes(b study.Bytes) int { return int((b + 1<<20 - 1) >> 20) }

// over returns base with the entries of top replacing its own.
func over(base, top map[string]string) map[string]string {
	m := map[string]string{}
	maps.Copy(m, base)
	maps.Copy(m, top)
	return m
}
