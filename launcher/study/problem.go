package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong in a study or site file.
type Problem struct {
	File    string
	Line    int    // 1-based; 0 where no single line is to blame
	Path    string // TOML path, "workload.batch" or "sweep.workers[2]"
	Message string // what was wrong and what is valid
}

func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s + ": " + p.Message
}

// Problems are all things wrong in a file. It is the error of Load, LoadSite
// and Plan.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// orNil is the problems as an error, by line and path, nil when there are
// none.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Path, b.Path))
	})
	return p
}

// oneOf is the message for a value outside a list.
func oneOf(got string, valid []string) string {
	return fmt.Sprintf("%q is not known; valid: %s", got, strings.Join(valid, ", "))
}

// unknownKey is the message for a key outside a table's list.
func unknownKey(valid []string) string {
	return "unknown key; valid here: " + strings.Join(valid, ", ")
}
