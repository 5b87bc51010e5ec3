package main

import (
	_ "embed"
	"fmt"
	"strings"
)

// equivalents lists the mutants that behave like the original code, so that no test
// can fail, each with a reason.
//
//go:embed equivalent.txt
var equivalents string

// parseEquivalents returns the reason for each equivalent mutant. The keys are mutants
// as they are printed, without line numbers.
func parseEquivalents(text string) (map[string]string, error) {
	reasons := map[string]string{}
	mutant := ""
	for i, line := range strings.Split(text, "\n") {
		reason, indented := strings.CutPrefix(line, "\t")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case !indented && mutant == "":
			mutant = line
		case indented && mutant != "":
			reasons[mutant] = reason
			mutant = ""
		default:
			return nil, fmt.Errorf("equivalent.txt:%d: want a mutant, then its reason in the next line after a tab, got %q", i+1, line)
		}
	}
	if mutant != "" {
		return nil, fmt.Errorf("equivalent.txt: %s has no reason", mutant)
	}
	return reasons, nil
}
