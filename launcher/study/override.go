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

// An Override is a key that the command line sets instead of the file.
type Override struct {
	Path  string // TOML path, "workload.batch"
	Value string // as TOML
	Was   string // what the file has; "" where it does not set the key
}

// String is "workload.batch = 64 (128 in the file)". Variables of the program may
// be secrets, which it leaves out.
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

// OnAxes reports whether overrides only choose other values of what the file sweeps,
// other repeats, or other limits: their runs then belong to the file's curves.
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

// commandLine is the Line of a Problem with what the command line says.
const commandLine = -1

// overridable are the tables whose keys an override may name by their path.
var overridable = []string{"study", "workload", "data", "parameters", "command", "sweep", "resources", "policy", "telemetry"}

// override writes KEY=VALUE words into the text of a study file, as if they had
// always been there: the study is then one text, which can be frozen and read
// again, and its points are what they would be otherwise. origin has, for every
// line of the new text, the line of the old one, 0 where there is none.
//
// A key is a path ("workload.batch") or the last part of one that no other key
// shares; a value is TOML, or a word, which is a string. What is set is no longer
// swept, and what is swept no longer set.
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
	set := map[string]string{} // canonical path to the word that set it
	for _, a := range given {
		path, wrong := names.resolve(a.key)
		if wrong != "" {
			refuse(a.key, wrong)
			continue
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
		for _, other := range others { // the same key by another name, or in the other role
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

// Overridable are the keys that the command line may set, by their paths and, where
// no other key shares it, by their last parts.
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

// assignment is one word of the command line, taken apart.
type assignment struct {
	key, value string
	scalar     bool // the value is neither list nor table
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// assign takes KEY=VALUE apart. A value that is no TOML is a string where it
// could not be meant as anything else: framework=native, time=2h.
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
	_, err := outline([]byte("x = " + value)) // bounds what the parser is given
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

// Quote is a text as a TOML string on one line.
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

// keyNames are the keys that a study may set, as override finds them.
type keyNames struct {
	short map[string][]string // last part to the paths that have it
	sweep map[string]pointField
	paths []string
}

// names are those of a study of this kind, with its own parameters.
func (e *editor) names(k kind) keyNames {
	n := keyNames{short: map[string][]string{}}
	own := Own{}
	add := func(table, key string) {
		if _, mine := own[key]; !mine || table == "parameters" || !slices.Contains(yielding, key) {
			n.short[key] = append(n.short[key], table+"."+key)
		}
		n.paths = append(n.paths, table+"."+key)
	}
	for _, path := range e.outline().order {
		if name, ok := strings.CutPrefix(path, parameterPrefix); ok && parameterName.MatchString(name) {
			own[name] = Scalar{}
			add("parameters", name)
		}
	}
	tables := map[string]fieldSet{"study": fieldsOf(reflect.TypeFor[header]()), "workload": k.fields(), "command": fieldsOf(reflect.TypeFor[Command]()),
		"resources": fieldsOf(reflect.TypeFor[Resources]()), "policy": fieldsOf(reflect.TypeFor[Policy]()), "telemetry": fieldsOf(reflect.TypeFor[Telemetry]()),
		"sweep": {keys: []string{"framework", "workers", "variant"}}}
	if k.data {
		tables["data"] = fieldsOf(reflect.TypeFor[Data]())
	}
	for _, table := range overridable {
		for _, key := range tables[table].keys {
			add(table, key)
		}
	}
	n.sweep, _ = sweepable(k.defaults.Kind, own)
	return n
}

// resolve is the path that a key means.
func (n keyNames) resolve(key string) (path, wrong string) {
	table, _, dotted := strings.Cut(key, ".")
	switch paths := n.short[key]; {
	case dotted && slices.Contains(overridable, table):
		return key, "" // whether the table has it, its decoding says
	case dotted && slices.Contains(tables, table):
		return "", "tables of a list cannot be named on the command line; edit the file"
	case dotted:
		return "", unknownKey + choose(key, "tables", overridable)
	case len(paths) == 1:
		return paths[0], ""
	case len(paths) > 1:
		return "", "may be " + strings.Join(paths, " or ") + "; write which"
	case slices.Contains(tables, key):
		return "", fmt.Sprintf("is a table; name a key of it, like %s", n.example(key))
	}
	var short []string
	for name := range n.short {
		short = append(short, name)
	}
	slices.Sort(short)
	if decided := decidedBy(key); decided != "" {
		return "", unknownKey + "; " + decided
	}
	if near := NearWords(key, short); len(near) > 0 {
		return "", fmt.Sprintf("%s; did you mean %s?", unknownKey, strings.Join(n.short[near[0]], " or "))
	}
	return "", unknownKey + "; give the path of a key of the study file, like workload.batch, or its last part, like batch; a parameter of your own is parameters.NAME"
}

// example is a key of a table.
func (n keyNames) example(table string) string {
	for _, path := range n.paths {
		if strings.HasPrefix(path, table+".") {
			return path
		}
	}
	return table + ".NAME"
}

// places are the key that a path means, swept or not, and the other paths by
// which a file may say it.
func (n keyNames) places(path string) (is string, others []string) {
	is = path
	if name, swept := strings.CutPrefix(path, "sweep."); swept {
		if f, ok := n.sweep[name]; ok {
			is = f.path
		}
	}
	list := []string{is, "sweep." + is}
	for name, f := range n.sweep {
		if f.path == is {
			list = append(list, "sweep."+name)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	own := strings.HasPrefix(path, "sweep.") && strings.HasPrefix(is, parameterPrefix)
	return is, slices.DeleteFunc(list, func(p string) bool {
		return p == path || own && p == is // a parameter may be declared and swept
	})
}

// editor changes single keys of a TOML text and keeps the rest as it is.
type editor struct {
	text   string
	origin []int // of each line: its number in the file; 0: none
}

func (e *editor) outline() *outliner {
	o := &outliner{text: e.text, line: 1, lines: lines{}, count: map[string]int{}, spans: map[string]span{}, headers: map[string]int{}}
	_ = o.file() // a text that is not TOML was refused before
	return o
}

// kind is the workload's, as far as the text says one.
func (e *editor) kind() string {
	if s, ok := e.outline().spans["workload.kind"]; ok {
		if name, err := strconv.Unquote(e.text[s.value:s.end]); err == nil {
			return name
		}
		return strings.Trim(e.text[s.value:s.end], "'")
	}
	return defaultKind
}

// replace puts text in the place of a part of the file's.
func (e *editor) replace(from, to int, text string) {
	line := strings.Count(e.text[:from], "\n") + 1
	if strings.HasSuffix(text, "\n") && (from == 0 || e.text[from-1] == '\n') {
		line-- // whole lines before this one
	}
	gone := strings.Count(e.text[from:to], "\n")
	e.origin = slices.Replace(e.origin, line, line+gone, make([]int, strings.Count(text, "\n"))...)
	e.text = e.text[:from] + text + e.text[to:]
}

// remove takes a key out, and notes what it was.
func (e *editor) remove(path string, was *Override) error {
	s, ok := e.outline().spans[path]
	if !ok {
		return nil
	}
	if s.inline {
		return fmt.Errorf("the file has %s within { }, where %s cannot replace it; edit the file", path, was.Path)
	}
	was.Was = e.text[s.value:s.end]
	if path != was.Path {
		was.Was = path + " = " + was.Was
	}
	e.replace(s.key, s.end, "")
	return nil
}

// set gives a key its value, where the file has it or else in the table to which
// it belongs.
func (e *editor) set(path, value string, was *Override) error {
	o := e.outline()
	if s, ok := o.spans[path]; ok {
		was.Was = e.text[s.value:s.end]
		e.replace(s.value, s.end, value)
		return e.check(path)
	}
	for table, key := path, ""; ; {
		i := strings.LastIndexByte(table, '.')
		if i < 0 {
			break
		}
		table, key = table[:i], join(table[i+1:], key)
		key = strings.TrimSuffix(key, ".")
		if s, ok := o.spans[table]; ok { // table = { … }
			if !strings.HasPrefix(e.text[s.value:], "{") {
				return fmt.Errorf("%s is not a table in the file", table)
			}
			text := " " + key + " = " + value
			if strings.TrimSpace(e.text[s.value+1:s.end-1]) != "" {
				text += ","
			}
			e.replace(s.value+1, s.value+1, text)
			return e.check(path)
		}
		if at, ok := o.headers[table]; ok {
			if end := strings.IndexByte(e.text[at:], '\n'); end >= 0 {
				at += end
			} else {
				at = len(e.text)
			}
			e.replace(at, at, "\n"+key+" = "+value)
			return e.check(path)
		}
	}
	table, key, _ := strings.Cut(path, ".")
	for _, known := range o.order {
		if o.spans[known].root && strings.HasPrefix(known, table+".") { // workload.model = … before any table
			e.replace(0, 0, path+" = "+value+"\n")
			return e.check(path)
		}
	}
	text := "[" + table + "]\n" + key + " = " + value + "\n"
	if e.text != "" && !strings.HasSuffix(e.text, "\n") {
		text = "\n" + text
	}
	e.replace(len(e.text), len(e.text), text)
	return e.check(path)
}

// check sees to it that the text is TOML still and has the key.
func (e *editor) check(path string) error {
	var any map[string]any
	md, err := toml.Decode(e.text, &any)
	if err != nil || !md.IsDefined(strings.Split(path, ".")...) {
		return fmt.Errorf("cannot be set from the command line; edit the file")
	}
	return nil
}

// trace makes the lines of an overridden text those of the file.
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
