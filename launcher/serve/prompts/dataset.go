package prompts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/study"
)

// A dataset holds sessions, which are used in order, and from the first again after the last.
type dataset struct{ sessions [][]Turn }

func (d *dataset) session(n uint64, _ scale) []Turn { return d.sessions[n%uint64(len(d.sessions))] }

func (d *dataset) turns() float64 {
	sum := 0
	for _, s := range d.sessions {
		sum += len(s)
	}
	return float64(sum) / float64(len(d.sessions))
}

// An entry is an object of a dataset, in one of these forms:
//
//	{"prompt": "…", "output_tokens": 64}
//	{"messages": [{"role": "user", "content": "…"}, …]}           OpenAI's
//	{"conversations": [{"from": "human", "value": "…"}, …]}       ShareGPT's
type entry struct {
	Prompt   string
	Output   int `json:"output_tokens"`
	Messages []struct {
		Role    string
		Content content
	}
	Conversations []struct{ From, Value string }
}

// A content is the text of an OpenAI message: a string, or a list of parts.
type content string

func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err == nil {
		*c = content(text)
		return nil
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*c += content(p.Text)
	}
	return nil
}

// readDataset reads JSON lines, or a JSON list as in ShareGPT's files.
func readDataset(path string, spec study.PromptSpec) (*dataset, error) {
	file, err := readFile(path)
	if err != nil {
		return nil, err
	}
	d, name := &dataset{}, filepath.Base(path)
	if trimmed := bytes.TrimSpace(file); trimmed[0] == '[' {
		err = d.readList(trimmed, spec)
	} else {
		err = d.readLines(file, name, spec)
	}
	switch _, ours := err.(lineError); {
	case ours:
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(d.sessions) == 0:
		return nil, fmt.Errorf("%s has no question from a user", name)
	}
	return d, nil
}

// A lineError names the line that is wrong.
type lineError struct{ error }

// readList reads a JSON list. Some of ShareGPT's conversations are empty, or begin with the model; readList
// leaves out those without a question.
func (d *dataset) readList(file []byte, spec study.PromptSpec) error {
	var list []entry
	if err := json.Unmarshal(file, &list); err != nil {
		return err
	}
	for _, e := range list {
		d.add(e, spec)
	}
	return nil
}

func (d *dataset) readLines(file []byte, name string, spec study.PromptSpec) error {
	line := 0
	for text := range bytes.Lines(file) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return lineError{fmt.Errorf("%s:%d: %w", name, line, err)}
		}
		if !d.add(e, spec) {
			return lineError{fmt.Errorf(`%s:%d: no question from a user; want "prompt", "messages" or "conversations"`, name, line)}
		}
	}
	return nil
}

// add adds an entry's session. It reports whether the entry has a question.
func (d *dataset) add(e entry, spec study.PromptSpec) bool {
	turns := e.turns()
	if len(turns) == 0 {
		return false
	}
	if spec.Turns > 0 {
		turns = turns[:min(len(turns), spec.Turns)]
	}
	if spec.Output.Kind != "" {
		r := random(1, uint64(len(d.sessions)))
		for i := range turns {
			turns[i].Output = spec.Output.Draw(r)
		}
	}
	d.sessions = append(d.sessions, turns)
	return true
}

// turns returns the user's questions, each with the answer that follows it.
func (e entry) turns() (list []Turn) {
	if e.Prompt != "" {
		return []Turn{{Text: e.Prompt, Output: e.Output}}
	}
	say := func(role, text string) {
		switch {
		case role == "user" || role == "human":
			list = append(list, Turn{Text: text, Output: e.Output})
		case (role == "assistant" || role == "gpt") && len(list) > 0:
			list[len(list)-1].Answer = text
		}
	}
	for _, m := range e.Messages {
		say(m.Role, string(m.Content))
	}
	for _, c := range e.Conversations {
		say(c.From, c.Value)
	}
	return list
}
