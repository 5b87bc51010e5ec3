//go:build python

package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A venv works at any location: it finds its installed modules, and its prefix is the new location.
func TestVenvMoves(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "env")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("python3 -m venv: %v: %s", err, out)
	}
	libraries, err := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages"))
	if err != nil || len(libraries) != 1 {
		t.Fatal(libraries, err)
	}
	writeFile(t, filepath.Join(libraries[0], "installed.py"), "import sys\nprint(sys.prefix)\n")
	for _, name := range []string{"", "env"} {
		a := area(t)
		packed := archive(t, venv, name)
		item := put(t, a, StagePython, packed, hour)
		out, err := exec.Command(item.Path, "-c", "import installed").CombinedOutput()
		if prefix := strings.TrimSpace(string(out)); err != nil || prefix != filepath.Dir(filepath.Dir(item.Path)) || !strings.HasPrefix(prefix, a.root) {
			t.Errorf("%s: %v: %s", item.Path, err, out)
		}
		if !put(t, a, StagePython, packed, hour).Reused {
			t.Error("unpacked twice")
		}
	}
}

// conda-pack's environments contain bin/conda-unpack. The fake one here writes its location to a
// file, as the real one does.
func TestCondaUnpackIsRun(t *testing.T) {
	env := filepath.Join(t.TempDir(), "env")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", env).CombinedOutput(); err != nil {
		t.Fatalf("python3 -m venv: %v: %s", err, out)
	}
	writeFile(t, filepath.Join(env, "bin", "conda-unpack"),
		"import os\nhere = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\nopen(os.path.join(here, 'prefix'), 'w').write(here)\n")
	item := put(t, area(t), StagePython, archive(t, env, ""), hour)
	folder := filepath.Dir(filepath.Dir(item.Path))
	if got, err := os.ReadFile(filepath.Join(folder, "prefix")); err != nil || string(got) != folder {
		t.Errorf("prefix is %q (%v), want %q", got, err, folder)
	}
}
