package trust

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// starts are the files that start programs, and which. An interpreter that only answers
// a question is AskPython's to start: do not add a file for one.
var starts = map[string]string{
	"cmd/gpu-check/check.go":                     "our programs, and PyTorch's rates",
	"cmd/gpu-check/parts.go":                     "our worker",
	"cmd/internal/mutants/packages.go":           "go list",
	"cmd/internal/mutants/tests.go":              "go test",
	"cmd/scalebench-worker/collective.go":        "itself",
	"launcher/cluster/local.go":                  "our worker, scontrol",
	"launcher/cluster/probe/node.go":             "nvidia-smi",
	"launcher/gpu/gputest/fake.go":               "cc, for tests",
	"launcher/gpu/gputest/nvml.go":               "cc, for tests",
	"launcher/gpucheck/suite/pytorch.go":         "PyTorch's steps",
	"launcher/gpucheck/suite/rank.go":            "ranks of a check",
	"launcher/backend/slurm/inside.go":           "a run's batch script",
	"launcher/backend/local/processes.go":        "our worker",
	"launcher/trust/python.go":                   "interpreters that answer a question",
	"launcher/internal/pythontest/pythontest.go": "an interpreter, for tests",
	"launcher/revision.go":                       "git",
	"launcher/serve/target/server.go":            "a server",
	"launcher/notify/notify.go":                  "the user's command for messages",
	"launcher/worker/source.go":                  "conda-unpack of a staged environment",
	"launcher/worker/environment.go":             "nvidia-smi",
	"launcher/worker/program.go":                 "a rank",
	"metrics/worktest/worktest.go":               "go, for tests",
	"slurm/client.go":                            "Slurm's commands",
	"slurm/slurmtest/slurmtest.go":               "bash, for tests",
}

// Only AskPython starts an interpreter to ask it something: all places that start a program are listed here, and no
// other passes a program text to an interpreter.
func TestNothingElseAsks(t *testing.T) {
	starting := map[string][]string{ // by package, the functions that start a program
		"exec":    {"Command", "CommandContext"},
		"os":      {"StartProcess"},
		"syscall": {"Exec", "ForkExec", "StartProcess"},
		"unix":    {"Exec"},
	}
	found := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "../../")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if of, ok := n.X.(*ast.Ident); ok && slices.Contains(starting[of.Name], n.Sel.Name) {
					found[name] = true
				}
			case *ast.CompositeLit:
				if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Cmd" {
					found[name] = true
				}
			case *ast.CallExpr: // as an argument; comparisons with it are fine
				for _, a := range n.Args {
					if text, ok := a.(*ast.BasicLit); ok && text.Kind == token.STRING && name != "launcher/trust/python.go" {
						if value, _ := strconv.Unquote(text.Value); value == "-c" && !slices.Contains([]string{"launcher/internal/pythontest/pythontest.go", "metrics/worktest/worktest.go"}, name) {
							t.Errorf("%s gives a program text to an interpreter; use trust.AskPython", name)
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if starts[name] == "" {
			t.Errorf("%s starts a program: if it is an interpreter that answers a question, use trust.AskPython; otherwise add the file to the list", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(starts)) {
		if !found[name] {
			t.Errorf("%s starts no program any more; remove it from the list", name)
		}
	}
}
