package study

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

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
