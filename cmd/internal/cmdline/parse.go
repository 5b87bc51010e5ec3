// Package cmdline reads command lines more freely than the library that runs the commands: options
// anywhere, and errors that say what is valid.
package cmdline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Program is the name of the program.
const Program = "scalebench"

// Error is an error in a command line.
type Error struct {
	Err   error
	Hint  string // what to do; "" if the error says so itself
	Usage string // the command's usage line; "" for none
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func errorf(format string, a ...any) error { return &Error{Err: fmt.Errorf(format, a...)} }

// Read reads the words after the program's name, and checks them.
func Read(app *cli.App, words []string) (Line, error) {
	line, err := Parse(app, words)
	if err == nil {
		line, err = line.RedirectHelp(app)
	}
	if err == nil {
		err = line.Check(app)
	}
	return line, err
}

// A Line is a parsed command line. The command line library reads flags only up to the
// first operand, and global ones only before the command. So it receives the words in an
// order that it reads correctly: command, flags with attached values, "--", operands.
//
// Flags may be anywhere on the line. "--name VALUE", "--name=VALUE", "-n VALUE", "-n=VALUE"
// and "-nVALUE" are equivalent; "-vq" is "-v -q". A single "-" is an operand, and so is
// every word after "--". If a flag occurs twice, the last one counts.
type Line struct {
	path     []*cli.Command // from the outermost; empty without a command
	Flags    []Set
	Operands []string
}

// Set is one use of a flag.
type Set struct {
	Name  string // as written, with dashes, for messages
	flag  cli.Flag
	Value string
	Has   bool // whether there is a value
}

// MissingValueError reports a flag at the end of the line that needs a value.
type MissingValueError struct {
	name string
	Flag cli.Flag
}

func (e *MissingValueError) Error() string { return fmt.Sprintf("%s needs a value", e.name) }

// Parse splits the words after the program's name into command, flags and operands. It
// checks names only; check does the rest.
func Parse(app *cli.App, words []string) (Line, error) {
	p := wordParser{level: app.Commands, known: allFlags(app)}
	for i := 0; i < len(words); i++ {
		word := words[i]
		var err error
		switch {
		case word == "--" && p.level == nil && takesCommand(p.line.Command()):
			p.line.Operands = append(p.line.Operands, words[i:]...) // keep the dashes, which distinguish a command from a study
			i = len(words)
		case word == "--":
			for _, word := range words[i+1:] {
				err = cmp.Or(err, p.operand(word))
			}
			i = len(words)
		case len(word) < 2 || word[0] != '-':
			err = p.operand(word)
		default:
			var used int
			used, err = p.flag(app, words[i:])
			i += used - 1
		}
		if err != nil {
			return p.line, err
		}
	}
	// Resolve short names only now: "-o" may mean different flags in different commands.
	valid := p.line.Valid(app)
	for i := range p.line.Flags {
		f := &p.line.Flags[i]
		var ok bool
		if f.flag, ok = valid[strings.TrimLeft(f.Name, "-")]; !ok {
			return p.line, p.line.explain(app, &unknownFlagError{name: f.Name})
		}
	}
	return p.line, nil
}

// wordParser is the state while the words of a command line are parsed.
type wordParser struct {
	line  Line
	level []*cli.Command // commands that the next operand may name; nil inside a leaf
	known map[string]cli.Flag
}

// operand reads a word that is a command's name or an operand.
func (p *wordParser) operand(word string) error {
	if p.level == nil {
		p.line.Operands = append(p.line.Operands, word)
		return nil
	}
	i := slices.IndexFunc(p.level, func(c *cli.Command) bool { return c.HasName(word) })
	if i < 0 {
		return unknownCommand(p.line.name(), p.level, word)
	}
	p.line.path = append(p.line.path, p.level[i])
	p.level = p.level[i].Subcommands
	return nil
}

// flag reads a word with flags and the value of the last one. It returns the number of
// words used.
func (p *wordParser) flag(app *cli.App, words []string) (used int, err error) {
	uses, err := split(p.known, words[0])
	if err != nil {
		return 0, p.line.explain(app, err)
	}
	used = 1
	last := &uses[len(uses)-1]
	if TakesValue(last.flag) && !last.Has {
		if len(words) == 1 {
			return 0, &Error{Err: &MissingValueError{last.Name, last.flag}, Hint: HintHelp(p.line.name())}
		}
		// A forgotten value must not swallow the next flag.
		if next, err := split(p.known, words[1]); err == nil {
			return 0, errorf("%s needs a value, but the flag %s follows; if that is the value, write %s=%s",
				last.Name, next[0].Name, last.Name, words[1])
		}
		last.Value, last.Has, used = words[1], true, 2
	}
	p.line.Flags = append(p.line.Flags, uses...)
	return used, nil
}

// split reads one word that begins with a dash: one long flag, or short ones.
func split(known map[string]cli.Flag, word string) ([]Set, error) {
	if rest, ok := strings.CutPrefix(word, "--"); ok {
		name, value, has := strings.Cut(rest, "=")
		if name == "metric" {
			name = "measure" // some commands had the flag under this name, which stays valid
		}
		f, ok := known[name]
		if !ok { // --x is equivalent to -x
			return nil, &unknownFlagError{name: "--" + name}
		}
		return []Set{{"--" + name, f, value, has}}, nil
	}
	var uses []Set
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
		if TakesValue(f) || has {
			return append(uses, Set{"-" + name, f, value, rest != ""}), nil
		}
		uses = append(uses, Set{"-" + name, f, "", false})
	}
	return uses, nil
}

// Words returns the command line in the order that the library reads correctly.
func (line Line) Words() []string {
	var words []string
	for _, c := range line.path {
		words = append(words, c.Name)
	}
	for _, f := range line.Flags {
		word := "--" + f.flag.Names()[0]
		if f.Has {
			word += "=" + f.Value
		}
		words = append(words, word)
	}
	if len(line.Operands) > 0 {
		words = append(append(words, "--"), line.Operands...)
	}
	return words
}

// name returns the command as users write it.
func (line Line) name() string {
	name := Program
	for _, c := range line.path {
		name += " " + c.Name
	}
	return name
}

// about returns the start of a message about the command, such as "data synth: "; ""
// without a command.
func (line Line) about() string {
	if len(line.path) == 0 {
		return ""
	}
	return strings.TrimPrefix(line.name(), Program+" ") + ": "
}

// Command returns the command named so far; nil if none was.
func (line Line) Command() *cli.Command {
	if len(line.path) == 0 {
		return nil
	}
	return line.path[len(line.path)-1]
}

func (line Line) Has(name string) bool {
	return slices.ContainsFunc(line.Flags, func(f Set) bool { return f.flag.Names()[0] == name })
}

// Valid returns the flags that the command on the line accepts, by name.
func (line Line) Valid(app *cli.App) map[string]cli.Flag {
	flags := app.Flags
	if c := line.Command(); c != nil {
		flags = append(slices.Clone(c.Flags), cli.HelpFlag)
	}
	return ByName(flags)
}

// AllFlags returns the flags of all commands. Before the command is known, the parser needs
// them to tell a flag's value from an operand. A test checks that a flag of the same name
// takes a value in all commands or in none.
func allFlags(app *cli.App) map[string]cli.Flag {
	all := ByName(app.Flags)
	var walk func([]*cli.Command)
	walk = func(commands []*cli.Command) {
		for _, c := range commands {
			for name, f := range ByName(c.Flags) {
				all[name] = f
			}
			walk(c.Subcommands)
		}
	}
	walk(app.Commands)
	return all
}
