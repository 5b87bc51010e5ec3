//go:build python

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/export"
)

// A reading is the content of an export, as another program read it.
type reading struct {
	Status map[string]string             `json:"status"`
	Values map[string]map[string]float64 `json:"values"`
	Labels []string                      `json:"label"`
	Means  map[string]map[string]float64 `json:"means"` // by measure and workers
	Sums   map[string]float64            `json:"sums"`  // seconds on each kind of track
}

// readers returns the interpreter that has the programs for a format.
func readers(t *testing.T, format string) string {
	family := "exports"
	if format == "extra-p" {
		family = "extrap"
	}
	return environmentPython(t, family)
}

// environmentPython returns the interpreter of a family's environment.
func environmentPython(t *testing.T, family string) string {
	t.Helper()
	cmd := exec.Command("../../launcher/framework/locks/environment.sh", family)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// The programs that the formats are for read the same values as `runs` prints, and know which runs failed.
func TestExportsAreRead(t *testing.T) {
	db := exportedStudy(t)
	want := expected(runsOf(t, db))
	for _, format := range export.Formats {
		t.Run(format.Name, func(t *testing.T) {
			output := filepath.Join(t.TempDir(), "output")
			subject := "hostile"
			if format.OneRun {
				subject = "hostile/command-w2-good-r1-a1"
			}
			inProcess(t, db, exitDone, "export", subject, "--to", format.Name, "-o", output)
			cmd := exec.Command(readers(t, format.Name), "-I", "testdata/export/"+format.Name+".py", output)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got reading
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			compareReading(t, format.Name, got, want)
			if promtool, err := exec.LookPath("promtool"); err == nil && format.Name == "openmetrics" {
				text, err := os.ReadFile(output)
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(promtool, "check", "metrics")
				cmd.Stdin = bytes.NewReader(text)
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("promtool: %v\n%s", err, out)
				}
			}
		})
	}
}

// measuresOfRuns lists the measures in `runs --format json` that the test compares.
var measuresOfRuns = []string{"throughput", "end_to_end", "step_p50", "train_seconds", "final_accuracy", "step_p95", "data_wait", "communication", "to_0.75", "skew", "own_figure"}

// runsOf returns what `runs` prints.
func runsOf(t *testing.T, db string) (rows []map[string]any) {
	t.Helper()
	printed, _ := inProcess(t, db, exitDone, "runs", "--study", "hostile", "--format", "json", "-m", "step_p95", "-m", "data_wait", "-m", "communication", "-m", "to_0.75", "-m", "skew", "-m", "own_figure")
	if err := json.Unmarshal([]byte(printed), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// expected returns what every format should have, as `runs` prints it.
func expected(rows []map[string]any) reading {
	r := reading{Status: map[string]string{}, Values: map[string]map[string]float64{}, Means: map[string]map[string]float64{}}
	for _, row := range rows {
		run := row["run"].(string)
		r.Status[run], r.Values[run] = row["status"].(string), map[string]float64{}
		for _, m := range measuresOfRuns {
			if v, is := row[m].(float64); is {
				r.Values[run][m] = v
			}
		}
	}
	// By hand: two good runs at each number of workers; Extra-P keeps the mean of repeats.
	for _, m := range measuresOfRuns {
		sums := map[string]float64{}
		for _, row := range rows {
			if v, is := row[m].(float64); is && row["status"] == "done" {
				sums[fmt.Sprint(row["workers"])] += v / 2
			}
		}
		r.Means[m] = sums
	}
	return r
}

func compareReading(t *testing.T, format string, got, want reading) {
	near := cmp.Comparer(func(a, b float64) bool {
		if format == "tensorboard" || format == "extra-p" { // 32-bit floats; means
			return math.Abs(a-b) <= 1e-6*math.Abs(b)
		}
		return a == b
	})
	if got.Labels != nil && !slices.Equal(got.Labels, []string{hostileBad, hostileGood}) {
		t.Errorf("labels %q", got.Labels)
	}
	only := func(values map[string]map[string]float64) { // the compared measures
		for _, of := range values {
			for m := range of {
				if !slices.Contains(measuresOfRuns, m) {
					delete(of, m)
				}
			}
		}
	}
	switch format {
	case "extra-p":
		for m, of := range want.Means {
			if d := cmp.Diff(of, got.Means[m], near); d != "" {
				t.Errorf("%s: %s", m, d)
			}
		}
	case "trace":
		// 2 ranks × 60 steps of 11 ms, of which 1 ms, 3 ms and 0.5 ms; 2 evaluations that took no time.
		truth := map[string]float64{"step": 1.32, "data wait": 0.12, "compute": 0.36, "communication": 0.06, "evaluation": 0}
		if d := cmp.Diff(truth, got.Sums, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); d != "" || got.Status["hostile/command-w2-good-r1-a1"] != "done" {
			t.Errorf("%v\n%s", got.Status, d)
		}
	default:
		only(got.Values)
		if d := cmp.Diff(want.Status, got.Status) + cmp.Diff(want.Values, got.Values, near); d != "" {
			t.Error(d)
		}
	}
}

// The Python package, installed into a clean environment, returns the same values as `runs` prints.
func TestPythonPackage(t *testing.T) {
	db := exportedStudy(t)
	want := expected(runsOf(t, db))
	dir := t.TempDir()
	source, python := filepath.Join(dir, "source"), filepath.Join(dir, "venv", "bin", "python")
	if err := os.CopyFS(source, os.DirFS("../../launcher/python")); err != nil { // building writes next to the source
		t.Fatal(err)
	}
	// pandas and Polars are those of the readers' environment.
	script := `set -e
/usr/bin/python3 -m venv "$1"
"$1/bin/python" -m pip install --quiet --no-deps "$2"
where='import sysconfig; print(sysconfig.get_path("purelib"))'
"$3" -I -c "$where" >"$("$1/bin/python" -I -c "$where")/readers.pth"`
	if out, err := exec.Command("sh", "-c", script, "sh", filepath.Join(dir, "venv"), source, readers(t, "parquet")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(python, "-I", "testdata/export/frames.py", db)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got reading
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compareReading(t, "frames", got, want)

	// The package passes mypy, and the stub of its events has the signatures of their functions.
	for _, args := range [][]string{{"mypy", "src"}, {"stubtest", "--ignore-missing-stub", "--mypy-config-file", "pyproject.toml", "scalebench._events"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = source, append(os.Environ(), "MYPYPATH=src", "PYTHONPATH=src")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
	}
}
