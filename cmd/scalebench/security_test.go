package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/security.md names the test of each promise; a test that was renamed, or
// a script that is gone, would leave the promise bare.
func TestPromisesHaveTheirTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	err = filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		code.Write(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(text, -1) {
		named++
		if !strings.Contains(code.String(), "func "+string(m[1])+"(") {
			t.Errorf("there is no test %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("script `(\\w+)`").FindAllSubmatch(text, -1) {
		named++
		if _, err := os.Stat("testdata/script/" + string(m[1]) + ".txtar"); err != nil {
			t.Error(err)
		}
	}
	if named < 20 {
		t.Errorf("%d tests are named", named)
	}
}
