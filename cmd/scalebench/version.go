package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

func versionCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:   "version",
		Usage:  "print the version and the commit it was built from",
		Action: func(*cli.Context) error { return runVersion(s) },
	}
}

func runVersion(s *session) error {
	_, err := fmt.Fprintln(s.stdout, appName+" "+version())
	return err
}

// version is this build: module version, commit, compiler.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version) " + runtime.Version()
	}
	return describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	var commit, modified string
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			commit = setting.Value
		case "vcs.modified":
			if setting.Value == "true" {
				modified = ", modified"
			}
		}
	}
	if commit != "" {
		v += " (commit " + commit + modified + ")"
	}
	return v + " " + info.GoVersion
}
