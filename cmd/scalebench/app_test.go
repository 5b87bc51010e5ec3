package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// A script contains every command's usage line.
func TestEveryUsageLineHasAScript(t *testing.T) {
	var scripts strings.Builder
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(text)
	}
	n := 0
	var walk func([]*cli.Command)
	walk = func(level []*cli.Command) {
		for _, c := range level {
			walk(c.Subcommands)
			if len(c.Subcommands) > 0 || c.Name == "help" { // help explains all commands
				continue
			}
			n++
			if line := "^   " + regexp.QuoteMeta(c.UsageText) + "$"; !strings.Contains(scripts.String(), line) {
				t.Errorf("no script expects the usage line %s", line)
			}
			if c.Usage == "" {
				t.Errorf("%q does not say what it does", c.UsageText)
			}
		}
	}
	walk(newApp(&session{stdout: io.Discard, stderr: io.Discard}).Commands)
	if n < 10 {
		t.Fatalf("only %d commands were found", n)
	}
}
