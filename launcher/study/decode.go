package study

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// table is a TOML table whose values are decoded one at a time, so that one wrong value
// does not hide the next.
type table map[string]toml.Primitive

// decoder reads a TOML file and collects all problems in it. It omits problems that only
// follow from another problem: if a value cannot be read, neither its contents nor its
// consistency with other keys are checked.
type decoder struct {
	file     string
	md       toml.MetaData
	top      table
	lines    lines
	problems Problems
	told     map[Problem]bool // problems reported so far, each of which is reported only once
	flaws    flaws
	anyKind  bool // the kind of workload is unknown

	strangers int               // number of unknown keys so far
	homes     map[string]string // full path of each key, "resources.time" for "time", to suggest it for a key in the wrong table; nil: no such suggestions
}

// newDecoder parses the file. It returns an error if the file is not valid TOML, which
// prevents further checks.
func newDecoder(file string, source []byte) (*decoder, error) {
	d := &decoder{file: file, flaws: flaws{}, told: map[Problem]bool{}}
	if len(source) > maxFile {
		return nil, Problems{{File: file, Message: fmt.Sprintf("larger than %d MiB, which no study or site file needs to be", maxFile>>20)}}
	}
	var err error
	if d.lines, err = outline(source); err != nil {
		p := Problem{File: file, Message: err.Error()}
		if nested, ok := errors.AsType[*nestedError](err); ok {
			p.Line = nested.line
		}
		return nil, Problems{p}
	}
	if d.md, err = toml.Decode(string(source), &d.top); err != nil {
		p := Problem{File: file, Message: err.Error()}
		if syntax, ok := errors.AsType[toml.ParseError](err); ok {
			p.Line, p.Message = syntax.Position.Line, syntax.Message
		}
		return nil, Problems{p}
	}
	return d, nil
}

// problem adds a problem at a path, unless it was added before or the value cannot be read.
func (d *decoder) problem(path, message string) {
	p := Problem{File: d.file, Line: d.lines.of(path), Path: path, Message: message}
	if d.flaws.unread(path) || d.told[p] {
		return
	}
	d.told[p] = true
	d.problems = append(d.problems, p)
	d.flaws.add(path, flawed)
}

// rule adds the problem that a rule found, unless the value at the path already has a
// problem. wrong is the rule's result, "" for no problem.
func (d *decoder) rule(path, wrong string) {
	if wrong != "" && !d.flaws.in(path) {
		d.problem(path, wrong)
	}
}

// conflict is like rule, for a problem that involves several keys. It adds nothing if one
// of keys already has a problem.
func (d *decoder) conflict(path, wrong string, keys ...string) {
	if !slices.ContainsFunc(keys, d.flaws.in) {
		d.rule(path, wrong)
	}
}

// has reports whether the file sets the key.
func (d *decoder) has(path string) bool { return d.md.IsDefined(strings.Split(path, ".")...) }

// The toml package prefixes a type error with its position.
var positionPrefix = regexp.MustCompile(`^toml:(?: line \d+)?(?: \(last key "[^"]*"\))?: `)

var (
	typeError = regexp.MustCompile(`^incompatible types: TOML value has type (.+); destination has type (.+)$`)
	typeNames = map[string]string{"integer": "a whole number", "float": "a number", "string": "a string", "boolean": "true or false",
		"bool": "true or false", "slice": "a list", "array": "a list", "map": "a table", "table": "a table", "primitive (string-like)": "a string",
		"int64": "a whole number", "float64": "a number", "[]any": "a list", "map[string]any": "a table"}
)

// plainly rewords the toml package's message about a wrong value for users.
func plainly(message string) string {
	message = positionPrefix.ReplaceAllString(message, "")
	if m := typeError.FindStringSubmatch(message); m != nil {
		return "want " + cmp.Or(typeNames[m[2]], m[2]) + ", got " + cmp.Or(typeNames[m[1]], m[1])
	}
	return message
}

// value decodes a value into dst and reports success. It decodes lists and tables of
// scalars entry by entry, to report each wrong entry.
func (d *decoder) value(path string, p toml.Primitive, dst any) bool {
	v := reflect.ValueOf(dst).Elem()
	if _, own := dst.(toml.Unmarshaler); !own {
		switch {
		case v.Kind() == reflect.Slice && (v.Type().Elem().Kind() != reflect.Struct && v.Type().Elem().Kind() != reflect.Map || readsItself(v.Type().Elem())):
			return d.list(path, p, v)
		case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.String:
			return d.strings(path, p, v)
		}
	}
	err := d.md.PrimitiveDecode(p, dst)
	if err == nil {
		return true
	}
	message := err.Error()
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		message = parse.Message
	}
	d.problem(path, plainly(message))
	d.flaws.add(path, unreadable)
	return false
}

// readsItself reports whether a type has its own UnmarshalTOML.
func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[toml.Unmarshaler]())
}

func (d *decoder) list(path string, p toml.Primitive, v reflect.Value) bool {
	var entries []toml.Primitive
	if d.md.PrimitiveDecode(p, &entries) != nil {
		return d.mismatch(path, p, v)
	}
	list, good := reflect.MakeSlice(v.Type(), len(entries), len(entries)), true
	for i, entry := range entries {
		if !d.value(path+"["+strconv.Itoa(i)+"]", entry, list.Index(i).Addr().Interface()) {
			good = false
		}
	}
	v.Set(list)
	return good
}

func (d *decoder) strings(path string, p toml.Primitive, v reflect.Value) bool {
	var entries table
	if d.md.PrimitiveDecode(p, &entries) != nil {
		return d.mismatch(path, p, v)
	}
	m, good := reflect.MakeMap(v.Type()), true
	for key, entry := range entries {
		text := ""
		if d.value(join(path, key), entry, &text) {
			m.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(text))
		} else {
			good = false
		}
	}
	v.Set(m)
	return good
}

