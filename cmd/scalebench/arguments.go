package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
)

// invocation is a command line taken apart. The command line library reads
// flags only up to the first operand and knows global ones only before the
// command, so it is given the words in the one order it reads right: command,
// flags with their values attached, "--", operands.
//
// How a command line is read: flags may stand anywhere. "--name VALUE",
// "--name=VALUE", "-n VALUE", "-n=VALUE" and "-nVALUE" are the same; "-vq" is
// "-v -q". A lone "-" is an operand, and so is every word after "--". Where a
// flag is given twice, the last one counts.
type invocation struct {
	path     []*cli.Command // from the outermost; empty when none was named
	flags    []setFlag
	operands []string
}

// setFlag is one use of a flag.
type setFlag struct {
	name  string // as it was written, with its dashes, for messages
	flag  cli.Flag
	value string
	has   bool // whether there is a value
}

// missingValueError is a flag at the end of the line that needs a value.
type missingValueError struct {
	name string
	flag cli.Flag
}

func (e *missingValueError) Error() string { return fmt.Sprintf("%s needs a value", e.name) }

// parse takes the words behind the program's name apart. It checks names only;
// check does the rest.
func parse(app *cli.App, words []string) (invocation, error) {
	var line invocation
	level := app.Commands // that the next operand may name; nil inside a leaf
	known := allFlags(app)
	operand := func(word string) error {
		if level == nil {
			line.operands = append(line.operands, word)
			return nil
		}
		i := slices.IndexFunc(level, func(c *cli.Command) bool { return c.HasName(word) })
		if i < 0 {
			return unknownCommand(line.name(), level, word)
		}
		line.path = append(line.path, level[i])
		level = level[i].Subcommands
		return nil
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--" && level == nil && takesCommand(line.command()):
			line.operands = append(line.operands, words[i:]...) // with the dashes, which tell a command from a study
			i = len(words)
		case word == "--":
			for _, word := range words[i+1:] {
				if err := operand(word); err != nil {
					return line, err
				}
			}
			i = len(words)
		case len(word) < 2 || word[0] != '-':
			if err := operand(word); err != nil {
				return line, err
			}
		default:
			uses, err := split(known, word)
			if err != nil {
				return line, line.explain(app, err)
			}
			last := &uses[len(uses)-1]
			if takesValue(last.flag) && !last.has {
				if i+1 == len(words) {
					return line, &usageError{err: &missingValueError{last.name, last.flag}, hint: hintHelp(line.name())}
				}
				i++
				// A forgotten value must not swallow the next flag.
				if next, err := split(known, words[i]); err == nil {
					return line, usagef("%s needs a value, but the flag %s follows; if that is the value, write %s=%s",
						last.name, next[0].name, last.name, words[i])
				}
				last.value, last.has = words[i], true
			}
			line.flags = append(line.flags, uses...)
		}
	}
	// Only now is it known whose flags they are: "-o" may be short for one
	// name here and another there.
	valid := line.valid(app)
	for i := range line.flags {
		f := &line.flags[i]
		var ok bool
		if f.flag, ok = valid[strings.TrimLeft(f.name, "-")]; !ok {
			return line, line.explain(app, &unknownFlagError{name: f.name})
		}
	}
	return line, nil
}

// split reads one word that begins with a dash: one long flag, or short ones.
func split(known map[string]cli.Flag, word string) ([]setFlag, error) {
	if rest, ok := strings.CutPrefix(word, "--"); ok {
		name, value, has := strings.Cut(rest, "=")
		f, ok := known[name]
		if !ok { // --x is as good as -x
			return nil, &unknownFlagError{name: "--" + name}
		}
		return []setFlag{{"--" + name, f, value, has}}, nil
	}
	var uses []setFlag
	letters, ok := strings.CutPrefix(word, "-")
	if !ok || letters == "" {
		return nil, &unknownFlagError{name: word}
	}
	for i, letter := range letters {
		name := string(letter)
		f, ok := known[name]
		if !ok {
			return nil, &unknownFlagError{name: "-" + name, word: word}
		}
		rest := letters[i+len(name):]
		value, has := strings.CutPrefix(rest, "=")
		if takesValue(f) || has {
			return append(uses, setFlag{"-" + name, f, value, rest != ""}), nil
		}
		uses = append(uses, setFlag{"-" + name, f, "", false})
	}
	return uses, nil
}

// words are the command line in the order that the library reads right.
func (line invocation) words() []string {
	var words []string
	for _, c := range line.path {
		words = append(words, c.Name)
	}
	for _, f := range line.flags {
		word := "--" + f.flag.Names()[0]
		if f.has {
			word += "=" + f.value
		}
		words = append(words, word)
	}
	if len(line.operands) > 0 {
		words = append(append(words, "--"), line.operands...)
	}
	return words
}

// name is the command as a person writes it.
func (line invocation) name() string {
	name := appName
	for _, c := range line.path {
		name += " " + c.Name
	}
	return name
}

// about begins a message on the command: "data synth: ", "" for none.
func (line invocation) about() string {
	if len(line.path) == 0 {
		return ""
	}
	return strings.TrimPrefix(line.name(), appName+" ") + ": "
}

// command is the one that was named; nil for none.
func (line invocation) command() *cli.Command {
	if len(line.path) == 0 {
		return nil
	}
	return line.path[len(line.path)-1]
}

func (line invocation) has(name string) bool {
	return slices.ContainsFunc(line.flags, func(f setFlag) bool { return f.flag.Names()[0] == name })
}

// redirectHelp turns "help COMMAND" into "COMMAND --help", and leaves out the
// operands after --help, which the library would take for topics.
func (line invocation) redirectHelp(app *cli.App) (invocation, error) {
	if line.has("help") {
		line.operands = nil
		return line, nil
	}
	if c := line.command(); c == nil || c.Name != "help" {
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

// check refuses what the names alone do not show: no command, too few or too
// many operands, a flag that must be given.
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
	// An empty word is a variable of somebody's shell that is not set; it must not
	// mean everything there is. A note may be empty: that takes it away.
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

// operandNames are the names of a command's operands in its usage line; those of
// a command to be measured, behind "| --", are another way to use it.
func operandNames(c *cli.Command) []string {
	usual, _, _ := strings.Cut(c.ArgsUsage, " | -- ")
	return strings.Fields(usual)
}

// takesCommand reports whether the words after -- are a command to be measured.
func takesCommand(c *cli.Command) bool {
	return c != nil && strings.Contains(c.ArgsUsage, " | -- ")
}

// valid are the flags of the command that was named.
func (line invocation) valid(app *cli.App) map[string]cli.Flag {
	flags := app.Flags
	if c := line.command(); c != nil {
		flags = append(slices.Clone(c.Flags), cli.HelpFlag)
	}
	return byName(flags)
}

// allFlags are the flags of all commands: before the command is known, they
// tell a flag's value from an operand. A test holds that a name takes a value
// either everywhere or nowhere.
func allFlags(app *cli.App) map[string]cli.Flag {
	all := byName(app.Flags)
	var walk func([]*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			for name, f := range byName(c.Flags) {
				all[name] = f
			}
			walk(c.Subcommands)
		}
	}
	walk(app.Commands)
	return all
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

// unknownFlagError is a word that looks like a flag and is none.
type unknownFlagError struct {
	name string // with dashes
	word string // the whole word, where name is one letter of it
}

func (e *unknownFlagError) Error() string { return "unknown flag " + e.name }

// explain adds to a refused flag what may have been meant.
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
