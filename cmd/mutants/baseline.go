package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"
)

// A baseline is what the tests of a package do without a mutant.
type baseline struct {
	slow []string                      // tests that take longer than slowSeconds
	ran  map[string]map[block]struct{} // statements that they execute, by file
	all  map[string]map[block]struct{} // statements of the mutated packages that they could execute
}

// A block is a sequence of statements that are executed together.
type block struct{ fromLine, fromColumn, toLine, toColumn int }

func (b block) contains(line, column int) bool {
	from := line > b.fromLine || line == b.fromLine && column >= b.fromColumn
	return from && (line < b.toLine || line == b.toLine && column <= b.toColumn)
}

// Mutants meet slower tests only after all others.
const slowSeconds = 1

// executes reports whether the tests may notice the mutant: they execute its statement,
// or it is in none, such as the value of a package's variable.
func (b *baseline) executes(m mutant) bool {
	file := path.Join(m.pkg, filepath.Base(m.file))
	counted := false
	for at := range b.all[file] {
		if at.contains(m.line, m.column) {
			if _, ran := b.ran[file][at]; ran {
				return true
			}
			counted = true
		}
	}
	return !counted
}

// measure runs the tests of a package without a mutant. It is an error if one fails: it
// would kill every mutant.
func (t *tests) measure(ctx context.Context, pkg string, mutated []string) (*baseline, error) {
	profile := filepath.Join(t.scratch, "cover.out")
	args := append(t.flags(), "-json", "-coverpkg="+strings.Join(mutated, ","), "-coverprofile="+profile, pkg)
	command := t.command(ctx, "", "go", append([]string{"test"}, args...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	b := &baseline{ran: map[string]map[block]struct{}{}, all: map[string]map[block]struct{}{}}
	var said strings.Builder
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if problem := d.Decode(&e); problem != nil {
			if problem != io.EOF && err == nil {
				err = fmt.Errorf("output of go test -json: %w", problem)
			}
			break
		}
		said.WriteString(e.Output)
		if e.Action == "pass" && e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed > slowSeconds {
			b.slow = append(b.slow, e.Test)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tests of %s fail without any mutant; mend them first: %w\n%s%s", pkg, err, tail(said.String()), tail(problems.String()))
	}
	if _, err := os.Stat(profile); err != nil {
		return b, nil // no tests
	}
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return nil, err
	}
	for _, p := range profiles {
		all, ran := map[block]struct{}{}, map[block]struct{}{}
		for _, s := range p.Blocks {
			at := block{s.StartLine, s.StartCol, s.EndLine, s.EndCol}
			all[at] = struct{}{}
			if s.Count > 0 {
				ran[at] = struct{}{}
			}
		}
		b.all[p.FileName], b.ran[p.FileName] = all, ran
	}
	return b, os.Remove(profile)
}

// pass measures all packages whose tests a mutant may meet.
func (t *tests) pass(ctx context.Context, packages []goPackage, dependents map[string][]string, stderr io.Writer) error {
	var mutated, all []string
	t.module = packages[0].Module
	for _, p := range packages {
		mutated = append(mutated, p.ImportPath)
		all = append(append(all, p.ImportPath), dependents[p.ImportPath]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	t.baselines = map[string]*baseline{}
	for i, pkg := range all {
		fmt.Fprintf(stderr, "as it is: %d/%d %s\n", i+1, len(all), pkg)
		b, err := t.measure(ctx, pkg, mutated)
		if err != nil {
			return err
		}
		t.baselines[pkg] = b
	}
	return nil
}
