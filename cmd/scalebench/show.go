package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/table"
)

func showCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print everything about one run",
		ArgsUsage: "RUN",
		Description: "RUN is a run as `runs` lists it, or a unique prefix or suffix of it. For a point it\n" +
			"prints the newest run.",
		Action: func(c *cli.Context) error { return runShow(c.Context, s, c.Args().First()) },
	}
}

func runShow(ctx context.Context, s *session, run string) error {
	db, err := s.workspace().Open()
	if err != nil {
		return err
	}
	defer db.Close()
	d, err := db.Show(ctx, run)
	if err != nil {
		return workspace.StoreError(err)
	}
	w := bufio.NewWriter(s.stdout)
	if err := table.WriteSections(w, report.Run(d), s.format, screenOf(s.stdout)); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	if len(d.Others) > 0 {
		s.note("%s is the newest run of this point of the study; older runs: %s", d.Run.ID, strings.Join(d.Others, ", "))
	}
	if d.Result != nil {
		s.warnStudySorted(d.Run.ID, d.Result.Warnings...)
	}
	return nil
}
