package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/internal/cmdline"
	"github.com/scalebench/scalebench/metrics/report"
)

const appName = cmdline.Program

// commands lists the subcommands in the order of the help, which follows a study's life.
func commands(s *session) []*cli.Command {
	return []*cli.Command{
		initCommand(s),
		siteCommand(s),
		doctorCommand(s),
		checkCommand(s),
		renderCommand(s),
		runCommand(s),
		submitCommand(s),
		statusCommand(s),
		watchCommand(s),
		serveCommand(s),
		logsCommand(s),
		retryCommand(s),
		cancelCommand(s),
		notifyCommand(s),
		collectCommand(s),
		forgetCommand(s),
		tagCommand(s),
		noteCommand(s),
		extractCommand(s),
		importCommand(s),
		runsCommand(s),
		showCommand(s),
		scalingCommand(s),
		adviseCommand(s),
		decideCommand(s),
		predictCommand(s),
		costCommand(s),
		compareCommand(s),
		historyCommand(s),
		plotCommand(s),
		reportCommand(s),
		exportCommand(s),
		dataCommand(s),
		completionCommand(s),
		versionCommand(s),
		helpCommand(s),
	}
}

// The help of a required flag says "required" instead of the zero value as its default.
func init() {
	describe := cli.FlagStringer
	cli.FlagStringer = func(f cli.Flag) string {
		text := describe(f)
		if !cmdline.IsRequired(f) {
			return text
		}
		if d, ok := f.(cli.DocGenerationFlag); ok && d.GetDefaultText() != "" {
			text = strings.TrimSuffix(text, fmt.Sprintf(" (default: %s)", d.GetDefaultText()))
		}
		return text + " (required)"
	}
}

// newApp builds the command line for one invocation.
func newApp(s *session) *cli.App {
	app := &cli.App{
		Name:      appName,
		Usage:     "how many workers should this training use? Measure it.",
		UsageText: appName + " COMMAND [ARGUMENTS] [OPTIONS]\n" + appName + " help COMMAND",
		Description: "A study file says what to measure. STUDY is its path, or the name of a study that was\n" +
			"run or submitted. Options may come before or after the command and its arguments; --\n" +
			"ends them.\n\n" + exitHelp,
		Commands: commands(s),
		Flags:    append(s.flags(), &cli.BoolFlag{Name: "version", Usage: "print the version", DisableDefaultText: true}, cli.HelpFlag),
		Action: func(c *cli.Context) error {
			if c.Bool("version") {
				return runVersion(s)
			}
			return nil // check has rejected it
		},
		Reader:    s.stdin,
		Writer:    s.stdout,
		ErrWriter: s.stderr,

		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // a value may contain commas
		ExitErrHandler:            noExit,
		OnUsageError:              onUsageError,
	}
	for _, c := range app.Commands {
		prepare(s, c, appName)
	}
	return app
}

// prepare adds what all commands share: the global options, a usage line, errors with an
// exit code, and a check of the operands.
func prepare(s *session, c *cli.Command, parent string) {
	full := parent + " " + c.Name
	c.HideHelpCommand = true
	c.OnUsageError = onUsageError
	if len(c.Subcommands) > 0 {
		for _, sub := range c.Subcommands {
			prepare(s, sub, full)
		}
		c.UsageText = full + " COMMAND"
		return
	}
	c.UsageText = cmdline.UsageLine(full, c)
	c.Flags = append(c.Flags, s.flags()...)
	action := c.Action
	c.Action = func(ctx *cli.Context) error {
		if err := s.resolve(); err != nil {
			return err
		}
		if err := action(ctx); err != nil {
			return err
		}
		return s.partialAnswer()
	}
}

// onUsageError handles an invalid flag value; unknown flags are handled earlier.
func onUsageError(c *cli.Context, err error, _ bool) error {
	return &usageError{err: errors.New(cmdline.ExplainValue(c.Command.Flags, err.Error())), hint: cmdline.HintHelp(c.Command.HelpName)}
}

// helpCommand puts help into the list of commands and into completion, and lists the
// measures; redirectHelp turns the rest into --help.
func helpCommand(s *session) *cli.Command {
	return &cli.Command{Name: "help", Usage: "explain a command; help measures lists the measures", ArgsUsage: "[COMMAND...]",
		Action: func(c *cli.Context) error {
			if c.Args().First() != cmdline.HelpMeasures {
				return nil
			}
			return s.print(report.DeclaredMeasures())
		}}
}
