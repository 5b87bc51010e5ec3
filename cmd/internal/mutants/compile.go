package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A place is a line of a file of a package.
type place struct {
	pkg, file string // import path, base name
	line      int
}

// overlay writes files, and an overlay file (go build -overlay) with which the compiler
// uses them instead of the module's. It returns the path of the overlay file. Each file
// keeps its base name, since compiler messages name either path.
func (t *tests) overlay(name string, files map[string][]byte) (string, error) {
	replace := map[string]string{}
	for file, text := range files {
		folder := filepath.Join(t.scratch, name, strconv.Itoa(len(replace)))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
		replace[file] = filepath.Join(folder, filepath.Base(file))
		if err := os.WriteFile(replace[file], text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(t.scratch, name, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// overlayOf writes the overlay for one mutant and returns its path.
func (t *tests) overlayOf(m *mutant) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	return t.overlay("alone", map[string][]byte{m.file: m.apply(source)})
}

// compiles reports whether the package of a mutant outside functions compiles.
func (t *tests) compiles(ctx context.Context, m *mutant) (bool, error) {
	overlay, err := t.overlayOf(m)
	if err != nil {
		return false, err
	}
	return t.command(ctx, overlay, "go", "build", m.pkg).Run() == nil, ctx.Err()
}

// withAll writes the overlay in which packages contain all mutants within functions. It
// returns the mutants outside functions and, in at, the mutant at each line of a
// mutated copy.
func (t *tests) withAll(packages []goPackage, mutants []*mutant) (overlay string, outside []*mutant, at map[place]*mutant, err error) {
	byFile := map[string][]*mutant{}
	for _, m := range mutants {
		byFile[m.file] = append(byFile[m.file], m)
	}
	files := map[string][]byte{}
	at = map[place]*mutant{}
	for file, list := range byFile {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", nil, nil, err
		}
		s, err := switches(source, list)
		if err != nil {
			return "", nil, nil, err
		}
		outside = append(outside, s.outside...)
		files[file] = s.text
		for _, c := range s.copies {
			for line := c.first; line <= c.last; line++ {
				at[place{c.mutant.pkg, filepath.Base(file), line}] = c.mutant
			}
		}
	}
	for _, p := range packages {
		files[filepath.Join(p.Dir, "mutant_switch.go")] = fmt.Appendf(nil, switchFile, p.Name)
	}
	overlay, err = t.overlay("all", files)
	return overlay, outside, at, err
}

var located = regexp.MustCompile(`^(\S+\.go):(\d+):`)

// doNotCompile compiles packages and returns mutants that do not compile. The caller
// must remove these and call it again until none remain: the compiler stops after
// ten errors per package, and does not compile packages that import one with errors.
func (t *tests) doNotCompile(ctx context.Context, packages []goPackage, at map[place]*mutant) ([]*mutant, error) {
	args := []string{"build", "-p", strconv.Itoa(t.parallel)}
	for _, p := range packages {
		args = append(args, p.ImportPath)
	}
	out, err := t.command(ctx, t.all, "go", args...).CombinedOutput()
	if err == nil {
		return nil, nil
	}
	var found []*mutant
	pkg := ""
	for line := range strings.Lines(string(out)) {
		if p, ok := strings.CutPrefix(line, "# "); ok {
			pkg = strings.TrimSpace(p)
			continue
		}
		m := located.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number, _ := strconv.Atoi(m[2])
		wrong := at[place{pkg, path.Base(filepath.ToSlash(m[1])), number}]
		if wrong == nil {
			return nil, fmt.Errorf("%s does not compile with the mutants' switches: %s", pkg, line)
		}
		if !slices.Contains(found, wrong) {
			found = append(found, wrong)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, tail(string(out)))
	}
	return found, nil
}
