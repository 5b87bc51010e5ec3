package onnxruntime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// interpreterThat returns a script that replaces a Python interpreter.
func interpreterThat(t *testing.T, does string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	unset := func(string) string { return "" }
	system := []string{"libonnxruntime.so", "libonnxruntime.so.1"}
	folder := filepath.Join(t.TempDir(), "site packages", "onnxruntime")
	library := filepath.Join(folder, "capi", "libonnxruntime.so.1.31.1")
	if err := os.MkdirAll(filepath.Dir(library), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{library, filepath.Join(folder, "capi", "libonnxruntime_providers_shared.so")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty := t.TempDir()
	for name, c := range map[string]struct {
		python     string
		getenv     func(string) string
		candidates []string
		looked     string
	}{
		"variable":  {"/nowhere/python", func(name string) string { return map[string]string{"SCALEBENCH_ONNXRUNTIME": "/opt/o.so"}[name] }, []string{"/opt/o.so"}, "SCALEBENCH_ONNXRUNTIME names it"},
		"package":   {interpreterThat(t, "echo '"+folder+"'"), unset, append([]string{library}, system...), "as the package of "},
		"none":      {interpreterThat(t, "echo"), unset, system, "has no package onnxruntime; install it with `"},
		"no file":   {interpreterThat(t, "echo "+empty), unset, system, "" + empty + "/capi/libonnxruntime.so* does not exist"},
		"no Python": {"/nowhere/python", unset, system, "/nowhere/python cannot locate its package onnxruntime"},
		"fails":     {interpreterThat(t, "exit 3"), unset, system, "exit status 3; install it with"},
	} {
		found := Find(t.Context(), c.python, c.getenv)
		if diff := cmp.Diff(c.candidates, found.Candidates); diff != "" || !strings.Contains(found.Looked, c.looked) {
			t.Errorf("%s: %s %s", name, found.Looked, diff)
		}
	}
}

// The error lists each file that cannot be opened and where its path came from, also for a library that is not
// onnxruntime.
func TestOpenRefuses(t *testing.T) {
	for path, want := range map[string]string{
		"/nowhere/libonnxruntime.so": "/nowhere/libonnxruntime.so: cannot open shared object file",
		"libc.so.6":                  "has no OrtGetApiBase",
	} {
		_, err := Open(Found{[]string{path}, "SCALEBENCH_ONNXRUNTIME names it"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "onnxruntime's C library cannot be loaded: ") || !strings.HasSuffix(err.Error(), "(SCALEBENCH_ONNXRUNTIME names it)") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
