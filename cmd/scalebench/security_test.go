package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPromisesHaveTheirTests checks that testdata/promises.txt names existing tests for each
// promise of docs/security.md: the bold words at the start of a paragraph.
func TestPromisesHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	promises := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\*\*(.+?)[.:]?\*\*`).FindAllStringSubmatch(string(page), -1) {
		promises[m[1]] = true
	}
	if len(promises) < 20 {
		t.Errorf("docs/security.md has only %d promises", len(promises))
	}
	exists := testNames(t)
	list, err := os.ReadFile("testdata/promises.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		promise, tests, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if !promises[promise] {
			t.Errorf("testdata/promises.txt has %q, which docs/security.md does not promise", promise)
		}
		delete(promises, promise)
		if tests == "" {
			t.Errorf("%q has no test", promise)
		}
		for _, name := range strings.Fields(tests) {
			if !exists[name] {
				t.Errorf("%q names %s, which does not exist", promise, name)
			}
		}
	}
	for _, promise := range slices.Sorted(maps.Keys(promises)) {
		t.Errorf("testdata/promises.txt has no tests for %q", promise)
	}
}

// testNames returns the names of all tests, fuzz tests and benchmarks, and script/NAME for each
// script.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range scripts {
		names["script/"+strings.TrimSuffix(filepath.Base(path), ".txtar")] = true
	}
	return names
}
