package cmdline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
)

// UsageLine returns how a command is written: operands, then required options.
func UsageLine(full string, c *cli.Command) string {
	operands, command, another := strings.Cut(c.ArgsUsage, " | -- ")
	line := full
	if operands != "" {
		line += " " + operands
	}
	optional := false
	for _, f := range c.Flags {
		if !IsRequired(f) {
			optional = true
			continue
		}
		name := f.Names()[0]
		if short := slices.IndexFunc(f.Names(), func(n string) bool { return len(n) == 1 }); short >= 0 {
			name = f.Names()[short]
		}
		line += " " + Dashed(name) + " " + Placeholder(f)
	}
	if optional {
		line += " [OPTIONS]"
	}
	if another {
		line += ", or " + c.Name + " [OPTIONS] -- " + command
	}
	return line
}

// Placeholder returns the name of a flag's value, which is between backquotes in its help.
func Placeholder(f cli.Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		if parts := strings.Split(d.GetUsage(), "`"); len(parts) == 3 {
			return parts[1]
		}
	}
	return "VALUE"
}

// badValue matches the error of package flag for a value that it cannot parse.
var badValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^:]*): (.*)$`)

// ExplainValue returns a message about a flag's value that cannot be parsed. It says which
// values are valid.
func ExplainValue(flags []cli.Flag, message string) string {
	m := badValue.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	want := ""
	switch ByName(flags)[m[2]].(type) {
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
	return fmt.Sprintf("%s does not take the value %s%s", Dashed(m[2]), m[1], want)
}

// HintHelp returns the hint for a command line that is wrong in another way.
func HintHelp(command string) string {
	return fmt.Sprintf("`%s --help` shows what is valid.", strings.TrimSpace(command))
}

// Verbosely returns the command line with -v, for copying.
func (line Line) Verbosely() string {
	words := line.Operands
	var flags []string
	for _, f := range line.Flags {
		flag := f.Name
		if f.Has {
			flag += " " + workspace.ShellQuote(f.Value)
		}
		flags = append(flags, flag)
	}
	text := line.name()
	if len(words) > 0 && words[0] == "--" { // a command to measure
		for _, flag := range append(flags, "-v") {
			text += " " + flag
		}
		flags = nil
	} else {
		flags = append(flags, "-v")
	}
	for _, w := range words {
		text += " " + workspace.ShellQuote(w)
	}
	for _, flag := range flags {
		text += " " + flag
	}
	return text
}

// HelpMeasures is the only help topic that is not a command.
const HelpMeasures = "measures"
