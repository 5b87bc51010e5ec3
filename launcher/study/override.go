package study

import (
	"fmt"
	"maps"
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

// keyNames are the keys that a study may set.
type keyNames struct {
	short  map[string][]string // last part of a path → all paths that end with it
	sweep  map[string]pointField
	paths  []string
	inFile []string // the names in the file's [sweep]
}

// names returns the keys of a study of this kind, including the parameters that the text
// declares.
func (e *editor) names(k kind) keyNames {
	n := keyNames{short: map[string][]string{}}
	own := Own{}
	add := func(table, key string) {
		if _, mine := own[key]; !mine || table == "parameters" || !slices.Contains(yielding, key) {
			n.short[key] = append(n.short[key], table+"."+key)
		}
		n.paths = append(n.paths, table+"."+key)
	}
	declare := func(name string, ok bool) {
		if _, known := own[name]; ok && !known && parameterName.MatchString(name) {
			own[name] = Scalar{}
			add("parameters", name)
		}
	}
	for _, path := range e.outline().order {
		declare(strings.CutPrefix(strings.TrimPrefix(path, "sweep."), parameterPrefix))
		if name, ok := strings.CutPrefix(path, "sweep."); ok {
			n.inFile = append(n.inFile, name)
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
	for _, name := range n.inFile { // a placeholder of the command may be swept without a declaration
		declare(name, n.short[name] == nil && n.sweep[name].path == "" && "sweep."+name != designPath)
	}
	n.sweep, _ = sweepable(k.defaults.Kind, own)
	return n
}

// resolve returns the full path of a key; wrong is a message if the key is invalid.
func (n keyNames) resolve(key string) (path, wrong string) {
	table, _, dotted := strings.Cut(key, ".")
	switch paths := n.short[key]; {
	case dotted && slices.Contains(overridable, table):
		return key, "" // decoding reports an unknown key of the table
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
	short := slices.Sorted(maps.Keys(n.short))
	if decided := decidedBy(key); decided != "" {
		return "", unknownKey + "; " + decided
	}
	if near := NearWords(key, short); len(near) > 0 {
		return "", fmt.Sprintf("%s; did you mean %s?", unknownKey, strings.Join(n.short[near[0]], " or "))
	}
	return "", unknownKey + "; give the path of a key of the study file, like workload.batch, or its last part, like batch; a parameter of your own is parameters.NAME"
}

// swept returns the path under which [sweep] lists values of the key with this path: its
// name in the file, else its shortest. It returns the path unchanged if the key cannot be
// swept, or if the list is a value of the key itself, as of decay_epochs.
func (n keyNames) swept(path, list string) string {
	f, ok := n.sweep[path]
	var x struct{ X toml.Primitive }
	md, err := toml.Decode("x = "+list, &x)
	if !ok || err != nil || md.PrimitiveDecode(x.X, reflect.New(f.in(&Point{}).Type()).Interface()) == nil {
		return path
	}
	name := path
	if n.sweep[f.key].path == path {
		name = f.key
	}
	for _, spelt := range n.inFile {
		if n.sweep[spelt].path == path {
			name = spelt
		}
	}
	return "sweep." + name
}

// example returns the path of some key of the table, for a message.
func (n keyNames) example(table string) string {
	for _, path := range n.paths {
		if strings.HasPrefix(path, table+".") {
			return path
		}
	}
	return table + ".NAME"
}

// places returns the TOML path is of the key that a path such as "sweep.batch" sets or
// sweeps. others are the other paths under which a file may set or sweep that key.
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
	return is, slices.DeleteFunc(list, func(p string) bool {
		return p == path || p == is && strings.HasPrefix(path, "sweep.") // a key may be both set and swept
	})
}

// editor changes single keys of a TOML text and preserves the rest.
type editor struct {
	text   string
	origin []int // line number of each line in the file; 0: new
}

func (e *editor) outline() *outliner {
	o := &outliner{text: e.text, line: 1, lines: lines{}, count: map[string]int{}, spans: map[string]span{}, headers: map[string]int{}}
	_ = o.file() // newDecoder has rejected invalid TOML
	return o
}

// kind returns the kind of workload that the text sets, or the default kind.
func (e *editor) kind() string {
	if s, ok := e.outline().spans["workload.kind"]; ok {
		if name, err := strconv.Unquote(e.text[s.value:s.end]); err == nil {
			return name
		}
		return strings.Trim(e.text[s.value:s.end], "'")
	}
	return defaultKind
}

// replace replaces the bytes [from, to) of the text, and updates origin.
func (e *editor) replace(from, to int, text string) {
	line := strings.Count(e.text[:from], "\n") + 1
	if strings.HasSuffix(text, "\n") && (from == 0 || e.text[from-1] == '\n') {
		line-- // whole lines are inserted before this line
	}
	gone := strings.Count(e.text[from:to], "\n")
	e.origin = slices.Replace(e.origin, line, line+gone, make([]int, strings.Count(text, "\n"))...)
	e.text = e.text[:from] + text + e.text[to:]
}

// remove deletes the key from the text, if it is there, and records its value in was.
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

// set sets a key: at its present position if the text has it, else in its table.
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

// check returns an error unless the text is still valid TOML and has the key.
func (e *editor) check(path string) error {
	var any map[string]any
	md, err := toml.Decode(e.text, &any)
	if err != nil || !md.IsDefined(strings.Split(path, ".")...) {
		return fmt.Errorf("cannot be set from the command line; edit the file")
	}
	return nil
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
