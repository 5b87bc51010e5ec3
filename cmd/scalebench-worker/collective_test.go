package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/extract"
)

// Studies are checked without linking the benchmark, so their list of operations must equal the
// benchmark's.
func TestCollectiveOps(t *testing.T) {
	var ops []string
	for _, op := range collective.Ops {
		ops = append(ops, string(op))
	}
	if !slices.Equal(ops, study.CollectiveOps) {
		t.Errorf("the benchmark has %v, launcher/study says %v", ops, study.CollectiveOps)
	}
}

// Each kind of workload has a worker command with its name.
func TestEveryKindHasItsCommand(t *testing.T) {
	var out, complaint bytes.Buffer
	for _, kind := range study.Kinds() {
		out.Reset()
		if code := run([]string{"scalebench-worker", kind, "--help"}, &out, &complaint); code != 0 || !strings.Contains(out.String(), "scalebench-worker "+kind+" ") {
			t.Errorf("%s: exit code %d, %s%s", kind, code, &out, &complaint)
		}
	}
}

// byHand runs the benchmark by hand, with three ranks in separate processes.
func byHand(t *testing.T, arguments ...string) (out, complaint string, code int) {
	t.Helper()
	t.Setenv("SCALEBENCH_TEST_AS_WORKER", "1")
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"scalebench-worker", "collective", "--ranks", "3", "--min", "64", "--max", "1K", "--iterations", "4", "--warmup", "1"}, arguments...), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

func TestCollectiveByHand(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // others may run the benchmark on this machine
	out, complaint, code := byHand(t, "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	d := json.NewDecoder(strings.NewReader(out))
	n := 0
	for ; d.More(); n++ {
		var r struct {
			Op             string
			Bytes          int64
			Seconds, BusBW float64
		}
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if !(r.Seconds > 0 && r.BusBW > 0 && r.Bytes >= 48) {
			t.Errorf("%+v", r)
		}
	}
	if want := len(collective.Ops) * 5 * 2; n != want {
		t.Errorf("%d results, want %d", n, want)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The reader of nccl-tests' logs reads the printed table, and gives the same values as the
// events.
func TestCollectiveTableIsNCCLTests(t *testing.T) {
	out, complaint, code := byHand(t, "--ops", "all_reduce", "--backend", "tcp")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	e, err := extract.Find("nccl-tests")
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Extract(strings.NewReader(out), extract.Options{Workers: 3})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var figures []metrics.Figure
	for f := range r.Findings() {
		figures = append(figures, *f.Event.Figure)
	}
	list, rest := busbw.Group(figures)
	if len(list) != 10 || len(rest) > 0 {
		t.Fatalf("%d measurements and %v, want 5 sizes in and out of place\n%s", len(list), rest, out)
	}
	for _, m := range list {
		if m.Op != "all_reduce" || !(*m.Seconds > 0 && *m.Seconds < 10) {
			t.Errorf("%+v", m)
		}
		// 2(n-1)/n of the algorithmic bandwidth; the table has three digits.
		if ratio := *m.BusBW / *m.AlgBW; ratio < 1.32 || ratio > 1.35 {
			t.Errorf("busbw/algbw = %g, want 4/3", ratio)
		}
	}
}

func TestCollectiveRefused(t *testing.T) {
	for want, arguments := range map[string][]string{
		"make worker-gpu":                {"--backend", "nccl"},
		`"a" is not known; valid`:        {"--ops", "a"},
		`"pigeon" is not known; valid`:   {"--backend", "pigeon"},
		"is less than workload.min_byte": {"--max", "8"},
	} {
		if _, complaint, code := byHand(t, arguments...); code == 0 || !strings.Contains(complaint, want) {
			t.Errorf("%v: exit code %d, %q; want %q", arguments, code, complaint, want)
		}
	}
}
