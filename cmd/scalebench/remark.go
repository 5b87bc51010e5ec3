package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
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

// runRemark changes what is said of runs, in their folders and in the database,
// and says what was done to how many.
func runRemark(ctx context.Context, s *session, arg, done string, change func(*metrics.Remarks)) error {
	f, err := s.forgetting(ctx, arg)
	if err != nil {
		return err
	}
	s.hold()
	folders := map[string]rundir.Folder{}
	var names []string
	if exists(f.folder.Path()) {
		l, err := s.lease(ctx, f.folder)
		if err != nil {
			return explainDrive(err)
		}
		defer l.Release()
		attempts, err := f.folder.Attempts()
		if err != nil {
			return err
		}
		for _, a := range attempts {
			if id := f.id(a); f.means(id) {
				folders[id] = a.Run
				names = append(names, id)
			}
		}
	}
	for _, id := range f.stored {
		if f.means(id) && !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	if len(names) == 0 {
		return &usageError{err: fmt.Errorf("there is no run %q", arg), hint: "`scalebench status` and `scalebench runs` list the runs."}
	}
	file, err := s.database()
	if err != nil {
		return err
	}
	var db *store.Store // nil: there is none yet, and collect will read the folders
	if exists(file) {
		if db, err = workspace.OpenForWriting(file); err != nil {
			return workspace.StoreError(err)
		}
		defer db.Close()
	}
	for _, id := range names {
		var said metrics.Remarks
		in, here := folders[id]
		known := false
		if here {
			if said, known, err = launcher.Remarks(in); err != nil {
				return &usageError{err: err}
			}
		}
		if !known && db != nil {
			if said, err = db.Remarks(ctx, id); err != nil {
				return workspace.StoreError(err)
			}
		}
		change(&said)
		if err := said.Check(); err != nil {
			return &usageError{err: fmt.Errorf("%s: %w", id, err)}
		}
		if here {
			switch err := launcher.Remark(in, said); {
			case os.IsPermission(err):
				s.warn("you may not write to %s: the change is only in your database", in.Path())
			case err != nil:
				return err
			}
		}
		if db != nil {
			if err := db.PutRemarks(ctx, id, said); err != nil {
				return workspace.StoreError(err)
			}
		}
	}
	s.note("%s %s", done, number.Count(len(names), "run"))
	return nil
}
