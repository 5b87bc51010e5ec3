//go:build python

package onnxruntime

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/internal/pythontest"
)

// Find ignores a package in the working directory.
func TestFindFromHostileFolder(t *testing.T) {
	dir, note := pythontest.Hostile(t)
	t.Chdir(dir)
	t.Setenv("PYTHONPATH", ":")
	found := Find(t.Context(), "/usr/bin/python3", func(string) string { return "" })
	for _, file := range found.Candidates {
		if strings.HasPrefix(file, dir) {
			t.Errorf("%+v", found)
		}
	}
	pythontest.Quiet(t, note)
}
