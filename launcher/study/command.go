package study

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/redact"
)

// Command is the [command] table: a program of the user's own, started in place
// of a framework's. Which placeholders may stand in it is the framework's to
// say.
type Command struct {
	Run         CommandLine `toml:"run" json:"run"`                 // the program and its arguments
	Start       string      `toml:"start" json:"start"`             // "rank": one process a rank; "node": one a node, "once": one for the whole run, which start the ranks themselves
	Directory   string      `toml:"directory" json:"directory"`     // working directory, relative to the study file; "": its folder
	Environment Variables   `toml:"environment" json:"environment"` // over the site's

	// What it reports is read from its output, where it does not say so itself:
	Extract []string  `toml:"extract" json:"extract"` // formats by name; metrics/extract has them
	Log     string    `toml:"log" json:"log"`         // file to read, relative to the output folder, or a pattern for one; "": what the program prints
	Columns Variables `toml:"columns" json:"columns"` // the log's names for what it names as it likes, by ours: accuracy = "val_acc"
	// PrintedBy: which rank prints it, "first" or "last"; "" of an older point: "first". Of
	// programs that are started once a node, the one on that rank's node. No question that
	// can be asked again: of the other ranks' logs it is not known where the program begins.
	PrintedBy string `toml:"printed_by" json:"printed_by"`
	// Patterns are the [[extract]] tables.
	Patterns []Pattern `toml:"-" json:"patterns,omitempty"`

	// Uses are the keys whose values reach the program, by TOML path.
	Uses []string `toml:"-" json:"uses,omitempty"`

	// Folder is the study file's folder, absolute: what is relative is meant
	// from there. It is no part of the identity, as the path of the data.
	Folder string `toml:"-" json:"folder"`
}

// Sealed returns the command as records have it: digests replace what is or may be
// a secret, including the values of all variables.
func (c Command) Sealed(key redact.Key) Command {
	return c.sealed(key, func(_, value string) string { return key.Hide(value) })
}

// identified returns the command as a point's identity has it: digests replace the
// values that are recognised as secrets, and no others, so that a plain variable
// is the same under every key.
func (c Command) identified(key redact.Key) Command {
	return c.sealed(key, func(name, value string) string { return key.Value(name, value).(string) })
}

func (c Command) sealed(key redact.Key, variable func(name, value string) string) Command {
	c.Run = key.Arguments(c.Run)
	c.Directory, c.Log = key.Text(c.Directory), key.Text(c.Log)
	if c.Environment != nil {
		environment := Variables{}
		for name, value := range c.Environment {
			environment[name] = variable(name, value)
		}
		c.Environment = environment
	}
	return c
}

// Secrets returns the values that Sealed replaces.
func (c Command) Secrets() []string {
	list := redact.Secrets(slices.Concat(c.Run, []string{c.Directory, c.Log}))
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		if value := c.Environment[name]; value != "" {
			list = append(list, value)
		}
	}
	return list
}

// StartOnce is the value of Command.Start for programs such as mpirun, which start the
// ranks of all nodes.
const StartOnce = "once"

// LastRank is the value of Command.PrintedBy for programs whose last rank knows the loss:
// the last stage of a pipeline.
const LastRank = "last"

var (
	defaultCommand = Command{Start: "rank", PrintedBy: "first"}
	commandRules   = map[string]rule{
		"command.start":       {check: among("rank", "node", StartOnce)},
		"command.directory":   {check: oneLine},
		"command.environment": {check: variables},
		"command.log":         {check: oneLine},
		"command.printed_by":  {check: among("first", LastRank)},
	}
)

// CommandLine is a program and its arguments. In the TOML it is a list, or a
// string that is split at white space. No shell has a part in it: a string with
// a character that means something to one is refused, not guessed at.
type CommandLine []string

// shellCharacters mean something to a shell; in a list they stand for
// themselves.
const shellCharacters = "'\"\\|&;<>()$`*?#~!"

// UnmarshalTOML reads either form.
func (c *CommandLine) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		if i := strings.IndexAny(v, shellCharacters); i >= 0 {
			return fmt.Errorf("%q has a %q, and no shell reads it: a string is split at white space only; write a list, like [\"python3\", \"train.py\", \"a b\"], in which every character is literal", v, v[i:i+1])
		}
		*c = strings.Fields(v)
		return nil
	case []any:
		*c = CommandLine{}
		for i, a := range v {
			s, ok := a.(string)
			if !ok {
				return fmt.Errorf("argument [%d] is not a string but %v; put it into quotes", i, a)
			}
			if err := given(s); err != nil {
				return fmt.Errorf("argument [%d] %w", i, err)
			}
			*c = append(*c, s)
		}
		return nil
	}
	return fmt.Errorf("want a list of strings, or a string that is split at white space, got %v", v)
}

// Variables are environment variables. In JSON they are a list of "NAME=value",
// by name, as the store keeps lists and no tables.
type Variables map[string]string

// MarshalJSON writes the list.
func (v Variables) MarshalJSON() ([]byte, error) {
	list := []string{}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		list = append(list, name+"="+v[name])
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads it back.
func (v *Variables) UnmarshalJSON(text []byte) error {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*v = nil
	for _, entry := range list {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=value", entry)
		}
		if *v == nil {
			*v = Variables{}
		}
		(*v)[name] = value
	}
	return nil
}

