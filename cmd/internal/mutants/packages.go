package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A goPackage is a package as `go list -json` describes it.
type goPackage struct {
	ImportPath, Dir, Name              string
	Module                             module
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

type module struct{ Path, Dir string }

// folder returns the folder of the package with this import path.
func (m module) folder(pkg string) string {
	return filepath.Join(m.Dir, filepath.FromSlash(strings.TrimPrefix(pkg, m.Path)))
}

func list(ctx context.Context, patterns []string) ([]goPackage, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,Name,Module,GoFiles,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles"}, patterns...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(patterns, " "), err, problems.Bytes())
	}
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// lengthy matches the packages whose tests take minutes, because they start
// processes.
var lengthy = regexp.MustCompile(`^/(cmd/.*|examples|launcher(/(backend|gpucheck|native|serve)/.*|/(cluster|framework|launchtest|worker|workspace))?)$`)

// importers returns, for each package, the packages of the module that import it and
// have tests, except lengthy ones.
func importers(ctx context.Context, packages []goPackage) (map[string][]string, error) {
	all, err := list(ctx, []string{packages[0].Module.Path + "/..."})
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, p := range packages {
		for _, q := range all {
			imports := slices.Concat(q.Imports, q.TestImports, q.XTestImports)
			tested := len(q.TestGoFiles)+len(q.XTestGoFiles) > 0
			long := lengthy.MatchString(strings.TrimPrefix(q.ImportPath, q.Module.Path))
			if q.ImportPath != p.ImportPath && tested && !long && slices.Contains(imports, p.ImportPath) {
				found[p.ImportPath] = append(found[p.ImportPath], q.ImportPath)
			}
		}
	}
	return found, nil
}

func names(packages []goPackage) []string {
	var list []string
	for _, p := range packages {
		list = append(list, p.short())
	}
	return list
}

// short returns the package's path below the module.
func (p goPackage) short() string { return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/") }
