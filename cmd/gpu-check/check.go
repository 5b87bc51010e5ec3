package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/gpucheck"
)

// options are what to check with.
type options struct {
	Worker     string // the worker's GPU variant
	Scalebench string // which stands beside an ordinary worker
	Python     string // with PyTorch for CUDA
	Commit     string // that all of this was built from
	Log        io.Writer

	// Double says that NCCL and the driver are the test double, as the
	// environment has them, and the study a small one without PyTorch: what is then
	// checked is this program, and the report says so.
	Double bool
	// NoStudy leaves PyTorch and the study out, on a machine that has no PyTorch
	// for CUDA. What is then had is no whole check, and its report says so.
	NoStudy bool
	// Perturb changes a bit of one result on one rank: the check has to fail.
	Perturb bool
}

// step is one check that has passed.
type step struct {
	Name  string
	Found []string // lines of Markdown
	Mark  string   // what its figures are not, "" for nothing
}

// report is a check that has passed.
type report struct {
	gpucheck.Record
	Double bool
	Part   bool // without the study: no record may be made of it
	Steps  []step
}

// runCheck checks everything, in order, and stops at the first thing that is not
// as it has to be: there is no report of half a check.
func runCheck(ctx context.Context, o options) (*report, error) {
	c := &checker{options: o, environment: os.Environ()}
	if strings.HasSuffix(o.Commit, "-dirty") && !o.Double {
		return nil, fmt.Errorf("commit: the source differs from %s; commit first, so that the report names what was checked", strings.TrimSuffix(o.Commit, "-dirty"))
	}
	c.report.Double, c.report.Part = o.Double, o.NoStudy
	c.report.Commit = o.Commit
	c.report.Date = time.Now().UTC().Format(time.DateOnly)
	c.report.Host, _ = os.Hostname()
	for _, part := range []struct {
		name  string
		run   func(context.Context, *step) error
		study bool
	}{
		{"GPU", c.gpu, false},
		{"PyTorch", c.pytorch, true}, // before NCCL, which it may bring
		{"NCCL", c.library, false},
		{"correctness", c.correctness, false},
		{"a wrong bit is noticed", c.canFail, false},
		{"call overhead", c.overhead, false},
		{"collective benchmark", c.benchmark, false},
		{"scaling over GPUs", c.scaling, false},
		{"energy by NVML", c.energy, false},
		{"a whole study", c.study, true},
		{"beside PyTorch", c.beside, true},
	} {
		if part.study && o.NoStudy {
			continue
		}
		fmt.Fprintf(o.Log, "gpu-check: %s\n", part.name)
		s := step{Name: part.name}
		if err := part.run(ctx, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		c.report.Steps = append(c.report.Steps, s)
	}
	return &c.report, nil
}

type checker struct {
	options
	report      report
	environment []string // of everything that is started
	facts       probe.NCCL
	ranks       int
}

// shared reports whether ranks have to share a GPU.
func (c *checker) shared() bool { return *c.facts.Devices < c.ranks }

const notPerformance = "not performance: two ranks on one GPU"

// start runs a program to its end and returns what it printed. An error ends
// with the last lines of what it complained of.
func (c *checker) start(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.Concat(c.environment, environment) // ranks start at once: never in one array
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, 10*time.Second
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		what, _, _ := strings.Cut(strings.Join(append([]string{name}, args...), " "), "\n")
		return nil, fmt.Errorf("%s: %w\n%s", what, err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
	}
	return out.Bytes(), nil
}

// pytorch asks the interpreter what it has. Where nothing else says which NCCL and
// cuBLAS to bind, they are those that PyTorch's packages brought.
func (c *checker) pytorch(ctx context.Context, s *step) error {
	if c.Double {
		c.report.PyTorch = "not checked: the study runs the native trainer alone"
		s.Found = []string{c.report.PyTorch}
		return nil
	}
	program := `import json, torch
import glob, importlib.util
def library(name, pattern):
    try:
        folders = importlib.util.find_spec(name).submodule_search_locations
    except (ImportError, AttributeError):
        folders = []
    found = [file for folder in folders for file in sorted(glob.glob(folder + pattern))]
    return found[0] if found else ""
print(json.dumps({"version": torch.__version__, "available": torch.cuda.is_available(),
    "nccl": library("nvidia.nccl", "/lib/libnccl.so.2"),
    "cublas": library("nvidia.cublas", "/lib/libcublas.so.[0-9]*") or library("nvidia.cu13", "/lib/libcublas.so.[0-9]*")}))`
	text, err := c.start(ctx, nil, c.Python, "-c", program)
	if err != nil {
		return fmt.Errorf("the last part is a study with PyTorch; give an interpreter with PyTorch for CUDA (make gpu-check PYTHON=…): %w", err)
	}
	var found struct {
		Version      string
		Available    bool
		NCCL, CuBLAS string // files
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("%s printed %.100q: %w", c.Python, text, err)
	}
	if !found.Available {
		return fmt.Errorf("PyTorch %s (%s) sees no GPU, but the driver sees %d: install a PyTorch that is built for CUDA %s or older", found.Version, c.Python, *c.facts.Devices, c.report.Driver)
	}
	c.report.PyTorch = found.Version
	s.Found = []string{fmt.Sprintf("PyTorch %s sees a GPU", found.Version)}
	for variable, file := range map[string]string{"SCALEBENCH_NCCL": found.NCCL, "SCALEBENCH_CUBLAS": found.CuBLAS} {
		if file != "" && os.Getenv(variable) == "" && os.Getenv("VIRTUAL_ENV") == "" {
			c.environment = append(c.environment, variable+"="+file)
		}
	}
	return nil
}

// look asks the worker what it loads, as doctor does.
func (c *checker) look(ctx context.Context) error {
	text, err := c.start(ctx, nil, c.Worker, "probe")
	if err != nil {
		return err
	}
	var facts probe.Facts
	if err := json.Unmarshal(text, &facts); err != nil {
		return fmt.Errorf("%s printed %.100q: %w", c.Worker, text, err)
	}
	if facts.NCCL == nil {
		return fmt.Errorf("%s is not the GPU variant; build it with make worker-gpu", c.Worker)
	}
	c.facts = *facts.NCCL
	return nil
}

// gpu comes first: without one there is nothing to check.
func (c *checker) gpu(ctx context.Context, s *step) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	switch n := c.facts; {
	case n.DriverError != "":
		return fmt.Errorf("no usable GPU here (%s); nothing has been checked", n.DriverError)
	case n.Devices == nil || *n.Devices < 1:
		return errors.New("the driver sees no GPU here; nothing has been checked")
	}
	c.report.Driver = c.facts.Driver
	s.Found = []string{fmt.Sprintf("the driver supports CUDA %s; GPUs: %d", c.facts.Driver, *c.facts.Devices)}
	return nil
}

func (c *checker) library(ctx context.Context, s *step) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	n := c.facts
	switch {
	case n.Error != "":
		return errors.New(n.Error)
	case n.Double && !c.Double:
		return fmt.Errorf("%s is the test double; unset SCALEBENCH_NCCL and SCALEBENCH_CUDA, or give -double", n.Path)
	case c.Double && !n.Double:
		return fmt.Errorf("-double: %s (%s) is not the test double; set SCALEBENCH_NCCL and SCALEBENCH_CUDA to it", n.Path, n.Name)
	}
	c.ranks = 2
	if *n.Devices >= 4 {
		c.ranks = 4
	}
	c.report.NCCL = strings.TrimPrefix(n.Name, "NCCL ")
	s.Found = []string{fmt.Sprintf("%s, `%s`", n.Name, n.Path)}
	return nil
}