func variables(v any) string {
	for _, name := range slices.Sorted(maps.Keys(v.(Variables))) {
		if !variableName.MatchString(name) {
			return fmt.Sprintf("%q cannot name an environment variable", name)
		}
		if err := given(v.(Variables)[name]); err != nil {
			return fmt.Sprintf("the value of %s %v", name, err)
		}
	}
	return ""
}

// commandFits checks [command] against the frameworks of the sweep: whether
// somebody starts it, and whether the values that are swept reach it.
func (d *decoder) commandFits(s *Study) {
	started := slices.ContainsFunc(s.swept(), func(f Framework) bool { return f.Command })
	for _, table := range []string{"command", "extract"} {
		if !d.has(table) || started {
			continue
		}
		var names []string
		for _, f := range s.frameworks {
			if f.Command {
				names = append(names, fmt.Sprintf("%q", f.Name))
			}
		}
		d.conflict(table, "is set, but sweep.framework does not include "+strings.Join(names, " or "), "sweep.framework")
	}
}

// swept are the frameworks of the sweep, known ones only.
func (s *Study) swept() []Framework {
	var list []Framework
	for _, a := range s.axes {
		for _, v := range a.values {
			for _, f := range s.frameworks {
				if a.path == "framework" && f.Name == v.String() {
					list = append(list, f)
				}
			}
		}
	}
	return list
}

// bringsAll reports whether every framework of the sweep starts a program that
// has its own model and length.
func (s *Study) bringsAll() bool {
	list := s.swept()
	return len(list) > 0 && !slices.ContainsFunc(list, func(f Framework) bool { return !f.Command })
}

// unheard names the axes of the sweep whose value never reaches the program of
// a point: every one of their values would run the same thing. The folder of the
// data reaches every command, in $SCALEBENCH_DATA.
func (x *expansion) unheard(f Framework, p Point) []axis {
	if f.Uses == nil {
		return nil
	}
	uses := f.Uses(p)
	var list []axis
	for _, a := range x.study.axes {
		table, name, _ := strings.Cut(a.path, ".")
		switch {
		case slices.Contains(uses, a.path), a.path == "data.path", a.path == "data.stage":
		case table == "workload", table == "data", table == "parameters" && !x.reads(p.Command, ParameterVariable(name)):
			list = append(list, a)
		}
	}
	return list
}

// remedy ends the message about an axis that nothing depends on.
func (a axis) remedy() string {
	if name, own := strings.CutPrefix(a.path, parameterPrefix); own {
		return fmt.Sprintf("; write {%s} where it belongs in run, directory or environment, or read $%s in a file that run names", name, ParameterVariable(name))
	}
	return ""
}

// reads reports whether a command names a variable of its environment: in its
// own text, or in a file beside the study that its arguments name.
func (x *expansion) reads(c Command, variable string) bool {
	for _, argument := range c.Run {
		path := argument
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Folder, c.Directory, path)
		}
		text, known := x.texts[path]
		if !known {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() < maxFile {
				content, _, _ := read(path) // what cannot be read, the run will say
				text = string(content)
			}
			x.texts[path] = text
		}
		if strings.Contains(argument, variable) || strings.Contains(text, variable) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(c.Environment)), func(value string) bool { return strings.Contains(value, variable) })
}

// untaken reports the parameters that a framework's own program can hand to
// nobody.
func (x *expansion) untaken(p Point) {
	if len(p.Own) == 0 || x.study.takes(&p) {
		return
	}
	for _, name := range p.Own.Names() {
		x.problem(parameterPrefix+name, fmt.Sprintf("has no effect with framework = %q: parameters go to a model or data of your own (workload.model = \"my_model.py:build\"), or to framework = \"command\"", p.Framework))
	}
}

// Reaches reports whether a key's value reaches the program of a run, by its TOML
// path: a command gets those that its placeholders name, and the batch that it
// trains with otherwise is not ours to record.
func (p *Point) Reaches(path string) bool {
	table, _, _ := strings.Cut(path, ".")
	return p.Command.Folder == "" || table != "workload" && table != "data" ||
		path == "workload.kind" || path == "data.path" && p.Data.Path != "" || path == "data.stage" && p.Data.Stage || slices.Contains(measure.QuestionKeys(), path) && p.Workload.Trains() || p.Workload.Train.MFU != "" && (path == "workload.model" || path == "workload.sequence" || path == "workload.precision") || p.Workload.Train.Sample != "" && path == "workload.sequence" || slices.Contains(p.Command.Uses, path)
}

// has reports whether the key is one of the point's: those of [command] are
// there only with a program to start, a variant only where one is named, and how a
// step is computed only of a language model, or where it is said.
func (p *Point) has(f pointField) bool {
	switch {
	case slices.Contains(measure.AnnotationKeys(), f.path):
		return !f.in(p).IsZero()
	case f.path == "variant":
		return p.Variant != ""
	case f.path == "command.printed_by":
		return p.Command.PrintedBy == LastRank
	case strings.HasPrefix(f.path, "command."):
		return !reflect.ValueOf(p.Command).IsZero()
	case slices.Contains(degreeKeys, f.path), f.path == "workload.accumulate":
		return !f.in(p).IsZero()
	case slices.Contains(yielding, f.key) && strings.HasPrefix(f.path, "workload."):
		return p.Architecture.Layers > 0 || !f.in(p).IsZero()
	}
	return true
}
