package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const module = "github.com/scalebench/scalebench"

// importRules are the import directions that the architecture forbids. A package pattern is
// a path below the module, with "/..." for everything below it too; a forbidden pattern
// that starts with a host is a full import path.
var importRules = []struct {
	from     string
	never    []string
	but      []string // exceptions
	direct   bool     // only direct imports, not indirect ones
	unless   string
	standsBy string // the reason
}{
	{from: "slurm/...", never: []string{"metrics/...", "launcher/...", "cmd/..."}, standsBy: "slurm knows Slurm and nothing of training"},
	{from: "metrics/...", never: []string{"launcher/...", "slurm/...", "cmd/..."}, standsBy: "metrics are facts, whoever measured them"},
	{from: "metrics/sharedfs", never: []string{"slurm/...", "metrics", "metrics/store", "launcher/...", "cmd/..."}, standsBy: "files know nothing of what is in them"},
	{from: "cmd/...", never: []string{"github.com/hanwen/go-fuse/..."}, standsBy: "a file system of our own is for tests"},
	{from: "launcher/...", unless: "launcher/workspace/...", never: []string{"metrics/store", "metrics/figure", "cmd/..."}, standsBy: "the launcher works without a database"},
	{from: "launcher/workspace", never: []string{"metrics/figure", "cmd/..."}, standsBy: "a workspace has the folders and the database of runs, and shows nothing"},
	{from: "launcher", never: []string{"slurm", "launcher/backend/..."}, standsBy: "attempts are driven through an interface, whatever runs them"},
	{from: "launcher/study", never: []string{"launcher/framework", "metrics/...", "slurm"}, but: []string{"metrics/measure", "metrics/number", "metrics/redact", "metrics/sharedfs"}, standsBy: "a study is told which frameworks exist, and knows measures and models by name alone"},
	{from: "metrics/scaling", never: []string{"metrics/store", "metrics/figure", "os", "database/sql"}, direct: true, standsBy: "scaling is pure"},
	{from: "metrics/fingerprint", never: []string{"metrics/store", "metrics/scaling", "metrics/summary", "os", "database/sql"}, direct: true, standsBy: "a fingerprint is of facts alone"},
	{from: "metrics/report", never: []string{"os", "net", "net/http"}, direct: true, standsBy: "a page says what it is given"},
	{from: "metrics/cost", never: []string{"metrics/store", "metrics/figure", "os", "database/sql"}, direct: true, standsBy: "prices come from the caller"},
	{from: "cmd/scalebench-worker", never: []string{"github.com/mattn/go-sqlite3", "gonum.org/v1/plot/...", "database/sql", "metrics/store", "metrics/figure"}, standsBy: "compute nodes neither open the database nor draw"},
	{from: "cmd/...", never: []string{"launcher/gpu/nccl/...", "launcher/gpu/cuda", "launcher/gpu/gputest", "launcher/gpu/dl", "launcher/telemetry/nvidia", "launcher/native/gpurank", "launcher/native/train/gpu/...", "launcher/serve/onnxruntime"}, standsBy: "programs load no C library; the worker's variants for GPUs and onnxruntime, with their build tags, are their own"},
	{from: "launcher/world", never: []string{"launcher/study", "launcher/rundir", "launcher/native/collective/...", "metrics/...", "cmd/..."}, standsBy: "a handshake is told the nonce and knows nothing of runs"},
	{from: "launcher/gpu/nccl", never: []string{"launcher/native/collective", "launcher/world", "launcher/gpu/cuda", "metrics/...", "slurm/..."}, standsBy: "the binding is of use without scalebench"},
	{from: "...", unless: "metrics/store/...", never: []string{"github.com/mattn/go-sqlite3", "database/sql"}, direct: true, standsBy: "only the store knows SQL"},
	{from: "...", unless: "cmd/...", never: []string{"github.com/urfave/cli/...", "github.com/schollz/progressbar/..."}, direct: true, standsBy: "libraries print nothing"},
	{from: "...", never: []string{"metrics/scaling/internal/..."}, standsBy: "simulated clusters are for tests"},
	{from: "cmd/scalebench", never: []string{"launcher/native/train/..."}, standsBy: "training happens in the worker"},
}

// ruled are packages that rules name. If one is removed, its rule has no
// effect.
var ruled = []string{"launcher/workspace", "slurm", "metrics/sharedfs", "metrics", "metrics/store", "metrics/scaling", "metrics/cost", "metrics/fingerprint", "metrics/report", "launcher", "launcher/world", "launcher/gpu/nccl", "launcher/gpu/cuda", "launcher/gpu/dl", "launcher/telemetry/nvidia", "launcher/native/gpurank", "launcher/native/train/gpu", "launcher/serve/onnxruntime", "launcher/study", "cmd/scalebench", "cmd/scalebench-worker"}

type goPackage struct {
	ImportPath    string
	Imports, Deps []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-deps=false", "-json=ImportPath,Imports,Deps", module+"/...").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var list []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// matches reports whether the import path fits a pattern of importRules.
func matches(pattern, path string) bool {
	if first, _, _ := strings.Cut(pattern, "/"); slices.Contains([]string{"cmd", "slurm", "launcher", "metrics", "templates", "examples", "..."}, first) {
		pattern = module + "/" + pattern
	}
	if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == parent || strings.HasPrefix(path, parent+"/")
	}
	return path == pattern
}

