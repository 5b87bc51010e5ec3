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
	"github.com/scalebench/scalebench/launcher/python"
	"github.com/scalebench/scalebench/metrics/number"
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

// step is one check: it passed, failed, was not made or is left out here.
type step struct {
	Name    string
	Found   []string // lines of Markdown
	Mark    string   // what its figures are not, "" for nothing
	Failed  error    // why; nil: it passed, or was not made
	Missing string   // why it was not made
	LeftOut string   // why there is nothing to check here
	Took    time.Duration
}

// result is the step's in a word.
func (s *step) result() string {
	switch {
	case s.Missing != "":
		return "not made"
	case s.Failed != nil:
		return "FAILED"
	case s.LeftOut != "":
		return "left out"
	}
	return "passed"
}

// fine reports whether what needs this step can be made.
func (s *step) fine() bool { return s.Missing == "" && s.Failed == nil }

// report is what all checks found.
type report struct {
	gpucheck.Record
	CuBLAS string
	Double bool
	Part   bool // without the study: no record may be made of it
	Steps  []step
}

// failed says which checks did not pass; nil: all did, or are left out here.
func (r *report) failed() error {
	var list []string
	for _, s := range r.Steps {
		if s.Failed != nil {
			list = append(list, s.Name)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d failed (%s); the page says why", number.Count(len(list), "check"), len(r.Steps), strings.Join(list, ", "))
}

// A part of the check is a step to be made, for so long at most, where the parts that
// it needs have passed.
type part struct {
	name  string
	run   func(context.Context, *step) error
	limit time.Duration
	needs []string
}

func (c *checker) parts() []part {
	const short, long = 10 * time.Minute, 60 * time.Minute
	list := []part{
		{"GPU", c.gpu, short, nil},
		{"PyTorch", c.pytorch, short, []string{"GPU"}}, // before NCCL and cuBLAS, which it may bring
		{"NCCL", c.library, short, []string{"GPU"}},
		{"cuBLAS", c.cublas, short, []string{"GPU"}},
		{"kernels, products and training", c.tests, long, []string{"GPU", "cuBLAS"}},
		{"three steps beside PyTorch", c.steps, long, []string{"cuBLAS", "PyTorch"}},
		{"correctness", c.correctness, short, []string{"NCCL"}},
		{"a wrong bit is noticed", c.canFail, short, []string{"correctness"}},
		{"call overhead", c.overhead, short, []string{"NCCL"}},
		{"collective benchmark", c.benchmark, short, []string{"NCCL"}},
		{"scaling over GPUs", c.scaling, long, []string{"NCCL", "cuBLAS"}},
		{"energy by NVML", c.energy, short, []string{"cuBLAS"}},
		{"a whole study", c.study, long, []string{"NCCL", "cuBLAS", "PyTorch"}},
		{"beside PyTorch", c.beside, long, []string{"cuBLAS", "PyTorch"}},
	}
	if c.NoStudy {
		list = slices.DeleteFunc(list, func(p part) bool { return p.name == "PyTorch" || slices.Contains(p.needs, "PyTorch") })
	}
	return list
}

// runCheck makes every check that can be made. Where one fails, those that do not need
// it are made all the same: whoever has a GPU for an hour wants to know all that is
// wrong.
func runCheck(ctx context.Context, o options) (*report, error) {
	c := &checker{options: o, environment: os.Environ()}
	if strings.HasSuffix(o.Commit, "-dirty") && !o.Double {
		return nil, fmt.Errorf("commit: the source differs from %s; commit first, so that the report names what was checked", strings.TrimSuffix(o.Commit, "-dirty"))
	}
	c.report.Double, c.report.Part = o.Double, o.NoStudy
	c.report.Commit = o.Commit
	c.report.Date = time.Now().UTC().Format(time.DateOnly)
	c.report.Host, _ = os.Hostname()
	passed := map[string]bool{}
	for _, p := range c.parts() {
		s := c.attempt(ctx, p, passed)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", p.name, context.Cause(ctx))
		}
		if s.Failed != nil && len(c.report.Steps) == 0 {
			return nil, fmt.Errorf("%s: %w", p.name, s.Failed)
		}
		passed[p.name] = s.fine()
		c.report.Steps = append(c.report.Steps, s)
		switch {
		case s.Failed != nil:
			fmt.Fprintf(o.Log, "gpu-check: %s: FAILED after %.0f s: %v\n", p.name, s.Took.Seconds(), s.Failed)
		case s.result() != "passed":
			fmt.Fprintf(o.Log, "gpu-check: %s: %s: %s\n", p.name, s.result(), s.Missing+s.LeftOut)
		default:
			fmt.Fprintf(o.Log, "gpu-check: %s: passed after %.0f s\n", p.name, s.Took.Seconds())
		}
	}
	return &c.report, nil
}

func (c *checker) attempt(ctx context.Context, p part, passed map[string]bool) step {
	s := step{Name: p.name}
	for _, need := range p.needs {
		if !passed[need] {
			s.Missing = fmt.Sprintf("%q did not pass", need)
			return s
		}
	}
	fmt.Fprintf(c.Log, "gpu-check: %s, for %.0f minutes at most\n", p.name, p.limit.Minutes())
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("ended after %v, this check's limit", p.limit))
	defer cancel()
	begin := time.Now()
	s.Failed = p.run(ctx, &s)
	s.Took = time.Since(begin)
	return s
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

// start runs a program to its end and returns what it printed, also beside an error,
// which ends with the last lines of what it complained of.
func (c *checker) start(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.Concat(c.environment, environment) // ranks start at once: never in one array
	cmd.Stdout, cmd.Stderr = &out, &complaint
	// A run that is interrupted ends its ranks; what hangs is killed.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 30*time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		what, _, _ := strings.Cut(strings.Join(append([]string{name}, args...), " "), "\n")
		return out.Bytes(), fmt.Errorf("%s: %w\n%s", what, err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
	}
	return out.Bytes(), nil
}

// pytorch asks the interpreter what it has. Where nothing else says which NCCL and
// cuBLAS to bind, they are those that PyTorch's packages brought.
func (c *checker) pytorch(ctx context.Context, s *step) error {
	if c.Double {
		s.LeftOut = "the study runs the native trainer alone"
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
	text, err := python.Ask(ctx, c.Python, python.Question{Program: program, Imports: true, Limit: 10 * time.Minute})
	if err != nil {
		return fmt.Errorf("give an interpreter with PyTorch for CUDA (make gpu-check PYTHON=…): %w", err)
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
	case isDouble(n.GPU) && !c.Double:
		return fmt.Errorf("the GPU is the test double, %s; unset SCALEBENCH_CUDA, SCALEBENCH_CUBLAS and SCALEBENCH_NCCL, or give -double", n.GPU)
	case c.Double && !isDouble(n.GPU):
		return fmt.Errorf("-double: %s is not the test double; set SCALEBENCH_CUDA, SCALEBENCH_CUBLAS and SCALEBENCH_NCCL to it", n.GPU)
	}
	c.report.Driver = c.facts.Driver
	c.report.GPUs = fmt.Sprintf("%d × %s", *c.facts.Devices, c.facts.GPU)
	s.Found = []string{fmt.Sprintf("%s; the driver supports CUDA %s", c.report.GPUs, c.facts.Driver)}
	if list := c.others(ctx); len(list) > 0 && !c.Double {
		s.Found = append(s.Found, "", "Before anything of this check began, nvidia-smi showed processes on this machine's GPUs; if one is on a GPU of this check, the speeds below are not performance:", "")
		s.Found = append(s.Found, list...)
	}
	return nil
}

// others are the processes that nvidia-smi, which comes with the driver, shows on this
// machine's GPUs; nothing where it shows none or is not there.
func (c *checker) others(ctx context.Context) (list []string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := c.start(ctx, nil, "nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "No ") {
			list = append(list, "- `"+strings.ReplaceAll(line, "`", "'")+"`")
		}
	}
	return list
}

// isDouble reports whether a name is one that the doubles give themselves.
func isDouble(name string) bool { return strings.HasPrefix(name, "DOUBLE") }

// cublas is found, or the error says where it was looked for.
func (c *checker) cublas(ctx context.Context, s *step) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	switch n := c.facts; {
	case n.CuBLASError != "":
		return errors.New(n.CuBLASError)
	case isDouble(n.CuBLAS) && !c.Double:
		return fmt.Errorf("%s is the test double; unset SCALEBENCH_CUBLAS, or give -double", n.CuBLAS)
	}
	at := strings.LastIndex(c.facts.CuBLAS, ", ")
	if at < 0 {
		return fmt.Errorf("%s probe says %q of cuBLAS; want its name and path", c.Worker, c.facts.CuBLAS)
	}
	name, path := c.facts.CuBLAS[:at], c.facts.CuBLAS[at+2:]
	c.report.CuBLAS = strings.TrimPrefix(name, "cuBLAS ")
	s.Found = []string{fmt.Sprintf("%s, `%s`", name, path)}
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
