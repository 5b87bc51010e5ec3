package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

type doctorOptions struct {
	study, site string
	timeout     time.Duration
	noJob       bool
}

func doctorCommand(s *session) *cli.Command {
	var o doctorOptions
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check this machine and a cluster before measuring on them",
		ArgsUsage: "[STUDY]",
		Description: "It checks this host. With Slurm it also checks the partitions of the site file, asks\n" +
			"whether Slurm would accept the smallest and the largest point of STUDY, and submits\n" +
			"one short job to each partition in use. The job checks the run folder, clocks, the\n" +
			"network between two nodes, CPU sets, GPUs, the worker binary and the interpreter.\n" +
			"Exit code 3 means that a check failed.",
		Flags: []cli.Flag{
			siteFlag(&o.site),
			&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute, Destination: &o.timeout, Usage: "cancel the jobs if they have not ended after `TIME`"},
			&cli.BoolFlag{Name: "no-job", DisableDefaultText: true, Destination: &o.noJob, Usage: "submit no job; only ask Slurm"},
		},
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runDoctor(c.Context, s, o)
		},
	}
}

func runDoctor(ctx context.Context, s *session, o doctorOptions) error {
	if o.timeout <= 0 {
		return usagef("--timeout %v is too short; give 1s or more", o.timeout)
	}
	w, err := s.doctored(ctx, o)
	if err != nil {
		return err
	}
	s.hold()
	runs := w.Folder.Runs()
	db, err := s.database() // that commands use, whatever named it
	if err != nil {
		return err
	}
	if db, err = filepath.Abs(db); err != nil {
		return err
	}
	host := cluster.Host{Site: w.Site, Version: version.String(), Runs: place(runs), Database: place(filepath.Dir(db))}
	if w.Plan != nil {
		for _, p := range w.Plan.Points {
			host.Frameworks = append(host.Frameworks, p.Point.Framework)
		}
	}
	findings := host.Check(ctx)
	more, err := s.tryCluster(ctx, w, runs, o)
	findings = append(findings, more...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var gone launcher.Unreachable
	if errors.As(err, &gone) {
		f := cluster.Finding{Check: "scheduler", Verdict: cluster.Fail, Found: lastLine(gone.Error()), Advice: "run this on a login node of the cluster, while Slurm answers"}
		if w.Site.File == "" {
			// Nobody said that there is to be a cluster.
			f.Verdict, f.Advice = cluster.NotTested, "on a login node of a cluster, give the site file: --site FILE (scalebench site init writes one)"
			err = nil
		} else {
			err = &schedulerError{err: err, hint: "Nothing is left behind; repeat the command later."}
			if gone.Queued() {
				err = &schedulerError{err: gone, hint: "A probe job (scalebench-doctor-…) may be in the queue anyway. It ends by itself within minutes of starting; `squeue --me` shows it."}
			}
		}
		findings = append(findings, f)
	}
	t := &table.Table{Columns: []table.Column{{Key: "check"}, {Key: "subject"}, {Key: "result"}, {Key: "found"}, {Key: "advice", Data: true}}}
	for _, f := range findings {
		t.Add(f.Check, absent(f.Subject), string(f.Verdict), f.Found, absent(f.Advice))
	}
	t.Notes = cluster.Advice(findings) // a column of it would be wider than any terminal
	failed := cluster.Count(findings, cluster.Fail)
	if failed == 0 && err == nil {
		t.Notes = append(t.Notes, fmt.Sprintf("%s, none failed; %d with a warning, %d not tested", number.Count(len(findings), "check"),
			cluster.Count(findings, cluster.Warn), cluster.Count(findings, cluster.NotTested)))
	}
	if err := errors.Join(err, s.print(t)); err != nil {
		return err
	}
	if failed > 0 {
		return &checksFailedError{failed, len(findings)}
	}
	return nil
}

// lastLine is what a command said in the end; before it stands what it tried.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// absent is a text that is not there, for a table.
func absent(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// doctored is the study, if one is named, and the site.
func (s *session) doctored(ctx context.Context, o doctorOptions) (*workspace.Work, error) {
	if o.study != "" {
		return s.workspace().Load(ctx, workspace.Request{Study: o.study, Site: o.site})
	}
	w := &workspace.Work{Site: study.DefaultSite()}
	var err error
	if o.site != "" {
		if w.Site, err = study.LoadSite(o.site); err != nil {
			return nil, &usageError{err: err}
		}
	}
	runs, err := s.runsHere()
	if s.runs == "" && os.Getenv("SCALEBENCH_RUNS") == "" && w.Site.Runs != "" {
		runs = w.Site.Runs
	}
	w.Folder = rundir.OpenStudy(runs, "probe")
	return w, err
}

// tryCluster tries out the cluster that this host speaks to.
func (s *session) tryCluster(ctx context.Context, w *workspace.Work, runs string, o doctorOptions) ([]cluster.Finding, error) {
	creator := launcher.Creator{Folder: w.Folder, Version: version.String(), Site: w.Site, Worker: w.Site.Worker}
	if creator.Worker == "" {
		creator.Worker = "scalebench-worker"
		if self, err := os.Executable(); err == nil {
			creator.Worker = filepath.Join(filepath.Dir(self), creator.Worker)
		}
	}
	// One that is missing here was said already; whether the nodes have it is
	// theirs to say.
	var err error
	if creator.Worker, err = filepath.Abs(creator.Worker); err != nil {
		return nil, err
	}
	backend, err := launcher.Scheduler(launcher.Options{Creator: creator})
	if err != nil {
		return nil, &usageError{err: err}
	}
	examiner, ok := backend.(cluster.Examiner)
	if !ok {
		return []cluster.Finding{{Check: "scheduler", Subject: backend.Name(), Verdict: cluster.NotTested, Found: "doctor has no checks for this backend"}}, nil
	}
	return examiner.Examine(ctx, cluster.Examination{Plan: w.Plan, Runs: runs, Wait: o.timeout, NoJob: o.noJob, Note: s.note})
}

func place(dir string) cluster.Place {
	shared, err := store.Shared(dir)
	return cluster.Place{Dir: dir, Shared: shared, Err: err}
}
