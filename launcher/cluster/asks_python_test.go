//go:build python

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// The interpreter only looks for modules and imports nothing.
func TestAsks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"train.py": `import json, no_such_a.part
import beside
import scalebench
from no_such_b import x
raise SystemExit("it was run")
`,
		"beside.py": "",
		// An import that may fail is not required.
		"maybe.py": `try:
    import no_such_c
except ImportError:
    pass
def f():
    import no_such_d
`,
		"wrong.py": "x = = 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for script, want := range map[string]answer{
		"train.py": {Missing: []string{"no_such_a", "no_such_b"}},
		"maybe.py": {Missing: []string{}},
		"wrong.py": {Missing: []string{}, Syntax: "invalid syntax (line 1)"},
	} {
		got := ask(t, question{Source: readSource(filepath.Join(dir, script)).text, Folders: []string{dir}})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", script, d)
		}
	}
	if got := ask(t, question{Modules: []string{"horovod_of_nobody.torch", "os.path"}}); len(got.Missing) != 1 || got.Missing[0] != "horovod_of_nobody" {
		t.Errorf("%+v", got)
	}
}

func ask(t *testing.T, q question) answer {
	t.Helper()
	return newChecker(t.Context(), &study.Study{}, study.DefaultSite(), "").ask(interpreter{name: "python3", path: "/usr/bin/python3"}, q)
}

// launch = "torchrun" needs PyTorch in the interpreter that starts it.
func TestAsksForTorchrun(t *testing.T) {
	for want, python := range map[string]string{
		"":                     "/usr/bin/python3", // Debian's python3-torch
		"has no package torch": "python3 -I -S",
		"which is not on":      "python9.99",
	} {
		run := `["` + python + `", "-c", "pass"]`
		if python == "python3 -I -S" { // simulates an interpreter without packages
			dir := t.TempDir()
			if err := os.Symlink("/usr/bin/python3", filepath.Join(dir, "python3")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "pyvenv.cfg"), []byte("home = /usr/bin\ninclude-system-site-packages = false\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			run = `["python3", "-c", "pass"]`
		}
		text := "[study]\nname = \"s\"\n[command]\nrun = " + run + "\n[resources]\nlaunch = \"torchrun\"\n[sweep]\nframework = [\"command\"]\nworkers = [1]\n"
		st, err := study.Parse(filepath.Join(t.TempDir(), "s.toml"), []byte(text), framework.ForStudy())
		if err != nil {
			t.Fatal(err)
		}
		plan, err := st.Plan(study.DefaultSite())
		if err != nil {
			t.Fatal(err)
		}
		problems, _ := CheckPlan(t.Context(), st, study.DefaultSite(), plan, rundir.OpenStudy(t.TempDir(), "s"), NamedFile{})
		found := ""
		for _, p := range problems {
			if p.Path == "resources.launch" {
				found = p.String()
			}
		}
		if want == "" && found != "" || !strings.Contains(found, want) {
			t.Errorf("%s: %v, want %q", python, problems, want)
		}
	}
}
