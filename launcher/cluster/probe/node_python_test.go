//go:build python

package probe

import (
	"os"
	"testing"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
)

// A job's working directory is the one that it was submitted from, which others may be able to write.
func TestTrialsFromHostileFolder(t *testing.T) {
	dir, note := pythontest.Hostile(t)
	t.Chdir(dir)
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", ":"+dir)
	if s := startPython(t.Context(), "/usr/bin/python3"); s.Error != "" || s.Version == "" {
		t.Errorf("%+v", s)
	}
	if s := importModule(t.Context(), "/usr/bin/python3", "numpy"); s.Error != "" || s.Version == "" {
		t.Errorf("%+v", s)
	}
	if s := importModule(t.Context(), "/usr/bin/python3", "evil"); s.Error == "" {
		t.Errorf("%+v", s)
	}
	pythontest.Quiet(t, note)
}
