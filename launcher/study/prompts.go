package study

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"
)

// Prompts describes the requests to a language model, as one string: "isl=normal(512, 64)|osl=128", or ""
// to post workload.payload as it is. In a study file it is a table: { isl = "normal(512, 64)", osl = 128 }.
type Prompts string

// A PromptSpec holds the parsed Prompts. Exactly one of File, Trace and Input is set.
type PromptSpec struct {
	File   string        // dataset: JSON lines, or ShareGPT's JSON
	Trace  string        // lengths and times of requests: Mooncake's JSON lines, or Azure's CSV
	Input  TokenLength   // of a synthetic prompt
	Output TokenLength   // of an answer; not set: as File, Trace or the payload says
	Prefix float64       // share of a synthetic prompt that all prompts have in common
	Turns  int           // turns of a session; 0: 1 for synthetic prompts, all turns of a dataset's session
	Think  time.Duration // between an answer and the next turn
}

// promptKeys are the keys of the table, with functions that parse them.
var promptKeys = map[string]func(*PromptSpec, string) error{
	"file":  func(s *PromptSpec, text string) error { return aFile(&s.File, text) },
	"trace": func(s *PromptSpec, text string) error { return aFile(&s.Trace, text) },
	"isl":   func(s *PromptSpec, text string) (err error) { s.Input, err = parseTokenLength(text); return err },
	"osl":   func(s *PromptSpec, text string) (err error) { s.Output, err = parseTokenLength(text); return err },
	"prefix": func(s *PromptSpec, text string) (err error) {
		if s.Prefix, err = strconv.ParseFloat(text, 64); err != nil || !(s.Prefix >= 0 && s.Prefix < 1) {
			return fmt.Errorf("want the share of a prompt that all have in common, 0 or more and less than 1, got %q", text)
		}
		return nil
	},
	"turns": func(s *PromptSpec, text string) (err error) {
		if s.Turns, err = strconv.Atoi(text); err != nil || s.Turns < 1 || s.Turns > 1000 {
			return fmt.Errorf("want 1 to 1000, got %q", text)
		}
		return nil
	},
	"think": func(s *PromptSpec, text string) (err error) {
		if s.Think, err = time.ParseDuration(text); err != nil || s.Think < 0 || s.Think > time.Hour {
			return fmt.Errorf("want \"0s\" to \"1h\", like \"5s\", got %q", text)
		}
		return nil
	},
}

func aFile(into *string, text string) error {
	if text == "" || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, "|") {
		return fmt.Errorf("want the path of a file, got %.60q", text)
	}
	*into = text
	return nil
}

// Of returns the parsed form.
func (p Prompts) Of() PromptSpec {
	s, _ := p.parse() // no error: UnmarshalTOML has checked it
	return s
}

func (p Prompts) parse() (s PromptSpec, err error) {
	for entry := range strings.SplitSeq(string(p), "|") {
		name, text, _ := strings.Cut(entry, "=")
		if name == "" {
			continue
		}
		read, ok := promptKeys[name]
		if !ok {
			return s, fmt.Errorf("%s is unknown; valid: %s", name, strings.Join(slices.Sorted(maps.Keys(promptKeys)), ", "))
		}
		if err := read(&s, text); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, s.check()
}

// check reports keys that are inconsistent.
func (s PromptSpec) check() error {
	sources := 0
	for _, set := range []bool{s.File != "", s.Trace != "", s.Input.Kind != ""} {
		if set {
			sources++
		}
	}
	switch {
	case sources != 1:
		return fmt.Errorf("want one source of prompts: file, trace or isl")
	case s.Prefix > 0 && s.Input.Kind == "":
		return fmt.Errorf("prefix: only synthetic prompts (isl) share one; leave it out")
	case s.Trace != "" && (s.Turns > 0 || s.Think > 0 || s.Output.Kind != ""):
		return fmt.Errorf("turns, think, osl: a trace has single requests of given lengths; leave them out")
	case s.Think > 0 && s.Turns < 2 && s.File == "":
		return fmt.Errorf("think: it is the time between the turns of a session; set turns = 2 or more")
	}
	return nil
}

// UnmarshalTOML reads the table.
func (p *Prompts) UnmarshalTOML(v any) error {
	t, ok := v.(map[string]any)
	if !ok || len(t) == 0 {
		return fmt.Errorf("want a table, like { isl = 512, osl = 128 }, { file = \"prompts.jsonl\" } or { trace = \"trace.jsonl\" }, got %.60s", fmt.Sprint(v))
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		entries = append(entries, name+"="+fmt.Sprint(t[name]))
	}
	all := Prompts(strings.Join(entries, "|"))
	if _, err := all.parse(); err != nil {
		return err
	}
	*p = all
	return nil
}

var _ toml.Unmarshaler = (*Prompts)(nil)

// Path returns the file of the prompts; "" for none.
func (p Prompts) Path() string {
	if p == "" {
		return ""
	}
	s := p.Of()
	return s.File + s.Trace
}

// Shares reports whether prompts must have text in common, so that the service may cache it.
func (p Prompts) Shares() bool {
	s := p.Of()
	return s.Prefix > 0 || s.Turns > 1 || s.Trace != "" || s.File != "" && s.Turns != 1
}

// in returns the prompts with an absolute path; a relative one starts in the folder.
func (p Prompts) in(folder string) Prompts {
	path := p.Path()
	if path == "" || filepath.IsAbs(path) {
		return p
	}
	entries := strings.Split(string(p), "|")
	for i, entry := range entries {
		if key, _, _ := strings.Cut(entry, "="); key == "file" || key == "trace" {
			entries[i] = key + "=" + filepath.Join(folder, path)
		}
	}
	return Prompts(strings.Join(entries, "|"))
}
