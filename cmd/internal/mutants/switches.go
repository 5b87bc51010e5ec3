package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A switched file contains a mutated copy of a function for each of its mutants. The
// function itself begins by calling the copy that the environment selects. So the tests
// are compiled only once for all mutants.
type switched struct {
	text    []byte
	copies  []copied
	outside []*mutant // mutants outside functions; each is compiled by itself
}

// copied says which lines of a switched file are the mutated copy for a mutant.
type copied struct {
	mutant      *mutant
	first, last int
}

// switchFile is the source file that declares the switch with which functions of a
// package begin. The environment variable MUTANT is the number of the mutant to call.
// MUTANTS_REACHED names a file to which the numbers of mutants whose function is called
// are written.
const switchFile = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached  = os.Getenv("MUTANTS_REACHED")
	mutantsSeen     sync.Map
)

func mutantIs(number int) bool {
	if mutantsReached != "" {
		if _, seen := mutantsSeen.LoadOrStore(number, true); !seen {
			if f, err := os.OpenFile(mutantsReached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				f.WriteString(strconv.Itoa(number) + "\n")
				f.Close()
			}
		}
	}
	return number == mutantNumber
}
`

// An edit replaces bytes of a file.
type edit struct {
	start, end int
	with       string
}

// apply returns the bytes from start to end of source with the edits applied.
func apply(source []byte, start, end int, edits ...edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	for _, e := range edits {
		out = append(append(out, source[start:e.start]...), e.with...)
		start = e.end
	}
	return append(out, source[start:end]...)
}

// switches returns the switched file for a source file and its mutants.
func switches(source []byte, mutants []*mutant) (switched, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return switched{}, err
	}
	offset := func(at token.Pos) int { return files.Position(at).Offset }
	within := map[*ast.FuncDecl][]*mutant{}
	s := switched{}
	for _, m := range mutants {
		i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Body != nil && f.Name.Name != "_" && offset(f.Body.Pos()) < m.start && m.end <= offset(f.Body.End())
		})
		if i < 0 {
			s.outside = append(s.outside, m)
			continue
		}
		f := file.Decls[i].(*ast.FuncDecl)
		within[f] = append(within[f], m)
	}
	var edits []edit
	var copies bytes.Buffer
	lines := bytes.Count(source, []byte("\n")) + 1
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || within[f] == nil {
			continue
		}
		names, call := signature(f, offset)
		edits = append(edits, names...)
		begin := ""
		for _, m := range within[f] {
			name := fmt.Sprintf("%s__%d", f.Name.Name, m.number)
			run := fmt.Sprintf(call, name)
			if f.Type.Results == nil {
				run += "; return"
			} else {
				run = "return " + run
			}
			begin += fmt.Sprintf(" if mutantIs(%d) { %s };", m.number, run)
			text := apply(source, offset(f.Pos()), offset(f.End()), append(slices.Clone(names),
				edit{offset(f.Name.Pos()), offset(f.Name.End()), name}, edit{m.start, m.end, m.with})...)
			first := lines + bytes.Count(copies.Bytes(), []byte("\n")) + 1
			s.copies = append(s.copies, copied{m, first, first + bytes.Count(text, []byte("\n"))})
			copies.Write(text)
			copies.WriteString("\n")
		}
		body := offset(f.Body.Lbrace) + 1
		edits = append(edits, edit{body, body, begin})
	}
	s.text = append(append(apply(source, 0, len(source), edits...), '\n'), copies.Bytes()...)
	return s, nil
}

// signature returns the edits that give names to all parameters of a function. call is
// a format string for a call with these parameters; its argument is the name of the
// function to call.
func signature(f *ast.FuncDecl, offset func(token.Pos) int) (names []edit, call string) {
	number := 0
	nameAll := func(list *ast.FieldList) (all []string) {
		for _, field := range list.List {
			dots := ""
			if _, ok := field.Type.(*ast.Ellipsis); ok {
				dots = "..."
			}
			for _, n := range field.Names {
				name := n.Name
				if name == "_" {
					number++
					name = fmt.Sprintf("mutantArgument%d", number)
					names = append(names, edit{offset(n.Pos()), offset(n.End()), name})
				}
				all = append(all, name+dots)
			}
			if field.Names == nil {
				number++
				name := fmt.Sprintf("mutantArgument%d", number)
				at := offset(field.Type.Pos())
				names = append(names, edit{at, at, name + " "})
				all = append(all, name+dots)
			}
		}
		return all
	}
	call = "%s"
	if f.Recv != nil {
		call = nameAll(f.Recv)[0] + ".%s"
	}
	if f.Type.TypeParams != nil {
		var types []string
		for _, field := range f.Type.TypeParams.List {
			for _, n := range field.Names {
				types = append(types, n.Name)
			}
		}
		call += "[" + strings.Join(types, ", ") + "]"
	}
	return names, call + "(" + strings.Join(nameAll(f.Type.Params), ", ") + ")"
}
