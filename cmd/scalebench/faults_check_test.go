//go:build slurm

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// findings are the problems of a settled trial.
type findings struct {
	points  int      // planned
	lost    []string // planned points without a result or cause, results that were not collected
	doubled []string // attempts that ran twice, points with several results
	wrong   []string // stored values that differ from what the ranks wrote
	other   []string
}

// check compares a settled trial's run folders, its database and the cluster with what was
// started on the nodes according to the trial's own ledgers.
func (tr *trial) check() findings {
	f := findings{other: tr.problems}
	plan, err := launcher.ReadPlan(tr.folder())
	if err != nil {
		f.lost = append(f.lost, "no plan: "+err.Error())
		return f
	}
	attempts := tr.attempts(&f)
	f.points = len(plan.Points)
	good := map[string][]string{}
	for _, a := range attempts {
		switch v := a.Verdict; {
		case v == nil:
			f.lost = append(f.lost, a.Record.ID+" has no verdict")
		case v.Status.Good():
			point := fmt.Sprintf("%s-r%d", a.Point.ID, a.Point.Repeat)
			good[point] = append(good[point], a.Record.ID)
			f.wholeEvents(a)
		case v.Detail == "" && (v.Status == metrics.Failed || v.Status == metrics.Incomplete || v.Status == metrics.Lost):
			f.other = append(f.other, fmt.Sprintf("%s is %s and no cause is stated", a.Record.ID, v.Status))
		}
	}
	for _, p := range plan.Points {
		point := fmt.Sprintf("%s-r%d", p.Point.ID, p.Point.Repeat)
		switch n := len(good[point]); {
		case n == 0:
			f.lost = append(f.lost, point+" has no good result")
		case n > 1:
			f.doubled = append(f.doubled, fmt.Sprintf("%s has %d good results: %v", point, n, good[point]))
		}
	}
	f.startedOnce(tr)
	f.submittedOnce(tr)
	f.collected(tr, attempts)
	for _, a := range attempts {
		if a.Verdict != nil && a.Verdict.Status.Good() {
			f.rightFigures(tr.run, a)
		}
	}
	if tr.class.lane != onThisHost {
		if left, err := tr.emptied(); err != nil {
			f.other = append(f.other, fmt.Sprintf("%v: %+v is left behind", err, left))
		}
	}
	f.leftBehind(tr)
	return f
}

// attempts returns the attempts in the trial's run folders.
func (tr *trial) attempts(f *findings) []*launcher.Attempt {
	list, err := launcher.Attempts(tr.folder())
	if err != nil && tr.class.lane != onThisHost { // on this machine, hostile files next to the attempts cause errors
		f.lost = append(f.lost, err.Error())
	}
	return list
}

// emptied waits until no job of the trial waits or runs; a controller that forgot jobs needs a
// while to end them. A COMPLETING job counts as ended: if the controller missed a node's
// message, the node may take minutes to repeat it.
func (tr *trial) emptied() (left []slurm.Job, err error) {
	err = tr.await("an empty queue", func() bool {
		queue, err := tr.queue()
		left = slices.DeleteFunc(queue, func(j slurm.Job) bool {
			return j.State.Terminal() || j.State == slurm.Completing
		})
		return err == nil && len(left) == 0
	})
	return left, err
}

// wholeEvents checks the event files of a good attempt: in its last incarnation, every rank
// started once and ended with a stop event with status done.
func (f *findings) wholeEvents(a *launcher.Attempt) {
	restarts, err := a.Run.Restarts()
	if err != nil || len(restarts) == 0 {
		f.other = append(f.other, fmt.Sprintf("%s is good, but was never claimed (%v)", a.Record.ID, err))
		return
	}
	for rank := range a.Point.Workers {
		path := a.Run.EventFile("rank", rank, restarts[len(restarts)-1])
		starts, done := 0, false
		in, err := os.Open(path)
		if err != nil {
			f.lost = append(f.lost, err.Error())
			continue
		}
		for r := metrics.NewReader(in, path, 0, 0); ; {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				f.lost = append(f.lost, err.Error())
				break
			}
			if e.Start != nil {
				starts++
			}
			done = e.Stop != nil && e.Stop.Status == metrics.StopDone
		}
		in.Close()
		if starts > 1 {
			f.doubled = append(f.doubled, fmt.Sprintf("%s holds %d starts", path, starts))
		}
		if !done {
			f.lost = append(f.lost, fmt.Sprintf("%s does not end with a stop event, and %s is good", path, a.Record.ID))
		}
	}
}

