package slurm

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/scalebench/scalebench/slurm/notation"
)

var (
	jobNameForm = regexp.MustCompile(`^[A-Za-z0-9._@:+/-]{1,200}$`)
	envForm     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	gpuTypeForm = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
)

// slurmsOwn are variables by which Slurm tells a job what it is and where its
// tasks are. Those that only change how srun works, such as SLURM_MPI_TYPE, are
// a site's to set.
var slurmsOwn = regexp.MustCompile(`^(SBATCH_|SLURM_(JOB|STEP|ARRAY|HET|SUBMIT|TASK|NNODES|NTASKS|NPROCS|NODE|PROCID|LOCALID|GTIDS|RESTART_COUNT|CPUS_PER_TASK|CPUS_ON_NODE|TEST_EXEC))`)

// setByScript are the variables that the script itself exports.
var setByScript = []string{"SCALEBENCH_RUN", "SCALEBENCH_RESTART", "SCALEBENCH_INTERFACE", "MASTER_ADDR", "MASTER_PORT"}

// CheckOutput returns an error if sbatch cannot be given this path, or a folder of it,
// for a job's log.
func CheckOutput(path string) error {
	switch {
	case strings.ContainsFunc(path, unicode.IsControl):
		return errors.New("control characters cannot be in it")
	case strings.Contains(path, `\`):
		return errors.New("sbatch reads a backslash in it as an escape")
	}
	return nil
}

// Validate reports everything that keeps the script from being rendered, each
// problem by the name of its field.
func (s Script) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("batch script: "+format, args...))
	}

	if !jobNameForm.MatchString(s.JobName) {
		bad("JobName is %q; it needs 1 to 200 letters, digits and ._@:+/-", s.JobName)
	}
	for _, f := range []struct {
		name       string
		value, min int
	}{
		{"Nodes", s.Nodes, 1}, {"TasksPerNode", s.TasksPerNode, 1}, {"CPUsPerTask", s.CPUsPerTask, 1},
		{"GPUsPerNode", s.GPUsPerNode, 0}, {"MemoryPerNodeMB", s.MemoryPerNodeMB, 0},
	} {
		if f.value < f.min || f.value > 1<<30 {
			bad("%s is %d; it must be at least %d", f.name, f.value, f.min)
		}
	}
	if s.Time <= 0 {
		bad("Time is %s; a job needs a limit above zero", s.Time)
	} else if s.Time > 10*365*24*time.Hour {
		bad("Time is %s; that is longer than ten years", s.Time)
	}
	if s.SignalBefore < 0 || s.signalSeconds() > 65535 {
		bad("SignalBefore is %s; Slurm takes 0 to 65535 seconds", s.SignalBefore)
	}
	if s.Hint != "" && s.CPUBind != "" {
		bad("Hint %q and CPUBind %q: Slurm takes one or the other", s.Hint, s.CPUBind)
	}
	if !gpuTypeForm.MatchString(s.GPUType) {
		bad("GPUType is %q; it may hold letters, digits and _.-", s.GPUType)
	}
	if s.GPUType != "" && s.GPUsPerNode == 0 {
		bad("GPUType is %q, but GPUsPerNode is 0", s.GPUType)
	}
	if err := CheckOutput(s.Output); err != nil {
		bad("Output is %q; %w", s.Output, err)
	}
	for _, f := range []struct{ name, value string }{
		{"Partition", s.Partition}, {"Account", s.Account}, {"QOS", s.QOS}, {"Hint", s.Hint},
		{"CPUBind", s.CPUBind}, {"MPI", s.MPI}, {"Workdir", s.Workdir}, {"Interface", s.Interface},
	} {
		if strings.ContainsFunc(f.value, unicode.IsControl) {
			bad("%s is %q; control characters cannot be in it", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name, value string
		needed      bool
	}{{"RunDir", s.RunDir, s.Pack == nil}, {"Worker", s.Worker, true}, {"Workdir", s.Workdir, false}} {
		if (f.needed || f.value != "") && !filepath.IsAbs(f.value) {
			bad("%s is %q; it must be an absolute path, because the job starts in a folder of its own", f.name, f.value)
		}
	}
	if p := s.Pack; p != nil {
		if s.RunDir != "" || s.Inside {
			bad("Pack serves the runs of its list; RunDir %q or Inside contradict it", s.RunDir)
		}
		if !filepath.IsAbs(p.Dir) || strings.ContainsFunc(p.Dir, unicode.IsControl) {
			bad("Pack.Dir is %q; it must be an absolute path without control characters", p.Dir)
		}
		if p.Runs < 1 || p.Runs > maxArrayTasks || p.Limit < 0 {
			bad("Pack of %d runs, %d at once; it needs at least one run, and a limit of 0 (none) or more", p.Runs, p.Limit)
		}
	}
	if len(s.Command) == 0 || s.Command[0] == "" || strings.HasPrefix(s.Command[0], "-") {
		bad("Command is %q; it must start with the program to run", s.Command)
	}
	for i, line := range s.Setup {
		if strings.ContainsAny(line, "\x00\r") {
			bad("Setup line %d is %q; it holds a carriage return or NUL, which bash would stumble over", i+1, line)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if err := notation.CheckOption(name, s.Options[name]); err != nil {
			bad("Options %q %v", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		switch {
		case !envForm.MatchString(name):
			bad("Environment has %q; a variable's name is letters, digits and _, and no digit first", name)
		case slices.Contains(setByScript, name):
			bad("Environment has %q, which the script sets itself", name)
		case slurmsOwn.MatchString(name):
			bad("Environment has %q, which Slurm sets for the job; srun and the worker would take it for the truth", name)
		}
	}
	problems = append(problems, s.Container.problems(s)...)
	return errors.Join(problems...)
}

func (c Container) problems(s Script) []error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("batch script: Container."+format, args...))
	}
	switch c.Runtime {
	case "", "none":
		if c.Image != "" {
			bad("Image is %q, but Runtime is %q; use \"pyxis\" or \"apptainer\"", c.Image, c.Runtime)
		}
		return problems
	case "pyxis", "apptainer":
	default:
		bad("Runtime is %q; valid: \"none\", \"pyxis\", \"apptainer\"", c.Runtime)
		return problems
	}
	if c.Image == "" || strings.HasPrefix(c.Image, "-") {
		bad("Image is %q; it must name the image for %s", c.Image, c.Runtime)
	}
	for _, m := range c.Mounts {
		if fields := strings.Split(m, ":"); len(fields) < 2 || len(fields) > 3 || fields[0] == "" || fields[1] == "" || strings.Contains(m, ",") {
			bad("Mounts has %q; write SOURCE:TARGET or SOURCE:TARGET:OPTIONS, without commas", m)
		}
	}
	for _, path := range []string{s.folder(), s.Worker} {
		if strings.ContainsAny(path, ":,") {
			bad("Runtime %s cannot mount %q: a mount's path holds no ':' or ','", c.Runtime, path)
		}
	}
	return problems
}
