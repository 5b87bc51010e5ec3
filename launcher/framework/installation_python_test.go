//go:build python

package framework

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
)

// Look reports what an interpreter has with its version, and why it lacks the rest, including packages that
// exist in name only.
func TestLook(t *testing.T) {
	got, err := pytorchDDP.Look(t.Context(), debianPython)
	if err != nil || !strings.HasPrefix(got.Versions["torch"], "1.13") || len(got.Devices) == 0 || got.Devices[0] != "cpu" {
		t.Errorf("%+v, %v", got, err)
	}
	dir := t.TempDir()
	t.Setenv("PYTHONPATH", dir)
	if err := os.MkdirAll(filepath.Join(dir, "horovod", "torch"), 0o755); err != nil {
		t.Fatal(err)
	}
	// Horovod raises this for a framework that it was built without.
	if err := os.WriteFile(filepath.Join(dir, "horovod", "torch", "__init__.py"), []byte("print('Extension horovod.torch has not been built')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{
		"no_such_module": "No module named 'no_such_module'",
		"horovod.torch":  "Horovod was not built with horovod.torch",
	} {
		f := Framework{Imports: []string{module}}
		if got, err := f.Look(t.Context(), debianPython); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %q", module, got, err, want)
		}
	}
	if _, err := pytorchDDP.Look(t.Context(), "/no/such/python"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no interpreter: %v", err)
	}
}

// Asking an interpreter runs no files that others put into the working directory or into a world-writable
// folder.
func TestLookFromHostileFolder(t *testing.T) {
	dir, note := pythontest.Hostile(t)
	t.Chdir(dir)
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", ".", ":", dir, "/tmp/..:" + dir} {
		t.Setenv("PYTHONPATH", path)
		if got := (Framework{versions: []string{"numpy"}}).ServerVersions(t.Context(), debianPython); !strings.HasPrefix(got["python"], "3.") || got["numpy"] == "" {
			t.Errorf("PYTHONPATH=%q: %v", path, got)
		}
		pythontest.Quiet(t, note)
	}
	if got, err := pytorchDDP.Look(t.Context(), debianPython); err != nil || !strings.HasPrefix(got.Versions["torch"], "1.13") {
		t.Errorf("%+v, %v", got, err)
	}
	pythontest.Quiet(t, note)
}
