package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/report"
)

const appName = "scalebench"

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
		if !isRequired(f) {
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
	c.UsageText = usageLine(full, c)
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

// usageLine returns how a command is written: operands, then required options.
func usageLine(full string, c *cli.Command) string {
	operands, command, another := strings.Cut(c.ArgsUsage, " | -- ")
	line := full
	if operands != "" {
		line += " " + operands
	}
	optional := false
	for _, f := range c.Flags {
		if !isRequired(f) {
			optional = true
			continue
		}
		name := f.Names()[0]
		if short := slices.IndexFunc(f.Names(), func(n string) bool { return len(n) == 1 }); short >= 0 {
			name = f.Names()[short]
		}
		line += " " + dashed(name) + " " + placeholder(f)
	}
	if optional {
		line += " [OPTIONS]"
	}
	if another {
		line += ", or " + c.Name + " [OPTIONS] -- " + command
	}
	return line
}

// placeholder returns the name of a flag's value, which is between backquotes in its help.
func placeholder(f cli.Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		if parts := strings.Split(d.GetUsage(), "`"); len(parts) == 3 {
			return parts[1]
		}
	}
	return "VALUE"
}

// onUsageError handles an invalid flag value; unknown flags are handled earlier.
func onUsageError(c *cli.Context, err error, _ bool) error {
	return &usageError{err: errors.New(explainValue(c.Command.Flags, err.Error())), hint: hintHelp(c.Command.HelpName)}
}

// badValue matches the error of package flag for a value that it cannot parse.
var badValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]*): (.*)$`)

// explainValue returns a message about a flag's value that cannot be parsed. It says which
// values are valid.
func explainValue(flags []cli.Flag, message string) string {
	m := badValue.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	want := ""
	switch byName(flags)[m[2]].(type) {
	case *cli.IntFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Uint64Flag:
		want = "; want a whole number"
	case *cli.Float64Flag:
		want = "; want a number"
	case *cli.BoolFlag:
		want = "; want true or false, or no value"
	case *cli.DurationFlag:
		want = "; want a length of time, like 90s or 1h30m"
	case *cli.GenericFlag: // the flag's own error says what is valid
		want = "; " + m[3]
	}
	return fmt.Sprintf("%s does not take the value %s%s", dashed(m[2]), m[1], want)
}

func hintHelp(command string) string {
	return fmt.Sprintf("`%s --help` shows what is valid.", strings.TrimSpace(command))
}

// helpMeasures is the only help topic that is not a command.
const helpMeasures = "measures"

// helpCommand puts help into the list of commands and into completion, and lists the
// measures; redirectHelp turns the rest into --help.
func helpCommand(s *session) *cli.Command {
	return &cli.Command{Name: "help", Usage: "explain a command; help measures lists the measures", ArgsUsage: "[COMMAND...]",
		Action: func(c *cli.Context) error {
			if c.Args().First() != helpMeasures {
				return nil
			}
			return s.print(report.DeclaredMeasures())
		}}
}
