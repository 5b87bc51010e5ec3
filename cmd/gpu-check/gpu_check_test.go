//go:build gpu

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/cublas"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/double"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/kernel"
)

// bin is where TestMain puts what the check starts, and library the double.
var bin, library string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "gpu-check-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		bin = dir
		for _, program := range [][]string{
			{"CGO_ENABLED=1", "-o", filepath.Join(dir, "scalebench"), "../scalebench"},
			{"CGO_ENABLED=0", "-o", filepath.Join(dir, "scalebench-worker"), "../scalebench-worker"},
			{"CGO_ENABLED=1", "-tags", "gpu", "-o", filepath.Join(dir, "scalebench-worker-gpu"), "../scalebench-worker"},
		} {
			build := exec.Command("go", append([]string{"build"}, program[1:]...)...)
			build.Env = append(os.Environ(), program[0])
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
				return 1
			}
		}
		if library, err = double.BuildKernels(dir, "libgpu-double.so", kernel.Source()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// check runs the command with the double, and returns what it printed.
func check(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv(nccl.Variable, library)
	t.Setenv(cuda.Variable, library)
	t.Setenv(cublas.Variable, library)
	docs := t.TempDir()
	var out, complaint bytes.Buffer
	err := run(context.Background(), append([]string{"-worker", filepath.Join(bin, "scalebench-worker-gpu"), "-scalebench", filepath.Join(bin, "scalebench"),
		"-commit", "abc123", "-docs", docs, "-record", filepath.Join(docs, "record.json")}, args...), &out, &complaint)
	if left, _ := os.ReadDir(docs); len(left) > 0 {
		t.Errorf("a check with the double wrote %v", left)
	}
	return out.String(), err
}

// The whole check passes with the double, over one GPU that two ranks share and
// over four, and its report cannot be taken for one of a GPU.
func TestGPUCheckOfDouble(t *testing.T) {
	for gpus, want := range map[string][]string{
		"1": {"1 × DOUBLE, not a GPU", "2 ranks, sharing one GPU", "(not performance: two ranks on one GPU)", "Left out: this process sees one GPU"},
		"4": {"4 × DOUBLE, not a GPU", "4 ranks, each on its GPU", "the CNN through the double, once each", "\n| 4 | "},
	} {
		t.Setenv("CUDA_DOUBLE_GPUS", gpus)
		page, err := check(t, "-double")
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range append(want, "# DOUBLE, not a GPU\n", "`abc123`", "noticed on that rank only", "16 all-reduces enqueued as a group", "reduce_scatter | 8192 B", "native batch=32") {
			if !strings.Contains(page, word) {
				t.Errorf("%s GPUs: the report does not say %q:\n%s", gpus, word, page)
			}
		}
		if gpus == "4" && strings.Contains(page, "not performance") {
			t.Errorf("a GPU for each rank is marked:\n%s", page)
		}
	}
}

// Whatever is not as it has to be fails the check; its page says what, and nothing is
// recorded.
func TestGPUCheckFails(t *testing.T) {
	for name, test := range map[string]struct {
		environment string
		args        []string
		want        string
	}{
		"a bit changed by the check": {"", []string{"-double", "-no-study", "-perturb"}, "rank 1 has wrong results"},
		"a bit changed by NCCL":      {"NCCL_DOUBLE_CORRUPT=33", []string{"-double", "-no-study"}, "rank 0 has wrong results"},
		"an error of NCCL":           {"NCCL_DOUBLE_ERROR=33", []string{"-double", "-no-study"}, "ncclRemoteError"},
		"no GPU":                     {"CUDA_DOUBLE_GPUS=0", []string{"-double"}, "nothing has been checked"},
		"no worker":                  {"", []string{"-double", "-worker", "nothing"}, "nothing probe"},
		"an ordinary worker":         {"", []string{"-double", "-worker", filepath.Join(bin, "scalebench-worker")}, "is not the GPU variant"},
		"not committed":              {"", []string{"-commit", "abc-dirty"}, "commit first"},
		"no commit":                  {"", []string{"-double", "-commit", ""}, "-commit is not given"},
	} {
		t.Run(name, func(t *testing.T) {
			if variable, value, set := strings.Cut(test.environment, "="); set {
				t.Setenv(variable, value)
			}
			page, err := check(t, test.args...)
			if err == nil || !strings.Contains(err.Error()+page, test.want) {
				t.Errorf("%v, want %q in it or in\n%s", err, test.want, page)
			}
			if page != "" && !strings.HasPrefix(page, "# DOUBLE, not a GPU: failed\n") {
				t.Errorf("the page does not begin with the failure: %s", page)
			}
		})
	}
}

// What fails leaves the rest of the check to go on.
func TestGPUCheckGoesOn(t *testing.T) {
	t.Setenv("NCCL_DOUBLE_ERROR", "33")
	page, err := check(t, "-double")
	if want := "3 checks of 14 failed (correctness, call overhead, collective benchmark); the page says why"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, want := range []string{"| correctness | FAILED |", "| a wrong bit is noticed | not made |", `Not made: "correctness" did not pass.`,
		"| scaling over GPUs | left out | – |", "| a whole study | passed |", "ncclRemoteError", "native batch=32"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
}

// The double is not taken for a GPU by a check that is to be of one.
func TestGPUCheckRefusesDouble(t *testing.T) {
	if _, err := check(t); err == nil || !strings.Contains(err.Error(), "GPU: the GPU is the test double") {
		t.Errorf("%v", err)
	}
}