// mismatch adds a problem about a value that should be a list or a table, and returns
// false.
func (d *decoder) mismatch(path string, p toml.Primitive, v reflect.Value) bool {
	want := "a list, like [1, 2]"
	var got any
	_ = d.md.PrimitiveDecode(p, &got) // no error: decoding into any always succeeds
	shown := fmt.Sprintf("%.60s", fmt.Sprint(got))
	if s, ok := got.(string); ok {
		shown = Quote(fmt.Sprintf("%.60s", s))
		want = "a list, like [" + shown + "]"
	}
	if v.Kind() == reflect.Map {
		want = "a table, like { NAME = \"value\" }"
	}
	d.problem(path, fmt.Sprintf("want %s, got %s", want, shown))
	d.flaws.add(path, unreadable)
	return false
}

// sub decodes a table within a table; nil if the key is missing or not a table.
func (d *decoder) sub(t table, key string) table {
	p, ok := t[key]
	if !ok {
		return nil
	}
	var sub table
	if !d.value(key, p, &sub) {
		return nil
	}
	return sub
}

// into decodes a table into dst, a pointer to a struct with the default values. A key
// without a field in dst is a problem.
func (d *decoder) into(path string, t table, dst any) {
	d.fields(path, t, fieldsOf(reflect.TypeOf(dst).Elem()), reflect.ValueOf(dst).Elem())
}

// fields is like into, but decodes only the given fields of dst.
func (d *decoder) fields(path string, t table, fields fieldSet, dst reflect.Value) {
	for _, key := range d.inOrder(path, t) {
		f, ok := fields.byKey[key]
		if !ok {
			if !slices.Contains(fields.elsewhere, key) {
				d.unknown(path, key, unknownKey, fields.keys, t.has, inner)
			}
			continue
		}
		d.field(join(path, key), t[key], dst.FieldByIndex(f.Index))
	}
}

// inOrder returns the keys of a table in file order.
func (d *decoder) inOrder(path string, t table) []string {
	return slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.lines.of(join(path, a)), d.lines.of(join(path, b))), strings.Compare(a, b))
	})
}

func (t table) has(key string) bool { _, ok := t[key]; return ok }

// unknown adds a problem about an unknown key, with a suggestion. The suggested key is then
// not reported as missing. To save time, only the first maxShown unknown keys get a
// suggestion.
func (d *decoder) unknown(path, key, what string, valid []string, set func(string) bool, flaw flaw) {
	if d.strangers++; d.strangers > maxShown {
		d.problem(join(path, key), what)
		return
	}
	home := d.homes[key]
	for ours := range strings.FieldsSeq(synonyms[strings.ToLower(key)]) {
		if home == "" && !slices.Contains(valid, ours) {
			home = d.homes[ours]
		}
	}
	if table, _, _ := strings.Cut(home, "."); path == "sweep" && slices.Contains([]string{"study", "policy", "telemetry", "command"}, table) {
		d.problem(join(path, key), what+"; set "+home)
		return
	}
	if home != "" && home != join(path, key) && what == unknownKey {
		d.problem(join(path, key), fmt.Sprintf("%s; did you mean %s? Valid here: %s", what, home, strings.Join(valid, ", ")))
		if !d.has(home) {
			d.flaws.add(home, flaw)
		}
		return
	}
	if decided := decidedBy(key); decided != "" && home == "" && d.homes != nil && what == unknownKey {
		d.problem(join(path, key), what+"; "+decided)
		return
	}
	d.problem(join(path, key), what+choose(key, "valid here", valid))
	d.misspelt(path, key, valid, set, flaw)
}

// misspelt records that an unknown key is probably a misspelling of another key, which is
// then not reported as missing.
func (d *decoder) misspelt(path, key string, valid []string, set func(string) bool, what flaw) {
	if near := NearWords(key, valid); len(near) > 0 && !set(near[0]) {
		d.flaws.add(join(path, near[0]), what)
	}
}

func (d *decoder) field(path string, p toml.Primitive, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(reflect.New(v.Type().Elem()))
		d.field(path, p, v.Elem())
	case v.Kind() == reflect.Struct:
		var sub table
		if d.value(path, p, &sub) {
			d.into(path, sub, v.Addr().Interface())
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && !readsItself(v.Type().Elem()):
		var subs []table
		if !d.value(path, p, &subs) {
			return
		}
		list := reflect.MakeSlice(v.Type(), len(subs), len(subs))
		for i, sub := range subs {
			d.into(path+"["+strconv.Itoa(i)+"]", sub, list.Index(i).Addr().Interface())
		}
		v.Set(list)
	default:
		d.value(path, p, v.Addr().Interface())
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fieldSet holds the TOML keys of a struct type, with embedded structs flattened.
type fieldSet struct {
	keys  []string // in struct order
	byKey map[string]reflect.StructField
	// elsewhere are keys of other kinds of workload. They are not reported as unknown if
	// the file's kind of workload is unknown.
	elsewhere []string
}

// all iterates over the keys and fields in order.
func (s fieldSet) all() iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for _, key := range s.keys {
			if !yield(key, s.byKey[key]) {
				return
			}
		}
	}
}

func fieldsOf(t reflect.Type) fieldSet {
	set := fieldSet{byKey: map[string]reflect.StructField{}}
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("toml"); key != "" && key != "-" && !f.Anonymous {
			set.keys = append(set.keys, key)
			set.byKey[key] = f
		}
	}
	return set
}
