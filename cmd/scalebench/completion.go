package main

import (
	"embed"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

//go:embed completion
var completionScripts embed.FS

var shells = []string{"bash", "zsh", "fish"}

func completionCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish",
		ArgsUsage: "SHELL",
		Description: `bash: source <(scalebench completion bash)
zsh:  scalebench completion zsh > "${fpath[1]}/_scalebench"
fish: scalebench completion fish > ~/.config/fish/completions/scalebench.fish`,
		Action: func(c *cli.Context) error { return runCompletion(s, c.Args().First()) },
	}
}

func runCompletion(s *session, shell string) error {
	if !slices.Contains(shells, shell) {
		return usagef("no completion for %q; valid: %s", shell, strings.Join(shells, ", "))
	}
	script, err := completionScripts.ReadFile("completion/scalebench." + shell)
	if err != nil {
		return err
	}
	_, err = s.stdout.Write(script)
	return err
}
