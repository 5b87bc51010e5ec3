package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// stub writes a fake Python that records that it was started and lacks torch.
func stub(t *testing.T, path, note string) {
	t.Helper()
	text := "#!/bin/sh\necho $0 >> " + note + "\necho '{\"missing\": [\"torch\"]}'\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
}

// TestForeignInterpreter checks which interpreters may be started for a study. Those that the user chose by the
// PATH or on the command line may be, regardless of their location; those of a given site file only if they are outside
// its folder and the study's. One that the study's author chose is never started.
func TestForeignInterpreter(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(top, "started")
	for _, name := range []string{"bin/python3.77", "venv/bin/python3", "got/python3", "got/tree/python3", "got/tree/a/b/python3",
		"got/tree/venv/bin/python3", "got/tree/a/b/venv/bin/python3", "own/venv/bin/python3", "shared/python3"} {
		stub(t, filepath.Join(top, name), note)
	}
	for _, dir := range []string{"got/tree/a/b/.git", "got/tree/a/.git", "sites", "own/study", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(top, "shared/python3"), 0o777),
		os.Symlink(filepath.Join(top, "got"), filepath.Join(top, "link")),
		os.Symlink(filepath.Join(top, "got/tree/python3"), filepath.Join(top, "elsewhere/outward")),
		os.WriteFile(filepath.Join(top, "got/tree/.git"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	const studyNames, siteNamed, near, variables = "the study names it", "the study names the site file", "may have come with", "without variables"
	for _, c := range []struct {
		what, study, site string // if site is "", the study names the interpreter
		written           string // text in the site file; "" means the interpreter's path
		interpreter       string
		given, typed      bool   // given: the site file; typed: the command
		want              string // part of the reason; "" if it is started
	}{
		{"a name on the PATH", "got/tree/a/b/s.toml", "", "", "python3.77", false, false, ""},
		{"a path in a folder of the PATH", "got/tree/a/b/s.toml", "", "", "bin/python3.77", false, false, ""},
		{"typed", "got/tree/a/b/s.toml", "", "", "got/tree/a/b/python3", false, true, ""},
		{"beside the study", "got/tree/a/b/s.toml", "", "", "got/tree/a/b/python3", false, false, studyNames},
		{"in a folder next to the study", "got/tree/a/b/s.toml", "", "", "got/tree/a/b/venv/bin/python3", false, false, studyNames},
		{"two levels up, above a nested repository", "got/tree/a/b/s.toml", "", "", "got/tree/python3", false, false, studyNames},
		{"three levels up", "got/tree/a/b/s.toml", "", "", "got/python3", false, false, studyNames},
		{"elsewhere in this user's folders", "got/tree/a/b/s.toml", "", "", "venv/bin/python3", false, false, studyNames},
		{"by the study's site file", "got/tree/a/b/s.toml", "got/tree/a/b/site.toml", "", "venv/bin/python3", false, false, siteNamed},
		{"by the study's site file, by a variable", "got/tree/a/b/s.toml", "got/tree/a/b/site.toml", "$HOME/venv/bin/python3", "venv/bin/python3", false, false, siteNamed},
		{"by the study's site file, elsewhere", "got/tree/a/b/s.toml", "sites/site.toml", "", "venv/bin/python3", false, false, siteNamed},
		{"by a given site file", "got/tree/a/b/s.toml", "sites/site.toml", "", "venv/bin/python3", true, false, ""},
		{"by a given site file that came along", "got/tree/a/b/s.toml", "got/tree/a/b/site.toml", "", "venv/bin/python3", true, false, ""},
		{"given, beside the study", "got/tree/a/b/s.toml", "sites/site.toml", "", "got/tree/a/b/python3", true, false, near},
		{"given, two levels up", "got/tree/a/b/s.toml", "got/tree/a/b/site.toml", "", "got/tree/python3", true, false, near},
		{"given, next to a parent folder", "got/tree/a/b/s.toml", "got/tree/a/b/site.toml", "", "got/tree/venv/bin/python3", true, false, near},
		{"given, through a link", "got/tree/a/b/s.toml", "sites/site.toml", "", "link/tree/python3", true, false, near},
		{"given, the study through a link", "link/tree/a/b/s.toml", "sites/site.toml", "", "got/tree/python3", true, false, near},
		{"given, a link that leads there", "got/tree/a/b/s.toml", "sites/site.toml", "", "elsewhere/outward", true, false, near},
		{"given, near the site file", "own/study/s.toml", "got/tree/a/b/site.toml", "", "got/tree/venv/bin/python3", true, false, near},
		{"given, in the study's project", "own/study/s.toml", "sites/site.toml", "", "own/venv/bin/python3", true, false, near},
		{"given, by a variable", "own/study/s.toml", "sites/site.toml", "$HOME/venv/bin/python3", "venv/bin/python3", true, false, variables},
		{"given, by ~", "own/study/s.toml", "sites/site.toml", "~/venv/bin/python3", "venv/bin/python3", true, false, variables},
		{"given, by a relative path", "own/study/s.toml", "sites/site.toml", "../venv/bin/python3", "venv/bin/python3", true, false, variables},
		{"given, and all may write it", "own/study/s.toml", "sites/site.toml", "", "shared/python3", true, false, "can be written by every user"},
		{"typed, and all may write it", "own/study/s.toml", "", "", "shared/python3", false, true, "can be written by every user"},
	} {
		t.Run(c.what, func(t *testing.T) {
			os.Remove(note)
			t.Setenv("HOME", top)
			t.Setenv("PATH", filepath.Join(top, "bin")+":"+os.Getenv("PATH"))
			t.Setenv("PYTHONPATH", "")
			st := &study.Study{File: filepath.Join(top, c.study)}
			ch := newChecker(t.Context(), st, study.DefaultSite(), "")
			ch.given = NamedFile{Site: c.given, Command: c.typed}
			i := interpreter{name: filepath.Join(top, c.interpreter), typed: c.typed, key: func(m string) study.Problem { return st.Problem("command.run", m) }}
			if i.path = i.name; !strings.Contains(c.interpreter, "/") {
				i.name, i.path = c.interpreter, filepath.Join(top, "bin", c.interpreter)
			}
			if c.site != "" {
				written := c.written
				if written == "" {
					written = i.path
				}
				site, err := study.ParseSite(filepath.Join(top, c.site), []byte("python = \""+written+"\"\n"))
				if err != nil || site.Python != i.path {
					t.Fatalf("%+v, %v", site, err)
				}
				i.site = site
			}
			a := ch.ask(i, question{Modules: []string{"torch"}})
			_, err := os.Stat(note)
			if got := err == nil; got != (c.want == "") || (len(a.Missing) == 1) != got {
				t.Errorf("started %v, answer %+v", got, a)
			}
			if told := fmt.Sprint(ch.unchecked); (c.want == "") != (len(ch.unchecked) == 0) || !strings.Contains(told, c.want) {
				t.Errorf("said %q, want %q", told, c.want)
			}
		})
	}
}

// An interpreter starts with this user's environment, not the site file's.
func TestVariablesThatRunCode(t *testing.T) {
	for name, want := range map[string]bool{"LD_PRELOAD": true, "LD_LIBRARY_PATH": true, "PYTHONHOME": true, "PYTHONUSERBASE": true, "PATH": true, "OMP_NUM_THREADS": false} {
		variables := map[string]string{name: "/x"}
		site := study.DefaultSite()
		site.Environment = variables
		if got := provides(site, nil); got != want {
			t.Errorf("%s of the site: not judged %v, want %v", name, got, want)
		}
		if got := provides(study.DefaultSite(), variables); got != want {
			t.Errorf("%s of the study: not judged %v, want %v", name, got, want)
		}
	}
	t.Setenv("PYTHONPATH", "")
	c := newChecker(t.Context(), &study.Study{}, study.DefaultSite(), "")
	dir := t.TempDir()
	path := filepath.Join(dir, "python3")
	ask := func(module string) answer {
		return c.ask(interpreter{name: "python3", path: path}, question{Modules: []string{module}})
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"{\\\"missing\\\": [\\\"$PWD\\\"]}\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if a := ask("x"); len(a.Missing) != 1 || a.Missing[0] != "/" {
		t.Errorf("%+v, want the root folder", a)
	}
	// Relative folders in PYTHONPATH mean the folder that the program will start in.
	t.Setenv("PYTHONPATH", "src")
	if a := ask("y"); len(a.Missing) != 0 {
		t.Errorf("%+v, want no answer", a)
	}
	// An endless answer counts as no answer.
	t.Setenv("PYTHONPATH", "")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec yes\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if a := ask("z"); len(a.Missing) != 0 || len(c.silent) != 0 {
		t.Errorf("%+v, silent %v", a, c.silent)
	}
}

// Scripts are decoded here. Encodings that need another decoder are not read.
func TestReadSource(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, text, wrong, unread string
	}{
		"plain":                  {"import a\n", "import a\n", "", ""},
		"UTF-8":                  {"# -*- coding: UTF_8 -*-\nx = 'é'\n", "# -*- coding: UTF_8 -*-\nx = 'é'\n", "", ""},
		"UTF-8 mark":             {"\xef\xbb\xbfimport a\n", "import a\n", "", ""},
		"Latin-1":                {"# coding=latin-1\nx = '\xe9'\n", "# coding=latin-1\nx = 'é'\n", "", ""},
		"idna":                   {"# -*- coding: idna -*-\n", "", "", `"idna"`},
		"quopri":                 {"#!/usr/bin/python3\n# vim: set fileencoding=quopri :\n", "", "", `"quopri"`},
		"big5 after a form feed": {"\f# coding: big5\n", "", "", `"big5"`},
		"after a lone return":    {"#\r# coding: cp037\r", "", "", `"cp037"`},
		"in the third line":      {"#\n#\n# coding: big5\n", "#\n#\n# coding: big5\n", "", ""},
		"after code":             {"x = 1\n# coding: big5\n", "x = 1\n# coding: big5\n", "", ""},
		"a mark and idna":        {"\xef\xbb\xbf# coding: idna\n", "", `"idna"`, ""},
		"no UTF-8":               {"x = '\xe9'\n", "", "not valid UTF-8", ""},
		"like Latin-1":           {"# coding: iso-8859-15\n", "", "", `"iso-8859-15"`},
	} {
		path := filepath.Join(t.TempDir(), "train.py")
		if err := os.WriteFile(path, []byte(c.bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		got := readSource(path)
		if got.text != c.text || !strings.Contains(got.wrong, c.wrong) || !strings.Contains(got.unread, c.unread) || (c.wrong == "") != (got.wrong == "") || (c.unread == "") != (got.unread == "") {
			t.Errorf("%s: %+v, want %+v", name, got, c)
		}
	}
	large := filepath.Join(t.TempDir(), "large.py")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, maxSource+1)); err != nil {
		t.Fatal(err)
	}
	if got := readSource(large); got.unread == "" || got.text != "" {
		t.Errorf("%d bytes are read", len(got.text))
	}
}
