package precheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// A look at a study starts no interpreter that came with it, nor one that others
// can have changed. The expectation is where each lies.
func TestForeignInterpreter(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", top)
	t.Setenv("PATH", filepath.Join(top, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("PYTHONPATH", "")
	started := filepath.Join(top, "started")
	put := func(name string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(top, name)
		text := "#!/bin/sh\necho $0 >> " + started + "\necho '{\"missing\": [\"torch\"]}'\n"
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bin/python3.77", "venv/bin/python3", "plain/studies/python3", "plain/venv/bin/python3", "tree/a/b/python3", "tree/venv/bin/python3", "single/python3"} {
		put(name, 0o755)
	}
	put("shared/python3", 0o777)
	for _, dir := range []string{"tree/.git", "tree/a/b/c", "sites"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "tree"), filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"plain/studies/s.toml", "tree/a/b/c/s.toml", "single/s.toml", "sites/site.toml"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		study, site, name string
		want              bool
	}{
		{"plain/studies/s.toml", "", "python3.77", true},
		{"plain/studies/s.toml", "", "venv/bin/python3", true},
		{"plain/studies/s.toml", "", "./python3", false}, // relative: of the study's folder
		{"plain/studies/s.toml", "", "plain/studies/python3", false},
		{"plain/studies/s.toml", "", "plain/venv/bin/python3", false},
		{"plain/studies/s.toml", "", "venv/../plain/studies/python3", false},
		{"tree/a/b/c/s.toml", "", "tree/a/b/python3", false},
		{"tree/a/b/c/s.toml", "", "tree/venv/bin/python3", false},
		{"tree/a/b/c/s.toml", "", "link/venv/bin/python3", false},
		{"link/a/b/c/s.toml", "", "tree/venv/bin/python3", false},
		{"tree/a/b/c/s.toml", "", "venv/bin/python3", true},
		{"single/s.toml", "", "venv/bin/python3", true}, // beside it is the home folder
		{"single/s.toml", "", "single/python3", false},
		{"sites/site.toml", "tree/a/b/c/s.toml", "tree/venv/bin/python3", false}, // it came with the site file
		{"plain/studies/s.toml", "sites/site.toml", "venv/bin/python3", true},
		{"plain/studies/s.toml", "", "shared/python3", false},
	} {
		os.Remove(started)
		st, site := &study.Study{File: filepath.Join(top, c.study)}, study.DefaultSite()
		if c.site != "" {
			site.File = filepath.Join(top, c.site)
		}
		name, path := c.name, filepath.Join(top, c.name)
		switch {
		case name == "python3.77":
			path = filepath.Join(top, "bin", name)
		case name == "./python3":
			path = filepath.Join(top, filepath.Dir(c.study), name)
		default:
			name = path
		}
		a := newChecker(t.Context(), st, site, "").ask(name, path, []string{"torch"}, "", site)
		_, err := os.Stat(started)
		if got := err == nil; got != c.want || (len(a.Missing) == 1) != c.want {
			t.Errorf("%+v: started %v, answer %+v", c, got, a)
		}
	}
}

// What an interpreter is started with is this user's, not the site file's.
func TestVariablesThatRunCode(t *testing.T) {
	for name, want := range map[string]bool{"LD_PRELOAD": true, "PYTHONHOME": true, "PYTHONUSERBASE": true, "PATH": true, "OMP_NUM_THREADS": false} {
		site := study.DefaultSite()
		site.Environment = map[string]string{name: "/x"}
		if got := provides(site, nil); got != want {
			t.Errorf("%s: not judged %v, want %v", name, got, want)
		}
	}
	t.Setenv("PYTHONPATH", "")
	c := newChecker(t.Context(), &study.Study{}, study.DefaultSite(), "")
	dir := t.TempDir()
	path := filepath.Join(dir, "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"{\\\"missing\\\": [\\\"$MARK$PWD\\\"]}\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	site := study.DefaultSite()
	site.Environment = map[string]string{"MARK": "given"}
	t.Chdir(dir)
	if a := c.ask("python3", path, []string{"x"}, "", site); len(a.Missing) != 1 || a.Missing[0] != "/" {
		t.Errorf("%+v, want the root folder and no variable of the site file's", a)
	}
	// Relative folders in PYTHONPATH mean the folder that the program will start in.
	t.Setenv("PYTHONPATH", "src")
	if a := c.ask("python3", path, []string{"y"}, "", site); len(a.Missing) != 0 {
		t.Errorf("%+v, want nobody asked", a)
	}
	// An answer without end is none.
	t.Setenv("PYTHONPATH", "")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec yes\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if a := c.ask("python3", path, []string{"z"}, "", site); len(a.Missing) != 0 || len(c.silent) != 0 {
		t.Errorf("%+v, silent %v", a, c.silent)
	}
}

// The ordinary worker is refused where a GPU is asked for, by the tags that it was
// built with. What is no program of Go is not judged.
func TestWorkerForGPUs(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := func(name, tags string) string {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("go", "build", "-tags", tags, "-o", path, source).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return path
	}
	ordinary, both, script := build("ordinary", "onnxruntime"), build("both", "onnxruntime,gpu"), filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec worker \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		framework, kind, device, worker string
		refused                         bool
	}{
		{"native", "train", "gpu", ordinary, true},
		{"native", "collective", "gpu", ordinary, true},
		{"native", "train", "gpu", both, false},
		{"native", "train", "gpu", script, false},
		{"native", "train", "cpu", ordinary, false},
		{"pytorch-ddp", "train", "gpu", ordinary, false},
	} {
		site := study.DefaultSite()
		site.Worker = test.worker
		c := newChecker(t.Context(), &study.Study{}, site, "")
		c.worker(study.Point{Framework: test.framework, Workload: study.Workload{Kind: test.kind}, Resources: study.Resources{Device: test.device}}, site)
		if refused := len(c.problems) == 1 && strings.Contains(c.problems[0].Message, "make worker-gpu"); refused != test.refused || len(c.problems) > 1 {
			t.Errorf("%+v: %v", test, c.problems)
		}
	}
}
