//go:build python

package precheck

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/study"
)

// The interpreter is asked, and imports nothing.
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
		// What need not be there is not asked for.
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
		c := newChecker(t.Context(), &study.Study{}, study.DefaultSite(), "")
		got := c.ask("python3", "/usr/bin/python3", nil, filepath.Join(dir, script), study.DefaultSite())
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", script, d)
		}
	}
	c := newChecker(t.Context(), &study.Study{}, study.DefaultSite(), "")
	if got := c.ask("python3", "/usr/bin/python3", []string{"horovod_of_nobody.torch", "os.path"}, "", study.DefaultSite()); len(got.Missing) != 1 || got.Missing[0] != "horovod_of_nobody" {
		t.Errorf("%+v", got)
	}
}

// Modules of the working folder, which may be a study's, are not imported.
func TestAsksFromAnywhere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ast.py", "json.py", "sitecustomize.py", "importlib.py"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("open('ran', 'w')\nopen('"+dir+"/ran', 'w')\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	c := newChecker(t.Context(), &study.Study{}, study.DefaultSite(), "")
	if a := c.ask("python3", "/usr/bin/python3", []string{"no_such_a"}, "", study.DefaultSite()); len(a.Missing) != 1 {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat("ran"); err == nil {
		t.Error("a module of the working folder was run")
	}
}
