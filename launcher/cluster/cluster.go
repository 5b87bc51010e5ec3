package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
	"github.com/scalebench/scalebench/slurm"
)

// Check implements Examiner.
func (c Cluster) Check(ctx context.Context) ([]Finding, error) {
	d, err := c.Client.Describe(ctx)
	if d == nil {
		return nil, err
	}
	list := []Finding{{"scheduler", "", OK, fmt.Sprintf("Slurm %s, cluster %s", d.Version, d.Name), ""}}
	if err != nil { // some lines could not be parsed
		list = append(list, Finding{"scheduler", "", Warn, oneLine(err.Error()), "doctor does not test what these lines describe"})
	}
	if d.Enforce == "NO" {
		list = append(list, Finding{"scheduler", "", Warn, "EnforcePartLimits is NO: Slurm accepts jobs over a limit, and they wait forever", "see the \"limits\" rows"})
	}
	folder, err := c.folder()
	if err != nil {
		return list, err
	}
	var open []use
	away := false // a partition has too few usable nodes for the largest point
	for _, u := range c.uses(d) {
		found, usable := checkPartition(u, d, c.Site.Account)
		list = append(list, found...)
		if usable {
			away = away || found[0].Verdict == Warn
			open = append(open, u)
		} else {
			list = append(list, Finding{"probe job", u.subject(), NotTested, "no job can be submitted there", ""})
		}
	}
	list = append(list, c.gpuCheck(d, open)...)
	found, err := c.checkScripts(ctx, folder, away)
	if list = append(list, found...); err != nil {
		return list, err
	}
	if c.NoJob {
		c.remove(ctx, folder)
		return append(list, Finding{"probe job", "", NotTested, "--no-job was given", "leave out --no-job"}), nil
	}
	found, err = c.checkNodes(ctx, folder, open)
	list = append(list, found...)
	if err == nil && Count(found, Fail) == 0 && !slices.ContainsFunc(found, func(f Finding) bool { return f.Verdict == NotTested && f.Check == "probe job" }) {
		c.remove(ctx, folder) // after a failure the files stay for inspection
		return list, nil
	}
	c.Note("scripts and logs of the probe jobs: %s", folder)
	return list, err
}

// imports returns the Python modules that the plan's frameworks need in the site's interpreter. Frameworks with
// a separate interpreter are not tried.
func (c Cluster) imports() []string {
	if c.Plan == nil {
		return nil
	}
	var list []string
	for _, p := range c.Plan.Points {
		f, err := framework.Find(p.Point.Framework)
		if err != nil || c.Site.Interpreter(f.Name) != c.Site.Python {
			continue
		}
		for _, module := range f.Imports {
			if !slices.Contains(list, module) {
				list = append(list, module)
			}
		}
	}
	return list
}

// folder creates the folder for this command's jobs. Its name begins with the time, so that the newest is easy
// to find.
func (c Cluster) folder() (string, error) {
	parent := rundir.ProbeFolder(c.Runs)
	if err := trust.Check(c.Runs, parent); err != nil { // jobs run scripts from there
		return "", err
	}
	if err := os.MkdirAll(parent, sharedfs.ModeFolder); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, time.Now().Format("20060102-150405-"))
}

