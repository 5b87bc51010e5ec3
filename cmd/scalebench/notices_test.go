package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A release contains the licence of every linked module, at any path within the module.
func TestNotices(t *testing.T) {
	text, err := exec.Command("../../.ci/notices").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".", "../scalebench-worker")
	modules, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Split(strings.TrimSpace(string(modules)), "\n")
	slices.Sort(linked)
	if linked = slices.DeleteFunc(slices.Compact(linked), func(m string) bool { return m == "" }); len(linked) < 20 {
		t.Fatalf("%d modules: %q", len(linked), linked)
	}
	for _, module := range linked {
		i := slices.Index(lines, module)
		if i < 0 || len(lines) < i+5 || !strings.Contains(strings.Join(lines[i:min(len(lines), i+40)], "\n"), "opyright") && !strings.Contains(strings.Join(lines[i:min(len(lines), i+60)], "\n"), "icense") {
			t.Errorf("%s has no licence there", module)
		}
	}
	for what, want := range map[string]string{
		"svgo's licence":         "Creative Commons Attribution 4.0 International Public License",
		"Freetype-Go's licence":  "The FreeType Project LICENSE",
		"the fonts' licence":     "SIL OPEN FONT LICENSE Version 1.1",
		"Go's licence":           "Copyright 2009 The Go Authors.",
		"the C library's":        "GNU Lesser General Public License",
		"SQLite's":               "SQLite, which github.com/mattn/go-sqlite3 contains, is in the public domain",
		"a NOTICE of Apache's":   "MinIO Cloud Storage",
		"a licence of a package": "Copyright (c) 2011 The Snappy-Go Authors",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is not there: %q", what, want)
		}
	}
}
