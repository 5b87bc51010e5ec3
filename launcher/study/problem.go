package study

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Problem is a mistake in a study or site file.
type Problem struct {
	File    string
	Line    int    // 1-based; 0: no single line; or commandLine
	Path    string // TOML path, "workload.batch" or "sweep.workers[2]"
	Message string // what is wrong and what is valid
}

func (p Problem) String() string {
	s := p.File
	switch {
	case p.Line == commandLine:
		s = "the command line"
	case p.Line > 0:
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Path != "" {
		s += ": " + p.Path
	}
	return s + ": " + p.Message
}

// Problems are all mistakes in a file. It is the error of Load, LoadSite and Plan.
type Problems []Problem

// maxShown is the maximum number of problems in one error message.
const maxShown = 200

func (p Problems) Error() string {
	lines := make([]string, min(len(p), maxShown))
	for i := range lines {
		lines[i] = p[i].String()
	}
	if more := len(p) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// orNil returns the problems as an error, sorted by line and path; nil: none.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Path, b.Path))
	})
	return p
}

// oneOf returns the message for a value that is not one of the valid ones.
func oneOf(got string, valid []string) string {
	return fmt.Sprintf("%q is not known%s", got, choose(got, "valid", valid))
}

// unknownKey is the message for an unknown key of a table.
const unknownKey = "unknown key"

// choose returns the end of a message about the value got: a suggestion, and the valid
// values under a heading.
func choose(got, heading string, valid []string) string {
	bare := make([]string, len(valid))
	for i, v := range valid {
		bare[i] = strings.Trim(v, "\"")
	}
	list := ": " + strings.Join(valid, ", ")
	if near := NearWords(got, bare); len(near) > 0 {
		return "; did you mean " + near[0] + "? " + strings.ToUpper(heading[:1]) + heading[1:] + list
	}
	return "; " + heading + list
}

// lines has the line number of each key and list entry of a file, by path.
type lines map[string]int

// of returns the line number of a path. If the file has no such key, it returns the line
// of the enclosing table, or 0 if that is missing, too.
func (l lines) of(path string) int {
	for {
		if line := l[path]; line != 0 {
			return line
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}

// flaws are the TOML paths at which a problem was found.
type flaws map[string]flaw

type flaw int

const (
	inner      flaw = 1 << iota // a value below the path has a problem
	flawed                      // the value itself has a problem
	unreadable                  // the value could not be read at all
)

// maxTable is the maximum length, in bytes, of the path of a table that has valid keys.
// It is needed because a hostile file may have keys with millions of dots.
const maxTable = 1000

func (f flaws) add(path string, what flaw) {
	f[path] |= what
	for i := min(len(path)-1, maxTable); i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			f[path[:i]] |= inner
		}
	}
}

// in reports whether there is a problem at a path, below it, or in an enclosing value
// that could not be read.
func (f flaws) in(path string) bool { return f[path] != 0 || f.unread(path) }

// unread reports whether the path is within a value that could not be read.
func (f flaws) unread(path string) bool {
	for i := min(len(path)-1, maxTable); i > 0; i-- {
		if (path[i] == '.' || path[i] == '[') && f[path[:i]]&unreadable != 0 {
			return true
		}
	}
	return false
}
