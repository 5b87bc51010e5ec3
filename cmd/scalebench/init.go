package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"
	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/examples"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/clean"
)

func initCommand(s *session) *cli.Command {
	var site string
	return &cli.Command{
		Name:      "init",
		Usage:     "write a commented study.toml and site.toml that run unchanged",
		ArgsUsage: "[DIR]",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "site", Destination: &site, Usage: "let the study use this site `FILE`, and write no site.toml"},
		},
		Action: func(c *cli.Context) error {
			return runInit(s, cmp.Or(c.Args().First(), "."), site)
		},
	}
}

func runInit(s *session, dir, site string) error {
	names := []string{"study.toml", "site.toml"}
	if site != "" {
		if _, err := study.LoadSite(site); err != nil {
			return err
		}
		names = names[:1]
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil && name == "site.toml" {
			return &usageError{err: fmt.Errorf("%s already exists and is unchanged, and nothing was written", path),
				hint: fmt.Sprintf("`%s init --site %s` writes a study that uses it; or give another folder.", appName, path)}
		} else if err == nil {
			return usagef("%s already exists and is unchanged; give another folder", path)
		}
	}
	for _, name := range names {
		text, err := examples.First.ReadFile("first/" + name)
		if err != nil {
			return err
		}
		if site != "" {
			if text, err = naming(text, dir, site); err != nil {
				return err
			}
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

// naming returns the study with its site set to the file, as seen from the study's
// folder.
func naming(text []byte, dir, site string) ([]byte, error) {
	if !filepath.IsAbs(site) {
		from, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		to, err := filepath.Abs(site)
		if err != nil {
			return nil, err
		}
		if site, err = filepath.Rel(from, to); err != nil {
			return nil, err
		}
	}
	var line bytes.Buffer
	if err := toml.NewEncoder(&line).Encode(map[string]string{"site": site}); err != nil {
		return nil, err
	}
	return bytes.Replace(text, []byte("# site = \"site.toml\""), bytes.TrimSpace(line.Bytes()), 1), nil
}
