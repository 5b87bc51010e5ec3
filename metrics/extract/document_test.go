package extract

import (
	"bytes"
	"encoding/json"
	"testing"
)

// Walking over a document finds the same values as encoding/json, on the right lines.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{}`, ` {"a": [1, {"b":"}\"]"}, -2.5e3],` + "\n" + `"c\u0041" :null, "a":{"x":[]}}` + "\n", `[]`, `"x"`, `12 `, "[\n\n[1],\n2]", "{\"\xa3u\": 1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &log{o: Options{File: "f"}}
		doc, err := l.json(bytes.NewReader(data))
		if (err == nil) != json.Valid(data) {
			t.Fatalf("%q: %v", data, err)
		}
		if err == nil {
			same(t, data, doc)
		}
	})
}

func same(t *testing.T, data []byte, v value) {
	t.Helper()
	if at := bytes.Index(data, v.text); at < 0 || !json.Valid(v.text) {
		t.Fatalf("%q is not part of %q", v.text, data)
	}
	var list []json.RawMessage
	if json.Unmarshal(v.text, &list) == nil && v.is('[') {
		i := 0
		v.entries(func(part value) {
			if i >= len(list) || !bytes.Equal(list[i], part.text) {
				t.Fatalf("entry %d of %q is %q", i, v.text, part.text)
			}
			i++
			same(t, data, part)
		})
		if i != len(list) {
			t.Fatalf("%d of %d entries of %q", i, len(list), v.text)
		}
	}
	var object map[string]json.RawMessage
	members := map[string]value{}
	v.members(members)
	if json.Unmarshal(v.text, &object) == nil && v.is('{') {
		for name, text := range object {
			if part := members[name]; !bytes.Equal(part.text, text) {
				t.Fatalf("%q of %q is %q", name, v.text, part.text)
			}
		}
		for _, part := range members {
			same(t, data, part)
		}
	}
	if lines := bytes.Count(data, []byte{'\n'}) + 1; v.line < 1 || v.line > lines {
		t.Fatalf("line %d of %d", v.line, lines)
	}
}
