package extract

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// document is a JSON file whose entries are read one by one, each with the line
// that it stands in. Every byte is looked at a few times, however many entries
// there are.
type document struct{ data []byte }

// json reads a whole JSON file; one that was cut off is not valid.
func (l *log) json(r io.Reader) (*document, error) {
	data, err := l.wholeFile(r)
	if err != nil {
		return nil, err
	}
	if json.Valid(data) {
		return &document{data}, nil
	}
	if err := json.Unmarshal(data, &struct{}{}); err != nil {
		offset := len(data)
		if s, ok := err.(*json.SyntaxError); ok {
			offset = min(max(int(s.Offset), 0), len(data))
		}
		return nil, l.errorAt(bytes.Count(data[:offset], []byte{'\n'})+1, "not JSON: %w", err)
	}
	return &document{data}, nil
}

// object is a part of a document.
type object struct {
	text  []byte
	first int // line that it begins in, 1-based
}

// each calls f with each entry of the list under a key of the outermost object;
// without the key, or with null there, with none. What is no list is a
// *json.UnmarshalTypeError.
func (d *document) each(key string, f func(object) error) error {
	list, err := d.member(key)
	if err != nil || list.text == nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(list.text))
	if open, err := dec.Token(); err != nil || open == nil {
		return err
	} else if open != json.Delim('[') {
		return json.Unmarshal(list.text, &[]any{})
	}
	line, counted := list.first, 0 // of the list's text
	for dec.More() {
		var text json.RawMessage
		if err := dec.Decode(&text); err != nil {
			return err
		}
		begin := int(dec.InputOffset()) - len(text)
		line += bytes.Count(list.text[counted:begin], []byte{'\n'})
		counted = begin
		if err := f(object{text, line}); err != nil {
			return err
		}
	}
	return nil
}

// member is the value of a key of the outermost object; its text is nil where
// there is none.
func (d *document) member(key string) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(d.data))
	if open, err := dec.Token(); err != nil {
		return object{}, err
	} else if open != json.Delim('{') {
		return object{}, json.Unmarshal(d.data, &struct{}{})
	}
	found := object{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return object{}, err
		}
		var text json.RawMessage
		if err := dec.Decode(&text); err != nil {
			return object{}, err
		}
		if name == key { // of two, the last counts, as everywhere in encoding/json
			begin := int(dec.InputOffset()) - len(text)
			found = object{d.data[begin : begin+len(text)], bytes.Count(d.data[:begin], []byte{'\n'}) + 1}
		}
	}
	return found, nil
}

// line is the line of the first place that names one of the keys; each is looked
// for behind the one before it.
func (o object) line(keys ...string) int {
	at := 0
	for _, key := range keys {
		if i := bytes.Index(o.text[at:], []byte(strconv.Quote(key))); i >= 0 {
			at += i
		}
	}
	return o.first + bytes.Count(o.text[:at], []byte{'\n'})
}
