package trust

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// program writes an executable file.
func program(t *testing.T, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// How an interpreter is started: isolated, in the root folder, without the variables
// that Python reads.
func TestAskStart(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{"PYTHONPATH": dir, "PYTHONHOME": dir, "PYTHONSTARTUP": dir + "/x.py", "PYTHONWARNINGS": "error::evil.W",
		"PYTHONINSPECT": "1", "PYTHONUSERBASE": dir, "PYTHONPLATLIBDIR": "x", "__PYVENV_LAUNCHER__": dir, "KEPT": "yes"} {
		t.Setenv(name, value)
	}
	shell := program(t, filepath.Join(dir, "python"), "#!/bin/sh\npwd\necho \"$1 $2 $3\"\nenv\n")
	text, err := AskPython(t.Context(), shell, PythonQuestion{Program: "pass"})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if lines[0] != "/" || lines[1] != "-I -B -c" {
		t.Errorf("started in %s with %s", lines[0], lines[1])
	}
	for _, line := range lines[2:] {
		if strings.HasPrefix(line, "PYTHON") || strings.HasPrefix(line, "__PYVENV") || strings.HasPrefix(line, "PWD=") && line != "PWD=/" {
			t.Errorf("it has %s", line)
		}
	}
	if !slices.Contains(lines, "KEPT=yes") {
		t.Error("it lacks the other variables")
	}
}

// An interpreter can affect the caller only by its answer.
func TestAskEnds(t *testing.T) {
	dir := t.TempDir()
	open := program(t, filepath.Join(dir, "open"), "#!/bin/sh\necho started\n")
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"endless":   {"exec yes", "answered with more than 1048576 bytes"},
		"silent":    {"sleep 1000 & wait", "gave no answer in time"},
		"complains": {"echo a >&2; echo last >&2; exit 1", ": last"},
		"fails":     {"exit 3", "exit status 3"},
		"shouts":    {"i=0; while [ $i -lt 3000 ]; do echo 0123456789 >&2; i=$((i+1)); done; exit 1", ": 0123456789"},
	} {
		path := program(t, filepath.Join(dir, name), "#!/bin/sh\n"+c.text+"\n")
		limit := time.Minute
		if name == "silent" {
			limit = 50 * time.Millisecond
		}
		if text, err := AskPython(t.Context(), path, PythonQuestion{Limit: limit}); err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrPythonLate) != (name == "silent") {
			t.Errorf("%s: %q, %v; want %q", name, text, err, c.want)
		}
	}
	if text, err := AskPython(t.Context(), open, PythonQuestion{}); err == nil || !strings.Contains(err.Error(), "can be written by every user") {
		t.Errorf("an interpreter that all may write: %q, %v", text, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := AskPython(ctx, open+"x", PythonQuestion{}); err == nil {
		t.Error("no interpreter, and no error")
	}
	// A name is not looked up in the working directory, even if the PATH contains it.
	program(t, filepath.Join(dir, "python3.77"), "#!/bin/sh\necho started\n")
	t.Chdir(dir)
	for _, path := range []string{"", ".", ":/usr/bin", "../" + filepath.Base(dir)} {
		t.Setenv("PATH", path)
		if text, err := AskPython(t.Context(), "python3.77", PythonQuestion{}); err == nil {
			t.Errorf("PATH=%q: %q", path, text)
		}
	}
}

// Only folders of PYTHONPATH count that no other user can write to.
func TestPath(t *testing.T) {
	top := t.TempDir()
	mine, open, sticky := filepath.Join(top, "mine"), filepath.Join(top, "open"), filepath.Join(top, "sticky")
	for dir, mode := range map[string]os.FileMode{mine: 0o755, open: 0o777, sticky: 0o777 | os.ModeSticky} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(mine)
	t.Setenv("PYTHONPATH", strings.Join([]string{"", ".", "../mine", open, mine, sticky, filepath.Join(top, "missing"), ""}, ":"))
	if got := searchPath("/usr/bin/python3"); !slices.Equal(got, []string{mine}) {
		t.Errorf("%q, want %q", got, mine)
	}
}

// Interpreter checks who may have written an interpreter and the files it starts with. Each case spoils one part of
// a trusted environment.
func TestTrusted(t *testing.T) {
	const stranger = 1<<31 - 7
	root := os.Geteuid() == 0
	open := func(mode os.FileMode) func(path string) error {
		return func(path string) error { return os.Chmod(path, mode) }
	}
	give := func(path string) error { return os.Lchown(path, stranger, -1) }
	for name, c := range map[string]struct {
		path  string // that is spoilt
		spoil func(path string) error
	}{
		"nothing":                               {"", nil},
		"the file, for all":                     {"base/bin/python3", open(0o777)},
		"the folder, for all":                   {"venv/bin", open(0o777)},
		"a folder above, for all":               {"venv", open(0o777)},
		"a stranger's file":                     {"base/bin/python3", give},
		"a stranger's folder":                   {"venv/bin", give},
		"a stranger's folder above":             {"venv", give},
		"a stranger's link":                     {"venv/bin/python", give},
		"a stranger's pyvenv.cfg":               {"venv/pyvenv.cfg", give},
		"pyvenv.cfg, for all":                   {"venv/pyvenv.cfg", open(0o666)},
		"packages, for all":                     {"venv/lib/python3.11/site-packages", open(0o777)},
		"a stranger's packages":                 {"venv/lib/python3.11/site-packages", give},
		"a stranger's .pth":                     {"venv/lib/python3.11/site-packages/a.pth", give},
		"a .pth for all":                        {"venv/lib/python3.11/site-packages/a.pth", open(0o666)},
		"a stranger's sitecustomize":            {"venv/lib/python3.11/site-packages/sitecustomize.py", give},
		"home in a folder of a stranger":        {"home", give},
		"home in a folder for all":              {"home", open(0o777)},
		"home that is relative":                 {"venv/pyvenv.cfg", func(path string) error { return os.WriteFile(path, []byte("HOME = bin\n"), 0o644) }},
		"a script by a stranger's program":      {"venv/bin/python", scripted("#!%s/home/bin/python3\n", "home/bin/python3", give)},
		"a script by env, which finds theirs":   {"venv/bin/python", scripted("#!/usr/bin/env -S X=1 stray3\n", "base/bin/stray3", give)},
		"a script by a relative path":           {"venv/bin/python", scripted("#!bin/python3\n", "", nil)},
		"a script of a script for all":          {"venv/bin/python", scripted("#! %s/base/bin/stray3\n", "base/bin/stray3", open(0o777))},
		"a link whose folder is for all":        {"open", func(path string) error { return relink(path, "open/python3") }},
		"a link by way of another's folder":     {"theirs", func(path string) error { return relink(path, "theirs/python3") }},
		"a link that leaves a folder by a link": {"theirs", func(path string) error { return relink(path, "side/../python3") }},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			base := program(t, filepath.Join(top, "base/bin/python3"), "\x7fELF")
			program(t, filepath.Join(top, "home/bin/python3"), "\x7fELF")
			program(t, filepath.Join(top, "base/bin/stray3"), "#!"+base+"\n")
			t.Setenv("PATH", filepath.Dir(base)+":"+os.Getenv("PATH"))
			packages := filepath.Join(top, "venv/lib/python3.11/site-packages")
			config := "version = 3.11\nhome = " + top + "/home/bin\n"
			if err := errors.Join(os.MkdirAll(packages, 0o755), os.MkdirAll(filepath.Join(top, "venv/bin"), 0o755),
				os.WriteFile(filepath.Join(top, "venv/pyvenv.cfg"), []byte(config), 0o644), os.Symlink(base, filepath.Join(top, "venv/bin/python")),
				os.WriteFile(filepath.Join(packages, "a.pth"), nil, 0o644), os.WriteFile(filepath.Join(packages, "sitecustomize.py"), nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"open", "theirs/deep"} {
				program(t, filepath.Join(top, dir, "python3"), "\x7fELF")
			}
			program(t, filepath.Join(top, "theirs/python3"), "\x7fELF")
			if c.spoil != nil {
				if !root && (strings.Contains(name, "stranger") || strings.Contains(name, "their") || strings.Contains(name, "another")) {
					t.Skip("only root can give files away")
				}
				if err := c.spoil(filepath.Join(top, c.path)); err != nil {
					t.Fatal(err)
				}
			}
			err := Interpreter(filepath.Join(top, "venv/bin/python"))
			if (err == nil) != (c.spoil == nil) {
				t.Errorf("%v", err)
			}
		})
	}
}

// scripted replaces a link by a script, whose first line may name the test's folder, and spoils the program at
// a path in it.
func scripted(first, path string, spoil func(string) error) func(string) error {
	return func(link string) error {
		top := filepath.Dir(filepath.Dir(filepath.Dir(link)))
		err := errors.Join(os.Remove(link), os.WriteFile(link, []byte(strings.ReplaceAll(first, "%s", top)), 0o755))
		if spoil != nil {
			err = errors.Join(err, spoil(filepath.Join(top, path)))
		}
		return err
	}
}

// relink makes the interpreter a link to a path below a folder that is spoilt first.
func relink(folder, target string) error {
	top := filepath.Dir(folder)
	link := filepath.Join(top, "venv/bin/python")
	err := os.Remove(link)
	switch filepath.Base(folder) {
	case "open":
		err = errors.Join(err, os.Chmod(folder, 0o777))
	default:
		err = errors.Join(err, os.Lchown(folder, 1<<31-7, -1), os.Symlink(filepath.Join(folder, "deep"), filepath.Join(top, "side")))
	}
	return errors.Join(err, os.Symlink(top+"/"+target, link))
}
