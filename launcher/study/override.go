package study

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/scalebench/scalebench/metrics/measure"
)

// An Override is a key that a KEY=VALUE argument on the command line sets.
type Override struct {
	Path  string // TOML path, "workload.batch"
	Value string // in TOML syntax
	Was   string // value in the file; "" if unset
}

// String returns "workload.batch = 64 (128 in the file)". It omits the values of
// environment variables, which may be secret.
func (o Override) String() string {
	if strings.HasPrefix(o.Path, "command.environment") {
		return o.Path
	}
	text := o.Path + " = " + o.Value
	if o.Was != "" {
		text += " (" + o.Was + " in the file)"
	}
	return text
}

// OnAxes reports whether overrides only change values of swept keys, repeats, or limits. The runs
// then belong to the same curves as runs of the unchanged file.
func OnAxes(list []Override) bool {
	return !slices.ContainsFunc(list, func(o Override) bool {
		table, key, _ := strings.Cut(o.Path, ".")
		switch {
		case table == "study", table == "policy", table == "telemetry", slices.Contains(measure.BoundKeys(), o.Path):
			return false
		case table == "sweep" && (key == "workers" || o.Path == designPath):
			return false
		case table == "sweep" && o.Was != "" && !strings.Contains(o.Was, " = "):
			return false
		}
		return !strings.HasPrefix(o.Was, "sweep.")
	})
}

// commandLine is the Line of a Problem in a KEY=VALUE argument.
const commandLine = -1

// overridable are the tables whose keys a KEY=VALUE argument may set.
var overridable = []string{"study", "workload", "data", "parameters", "command", "sweep", "resources", "policy", "telemetry"}

// override applies KEY=VALUE words to the text of a study file and returns the new text.
// Since the result is a text, it can be recorded and read again, and points do not depend
// on where a key was set. origin maps each line of the new text to its line in the old
// text, 0 for new lines.
//
// A key is a path ("workload.batch"), or its last part if that is unique. A value is in
// TOML syntax, or an unquoted word, which is taken as a string. A list sweeps the key,
// unless the key's own value is a list. Setting a key that the file sweeps removes the sweep.
func override(source []byte, words []string) (text []byte, origin []int, list []Override, problems Problems) {
	e := &editor{text: strings.TrimPrefix(string(source), "\ufeff")}
	for i := range strings.Count(e.text, "\n") + 1 {
		e.origin = append(e.origin, i+1)
	}
	refuse := func(path, message string) {
		problems = append(problems, Problem{File: "the command line", Line: commandLine, Path: path, Message: message})
	}
	given := make([]assignment, 0, len(words))
	kindName := e.kind()
	for _, word := range words {
		a, wrong := assign(word)
		if wrong != "" {
			refuse("", wrong)
			continue
		}
		if value, err := strconv.Unquote(a.value); a.key == "workload.kind" && err == nil {
			kindName = value
		}
		given = append(given, a)
	}
	k, known := kinds()[kindName]
	if !known {
		k = kinds()[defaultKind]
	}
	names := e.names(k)
	set := map[string]string{} // by canonical path: the word that set it
	for _, a := range given {
		path, wrong := names.resolve(a.key)
		if wrong != "" {
			refuse(a.key, wrong)
			continue
		}
		if strings.HasPrefix(a.value, "[") {
			path = names.swept(path, a.value)
		}
		is, others := names.places(path)
		if before := set[is]; before != "" {
			refuse(a.key, fmt.Sprintf("set twice, as %s and %s; keep one", before, a.key))
			continue
		}
		set[is] = a.key
		if strings.HasPrefix(path, "sweep.") && path != designPath && a.scalar {
			a.value = "[" + a.value + "]"
		}
		o := Override{Path: path, Value: a.value}
		for _, other := range others { // the same key under another name, or swept instead of set
			if err := e.remove(other, &o); err != nil {
				refuse(a.key, err.Error())
			}
		}
		if err := e.set(path, a.value, &o); err != nil {
			refuse(a.key, err.Error())
			continue
		}
		list = append(list, o)
	}
	return []byte(e.text), e.origin, list, problems
}

// Overridable returns the keys that KEY=VALUE arguments may set: all paths, and their last
// parts where these are unique.
func Overridable() []string {
	names := (&editor{}).names(kinds()[defaultKind])
	list := slices.Clone(names.paths)
	for short, paths := range names.short {
		if len(paths) == 1 {
			list = append(list, short)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// assignment is a KEY=VALUE word of the command line, split into key and value.
type assignment struct {
	key, value string
	scalar     bool // whether the value is neither a list nor a table
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// assign splits KEY=VALUE. A value that is not valid TOML is taken as a string if that is
// the only possible meaning: framework=native, time=2h. wrong is a message if the word is
// invalid.
func assign(word string) (a assignment, wrong string) {
	key, value, ok := strings.Cut(word, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case !ok:
		return a, fmt.Sprintf("%q has no value: want a key with one, like batch=64 or sweep.workers=[1,2]", word)
	case !bareKey.MatchString(key):
		return a, fmt.Sprintf("%q is not the name of a key, like batch or workload.batch", key)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return a, key + ": the value has characters that cannot be written on one line"
	}
	var found map[string]any
	_, err := outline([]byte("x = " + value)) // outline rejects nesting that is too deep for the parser
	if err == nil {
		_, err = toml.Decode("x = "+value+"\n", &found)
	}
	if err != nil || len(found) != 1 {
		if strings.ContainsAny(value[:min(1, len(value))], "\"'[{") {
			return a, fmt.Sprintf("%s: %s is not a TOML value; want a number, true, false, a string or a list of them, like [1, 2] or [\"native\"] (in a shell the whole word in single quotes)", key, value)
		}
		value = Quote(value)
		found = map[string]any{"x": ""}
	} else if at := strings.IndexByte(value, '#'); at >= 0 && !strings.ContainsAny(value, "\"'") {
		return a, fmt.Sprintf("%s: # starts a comment in TOML; quote the string", key)
	}
	kind := reflect.ValueOf(found["x"]).Kind()
	return assignment{key, value, kind != reflect.Slice && kind != reflect.Map}, ""
}

// Quote returns text as a TOML string on one line.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// trace converts line numbers of an overridden text to line numbers of the original file, for
// messages about problems.
func (l lines) trace(origin []int, list []Override) {
	for path, line := range l {
		of := commandLine
		if line <= len(origin) && origin[line-1] > 0 {
			of = origin[line-1]
		}
		for _, o := range list {
			if rest, ok := strings.CutPrefix(path, o.Path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				of = commandLine
			}
		}
		l[path] = of
	}
}
