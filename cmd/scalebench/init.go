package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/examples"
	"github.com/scalebench/scalebench/metrics/clean"
)

func initCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a commented study.toml and site.toml that run unchanged",
		ArgsUsage: "[DIR]",
		Action: func(c *cli.Context) error {
			dir := c.Args().First()
			if dir == "" {
				dir = "."
			}
			return runInit(s, dir)
		},
	}
}

func runInit(s *session, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"study.toml", "site.toml"} {
		text, err := examples.First.ReadFile("first/" + name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return usagef("%s already exists and is unchanged; give another folder", path)
		}
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.stdout, clean.Line(path)); err != nil {
			return err
		}
	}
	s.note("next: scalebench check %s", filepath.Join(dir, "study.toml"))
	return nil
}
