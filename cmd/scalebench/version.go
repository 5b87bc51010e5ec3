package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
)

func versionCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:   "version",
		Usage:  "print the version and the commit it was built from",
		Action: func(*cli.Context) error { return runVersion(s) },
	}
}

func runVersion(s *session) error {
	_, err := fmt.Fprintln(s.stdout, appName+" "+version.String())
	return err
}
