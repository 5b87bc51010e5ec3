package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/slurm"
)

func renderCommand(s *session) *cli.Command {
	var site, out string
	return &cli.Command{
		Name:      "render",
		Usage:     "write the batch scripts of a study, submit nothing",
		ArgsUsage: "STUDY",
		Description: "The scripts are as submit would make them. They are for reading: a job needs\n" +
			"its run folder, which submit makes.",
		Flags: []cli.Flag{
			siteFlag(&site),
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "folder `DIR` for the scripts", Required: true, Destination: &out},
		},
		Action: func(c *cli.Context) error {
			return runRender(s, c.Args().First(), site, out)
		},
	}
}

func runRender(s *session, path, site, out string) error {
	w, err := s.load(path, site)
	if err != nil {
		return err
	}
	creator, err := w.creator()
	if err != nil {
		return err
	}
	backend, err := launcher.NewSlurmBackend(creator, w.site, &slurm.Client{})
	if err != nil {
		return &usageError{err: err}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	for _, p := range w.plan.Points {
		a := backend.Draft(p)
		text.Reset()
		if err := backend.Render(&text, p, a); err != nil {
			return &usageError{err: fmt.Errorf("the batch script of %s: %w", a.Record.ID, err)}
		}
		if err := os.WriteFile(filepath.Join(out, a.Run.Name()+".sh"), text.Bytes(), 0o755); err != nil {
			return err
		}
	}
	s.note("%d scripts in %s", len(w.plan.Points), out)
	return nil
}
