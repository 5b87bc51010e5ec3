//go:build python

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
)

// Checking a script runs no code that the study brings.
func TestHostileScript(t *testing.T) {
	dir, note := pythontest.Hostile(t)
	none, one := answer{Missing: []string{}}, answer{Missing: []string{"no_such_a"}}
	syntax := func(message string) answer { return answer{Missing: []string{}, Syntax: message} }
	for name, c := range map[string]struct {
		script   string
		variable string // NAME=VALUE
		want     *answer
	}{ // nil if the script is not read
		"coding idna":           {"# -*- coding: idna -*-\nimport no_such_a\n", "", nil},
		"coding quopri":         {"#\n# coding: quopri\nimport no_such_a\n", "", nil},
		"coding big5":           {"# coding=big5\n", "", nil},
		"coding of the study":   {"# coding: evil\n", "", nil},
		"invalid escape":        {"x = '\\d'\nimport no_such_a\n", "", &one},
		"all kinds of warnings": {"assert (1, 'x')\nx = 1 is 1\ny = 1if 1else 2\n'a'()\n", "", &none},
		"syntax error":          {"def f(:\n", "", ptr(syntax("invalid syntax (line 1)"))},
		"unterminated":          {"x = '''\n", "", ptr(syntax("unterminated triple-quoted string literal (detected at line 1) (line 1)"))},
		"named character":       {"x = '\\N{LATIN SMALL LETTER A}'\n", "", &none},
		"ligature as a name":    {"ﬁ = 1\n", "", &none},
		"shadowed modules":      {"import json, linecache, tokenize, stringprep, encodings.idna\n", "", &none},
		"dotted packages":       {"import package.part, namespace.part\nfrom package.part import x\nimport no_such_a.b\n", "", &one},
		"relative import":       {"from . import evil\nfrom .evil import x\n", "", &none},
		"deep nesting":          {strings.Repeat("(", 100000), "", ptr(syntax("too many nested parentheses (line 1)"))},
		"a null byte":           {"x = 1\x00\n", "", &none},
		"PYTHONPATH":            {"import evil, no_such_a\n", "PYTHONPATH=" + dir, &one},
		"PYTHONSTARTUP":         {"import no_such_a\n", "PYTHONSTARTUP=" + dir + "/evil.py", &one},
		"PYTHONHOME":            {"import no_such_a\n", "PYTHONHOME=" + dir, &one},
		"PYTHONUSERBASE":        {"import no_such_a\n", "PYTHONUSERBASE=relative", &one},
		"PYTHONWARNINGS":        {"import no_such_a\n", "PYTHONWARNINGS=ignore::evil.Warning", &one},
		"PYTHONBREAKPOINT":      {"breakpoint()\n", "PYTHONBREAKPOINT=evil.run", &none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(dir)
			t.Setenv("PYTHONPATH", "")
			if variable, value, ok := strings.Cut(c.variable, "="); ok {
				t.Setenv(variable, value)
			}
			path := filepath.Join(dir, "train.py")
			if err := os.WriteFile(path, []byte(c.script), 0o644); err != nil {
				t.Fatal(err)
			}
			source := readSource(path)
			if (source.unread != "") != (c.want == nil) {
				t.Fatalf("%+v", source)
			}
			if c.want != nil {
				if d := cmp.Diff(*c.want, ask(t, question{Source: source.text, Folders: []string{dir}})); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
			pythontest.Quiet(t, note)
		})
	}
}

func ptr(a answer) *answer { return &a }