// startedOnce checks with the workers' ledger that each rank of each incarnation was started
// once, and that all incarnations of an attempt belonged to one job.
func (f *findings) startedOnce(tr *trial) {
	ranks, owner := map[string]bool{}, map[string]string{}
	for _, line := range tr.lines("started") {
		var run, restart, rank, job string
		if n, _ := fmt.Sscan(line, &run, &restart, &rank, &job); n != 4 {
			f.other = append(f.other, fmt.Sprintf("cannot read %q of the workers' ledger", line))
			continue
		}
		run = filepath.Base(run) // the runs folder may have several names
		if place := run + " " + restart + " " + rank; ranks[place] {
			f.doubled = append(f.doubled, "started twice: "+line)
		} else {
			ranks[place] = true
		}
		if owner[run] == "" {
			owner[run] = job
		} else if owner[run] != job {
			f.doubled = append(f.doubled, fmt.Sprintf("%s was run by jobs %s and %s", run, owner[run], job))
		}
	}
}

// leftBehind checks that no process of the trial's runs outlives them.
func (f *findings) leftBehind(tr *trial) {
	err := awaitFor(30*time.Second, "an end of the runs' processes", func() bool { return len(tr.processes("")) == 0 })
	for _, pid := range tr.processes("") {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		f.other = append(f.other, fmt.Sprintf("%v: process %d, %q, is left behind", err, pid, line))
	}
}

// submittedOnce checks that no attempt was submitted a second time while Slurm could still
// report the first job.
func (f *findings) submittedOnce(tr *trial) {
	jobs := map[string]string{}
	for _, line := range tr.lines("submitted") {
		id, script, _ := strings.Cut(line, " ")
		if first := jobs[script]; first != "" && !tr.class.blind {
			f.doubled = append(f.doubled, fmt.Sprintf("%s was submitted twice, as jobs %s and %s", script, first, id))
		}
		jobs[script] = id
	}
}

// collected checks that collecting twice stores each attempt once, with every step of the good
// ones.
func (f *findings) collected(tr *trial, attempts []*launcher.Attempt) {
	for range 2 {
		if out, code := tr.run("collect", tr.name); code != 0 {
			f.other = append(f.other, fmt.Sprintf("collect: exit code %d: %s", code, strings.TrimSpace(out)))
		}
	}
	out, code := tr.run("runs", "--study", tr.name, "--format", "json")
	var rows []struct {
		Run    string
		Status metrics.Status
		Steps  *int
	}
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&rows); err != nil || code != 0 {
		f.other = append(f.other, fmt.Sprintf("runs: exit code %d, %v: %s", code, err, out))
		return
	}
	stored := map[string]int{}
	for _, row := range rows {
		stored[row.Run]++
		if row.Status.Good() && (row.Steps == nil || *row.Steps != tr.steps) {
			f.lost = append(f.lost, fmt.Sprintf("%s: of its %d steps %v are stored", row.Run, tr.steps, row.Steps))
		}
	}
	for _, a := range attempts {
		switch stored[a.Record.ID] {
		case 0:
			f.lost = append(f.lost, a.Record.ID+" was not stored")
		case 1:
		default:
			f.doubled = append(f.doubled, a.Record.ID+" is stored twice")
		}
	}
	if len(stored) != len(attempts) {
		f.other = append(f.other, fmt.Sprintf("%d runs are stored, and there are %d attempts", len(stored), len(attempts)))
	}
}
