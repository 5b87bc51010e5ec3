package cmdline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
)

// Check reports problems beyond names: a missing command, the wrong number of operands, a
// missing required flag.
func (line Line) Check(app *cli.App) error {
	if line.Has("help") || (len(line.path) == 0 && line.Has("version")) {
		return nil
	}
	c := line.Command()
	switch {
	case c == nil:
		return &Error{Err: fmt.Errorf("no command given; valid: %s", strings.Join(commandNames(app.Commands), ", ")),
			Hint: fmt.Sprintf("`%s help` explains them.", Program)}
	case len(c.Subcommands) > 0:
		return &Error{Err: fmt.Errorf("%sa command is missing; valid: %s", line.about(), strings.Join(commandNames(c.Subcommands), ", ")),
			Hint: HintHelp(line.name())}
	}
	least, most := 0, 0
	for _, word := range OperandNames(c) {
		if !strings.HasPrefix(word, "[") {
			least++
		}
		most++
		if strings.Contains(word, "...") {
			most = len(line.Operands) + 1
		}
	}
	usage := "Usage: " + c.UsageText
	if n := len(line.Operands); n > most {
		return &Error{Err: fmt.Errorf("%s%q is one argument too many", line.about(), line.Operands[most]), Usage: usage}
	} else if n < least {
		return &Error{Err: fmt.Errorf("%s%s is missing", line.about(), OperandNames(c)[n]), Usage: usage}
	}
	// An empty word usually comes from an unset shell variable, and must not mean
	// "everything". A note may be empty, which removes it.
	for i, word := range line.Operands {
		if name := OperandNames(c)[min(i, len(OperandNames(c))-1)]; word == "" && name != "TEXT" {
			return &Error{Err: fmt.Errorf("%s%s is empty; is a shell variable unset?", line.about(), strings.Trim(name, "[]")), Usage: usage}
		}
	}
	for _, f := range line.Flags {
		if f.Has && strings.TrimSpace(f.Value) == "" {
			return &Error{Err: fmt.Errorf("%s%s is empty; is a shell variable unset?", line.about(), f.Name), Hint: "Leave it out, or give a value."}
		}
	}
	for _, f := range c.Flags {
		if IsRequired(f) && !line.Has(f.Names()[0]) {
			return &Error{Err: fmt.Errorf("%s%s is missing", line.about(), Dashed(f.Names()[0])), Usage: usage}
		}
	}
	return nil
}

// OperandNames returns the names of a command's operands in its usage line, without those
// after "| --", which are for its other form.
func OperandNames(c *cli.Command) []string {
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
func (line Line) explain(app *cli.App, err error) error {
	unknown, ok := err.(*unknownFlagError)
	if !ok {
		return err
	}
	valid := line.Valid(app)
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
		names = append(names, Dashed(n))
	}
	hint := "A word that begins with a dash and is not a flag goes after --.\n" + HintHelp(name)
	if near := study.SpellingHint(tried, names); near != "" {
		hint = near + "\n" + hint
	}
	return &Error{Err: fmt.Errorf("%s%w", line.about(), err), Hint: hint}
}

func unknownCommand(parent string, level []*cli.Command, word string) error {
	names := commandNames(level)
	hint := fmt.Sprintf("Valid: %s.\n%s", strings.Join(names, ", "), HintHelp(parent))
	if near := study.SpellingHint(word, names); near != "" {
		hint = near + "\n" + hint
	}
	return &Error{Err: fmt.Errorf("unknown command %q", strings.TrimPrefix(parent+" "+word, Program+" ")), Hint: hint}
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

// RedirectHelp turns "help COMMAND" into "COMMAND --help", and drops operands after --help,
// which the library would take for topics.
func (line Line) RedirectHelp(app *cli.App) (Line, error) {
	if line.Has("help") {
		line.Operands = nil
		return line, nil
	}
	if c := line.Command(); c == nil || c.Name != "help" {
		return line, nil
	}
	if slices.Equal(line.Operands, []string{HelpMeasures}) {
		return line, nil
	}
	asked, err := Parse(app, append([]string{"--"}, line.Operands...))
	if err != nil {
		return line, err
	}
	asked.Operands = nil
	asked.Flags = []Set{{Name: "--help", flag: cli.HelpFlag}}
	return asked, nil
}

func ByName(flags []cli.Flag) map[string]cli.Flag {
	m := map[string]cli.Flag{}
	for _, f := range flags {
		for _, name := range f.Names() {
			m[name] = f
		}
	}
	return m
}

func TakesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

func IsRequired(f cli.Flag) bool {
	r, ok := f.(cli.RequiredFlag)
	return ok && r.IsRequired()
}

func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
