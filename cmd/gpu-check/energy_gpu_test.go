//go:build gpu

package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/cublas"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/nccl"
	"github.com/scalebench/scalebench/launcher/gpu/nvml"
	nvmldouble "github.com/scalebench/scalebench/launcher/gpu/nvml/double"
)

// The step over the doubles: of a GPU that draws 250 W all the time both readings are
// 250 J a second.
func TestGPUEnergyOfDouble(t *testing.T) {
	folder := t.TempDir()
	sensors, err := nvmldouble.Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(folder, "gpus")
	if err := os.WriteFile(script, []byte("gpu\npower 0:250\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(nccl.Variable, library)
	t.Setenv(cuda.Variable, library)
	t.Setenv(cublas.Variable, library)
	t.Setenv(nvml.Variable, sensors)
	t.Setenv(nvmldouble.Variable, script)
	c := &checker{options: options{Worker: filepath.Join(bin, "scalebench-worker-gpu"), Scalebench: filepath.Join(bin, "scalebench"), Python: "python3", Double: true, Log: io.Discard}, environment: os.Environ()}
	var s step
	if err := c.energy(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	page := strings.Join(s.Found, "\n")
	t.Log(page)
	m := regexp.MustCompile(`\| GPU 0 \| \S+ J \| \S+ J \| (\S+) W \| (\S+) \| DOUBLE of NVML`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no row of GPU 0:\n%s", page)
	}
	// The counter moves in steps, which a short run may begin and end within.
	for i, want := range []float64{250, 1} {
		if v, err := strconv.ParseFloat(m[i+1], 64); err != nil || v < 0.8*want || v > 1.2*want {
			t.Errorf("%s, want about %g:\n%s", m[i+1], want, page)
		}
	}
}
