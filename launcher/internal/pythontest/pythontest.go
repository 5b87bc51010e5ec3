// Package pythontest finds interpreters for tests, and makes folders with files that would run code
// in an interpreter that is only queried.
package pythontest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Environment returns the interpreter of a family's environment, which is built if it does not exist. locks
// is the path of launcher/framework/locks.
func Environment(t testing.TB, locks, family string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(locks, "environment.sh"), family)
	cmd.Stderr = os.Stderr // it reports what it builds, or why it fails
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the environment %s: %v", family, err)
	}
	return strings.TrimSpace(string(out))
}

// Hostile makes a folder in which every module of the standard library, and some others,
// have a namesake that notes that it was imported. It also has what interpreters read
// unasked: .pth files, sitecustomize.py, pyvenv.cfg.
func Hostile(t testing.TB) (dir, note string) {
	t.Helper()
	dir, note = t.TempDir(), filepath.Join(t.TempDir(), "ran")
	out, err := exec.Command("/usr/bin/python3", "-I", "-c", "import sys; print(*sys.stdlib_module_names)").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(out))
	if len(names) < 200 {
		t.Fatalf("%d modules in the standard library", len(names))
	}
	code := "open('" + note + "', 'a').write(__name__ + ' ')\n"
	files := map[string]string{"package/__init__.py": code, "package/part.py": code, "namespace/part.py": code,
		"evil.pth": "import evil\n", "pyvenv.cfg": "home = " + dir + "\n"}
	for _, name := range append(names, "sitecustomize", "usercustomize", "torch", "numpy", "onnxruntime", "mlserver", "evil") {
		files[name+".py"] = code
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, note
}

// Quiet fails the test if one of Hostile's modules was imported since the last call.
func Quiet(t testing.TB, note string) {
	t.Helper()
	if ran, err := os.ReadFile(note); err == nil {
		t.Errorf("these were run: %s", ran)
		os.Remove(note)
	}
}
