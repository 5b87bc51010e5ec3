package prompts

import (
	"encoding/json"
	"fmt"
	"strings"
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A template is a request without its prompt.
type template struct {
	fields map[string]json.RawMessage
	system []json.RawMessage // first messages, which every request keeps
	chat   bool
	most   []string // fields that hold the length of the answer
}

// Template returns the JSON of a request to a model at a path of OpenAI's protocol, for studies without a
// payload. Answers stop at the requested length only, if the server supports ignore_eos.
func Template(model, path string, stream, ignoreEOS bool) []byte {
	fields := map[string]any{"model": model, "temperature": 0}
	if strings.HasSuffix(path, "/chat/completions") {
		fields["messages"] = []message{}
	} else {
		fields["prompt"] = ""
	}
	if stream {
		fields["stream"] = true
		fields["stream_options"] = map[string]bool{"include_usage": true}
	}
	if ignoreEOS {
		fields["ignore_eos"] = true
	}
	body, err := json.Marshal(fields)
	if err != nil { // strings, numbers and booleans only
		panic(err)
	}
	return body
}

func newTemplate(payload []byte) (*template, error) {
	t := &template{}
	if err := json.Unmarshal(payload, &t.fields); err != nil {
		return nil, fmt.Errorf("is not a JSON object, which workload.prompts need as their template: %w", err)
	}
	if raw, ok := t.fields["messages"]; ok {
		t.chat = true
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("messages: %w", err)
		}
		for _, m := range list {
			var of struct{ Role string }
			if json.Unmarshal(m, &of) != nil || of.Role != "system" && of.Role != "developer" {
				break
			}
			t.system = append(t.system, m)
		}
	} else if _, ok := t.fields["prompt"]; !ok {
		return nil, errNoPlace
	}
	for _, name := range []string{"max_completion_tokens", "min_tokens"} {
		if _, ok := t.fields[name]; ok {
			t.most = append(t.most, name)
		}
	}
	if _, other := t.fields["max_completion_tokens"]; !other {
		t.most = append(t.most, "max_tokens")
	}
	return t, nil
}

// body returns the request that asks the last of the messages for an answer of output tokens; 0 leaves the
// length as it is.
func (t *template) body(history []message, output int) []byte {
	fields := make(map[string]any, len(t.fields)+2)
	for name, raw := range t.fields {
		fields[name] = raw
	}
	if output > 0 {
		for _, name := range t.most {
			fields[name] = output
		}
	}
	if t.chat {
		all := make([]any, 0, len(t.system)+len(history))
		for _, m := range t.system {
			all = append(all, m)
		}
		for _, m := range history {
			all = append(all, m)
		}
		fields["messages"] = all
	} else {
		texts := make([]string, len(history))
		for i, m := range history {
			texts[i] = m.Content
		}
		fields["prompt"] = strings.Join(texts, "\n")
	}
	body, err := json.Marshal(fields)
	if err != nil { // the fields were parsed from JSON
		panic(err)
	}
	return body
}