// remove deletes the folder. A job that has answered may still be writing its log and exit record, and NFS
// keeps files that are open elsewhere. What cannot be deleted within removeWait stays, with a note: the answers
// are complete.
func (c Cluster) remove(ctx context.Context, folder string) {
	deadline := time.Now().Add(removeWait)
	for {
		err := os.RemoveAll(folder)
		if err == nil {
			return
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			c.Note("cannot delete %s; delete it by hand: %v", folder, err)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// removeWait limits the wait for an ended job's last writes.
const removeWait = 10 * time.Second

// checkScripts asks sbatch whether it would accept the scripts of the study's smallest and largest point. away says that
// nodes are away: sbatch --test-only then refuses jobs that sbatch accepts and lets wait.
func (c Cluster) checkScripts(ctx context.Context, folder string, away bool) ([]Finding, error) {
	if c.Plan == nil {
		return []Finding{{"sbatch --test-only", "", NotTested, "no study was named", "scalebench doctor STUDY asks about its smallest and largest point"}}, nil
	}
	bySize := func(a, b study.Planned) int { return a.Point.Workers - b.Point.Workers }
	points := []study.Planned{slices.MinFunc(c.Plan.Points, bySize)}
	if largest := slices.MaxFunc(c.Plan.Points, bySize); largest.Point.ID != points[0].Point.ID {
		points = append(points, largest)
	}
	var list []Finding
	for _, p := range points {
		var text bytes.Buffer
		s, err := c.Script(p)
		if err == nil {
			err = c.Render(&text, s)
		}
		if err != nil {
			list = append(list, Finding{"sbatch --test-only", p.Point.ID, Fail, oneLine(err.Error()), "correct the site file"})
			continue
		}
		path := rundir.Probe(folder).Draft(p.Point.ID)
		if err := rundir.WriteFile(path, text.Bytes(), 0o700); err != nil {
			return list, err
		}
		said, err := c.Client.TestOnly(ctx, path)
		var refused *slurm.RefusedError
		switch {
		case errors.As(err, &refused) && away && strings.Contains(refused.Message, "Requested node configuration is not available"):
			list = append(list, Finding{"sbatch --test-only", p.Point.ID, Warn, oneLine(refused.Message), "nodes are away (see the \"partition\" rows); sbatch itself accepts the job, which then waits for them"})
		case errors.As(err, &refused):
			list = append(list, Finding{"sbatch --test-only", p.Point.ID, Fail, oneLine(refused.Message), "Slurm refuses this point: correct the site file or the study's resources"})
		case err != nil:
			return list, err
		default:
			list = append(list, Finding{"sbatch --test-only", p.Point.ID, OK, oneLine(said), ""})
		}
	}
	return list, nil
}

// checkNodes sends a probe job to each partition and judges the answers.
func (c Cluster) checkNodes(ctx context.Context, folder string, open []use) ([]Finding, error) {
	var jobs []*job
	var list []Finding
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer func() { c.cancel(ctx, jobs) }()
	for i, u := range open {
		j, err := c.submit(ctx, rundir.Probe(filepath.Join(folder, strconv.Itoa(i))), u)
		var refused *slurm.RefusedError
		switch {
		case errors.As(err, &refused):
			list = append(list, Finding{"probe job", u.subject(), Fail, oneLine(refused.Message), "Slurm refuses the job: correct account, QOS and options in the site file; " + refused.Script})
		case err != nil:
			if j != nil && j.id != "" { // the job is running
				jobs = append(jobs, j)
			}
			return list, err
		default:
			c.Note("probe job %s in %s: %s, %s on each", j.id, u.subject(), number.Count(j.script.Nodes, "node"), number.Count(j.script.TasksPerNode, "task"))
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return list, nil
	}
	q := &queue{c.Client, jobs}
	limited, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(func() { j.watch(limited) })
	}
	ended := make(chan struct{})
	go func() { all.Wait(); cancel(); close(ended) }()
	err := q.poll(limited)
	cancel()
	<-ended
	if ctx.Err() != nil {
		return list, ctx.Err()
	}
	for _, j := range jobs {
		list = append(list, j.judge(c.Wait)...)
	}
	return list, err
}

// cancel cancels the jobs that have not ended, even after an interrupt: nothing needs their answers anymore.
func (c Cluster) cancel(ctx context.Context, jobs []*job) {
	var ids []string
	for _, j := range jobs {
		if !j.over() {
			ids = append(ids, j.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	if err := c.Client.Cancel(limited, ids...); err != nil {
		c.Note("the probe jobs could not be cancelled: %v", err)
	}
}

// exists reports whether a file exists. A network file system may show it late.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
