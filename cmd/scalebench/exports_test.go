//go:build lint

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exports collects the functions, variables and constants that the module's packages export, and
// those that other packages use.
type exports struct {
	declared map[string]map[string]token.Position // by import path and name
	named    map[string]map[string]bool
	packages map[string]string // package names by import path
}

// newExports reads every Go file below root with any build tags, and those that tests add
// to a copy of it (testdata/…/NAME.go.txt).
func newExports(root fs.FS, files *token.FileSet) (*exports, error) {
	e := &exports{map[string]map[string]token.Position{}, map[string]map[string]bool{}, map[string]string{}}
	type read struct {
		path string // import path of the folder
		file *ast.File
		test bool
	}
	var all []read
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(strings.TrimSuffix(path, ".txt")) != ".go" || strings.HasPrefix(path, "dist/") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			return err
		}
		r := read{module + "/" + filepath.ToSlash(filepath.Dir(path)), file, strings.HasSuffix(path, "_test.go")}
		if !r.test && !strings.Contains(path, "testdata/") && file.Name.Name != "main" {
			e.packages[r.path] = file.Name.Name
			e.declare(r.path, file, files)
		}
		all = append(all, r)
		return nil
	})
	for _, r := range all {
		e.name(r.file)
	}
	return e, err
}

// declare adds what a file exports, except types and methods: another package can use
// those without naming them.
func (e *exports) declare(path string, file *ast.File, files *token.FileSet) {
	if e.declared[path] == nil {
		e.declared[path] = map[string]token.Position{}
	}
	add := func(name *ast.Ident) {
		if name.IsExported() {
			e.declared[path][name.Name] = files.Position(name.Pos())
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && len(d.Specs) == 1 { // a list of values belongs together
					for _, name := range v.Names {
						add(name)
					}
				}
			}
		}
	}
}

// name adds the names that a file uses from other packages: X in pkg.X, and every name if a
// package is imported with a dot.
func (e *exports) name(file *ast.File) {
	local := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name, ok := e.packages[path]
		if !ok {
			continue
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		local[name] = path
		if e.named[path] == nil {
			e.named[path] = map[string]bool{}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && local[x.Name] != "" {
				e.named[local[x.Name]][s.Sel.Name] = true
			}
		}
		return true
	})
}

// unused lists the exported names that no other package uses.
func (e *exports) unused() (list []string) {
	for path, names := range e.declared {
		for name, at := range names {
			if !e.named[path][name] {
				list = append(list, at.Filename+":"+strconv.Itoa(at.Line)+": "+e.packages[path]+"."+name)
			}
		}
	}
	slices.Sort(list)
	return list
}

// Names that only their own package uses are not exported.
func TestExportsAreUsed(t *testing.T) {
	e, err := newExports(os.DirFS("../.."), token.NewFileSet())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range e.unused() {
		t.Errorf("%s is used in its own package only: do not export it", u)
	}
}
