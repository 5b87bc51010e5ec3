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

// slurmsOwn matches variables by which Slurm describes a job and the location of its tasks. A site may set
// those that only change how srun works, such as SLURM_MPI_TYPE.
var slurmsOwn = regexp.MustCompile(`^(SBATCH_|SLURM_(JOB|STEP|ARRAY|HET|SUBMIT|TASK|NNODES|NTASKS|NPROCS|NODE|PROCID|LOCALID|GTIDS|RESTART_COUNT|CPUS_PER_TASK|CPUS_ON_NODE|TEST_EXEC))`)

// setByScript lists the variables that the script exports.
var setByScript = []string{"SCALEBENCH_RUN", "SCALEBENCH_RESTART", "SCALEBENCH_INTERFACE", "MASTER_ADDR", "MASTER_PORT"}

// CheckOutput returns an error if sbatch cannot use this path, or a folder in it, for a job's log.
func CheckOutput(path string) error {
	switch {
	case strings.ContainsFunc(path, unicode.IsControl):
		return errors.New("control characters cannot be in it")
	case strings.Contains(path, `\`):
		return errors.New("sbatch reads a backslash in it as an escape")
	}
	return nil
}

// flaws collects what is wrong with a script; each problem names its field.
type flaws []error

func (f *flaws) add(format string, args ...any) {
	*f = append(*f, fmt.Errorf("batch script: "+format, args...))
}

// Validate reports everything that prevents the script from being rendered, each problem by field name.
func (s Script) Validate() error {
	var f flaws
	if !jobNameForm.MatchString(s.JobName) {
		f.add("JobName is %q; it needs 1 to 200 letters, digits and ._@:+/-", s.JobName)
	}
	s.checkSize(&f)
	s.checkTimes(&f)
	s.checkGPUs(&f)
	if s.Hint != "" && s.CPUBind != "" {
		f.add("Hint %q and CPUBind %q: Slurm takes one or the other", s.Hint, s.CPUBind)
	}
	s.checkTexts(&f)
	s.checkPaths(&f)
	s.Pack.check(s, &f)
	s.checkCommands(&f)
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if err := notation.CheckOption(name, s.Options[name]); err != nil {
			f.add("Options %q %v", name, err)
		}
	}
	s.checkEnvironment(&f)
	s.Container.check(s, &f)
	return errors.Join(f...)
}

func (s Script) checkSize(f *flaws) {
	for _, field := range []struct {
		name       string
		value, min int
	}{
		{"Nodes", s.Nodes, 1}, {"TasksPerNode", s.TasksPerNode, 1}, {"CPUsPerTask", s.CPUsPerTask, 1},
		{"GPUsPerNode", s.GPUsPerNode, 0}, {"MemoryPerNodeMB", s.MemoryPerNodeMB, 0},
	} {
		if field.value < field.min || field.value > 1<<30 {
			f.add("%s is %d; it must be at least %d", field.name, field.value, field.min)
		}
	}
}

func (s Script) checkTimes(f *flaws) {
	switch {
	case s.Time <= 0:
		f.add("Time is %s; a job needs a limit above zero", s.Time)
	case s.Time > 10*365*24*time.Hour:
		f.add("Time is %s; that is longer than ten years", s.Time)
	}
	if s.SignalBefore < 0 || s.signalSeconds() > 65535 {
		f.add("SignalBefore is %s; Slurm takes 0 to 65535 seconds", s.SignalBefore)
	}
}

func (s Script) checkGPUs(f *flaws) {
	if !gpuTypeForm.MatchString(s.GPUType) {
		f.add("GPUType is %q; it may hold letters, digits and _.-", s.GPUType)
	}
	if s.GPUType != "" && s.GPUsPerNode == 0 {
		f.add("GPUType is %q, but GPUsPerNode is 0", s.GPUType)
	}
}

func (s Script) checkTexts(f *flaws) {
	if err := CheckOutput(s.Output); err != nil {
		f.add("Output is %q; %w", s.Output, err)
	}
	for _, field := range []struct{ name, value string }{
		{"Partition", s.Partition}, {"Account", s.Account}, {"QOS", s.QOS}, {"Hint", s.Hint},
		{"CPUBind", s.CPUBind}, {"MPI", s.MPI}, {"Workdir", s.Workdir}, {"Interface", s.Interface},
	} {
		if strings.ContainsFunc(field.value, unicode.IsControl) {
			f.add("%s is %q; control characters cannot be in it", field.name, field.value)
		}
	}
}

func (s Script) checkPaths(f *flaws) {
	for _, field := range []struct {
		name, value string
		needed      bool
	}{{"RunDir", s.RunDir, s.Pack == nil}, {"Worker", s.Worker, true}, {"Workdir", s.Workdir, false}} {
		if (field.needed || field.value != "") && !filepath.IsAbs(field.value) {
			f.add("%s is %q; it must be an absolute path, because the job starts in another folder", field.name, field.value)
		}
	}
}

// check reports problems of a pack; nil means no pack, which is valid.
func (p *Pack) check(s Script, f *flaws) {
	if p == nil {
		return
	}
	if s.RunDir != "" || s.Inside {
		f.add("Pack serves the runs of its list; RunDir %q or Inside contradict it", s.RunDir)
	}
	if !filepath.IsAbs(p.Dir) || strings.ContainsFunc(p.Dir, unicode.IsControl) {
		f.add("Pack.Dir is %q; it must be an absolute path without control characters", p.Dir)
	}
	if p.Runs < 1 || p.Runs > maxArrayTasks || p.Limit < 0 {
		f.add("Pack of %d runs, %d at once; it needs at least one run, and a limit of 0 (none) or more", p.Runs, p.Limit)
	}
}

func (s Script) checkCommands(f *flaws) {
	if len(s.Command) == 0 || s.Command[0] == "" || strings.HasPrefix(s.Command[0], "-") {
		f.add("Command is %q; it must start with the program to run", s.Command)
	}
	for i, line := range s.Setup {
		if strings.ContainsAny(line, "\x00\r") {
			f.add("Setup line %d is %q; it holds a carriage return or NUL, which bash cannot read", i+1, line)
		}
	}
}

func (s Script) checkEnvironment(f *flaws) {
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		switch {
		case !envForm.MatchString(name):
			f.add("Environment has %q; a variable's name has letters, digits and _, and does not start with a digit", name)
		case slices.Contains(setByScript, name):
			f.add("Environment has %q, which the script sets itself", name)
		case slurmsOwn.MatchString(name):
			f.add("Environment has %q, which Slurm sets for the job; srun and the worker would read the wrong value", name)
		}
	}
}

func (c Container) check(s Script, f *flaws) {
	bad := func(format string, args ...any) { f.add("Container."+format, args...) }
	switch c.Runtime {
	case "", "none":
		if c.Image != "" {
			bad("Image is %q, but Runtime is %q; use \"pyxis\" or \"apptainer\"", c.Image, c.Runtime)
		}
		return
	case "pyxis", "apptainer":
	default:
		bad("Runtime is %q; valid: \"none\", \"pyxis\", \"apptainer\"", c.Runtime)
		return
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
}
