package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

func tagCommand(s *session) *cli.Command {
	var remove bool
	return &cli.Command{
		Name:      "tag",
		Usage:     "give runs a tag that --where tag:NAME finds",
		ArgsUsage: "STUDY|RUN NAME",
		Description: "RUN is a run as `status` or `runs` lists it. A tag is up to 64 letters, digits,\n" +
			"dots, dashes, plus signs and underscores. It is kept in the run's folder, for all\n" +
			"who collect from there; `runs` and `show` print it.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "remove", Destination: &remove, DisableDefaultText: true, Usage: "remove the tag"}},
		Action: func(c *cli.Context) error {
			name := c.Args().Get(1)
			if err := (metrics.Remarks{Tags: []string{name}}).Check(); err != nil {
				return &usageError{err: err}
			}
			done := "tagged"
			if remove {
				done = "removed the tag from"
			}
			return runRemark(c.Context, s, c.Args().First(), done, func(r *metrics.Remarks) {
				r.Tags = slices.DeleteFunc(r.Tags, func(t string) bool { return t == name })
				if !remove {
					r.Tags = append(r.Tags, name)
					slices.Sort(r.Tags)
				}
			})
		},
	}
}

func noteCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "note",
		Usage:     "write a note on a run",
		ArgsUsage: "RUN TEXT",
		Description: "RUN is a run as `status` or `runs` lists it. The text is one line; it\n" +
			"replaces the run's earlier note, and \"\" removes the note. It is kept in the run's\n" +
			"folder, and `runs` and `show` print it.",
		Action: func(c *cli.Context) error {
			text := strings.TrimSpace(c.Args().Get(1))
			if err := (metrics.Remarks{Note: text}).Check(); err != nil {
				return &usageError{err: err}
			}
			if !strings.Contains(c.Args().First(), "/") {
				return usagef("%q is not a run; name it as `scalebench runs` lists it: STUDY/POINT-r1-a1", c.Args().First())
			}
			done := "wrote the note on"
			if text == "" {
				done = "removed the note from"
			}
			return runRemark(c.Context, s, c.Args().First(), done, func(r *metrics.Remarks) { r.Note = text })
		},
	}
}

// runRemark changes the tags and notes of runs, and prints how many changed.
func runRemark(ctx context.Context, s *session, arg, done string, change func(*metrics.Remarks)) error {
	n, err := s.workspace().Remark(ctx, arg, change)
	if err != nil {
		return explainDrive(err)
	}
	s.note("%s %s", done, number.Count(n, "run"))
	return nil
}
