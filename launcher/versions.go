package launcher

import (
	"cmp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A Change is a user's file that has changed since a result was measured, with both SHA-256 digests in
// hexadecimal.
type Change struct{ File, Was, Is string }

// An Outdated is a good result that was measured with other versions of the user's files than the current ones.
type Outdated struct {
	study.Run
	Folder  rundir.Folder // of the run; "" where only the store has it
	Changes []Change
}

// Versions finds the results that are outdated. A file that several points work
// with is read once.
type Versions struct {
	// Stored are the own files of a good result in the store, by name: the first
	// digits of each.
	Stored func(study.Run) map[string]string

	digests map[string]string // path to digest
}

// Outdated returns the outdated results among the plan's good results; of a run's results the latest counts.
func (v *Versions) Outdated(plan *study.Plan, attempts []*Attempt) []Outdated {
	good := map[study.Run]*Attempt{}
	for _, a := range attempts {
		k := a.Point.Run()
		if a.Unreadable == nil && a.Verdict != nil && a.Verdict.Status.Good() && (good[k] == nil || good[k].Number < a.Number) {
			good[k] = a
		}
	}
	var list []Outdated
	for _, p := range plan.Points {
		is := v.now(p)
		if len(is) == 0 {
			continue // the framework runs no files of the user
		}
		o := Outdated{Run: p.Point.Run()}
		was := map[string]string(nil)
		if a := good[o.Run]; a != nil {
			o.Folder, was = a.Run, filesOf(a)
		} else if v.Stored != nil {
			was = v.Stored(o.Run)
		}
		for file, sum := range is {
			if before := was[file]; before != "" && !strings.HasPrefix(sum, before) {
				o.Changes = append(o.Changes, Change{file, before, sum})
			}
		}
		if len(o.Changes) > 0 {
			slices.SortFunc(o.Changes, func(a, b Change) int { return cmp.Compare(a.File, b.File) })
			list = append(list, o)
		}
	}
	return list
}

// now returns the current digests of the files that a run would use.
func (v *Versions) now(p study.Planned) map[string]string {
	f, err := framework.Find(p.Point.Framework)
	if err != nil {
		return nil
	}
	point := p.Point
	point.Command, point.Own = p.Command, p.Own
	sums := map[string]string{}
	add := func(name, path string) {
		if v.digests == nil {
			v.digests = map[string]string{}
		}
		sum, known := v.digests[path]
		if !known {
			sum = framework.Digest(path)
			v.digests[path] = sum
		}
		if sum != "" {
			sums[name] = sum
		}
	}
	for name, path := range p.Files {
		add(name, path)
	}
	for name, path := range framework.NamedFiles(f, framework.Rank{Point: point}) {
		add(name, path)
	}
	return sums
}

// filesOf returns the digests of the files that an attempt used, as its supervisor recorded them at the start.
func filesOf(a *Attempt) map[string]string {
	files, err := a.Run.EventFiles()
	if err != nil {
		return a.Record.Own
	}
	latest := metrics.EventFile{Restart: -1}
	for _, f := range files {
		if f.Writer == "supervisor" && f.Rank == 0 && f.Restart > latest.Restart {
			latest = f
		}
	}
	if latest.Path == "" {
		return a.Record.Own
	}
	file, err := sharedfs.OpenIn(latest.Folder, latest.Path)
	if err != nil {
		return a.Record.Own
	}
	defer file.Close()
	events := metrics.NewReader(file, latest.Path, 0, 0)
	for range 8 { // the environment is the second event
		e, err := events.Next()
		if err != nil {
			break
		}
		if e.Environment != nil {
			return e.Environment.Files
		}
	}
	return a.Record.Own
}
