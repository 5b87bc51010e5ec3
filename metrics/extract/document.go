package extract

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// value is a value in a JSON document that is known to be valid, with the line
// that it stands in. Its parts are found by walking over it once, so that a
// document of a million entries is read in proportion to its length, and each
// number still has its line. encoding/json tells no lines.
type value struct {
	text []byte
	line int // of its first byte, 1-based
}

// json reads a whole JSON file; one that was cut off is not valid.
func (l *log) json(r io.Reader) (value, error) {
	data, err := l.wholeFile(r)
	if err != nil {
		return value{}, err
	}
	return l.document(data, 1)
}

// document is JSON that begins in that line.
func (l *log) document(data []byte, line int) (value, error) {
	if json.Valid(data) {
		blank := len(data) - len(bytes.TrimLeft(data, " \t\r\n"))
		return value{bytes.TrimRight(data[blank:], " \t\r\n"), bytes.Count(data[:blank], []byte{'\n'}) + line}, nil
	}
	err := json.Unmarshal(data, new(any)) // says where
	offset := len(data)
	if s, ok := err.(*json.SyntaxError); ok {
		offset = min(max(int(s.Offset), 0), len(data))
	}
	return value{}, l.errorAt(bytes.Count(data[:offset], []byte{'\n'})+line, "not JSON: %w", err)
}

// documents are a JSON file's one document, or those of its lines where each is one
// of its own.
func (l *log) documents(r io.Reader) (list []value, err error) {
	data, err := l.wholeFile(r)
	if err != nil {
		return nil, err
	}
	first, _, more := bytes.Cut(data, []byte{'\n'})
	if !more || !json.Valid(first) {
		v, err := l.document(data, 1)
		return []value{v}, err
	}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		v, err := l.document(bytes.TrimRight(text, "\r\n"), line)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// is reports whether the value begins with that: '{' of an object, '[' of a
// list, '"' of a text.
func (v value) is(kind byte) bool { return len(v.text) > 0 && v.text[0] == kind }

// null reports whether there is no value: no such member, or null.
func (v value) null() bool { return len(v.text) == 0 || v.text[0] == 'n' }

// members fills into with the members of an object by their names; of two with
// one name, the last counts, as in encoding/json. Anything else has none.
func (v value) members(into map[string]value) {
	clear(into)
	if !v.is('{') {
		return
	}
	name, named := "", false
	v.walk(func(part value) error {
		if named = !named; named {
			name = string(part.text[1 : len(part.text)-1])
			if strings.ContainsRune(name, '\\') || !utf8.ValidString(name) {
				_ = json.Unmarshal(part.text, &name) // the document is valid
			}
			return nil
		}
		into[name] = part
		return nil
	})
}

// entries calls f with each entry of a list; anything else has none.
func (v value) entries(f func(value) error) error {
	if !v.is('[') {
		return nil
	}
	return v.walk(f)
}

// walk calls f with each of the values that a list holds, or the names and
// values of an object in turn.
func (v value) walk(f func(value) error) error {
	line := v.line
	for i := 1; i < len(v.text)-1; {
		switch v.text[i] {
		case '\n':
			line++
			i++
		case ' ', '\t', '\r', ',', ':':
			i++
		default:
			part := value{v.text[i:end(v.text, i)], line}
			if err := f(part); err != nil {
				return err
			}
			i += len(part.text)
			line += bytes.Count(part.text, []byte{'\n'})
		}
	}
	return nil
}

// end is where the value that begins at i ends.
func end(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			switch depth--; depth {
			case 0:
				return i + 1
			case -1:
				return i // a number's, in the object or list that ends here
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}
