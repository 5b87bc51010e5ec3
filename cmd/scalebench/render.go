package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

func renderCommand(s *session) *cli.Command {
	var site, out string
	return &cli.Command{
		Name:      "render",
		Usage:     "write the batch scripts of a study without submitting them",
		ArgsUsage: overriddenStudy,
		Description: "The scripts are the ones that submit would write, to be read: a job needs its run\n" +
			"folder, which submit creates.\n" +
			"\n" +
			overrideHelp,
		Flags: []cli.Flag{
			siteFlag(&site),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "folder `DIR` for the scripts", Required: true, Destination: &out},
		},
		Action: func(c *cli.Context) error {
			return runRender(c.Context, s, c.Args().First(), site, out, c.Args().Tail())
		},
	}
}

func runRender(ctx context.Context, s *session, path, site, out string, overrides []string) error {
	spareMemory()
	w, err := s.workspace().Load(ctx, workspace.Request{Study: path, Site: site, Overrides: overrides})
	if err != nil {
		return err
	}
	s.noteOverrides(w)
	backend, err := w.Scheduler(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, sharedfs.ModeFolder); err != nil {
		return err
	}
	// Render all scripts before writing the first, so that the folder has either all scripts or
	// none.
	if err := launcher.Render(backend, w.Plan, func(string, []byte) error { return nil }); err != nil {
		return &usageError{err: err}
	}
	for _, problem := range cluster.CheckFiles(w.Study, w.Site, w.Plan, w.Folder) {
		s.warn("%v", problem)
	}
	scripts := 0
	err = launcher.Render(backend, w.Plan, func(name string, text []byte) error {
		perm := sharedfs.ModeOpen
		if filepath.Ext(name) == ".sh" {
			perm = sharedfs.ModeScript
			scripts++
		}
		return s.write(filepath.Join(out, name), text, perm)
	})
	if err != nil {
		return err
	}
	s.note("%s in %s", number.Count(scripts, "script"), out)
	return nil
}
