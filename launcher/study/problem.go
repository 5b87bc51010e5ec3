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
	Line    int    // 1-based; 0 where no single line is to blame; commandLine
	Path    string // TOML path, "workload.batch" or "sweep.workers[2]"
	Message string // what was wrong and what is valid
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

// Problems are all things wrong in a file. It is the error of Load, LoadSite
// and Plan.
type Problems []Problem

// maxShown is the number of problems that a message shows.
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
	return fmt.Sprintf("%q is not known%s", got, choose(got, "valid", valid))
}

// unknownKey is the message for a key outside a table's list.
const unknownKey = "unknown key"

// choose ends a message with what was probably meant and what is valid.
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

// lines are the line of each key and list entry of a file, by path.
type lines map[string]int

// of is the line of a path or, where the file has no such key, of what it
// belongs into; 0 where that is missing as well.
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

// flaws are the paths at which something is wrong.
type flaws map[string]flaw

type flaw int

const (
	inner      flaw = 1 << iota // something below the path is wrong
	flawed                      // its own value
	unreadable                  // and nothing is known of it
)

// maxTable is the longest path, in bytes, of a table with a key of ours in it. A
// key may be of millions of dots.
const maxTable = 1000

func (f flaws) add(path string, what flaw) {
	f[path] |= what
	for i := min(len(path)-1, maxTable); i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			f[path[:i]] |= inner
		}
	}
}

// in reports whether something is wrong with the value at a path, or in it, or
// whether it is within one that could not be read.
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
