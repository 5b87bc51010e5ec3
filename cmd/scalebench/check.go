package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
)

func checkCommand(s *session) *cli.Command {
	var site string
	var command workspace.Command
	return &cli.Command{
		Name:      "check",
		Usage:     "validate a study and print its plan",
		ArgsUsage: studyOrCommand,
		Description: "Nothing is submitted, and nothing from the study is run.\n" +
			"\n" +
			"check refuses points that cannot succeed, as far as this host can tell: missing data,\n" +
			"scripts, interpreters or packages, unknown partitions. It asks only an interpreter\n" +
			"from your PATH or from a site file given with --site. Modules, setup lines and\n" +
			"containers are checked by `doctor`, on the nodes.\n" +
			"\n" +
			"The plan shows which points have results, and why others do not. Node-hours and cost\n" +
			"are upper bounds for the runs that are left.\n" +
			"\n" +
			overrideHelp + "\n" +
			"\n" +
			typedHelp,
		Flags: append([]cli.Flag{siteFlag(&site)}, commandFlags(&command)...),
		Action: func(c *cli.Context) error {
			a, err := command.Request(site, c.Args().Slice())
			if err != nil {
				return err
			}
			return runCheck(c.Context, s, a)
		},
	}
}

func runCheck(ctx context.Context, s *session, a workspace.Request) error {
	w, err := s.workspace().Load(ctx, a)
	if err != nil {
		return err
	}
	if err := w.CheckTemplate(); err != nil {
		return err
	}
	in, err := w.Inventory(ctx)
	if err != nil {
		return err
	}
	t := query.Plan(w.Study, w.Plan, in)
	notes, err := w.Notes(in, len(t.Rows))
	if err != nil {
		return err
	}
	t.Notes = append(t.Notes, notes...)
	if a.Typed {
		s.noteStudy(a, w)
	}
	if err := s.print(t); err != nil {
		return err
	}
	for _, doubt := range w.Warnings() {
		s.warn("%v", doubt)
	}
	return w.Check(ctx) // the plan comes first, because it may be for another cluster
}

func uncheckedFlag(unchecked *bool) cli.Flag {
	return &cli.BoolFlag{Name: "unchecked", Destination: unchecked, DisableDefaultText: true,
		Usage: "start runs even if this host lacks the data folder, program or script: the nodes may have it"}
}
