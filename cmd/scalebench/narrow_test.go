package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Outputs of every command about studies fit into 80 columns, and into 60. Only a word,
// a command to copy, or a path, may be longer.
func TestOutputsFitTheTerminal(t *testing.T) {
	dir, output, _ := shareStudies(t)
	studies := []string{"even", "miss", "plan"}
	site := filepath.Join(dir, "site.toml")
	commands := [][]string{{"runs"}, {"runs", "--metric", "to_0.75"}, {"runs", "--study", "even", "--metric", "step_p95"}}
	for _, study := range slices.Concat(studies, []string{"timed", "service"}) {
		commands = append(commands, []string{"scaling", study}, []string{"scaling", study, "-v"}, []string{"cost", study, "--site", site},
			[]string{"history", study}, []string{"runs", "--study", study})
		if study != "even" {
			commands = append(commands, []string{"compare", study, "even"})
		}
		if study != "service" {
			commands = append(commands, []string{"advise", study}, []string{"advise", study, "-v"}, []string{"predict", study, "--workers", "8", "--scaling", "weak"})
		}
	}
	for _, study := range studies {
		commands = append(commands, []string{"advise", study, "--target", "0.75"}, []string{"cost", study, "--site", site, "--target", "0.75", "--baseline", "workers=1"},
			[]string{"scaling", study, "--metric", "to_0.75"}, []string{"history", study, "--metric", "to_0.75"}, []string{"show", study + "/native-w2-r1-a1"})
	}
	folded := 0
	for _, words := range commands {
		t.Setenv("COLUMNS", "")
		wide := output(words...)
		for _, width := range []int{80, 60} {
			t.Setenv("COLUMNS", strconv.Itoa(width))
			got := output(words...)
			if got != wide {
				folded++
			}
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				alone := !strings.Contains(strings.TrimSpace(line), " ") || strings.HasPrefix(line, "`") && strings.LastIndex(line, "`") >= len(line)-2
				if n := utf8.RuneCountInString(line); n > width && !alone && !strings.Contains(line, dir) {
					t.Errorf("%d columns: %v: a line of %d: %q", width, words, n, line)
				}
			}
		}
	}
	if folded < 40 {
		t.Errorf("only %d outputs are folded", folded)
	}
}
