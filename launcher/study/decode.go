package study

import (
	"errors"
	"iter"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// table is a TOML table whose values wait to be decoded one at a time, so that
// one wrong value does not hide the next.
type table map[string]toml.Primitive

// decoder reads one TOML file and collects every problem in it.
type decoder struct {
	file     string
	md       toml.MetaData
	top      table
	lines    map[string]int // line of each key seen, by path
	problems Problems
}

// newDecoder parses the file. Its error is a syntax error, after which nothing
// else can be said of the file.
func newDecoder(file string, source []byte) (*decoder, error) {
	d := &decoder{file: file, lines: map[string]int{}}
	var err error
	if d.md, err = toml.Decode(string(source), &d.top); err != nil {
		p := Problem{File: file, Message: err.Error()}
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			p.Line, p.Message = syntax.Position.Line, syntax.Message
		}
		return nil, Problems{p}
	}
	return d, nil
}

// problem reports something wrong at a path, which may end in an index. The
// toml package keeps one position a key, so that within [[tables]] there is
// none to give.
func (d *decoder) problem(path, message string) {
	key, index, _ := strings.Cut(path, "[")
	if strings.Contains(index, "]") && !strings.HasSuffix(index, "]") {
		key = ""
	}
	d.problems = append(d.problems, Problem{File: d.file, Line: d.lines[key], Path: path, Message: message})
}

// has reports whether the file sets the key.
func (d *decoder) has(path string) bool { return d.md.IsDefined(strings.Split(path, ".")...) }

// locator fails to decode from anything, which makes the toml package say
// where the value stands; it has no other way to ask.
type locator struct{}

func (*locator) UnmarshalTOML(any) error { return errors.New("asked for its position only") }

func (d *decoder) locate(path string, p toml.Primitive) {
	var at toml.ParseError
	if errors.As(d.md.PrimitiveDecode(p, &locator{}), &at) {
		d.lines[path] = at.Position.Line
	}
}

// The toml package puts the position into the text of a type error.
var positionPrefix = regexp.MustCompile(`^toml:(?: line \d+)?(?: \(last key "[^"]*"\))?: `)

// value decodes one value into dst and reports whether that worked.
func (d *decoder) value(path string, p toml.Primitive, dst any) bool {
	err := d.md.PrimitiveDecode(p, dst)
	if err == nil {
		return true
	}
	message := err.Error()
	var parse toml.ParseError
	if errors.As(err, &parse) {
		message = parse.Message
	}
	d.problem(path, positionPrefix.ReplaceAllString(message, ""))
	return false
}

// sub decodes a table within a table; nil when the key is absent or no table.
func (d *decoder) sub(t table, key string) table {
	p, ok := t[key]
	if !ok {
		return nil
	}
	d.locate(key, p)
	var sub table
	if !d.value(key, p, &sub) {
		return nil
	}
	return sub
}

// into decodes a table over the defaults that dst, a pointer to a struct,
// already holds. Keys that no field of dst has are problems.
func (d *decoder) into(path string, t table, dst any) {
	d.fields(path, t, fieldsOf(reflect.TypeOf(dst).Elem()), reflect.ValueOf(dst).Elem())
}

// fields is into for those fields of dst.
func (d *decoder) fields(path string, t table, fields fieldSet, dst reflect.Value) {
	for key, p := range t {
		keyPath := join(path, key)
		d.locate(keyPath, p)
		f, ok := fields.byKey[key]
		if !ok {
			d.problem(keyPath, unknownKey(fields.keys))
			continue
		}
		d.field(keyPath, p, dst.FieldByIndex(f.Index))
	}
}

func (d *decoder) field(path string, p toml.Primitive, v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		var sub table
		if d.value(path, p, &sub) {
			d.into(path, sub, v.Addr().Interface())
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
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

// fieldSet is the TOML keys of a struct type, embedded structs flattened.
type fieldSet struct {
	keys  []string // in the order of the struct
	byKey map[string]reflect.StructField
}

// all are the keys with their fields, in order.
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
