package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/workspace/query"
)

type doctorOptions struct {
	study, site string
	timeout     time.Duration
	noJob       bool
	junit       string // file; "" for none
}

func doctorCommand(s *session) *cli.Command {
	var o doctorOptions
	return &cli.Command{
		Name:      "doctor",
		Usage:     "check this machine and a cluster before measuring on them",
		ArgsUsage: "[STUDY]",
		Description: "It checks this host. With Slurm it also checks the site file's partitions, asks\n" +
			"whether Slurm would accept the smallest and the largest point of STUDY, and submits\n" +
			"one short job to each partition in use. The job checks the run folder, clocks, the\n" +
			"network, CPU sets, GPUs, the worker and the interpreter. Exit code 3: a check failed.",
		Flags: []cli.Flag{
			siteFlag(&o.site),
			&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute, Destination: &o.timeout, Usage: "cancel the jobs if they have not ended after `TIME`"},
			&cli.BoolFlag{Name: "no-job", DisableDefaultText: true, Destination: &o.noJob, Usage: "submit no job; only ask Slurm"},
			junitFlag(&o.junit),
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
	d, err := s.workspace().Doctor(ctx, o.study, o.site)
	if err != nil {
		return err
	}
	s.deferInterrupts()
	findings := d.CheckHost(ctx)
	more, err := d.CheckCluster(ctx, o.timeout, o.noJob)
	findings = append(findings, more...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if gone, ok := errors.AsType[launcher.Unreachable](err); ok {
		f := cluster.Finding{Check: "scheduler", Verdict: cluster.Fail, Found: query.LastLine(gone.Error()), Advice: "run this on a login node of the cluster, while Slurm answers"}
		if !d.HasSite() {
			// No cluster was requested.
			f.Verdict, f.Advice = cluster.NotTested, "on a login node of a cluster, give the site file: --site FILE (scalebench site init writes one)"
			err = nil
		} else {
			err = &schedulerError{err: err, hint: "No job or file remains; repeat the command later."}
			if gone.Queued() {
				err = &schedulerError{err: gone, hint: "A probe job (scalebench-doctor-…) may be in the queue anyway. It ends by itself within minutes of starting; `squeue --me` shows it."}
			}
		}
		findings = append(findings, f)
	}
	failed := cluster.Count(findings, cluster.Fail)
	t := query.Findings(findings, s.forPeople() && !s.verbose, failed == 0 && err == nil)
	if err := errors.Join(err, s.print(t), s.saveChecks(o.junit, "doctor", query.FindingChecks(findings))); err != nil {
		return err
	}
	if failed > 0 {
		return &checksFailedError{failed, len(findings)}
	}
	return nil
}
