package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
)

// check reports problems beyond names: a missing command, the wrong number of operands, a
// missing required flag.
func (line invocation) check(app *cli.App) error {
	if line.has("help") || (len(line.path) == 0 && line.has("version")) {
		return nil
	}
	c := line.command()
	switch {
	case c == nil:
		return &usageError{err: fmt.Errorf("no command given; valid: %s", strings.Join(commandNames(app.Commands), ", ")),
			hint: fmt.Sprintf("`%s help` explains them.", appName)}
	case len(c.Subcommands) > 0:
		return &usageError{err: fmt.Errorf("%sa command is missing; valid: %s", line.about(), strings.Join(commandNames(c.Subcommands), ", ")),
			hint: hintHelp(line.name())}
	}
	least, most := 0, 0
	for _, word := range operandNames(c) {
		if !strings.HasPrefix(word, "[") {
			least++
		}
		most++
		if strings.Contains(word, "...") {
			most = len(line.operands) + 1
		}
	}
	usage := "Usage: " + c.UsageText
	if n := len(line.operands); n > most {
		return &usageError{err: fmt.Errorf("%s%q is one argument too many", line.about(), line.operands[most]), usage: usage}
	} else if n < least {
		return &usageError{err: fmt.Errorf("%s%s is missing", line.about(), operandNames(c)[n]), usage: usage}
	}
	// An empty word usually comes from an unset shell variable, and must not mean
	// "everything". A note may be empty, which removes it.
	for i, word := range line.operands {
		if name := operandNames(c)[min(i, len(operandNames(c))-1)]; word == "" && name != "TEXT" {
			return &usageError{err: fmt.Errorf("%s%s is empty; is a shell variable unset?", line.about(), strings.Trim(name, "[]")), usage: usage}
		}
	}
	for _, f := range line.flags {
		if f.has && strings.TrimSpace(f.value) == "" {
			return &usageError{err: fmt.Errorf("%s%s is empty; is a shell variable unset?", line.about(), f.name), hint: "Leave it out, or give a value."}
		}
	}
	for _, f := range c.Flags {
		if isRequired(f) && !line.has(f.Names()[0]) {
			return &usageError{err: fmt.Errorf("%s%s is missing", line.about(), dashed(f.Names()[0])), usage: usage}
		}
	}
	return nil
}

// operandNames returns the names of a command's operands in its usage line, without those
// after "| --", which are for its other form.
func operandNames(c *cli.Command) []string {
	usual, _, _ := strings.Cut(c.ArgsUsage, " | -- ")
	return strings.Fields(usual)
}

// takesCommand reports whether the words after -- are a command to measure.
func takesCommand(c *cli.Command) bool {
	return c != nil && strings.Contains(c.ArgsUsage, " | -- ")
}

// unknownFlagError reports an unknown flag.
type unknownFlagError struct {
	name string // as written, with dashes
	word string // the whole word, if name is one letter of it
}

func (e *unknownFlagError) Error() string { return "unknown flag " + e.name }

// explain adds a suggestion to the error for a flag.
func (line invocation) explain(app *cli.App, err error) error {
	unknown, ok := err.(*unknownFlagError)
	if !ok {
		return err
	}
	valid := line.valid(app)
	name := line.name()
	if len(line.path) == 0 {
		valid = allFlags(app)
	}
	tried := strings.TrimLeft(unknown.name, "-")
	if unknown.word != "" {
		tried, _, _ = strings.Cut(strings.TrimLeft(unknown.word, "-"), "=")
	}
	var names []string
	for n := range valid {
		names = append(names, dashed(n))
	}
	hint := "A word that begins with a dash and is not a flag goes after --.\n" + hintHelp(name)
	if near := study.SpellingHint(tried, names); near != "" {
		hint = near + "\n" + hint
	}
	return &usageError{err: fmt.Errorf("%s%w", line.about(), err), hint: hint}
}

func unknownCommand(parent string, level []*cli.Command, word string) error {
	names := commandNames(level)
	hint := fmt.Sprintf("Valid: %s.\n%s", strings.Join(names, ", "), hintHelp(parent))
	if near := study.SpellingHint(word, names); near != "" {
		hint = near + "\n" + hint
	}
	return &usageError{err: fmt.Errorf("unknown command %q", strings.TrimPrefix(parent+" "+word, appName+" ")), hint: hint}
}

func commandNames(level []*cli.Command) []string {
	var names []string
	for _, c := range level {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// redirectHelp turns "help COMMAND" into "COMMAND --help", and drops operands after --help,
// which the library would take for topics.
func (line invocation) redirectHelp(app *cli.App) (invocation, error) {
	if line.has("help") {
		line.operands = nil
		return line, nil
	}
	if c := line.command(); c == nil || c.Name != "help" {
		return line, nil
	}
	if slices.Equal(line.operands, []string{helpMeasures}) {
		return line, nil
	}
	asked, err := parse(app, append([]string{"--"}, line.operands...))
	if err != nil {
		return line, err
	}
	asked.operands = nil
	asked.flags = []setFlag{{name: "--help", flag: cli.HelpFlag}}
	return asked, nil
}

func byName(flags []cli.Flag) map[string]cli.Flag {
	m := map[string]cli.Flag{}
	for _, f := range flags {
		for _, name := range f.Names() {
			m[name] = f
		}
	}
	return m
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func isRequired(f cli.Flag) bool {
	r, ok := f.(cli.RequiredFlag)
	return ok && r.IsRequired()
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
