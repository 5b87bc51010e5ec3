package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one small change in one file.
type mutant struct {
	pkg        string // its package's import path
	file       string // absolute path
	name       string // path from the module's root
	line       int
	number     int    // number in the sample, from 1
	start, end int    // the range of bytes of the file that is replaced
	with       string // replacement text
	was, now   string // the statement or expression before and after, for people
	code       string // the line of the file
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.name, m.line, m.change()) }

// key returns a name of the mutant that does not depend on its line number.
func (m mutant) key() string { return m.name + ": " + m.change() + "  in  " + m.code }

func (m mutant) change() string {
	if m.now == "" {
		return m.was + "  ->  (removed)"
	}
	return m.was + "  ->  " + m.now
}

// apply returns the mutated file.
func (m mutant) apply(source []byte) []byte {
	return slices.Concat(source[:m.start], []byte(m.with), source[m.end:])
}

// sitesOf returns all mutants of packages, ordered by package, file and position.
func sitesOf(packages []goPackage) ([]mutant, error) {
	var all []mutant
	for _, p := range packages {
		for _, file := range p.GoFiles {
			file = filepath.Join(p.Dir, file)
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(p.Module.Dir, file)
			if err != nil {
				return nil, err
			}
			mutants, err := mutantsOf(name, source)
			if err != nil {
				return nil, err
			}
			for _, m := range mutants {
				m.pkg, m.file = p.ImportPath, file
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// sample returns the mutants in random order, and only one for each place in the code.
// Otherwise an operator with three replacements would be drawn three times as often.
func sample(all []mutant, seed uint64) []mutant {
	random := rand.New(rand.NewPCG(seed, 0))
	all = slices.Clone(all)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	type place struct {
		file       string
		start, end int
	}
	first, count := map[place]mutant{}, map[place]int{}
	var places []place
	for _, m := range all {
		at := place{m.file, m.start, m.end}
		if count[at]++; count[at] == 1 {
			first[at] = m
			places = append(places, at)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	kept := make([]mutant, len(places))
	for i, at := range places {
		kept[i] = first[at]
	}
	return kept
}

// at returns the mutants of a line, given as FILE:LINE.
func at(all []mutant, where string) []mutant {
	var found []mutant
	for _, m := range all {
		if fmt.Sprintf("%s:%d", m.name, m.line) == filepath.ToSlash(filepath.Clean(where)) {
			found = append(found, m)
		}
	}
	return found
}

// operators are the replacements of each binary operator. For comparisons these are the
// operator with the other boundary, and the opposite.
var operators = map[token.Token][]token.Token{
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
	token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.QUO_ASSIGN: {token.MUL_ASSIGN},
	token.INC: {token.DEC}, token.DEC: {token.INC},
}

// words are the replacements of names of built-in functions, constants, and package
// functions.
var words = map[string]string{
	"min": "max", "max": "min", "true": "false", "false": "true",
	"math.Min": "math.Max", "math.Max": "math.Min", "math.Floor": "math.Ceil", "math.Ceil": "math.Floor",
	"slices.Min": "slices.Max", "slices.Max": "slices.Min", "slices.MinFunc": "slices.MaxFunc", "slices.MaxFunc": "slices.MinFunc",
}

// A finder collects the mutants of one file.
type finder struct {
	name   string
	source []byte
	files  *token.FileSet
	found  []mutant
}

func mutantsOf(name string, source []byte) ([]mutant, error) {
	f := &finder{name: name, source: source, files: token.NewFileSet()}
	file, err := parser.ParseFile(f.files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, f.visit)
	return f.found, nil
}

func (f *finder) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.BinaryExpr:
		f.operator(n, n.OpPos, n.Op)
	case *ast.AssignStmt:
		f.operator(n, n.TokPos, n.Tok)
	case *ast.IncDecStmt:
		f.operator(n, n.TokPos, n.Tok)
	case *ast.UnaryExpr:
		if n.Op == token.SUB || n.Op == token.NOT {
			f.replace(n, n.OpPos, n.X.Pos(), "")
		}
	case *ast.BasicLit:
		f.number(n)
	case *ast.Ident:
		f.word(n, n.Name)
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok {
			f.word(n, x.Name+"."+n.Sel.Name)
		}
		ast.Inspect(n.X, f.visit)
		return false // a method or field named max is not the builtin
	case *ast.KeyValueExpr:
		if _, field := n.Key.(*ast.Ident); !field {
			ast.Inspect(n.Key, f.visit)
		}
		ast.Inspect(n.Value, f.visit)
		return false
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.ReturnStmt:
		if last := len(n.Results) - 1; last < 1 || !failure.MatchString(f.text(n.Results[last])) {
			return true
		}
		// By convention, no caller reads a result that comes with an error.
		for _, result := range n.Results {
			if !constant.MatchString(f.text(result)) {
				ast.Inspect(result, f.visit)
			}
		}
		return false
	case *ast.BlockStmt:
		f.drop(n.List)
	case *ast.CaseClause:
		f.drop(n.Body)
	case *ast.CommClause:
		f.drop(n.Body)
	case *ast.CallExpr:
		switch f.text(n.Fun) {
		case "make":
			if len(n.Args) == 2 {
				ast.Inspect(n.Args[1], f.visit)
			}
			return false // a capacity only affects speed
		case "strconv.ParseFloat", "math.IsInf": // the second is 64, or a number of which only the sign counts
			ast.Inspect(n.Args[0], f.visit)
			return false
		}
	}
	return true
}

var (
	failure  = regexp.MustCompile(`^(err$|fmt\.Errorf\(|errors\.New\(|(\w+\.)*errorAt\(|&\w+Error\{)`)
	constant = regexp.MustCompile(`^([0-9.]+|true|false)$`)
)

// text returns the source of an expression.
func (f *finder) text(x ast.Expr) string {
	return string(f.source[f.offset(x.Pos()):f.offset(x.End())])
}

func (f *finder) offset(at token.Pos) int { return f.files.Position(at).Offset }

// replace adds a mutant in which the text between two positions within node is replaced
// by with.
func (f *finder) replace(node ast.Node, from, to token.Pos, with string) {
	start, end := f.offset(from), f.offset(to)
	first, last := f.offset(node.Pos()), f.offset(node.End())
	at := f.files.Position(from)
	code := f.source[bytes.LastIndexByte(f.source[:start], '\n')+1:]
	if i := bytes.IndexByte(code, '\n'); i >= 0 {
		code = code[:i]
	}
	f.found = append(f.found, mutant{
		name: f.name, line: at.Line, start: start, end: end, with: with,
		was: oneLine(string(f.source[first:last])), code: strings.TrimSpace(string(code)),
		now: oneLine(string(f.source[first:start]) + with + string(f.source[end:last])),
	})
}

func (f *finder) operator(node ast.Node, at token.Pos, op token.Token) {
	for _, other := range operators[op] {
		f.replace(node, at, at+token.Pos(len(op.String())), other.String())
	}
}

func (f *finder) word(node ast.Node, word string) {
	if other, ok := words[word]; ok {
		f.replace(node, node.Pos(), node.End(), other)
	}
}

// number adds mutants in which an integer is replaced by its neighbours, and another
// number by its double and its half.
func (f *finder) number(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		v, err := strconv.ParseInt(n.Value, 0, 64)
		if err != nil {
			return
		}
		f.replace(n, n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
		if v > 0 {
			f.replace(n, n.Pos(), n.End(), strconv.FormatInt(v-1, 10))
		}
	case token.FLOAT:
		v, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return
		}
		for _, other := range []float64{2 * v, v / 2} {
			f.replace(n, n.Pos(), n.End(), strconv.FormatFloat(other, 'g', -1, 64))
		}
	}
}

// negate adds a mutant in which a condition is negated. It skips comparisons and
// negations, since their operators are replaced anyway.
func (f *finder) negate(condition ast.Expr) {
	switch c := condition.(type) {
	case *ast.UnaryExpr:
		return
	case *ast.BinaryExpr:
		if c.Op != token.LAND && c.Op != token.LOR {
			return
		}
	}
	start, end := f.offset(condition.Pos()), f.offset(condition.End())
	f.replace(condition, condition.Pos(), condition.End(), "!("+string(f.source[start:end])+")")
}

// drop adds mutants in which one statement is removed, for statements without which the
// code may compile.
func (f *finder) drop(statements []ast.Stmt) {
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.IfStmt:
			if !leaves(s) {
				continue
			}
		default:
			continue
		}
		f.replace(s, s.Pos(), s.End(), "")
	}
}

// leaves reports whether the body of an if statement is only an early return, break or
// continue.
func leaves(s *ast.IfStmt) bool {
	if s.Else != nil || len(s.Body.List) == 0 {
		return false
	}
	switch s.Body.List[len(s.Body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// oneLine returns code on one line, shortened.
func oneLine(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	const most = 100
	if runes := []rune(code); len(runes) > most {
		code = string(runes[:most]) + "…"
	}
	return code
}
