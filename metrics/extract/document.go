package extract

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// A value is a part of a valid JSON document, with the number of the line on which it begins,
// which encoding/json does not report. Its methods walk over the text to find members and
// entries, so that reading takes time proportional to the length of the document.
type value struct {
	text []byte
	line int // where it begins, 1-based
}

// json parses a whole JSON file. A truncated file is an error.
func (l *log) json(r io.Reader) (value, error) {
	data, err := l.wholeFile(r)
	if err != nil {
		return value{}, err
	}
	return l.document(data, 1)
}

// document parses JSON that begins on the given line.
func (l *log) document(data []byte, line int) (value, error) {
	if json.Valid(data) {
		blank := len(data) - len(bytes.TrimLeft(data, " \t\r\n"))
		return value{bytes.TrimRight(data[blank:], " \t\r\n"), bytes.Count(data[:blank], []byte{'\n'}) + line}, nil
	}
	err := json.Unmarshal(data, new(any)) // returns the position of the mistake
	offset := len(data)
	if s, ok := err.(*json.SyntaxError); ok {
		offset = min(max(int(s.Offset), 0), len(data))
	}
	return value{}, l.errorAt(bytes.Count(data[:offset], []byte{'\n'})+line, "not JSON: %w", err)
}

// documents returns the JSON values in a file: one in a JSON file, one per line in a JSON Lines
// file.
func (l *log) documents(r io.Reader) (list []value) {
	data := must(l.wholeFile(r))
	first, _, more := bytes.Cut(data, []byte{'\n'})
	if !more || !json.Valid(first) {
		return []value{must(l.document(data, 1))}
	}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		list = append(list, must(l.document(bytes.TrimRight(text, "\r\n"), line)))
	}
	return list
}

// is reports whether the value begins with the character kind: '{' for an object, '[' for a list,
// '"' for a string.
func (v value) is(kind byte) bool { return len(v.text) > 0 && v.text[0] == kind }

// null reports whether the value is missing or null.
func (v value) null() bool { return len(v.text) == 0 || v.text[0] == 'n' }

// members stores the members of an object in the map into, by name. If a name occurs twice, the
// last value wins, as in encoding/json. For a value that is not an object, the map is empty.
func (v value) members(into map[string]value) {
	clear(into)
	if !v.is('{') {
		return
	}
	name, named := "", false
	v.walk(func(part value) {
		if named = !named; named {
			name = string(part.text[1 : len(part.text)-1])
			if strings.ContainsRune(name, '\\') || !utf8.ValidString(name) {
				_ = json.Unmarshal(part.text, &name) // the document is valid
			}
			return
		}
		into[name] = part
	})
}

// entries calls f with each entry of a list. It does nothing for a value that is not a list.
func (v value) entries(f func(value)) {
	if !v.is('[') {
		return
	}
	v.walk(f)
}

// walk calls f with each entry of a list, or with each name and each value of an object in turn.
func (v value) walk(f func(value)) {
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
			f(part)
			i += len(part.text)
			line += bytes.Count(part.text, []byte{'\n'})
		}
	}
}

// end returns the index after the JSON value that begins at index i.
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
				return i // a number, followed by the end of the list or object that contains it
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}
