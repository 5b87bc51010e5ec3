package workspace

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Doctor checks this host and the cluster that it belongs to, for `scalebench doctor`.
type Doctor struct {
	work     *Work
	database string // folder of the database
}

// Doctor returns a Doctor that checks for the study arg, or without a study if it is "". site
// names the site file; it may be "".
func (w *Workspace) Doctor(ctx context.Context, arg, site string) (*Doctor, error) {
	d := &Doctor{work: &Work{w: w, Site: study.DefaultSite()}}
	var err error
	switch {
	case arg != "":
		d.work, err = w.Load(ctx, Request{Study: arg, Site: site})
	case site != "":
		if d.work.Site, err = study.LoadSite(site); err != nil {
			err = &Error{Err: err}
		}
	}
	if err != nil {
		return nil, err
	}
	if arg == "" {
		runs, err := w.RunsHere()
		if err != nil {
			return nil, err
		}
		if w.Runs == "" && os.Getenv("SCALEBENCH_RUNS") == "" && d.work.Site.Runs != "" {
			runs = d.work.Site.Runs
		}
		d.work.Folder = rundir.OpenStudy(runs, "probe")
	}
	file, err := w.Database()
	if err != nil {
		return nil, err
	}
	file, err = filepath.Abs(file)
	d.database = filepath.Dir(file)
	return d, err
}

// HasSite reports whether there is a site file, which describes a cluster.
func (d *Doctor) HasSite() bool { return d.work.Site.File != "" }

// CheckHost checks this host and returns one Finding for each check.
func (d *Doctor) CheckHost(ctx context.Context) []cluster.Finding {
	host := cluster.Host{Site: d.work.Site, Version: d.work.w.Version, Runs: place(d.work.Folder.Runs()), Database: place(d.database)}
	if d.work.Plan != nil {
		for _, p := range d.work.Plan.Points {
			host.Frameworks = append(host.Frameworks, p.Point.Framework)
		}
	}
	return host.Check(ctx)
}

func place(dir string) cluster.Place {
	shared, err := store.Shared(dir)
	return cluster.Place{Dir: dir, Shared: shared, Err: err}
}

// CheckCluster checks the cluster and returns one Finding for each check. It submits test jobs,
// and cancels those that have not ended after the time wait. With noJob it submits none and
// only queries the scheduler.
func (d *Doctor) CheckCluster(ctx context.Context, wait time.Duration, noJob bool) ([]cluster.Finding, error) {
	creator := launcher.Creator{Folder: d.work.Folder, Version: d.work.w.Version, Site: d.work.Site, Worker: d.work.Site.Worker}
	if creator.Worker == "" {
		creator.Worker = "scalebench-worker"
		if self, err := os.Executable(); err == nil {
			creator.Worker = filepath.Join(filepath.Dir(self), creator.Worker)
		}
	}
	// Ignore a missing worker: CheckHost has reported it, and the nodes may have one.
	var err error
	if creator.Worker, err = filepath.Abs(creator.Worker); err != nil {
		return nil, err
	}
	backend, err := launcher.Scheduler(launcher.Options{Creator: creator})
	if err != nil {
		return nil, &Error{Err: err}
	}
	examiner, ok := backend.(cluster.Examiner)
	if !ok {
		return []cluster.Finding{{Check: "scheduler", Subject: backend.Name(), Verdict: cluster.NotTested, Found: "doctor has no checks for this backend"}}, nil
	}
	return examiner.Examine(ctx, cluster.Examination{Plan: d.work.Plan, Runs: d.work.Folder.Runs(), Wait: wait, NoJob: noJob, Note: d.work.w.Note})
}
