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

// Command is the [command] table: the user's program that the run starts, with framework =
// "command" or another framework that starts such programs. The framework defines which
// placeholders, such as {batch}, its arguments may have.
type Command struct {
	Run         CommandLine `toml:"run" json:"run"`                 // the program and its arguments
	Start       string      `toml:"start" json:"start"`             // "rank": one process per rank; "node": one per node; "once": one for the whole run. The latter two start the ranks themselves
	Directory   string      `toml:"directory" json:"directory"`     // working directory, relative to the study file; "": its folder
	Environment Variables   `toml:"environment" json:"environment"` // variables in addition to the site's

	// How to read results from the program's output, if it does not report them itself:
	Extract []string  `toml:"extract" json:"extract"` // names of formats in metrics/extract
	Log     string    `toml:"log" json:"log"`         // file to read, or a pattern that matches one, relative to the output folder; "": the program's output
	Columns Variables `toml:"columns" json:"columns"` // maps scalebench's names of measures to the names in the log: accuracy = "val_acc"
	// PrintedBy is the rank whose output is read, "first" or "last"; "" in points of
	// earlier versions means "first". If the program is started once per node, the output
	// of the program on that rank's node is read. The key cannot be changed for finished
	// runs, since it is unknown where the program's output begins in the other ranks' logs.
	PrintedBy string `toml:"printed_by" json:"printed_by"`
	// Patterns are the [[extract]] tables.
	Patterns []Pattern `toml:"-" json:"patterns,omitempty"`

	// Uses are the TOML paths of the keys whose values reach the program.
	Uses []string `toml:"-" json:"uses,omitempty"`

	// Folder is the study file's folder, an absolute path; relative paths start there. It
	// is "" for points that start no such program. Like the path of the data, it is not
	// part of a point's identity.
	Folder string `toml:"-" json:"folder"`
}

// asksFor reports whether the program's arguments, directory or environment contain the
// placeholder {name}.
func (c Command) asksFor(name string) bool {
	texts := slices.Concat(c.Run, []string{c.Directory}, slices.Collect(maps.Values(c.Environment)))
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "{"+name+"}") })
}

// Sealed returns the command in the form in which it is recorded: digests replace
// everything that is or may be secret, including the values of all variables.
func (c Command) Sealed(key redact.Key) Command {
	return c.sealed(key, func(_, value string) string { return key.Hide(value) })
}

// identified returns the command in the form that a point's identity is computed from. Only values
// that look like secrets are replaced by digests, so that without secrets the identity does not
// depend on the key.
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

// StartOnce is the value of Command.Start for programs such as mpirun that start the ranks
// on all nodes.
const StartOnce = "once"

// LastRank is the value of Command.PrintedBy for programs of which only the last rank
// prints the loss, because it has the last stage of a pipeline.
const LastRank = "last"

var (
	defaultCommand = Command{Start: "rank", PrintedBy: "first"}
	commandRules   = map[string]rule{
		"command.start":       among("rank", "node", StartOnce),
		"command.directory":   oneLine,
		"command.environment": variables,
		"command.log":         oneLine,
		"command.printed_by":  among("first", LastRank),
	}
)

// CommandLine is a program and its arguments. In TOML it is a list, or a string that is
// split at white space. No shell interprets it, so a string with characters that are
// special in a shell is an error.
type CommandLine []string

// shellCharacters are the characters that are special in a shell. In a list they are
// allowed and taken literally.
const shellCharacters = "'\"\\|&;<>()$`*?#~!"

// UnmarshalTOML reads a list or a string.
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

// Variables are environment variables, by name. In JSON they are a list of "NAME=value",
// sorted by name, because the database can store lists of strings but not tables.
type Variables map[string]string

// MarshalJSON writes the list.
func (v Variables) MarshalJSON() ([]byte, error) {
	list := []string{}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		list = append(list, name+"="+v[name])
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads the list.
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

// commandFits checks [command] against the swept frameworks: at least one of them must
// start the user's program, and the swept values must reach it.
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

// swept returns the frameworks that the study sweeps, without unknown ones.
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

// bringsAll reports whether every swept framework starts a user's program. Such a program
// determines its model and its length itself.
func (s *Study) bringsAll() bool {
	list := s.swept()
	return len(list) > 0 && !slices.ContainsFunc(list, func(f Framework) bool { return !f.Command })
}

// unheard returns the swept axes whose values do not reach the program of a point, so that
// all values would run the same. The data folder always reaches it, in $SCALEBENCH_DATA.
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

// remedy returns the end of the error message about an axis without effect: what to do
// about it.
func (a axis) remedy() string {
	if name, own := strings.CutPrefix(a.path, parameterPrefix); own {
		return fmt.Sprintf("; write {%s} where it belongs in run, directory or environment, or read $%s in a file that run names", name, ParameterVariable(name))
	}
	return ""
}

// reads reports whether the text of a command mentions an environment variable. The
// variable may also be mentioned in a file that an argument of the command names.
func (x *expansion) reads(c Command, variable string) bool {
	for _, argument := range c.Run {
		path := argument
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Folder, c.Directory, path)
		}
		text, known := x.texts[path]
		if !known {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() < maxFile {
				content, _, _ := read(path) // an unreadable file is reported by the run
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

// untaken adds a problem for each of the study's own parameters if the point's program
// cannot receive them.
func (x *expansion) untaken(p Point) {
	if len(p.Own) == 0 || x.study.takes(&p) {
		return
	}
	for _, name := range p.Own.Names() {
		x.problem(parameterPrefix+name, fmt.Sprintf("has no effect with framework = %q: parameters go to a model or data of your own (workload.model = \"my_model.py:build\"), or to framework = \"command\"", p.Framework))
	}
}

// Reaches reports whether the value of the key with this TOML path reaches the run's
// program. A user's program receives only the keys that its placeholders name. If they do
// not include the batch, the program's batch is unknown.
func (p *Point) Reaches(path string) bool {
	table, _, _ := strings.Cut(path, ".")
	return p.Command.Folder == "" || table != "workload" && table != "data" ||
		path == "workload.kind" || path == "data.path" && p.Data.Path != "" || path == "data.stage" && p.Data.Stage || slices.Contains(measure.QuestionKeys(), path) && p.Workload.Trains() || p.Workload.Train.MFU != "" && (path == "workload.model" || path == "workload.sequence" || path == "workload.precision") || p.Workload.Train.Sample != "" && path == "workload.sequence" || slices.Contains(p.Command.Uses, path)
}

// has reports whether the key is recorded with the point. Keys of [command] are recorded
// only if the point starts a user's program, and the variant only if it is set. Keys about
// the computation of a step are recorded for language models, and otherwise only if they
// are set.
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
