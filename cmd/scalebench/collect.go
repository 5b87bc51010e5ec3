package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
)

func collectCommand(s *session) *cli.Command {
	var o workspace.CollectOptions
	return &cli.Command{
		Name:      "collect",
		Usage:     "read run folders into the database",
		ArgsUsage: "[STUDY]",
		Description: "You can repeat it at any time, even while jobs run. Without STUDY it collects all\n" +
			"studies in the run folders. Targets and [[extract]] patterns come from the study as\n" +
			"last run or submitted, and apply to existing runs whose output is still there.\n" +
			"\n" +
			"If a run or plan cannot be read, the command reports it, collects the others and exits\n" +
			"with 3.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "again", Destination: &o.Again, DisableDefaultText: true,
			Usage: "read the output of your own programs again, even if the study's patterns have not changed"}},
		Action: func(c *cli.Context) error {
			arg := c.Args().First()
			folders, err := s.workspace().Folders(c.Context, arg)
			if err != nil {
				return err
			}
			if arg != "" && workspace.Edited(arg, folders[0]) {
				used := s.workspace().CommandWords(c.Context, arg, arg)
				s.note("%s has changed since the study was last run or submitted; `scalebench run %s` or `submit %s` applies the change and repeats no run that has a result", arg, used, used)
			}
			o.Progress = s.steps("collecting")
			return s.workspace().CollectAll(c.Context, folders, o, arg == "")
		},
	}
}

// collect reads one study's runs into the database.
func (s *session) collect(ctx context.Context, folder rundir.Study) error {
	return s.workspace().Collect(ctx, folder, workspace.CollectOptions{Progress: s.steps("collecting")})
}