// broken lists what a package imports against the rules.
func broken(p goPackage) []string {
	var list []string
	for _, rule := range importRules {
		if !matches(rule.from, p.ImportPath) || rule.unless != "" && matches(rule.unless, p.ImportPath) {
			continue
		}
		imports := p.Deps
		if rule.direct {
			imports = p.Imports
		}
		for _, path := range imports {
			for _, never := range rule.never {
				if matches(never, path) && !slices.Contains(rule.but, strings.TrimPrefix(path, module+"/")) {
					list = append(list, p.ImportPath+" imports "+path+": "+rule.standsBy)
				}
			}
		}
	}
	return list
}

func TestImportDirection(t *testing.T) {
	packages := listPackages(t)
	for _, name := range ruled {
		if !slices.ContainsFunc(packages, func(p goPackage) bool { return p.ImportPath == module+"/"+name }) {
			t.Errorf("there is no package %s; name its successor in the rules", name)
		}
	}
	for _, p := range packages {
		for _, b := range broken(p) {
			t.Error(b)
		}
	}
}

// The test detects imports that break the rules.
func TestImportRulesDetectViolations(t *testing.T) {
	for _, test := range []struct {
		p    goPackage
		want int
	}{
		{goPackage{ImportPath: module + "/slurm/notation", Deps: []string{module + "/metrics"}}, 1},
		{goPackage{ImportPath: module + "/slurm/notation", Deps: []string{module + "/templates", "fmt"}}, 0},
		{goPackage{ImportPath: module + "/launcher/study", Deps: []string{module + "/metrics/redact", module + "/metrics"}}, 1},
		{goPackage{ImportPath: module + "/metrics", Deps: []string{module + "/launcher/world"}}, 1},
		{goPackage{ImportPath: module + "/cmd/scalebench-worker", Deps: []string{"gonum.org/v1/plot/vg"}}, 1},
		{goPackage{ImportPath: module + "/cmd/scalebench-worker", Deps: []string{"gonum.org/v1/gonum/blas"}}, 0},
		{goPackage{ImportPath: module + "/cmd/scalebench-worker", Deps: []string{module + "/launcher/gpu/dl"}}, 1},
		{goPackage{ImportPath: module + "/launcher/gpu/nccl", Deps: []string{module + "/launcher/gpu/dl", module + "/launcher/world"}}, 1},
		{goPackage{ImportPath: module + "/cmd/scalebench", Imports: []string{"github.com/mattn/go-sqlite3"}}, 1},
		{goPackage{ImportPath: module + "/metrics/store", Imports: []string{"github.com/mattn/go-sqlite3"}}, 0},
		{goPackage{ImportPath: module + "/launcher", Imports: []string{"github.com/urfave/cli/v2"}}, 1},
	} {
		if got := broken(test.p); len(got) != test.want {
			t.Errorf("%s: %d rules broken, want %d: %q", test.p.ImportPath, len(got), test.want, got)
		}
	}
}

// ending returns the shortest end of a package's path that is unique.
func ending(path string, packages []goPackage) string {
	parts := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	for i := len(parts) - 1; i > 0; i-- {
		end := strings.Join(parts[i:], "/")
		same := slices.DeleteFunc(slices.Clone(packages), func(p goPackage) bool {
			return p.ImportPath != module+"/"+end && !strings.HasSuffix(p.ImportPath, "/"+end)
		})
		if len(same) == 1 {
			return end
		}
	}
	return strings.Join(parts, "/")
}

// packageRows returns the packages that have a row in the table of docs/design.md.
func packageRows(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	_, text, _ = bytes.Cut(text, []byte("\n## Packages\n"))
	text, _, _ = bytes.Cut(text, []byte("\n## "))
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		name := strings.Trim(strings.TrimSpace(cells[1]), "`")
		if rows[name] {
			t.Errorf("%s has two rows", name)
		}
		rows[name] = true
	}
	return rows
}

// TestImportTable checks that docs/design.md has a row for each package, and that
// testdata/imports.txt lists what each package imports of ours, so that a new import is seen
// in review. cmd/scalebench imports nearly all; the rules above say what it must not import.
func TestImportTable(t *testing.T) {
	packages := listPackages(t)
	rows := packageRows(t)
	var list strings.Builder
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if !rows[name] {
			t.Errorf("docs/design.md has no row for %s", name)
		}
		delete(rows, name)
		if name == "cmd/scalebench" {
			continue
		}
		var imports []string
		for _, path := range p.Imports {
			if strings.HasPrefix(path, module+"/") {
				imports = append(imports, ending(path, packages))
			}
		}
		slices.Sort(imports)
		fmt.Fprintf(&list, "%s: %s\n", name, cmp.Or(strings.Join(imports, ", "), "–"))
	}
	for name := range rows {
		t.Errorf("docs/design.md has a row for %s, and there is no such package", name)
	}
	const golden = "testdata/imports.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), list.String()); diff != "" {
		t.Errorf("%s differs from the imports (go test ./cmd/scalebench -run TestImportTable -update rewrites it):\n%s", golden, diff)
	}
}
