package main

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/internal/cmdline"
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/export"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/table"
)

// completeCommand is the command that completion scripts call. Its arguments are the words
// of the command line up to the cursor; the last one is incomplete or "". It prints one
// candidate per line, a tab and its explanation. A line that begins with a colon delegates
// to the shell: ":files" or ":folders". So the scripts contain no names that could become
// outdated.
const completeCommand = "__complete"

// candidate is a word that may complete the current one.
type candidate struct{ word, about string }

const (
	filesWanted   = ":files"
	foldersWanted = ":folders"
)

// complete prints the candidates for the last of words.
func complete(s *session, app *cli.App, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	current := words[last]
	for _, c := range s.candidates(app, words[:last], current) {
		if !strings.HasPrefix(c.word, current) && !strings.HasPrefix(c.word, ":") {
			continue
		}
		line := c.word
		if c.about != "" {
			line += "\t" + c.about
		}
		if _, err := io.WriteString(s.stdout, clean.Lines(line)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// candidates returns the words that may follow before, given how the current one
// begins. A line with an error has no candidates.
func (s *session) candidates(app *cli.App, before []string, current string) []candidate {
	line, err := cmdline.Parse(app, before)
	var missing *cmdline.MissingValueError
	switch {
	case errors.As(err, &missing):
		return s.valuesOf(missing.Flag, "")
	case err != nil:
		return nil
	}
	onlyOperands := slices.Contains(before, "--")
	if name, _, ok := strings.Cut(current, "="); ok && strings.HasPrefix(name, "--") && !onlyOperands {
		if f, ok := line.Valid(app)[strings.TrimPrefix(name, "--")]; ok && cmdline.TakesValue(f) {
			return s.valuesOf(f, name+"=")
		}
		return nil
	}
	if strings.HasPrefix(current, "-") && !onlyOperands {
		return flagsOf(line.Valid(app), line)
	}
	c := line.Command()
	switch {
	case c == nil:
		return commandsOf(app.Commands)
	case len(c.Subcommands) > 0:
		return commandsOf(c.Subcommands)
	case c.Name == "help":
		asked, err := cmdline.Parse(app, append([]string{"--"}, line.Operands...))
		if err != nil {
			return nil
		}
		if c := asked.Command(); c != nil {
			return commandsOf(c.Subcommands)
		}
		return commandsOf(app.Commands)
	}
	operands := cmdline.OperandNames(c)
	if len(operands) == 0 || len(line.Operands) >= len(operands) && !strings.Contains(operands[len(operands)-1], "...") {
		return nil
	}
	return s.wordsFor(strings.Trim(operands[min(len(line.Operands), len(operands)-1)], "[]."), "")
}

func commandsOf(level []*cli.Command) []candidate {
	var list []candidate
	for _, c := range level {
		if !c.Hidden {
			list = append(list, candidate{c.Name, c.Usage})
		}
	}
	return list
}

func flagsOf(valid map[string]cli.Flag, line cmdline.Line) []candidate {
	var list []candidate
	for name, f := range valid {
		if line.Has(f.Names()[0]) {
			continue
		}
		about := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			about = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		list = append(list, candidate{cmdline.Dashed(name), about})
	}
	slices.SortFunc(list, func(a, b candidate) int { return strings.Compare(a.word, b.word) })
	return list
}

// valuesOf returns the values of a flag, each after prefix.
func (s *session) valuesOf(f cli.Flag, prefix string) []candidate {
	if name := cmdline.Placeholder(f); name != "KEY=VALUE" { // the flag selects runs by their parameters
		return s.wordsFor(name, prefix)
	}
	return nil
}

// studiesHere returns the studies with run folders. It ignores errors, which completion
// must not print.
func (s *session) studiesHere() []rundir.Study {
	runs, err := s.workspace().RunsHere()
	if err != nil {
		return nil
	}
	names, err := rundir.Studies(runs)
	if err != nil {
		return nil
	}
	list := make([]rundir.Study, len(names))
	for i, name := range names {
		list[i] = rundir.OpenStudy(runs, name)
	}
	return list
}

// runsOf returns the attempts of all studies.
func (s *session) runsOf(prefix string) []candidate {
	var list []candidate
	for _, folder := range s.studiesHere() {
		attempts, err := folder.Attempts()
		if err != nil {
			continue
		}
		for _, run := range attempts {
			list = append(list, candidate{prefix + run.Run.ID(), "run"})
		}
	}
	return list
}

// wordsFor returns the words that an operand or value of this name can be.
func (s *session) wordsFor(name, prefix string) []candidate {
	var words []string
	switch name {
	case "FORMAT":
		words = table.Formats
	case "FIGURE":
		var list []candidate
		for _, k := range figure.Presets() {
			list = append(list, candidate{prefix + k.Name, k.About})
		}
		return list
	case "EXPORT":
		var list []candidate
		for _, f := range export.Formats {
			list = append(list, candidate{prefix + f.Name, f.About})
		}
		return list
	case "STATE":
		for _, s := range metrics.Statuses {
			words = append(words, string(s))
		}
	case "SHELL":
		words = shells
	case "STUDY":
		list := []candidate{{word: filesWanted}}
		for _, folder := range s.studiesHere() {
			list = append(list, candidate{prefix + filepath.Base(folder.Path()), "study"})
		}
		return list
	case "RUN":
		return s.runsOf(prefix)
	case "STUDY|RUN":
		return append(s.wordsFor("STUDY", prefix), s.runsOf(prefix)...)
	case "KEY":
		keys := map[string]bool{}
		for _, folder := range s.studiesHere() {
			plan, err := launcher.ReadPlan(folder)
			if err != nil {
				continue
			}
			for _, p := range plan.Points {
				for key := range p.Point.Parameters() {
					keys[key] = true
				}
			}
		}
		words = slices.Sorted(maps.Keys(keys))
	case "KEY=VALUE": // the flag overrides keys of a study file
		for _, key := range study.Overridable() {
			words = append(words, key+"=")
		}
	case "MEASURE":
		words = measure.Names()
	case "FILE", "PATH", "SITE":
		return []candidate{{word: filesWanted}}
	case "DIR":
		return []candidate{{word: foldersWanted}}
	}
	var list []candidate
	for _, w := range words {
		list = append(list, candidate{word: prefix + w})
	}
	return list
}
