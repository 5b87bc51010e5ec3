package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/scalebench/scalebench/slurm/notation"
	"github.com/scalebench/scalebench/templates"
)

// DuplicateExit is the exit status of a batch script that ran nothing because another copy of it had claimed
// the attempt. It is not 0, so that Slurm does not mark the copy COMPLETED and it satisfies no dependency.
const DuplicateExit = 75

// A Script is a batch job: what it requests from Slurm and what it runs. Values are literal and never expanded
// by a shell; only Setup is shell code. A zero value leaves the choice to the cluster, unless the field says
// otherwise.
type Script struct {
	JobName   string // required; unique per attempt, so that a lost submission can be found again
	StepName  string // name of the step that runs Command; "" means srun's default. A Pack names steps in its list
	Partition string
	Account   string
	QOS       string

	Nodes           int           // required
	TasksPerNode    int           // required
	CPUsPerTask     int           // required
	GPUsPerNode     int           // 0 means none
	GPUType         string        // "a100" in gpu:a100:4
	MemoryPerNodeMB int           // MiB, Slurm's "M"
	Time            time.Duration // required; rounded up to whole minutes, Slurm's unit
	Exclusive       bool          // whole nodes
	Requeue         bool          // start again after a node failure or a preemption
	SignalBefore    time.Duration // when SIGUSR1 is sent to the script before Time is over, in whole seconds; 0 means never
	Hint            string        // "nomultithread", …; cannot be combined with CPUBind
	CPUBind         string        // srun --cpu-bind
	MPI             string        // srun --mpi, such as "pmix"
	Shared          bool          // the group may read the job's files: umask 027 instead of 077
	Output          string        // file of the script's output; a literal path without % patterns

	// Options holds further sbatch options by long name without dashes; an empty value is an option without one
	// ("contiguous"). Options that fields of Script decide are refused.
	Options map[string]string

	Modules     []string          // loaded in this order
	Setup       []string          // lines of shell, run unchanged after the modules
	Environment map[string]string // exported after Setup, not expanded
	Container   Container

	RunDir    string   // required without Pack; absolute, on a file system that all nodes share
	Worker    string   // required; absolute path of the worker binary
	Workdir   string   // working directory of Command; absolute
	Interface string   // network interface for the collectives
	Command   []string // required; srun starts it once per task

	// Stage is a command that srun runs before Command, with one task per node of the run; Unstage likewise
	// when the script ends, with a short timeout. nil means none.
	Stage, Unstage []string

	// Pack makes the script serve several runs. The Script holds what they share, the list what differs. nil
	// means that the script serves the run in RunDir.
	Pack *Pack
	// Inside is set if bash runs the script within an existing allocation, without sbatch. Time is then the
	// limit of its step.
	Inside bool
}

// A Container is the image that Command runs in. The batch script itself, its setup lines, and the search for
// an address run outside.
type Container struct {
	Runtime string   // "" or "none", "pyxis", "apptainer"
	Image   string   // in the runtime's format
	Mounts  []string // SOURCE:TARGET[:OPTIONS]; the run folder and the worker binary are always mounted
	Workdir string   // working directory inside; "" means Script.Workdir
}

// An Option is the name and value of an option or a variable.
type Option struct{ Name, Value string }

// Render writes the batch script.
func (s Script) Render(w io.Writer) error {
	return s.render(w, "", "")
}

// RenderWith writes the batch script from a site's template. name, usually the template's path, appears in
// errors with the line. The template may call the blocks of the built-in one, as the comment at its top
// describes.
func (s Script) RenderWith(w io.Writer, name, text string) error {
	return s.render(w, name, text)
}

func (s Script) render(w io.Writer, name, text string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	t, err := builtin()
	if err == nil && name != "" {
		if t, err = t.Clone(); err == nil { // clone it, so that its definitions do not change the shared template
			t, err = t.New(name).Funcs(boundedFuncs()).Parse(text)
		}
		if err == nil {
			err = bound(t)
		}
	}
	if err != nil {
		return fmt.Errorf("script template: %w", err)
	}
	var b boundedWriter // write a script completely or not at all
	b.Grow(16 << 10)    // most scripts are 9 KiB
	if err := t.Execute(&b, s); err != nil {
		if limit := limitError(""); errors.As(err, &limit) {
			return fmt.Errorf("%s: %w", name, limit)
		}
		return fmt.Errorf("script template: %w", err)
	}
	if name != "" {
		var claim bytes.Buffer
		ours, err := builtin() // use our block even if the site's template redefines it
		if err == nil {
			err = ours.ExecuteTemplate(&claim, "claim", s)
		}
		if err != nil {
			return fmt.Errorf("script template: %w", err)
		}
		if !bytes.Contains(b.Bytes(), bytes.TrimSpace(claim.Bytes())) {
			return fmt.Errorf("%s: the script does not claim its attempt, so a second copy of the job would train it again; write {{template \"claim\" .}} after {{template \"prepare\" .}}, or {{template \"body\" .}} for all blocks", name)
		}
		if err := s.checkDirectives(name, b.String()); err != nil {
			return err
		}
	}
	_, err = w.Write(b.Bytes())
	return err
}

// checkDirectives refuses a site's template whose own #SBATCH lines contain an option that Script decides.
func (s Script) checkDirectives(name, text string) error {
	var ours []string
	for _, d := range s.Directives() {
		line, err := directive(d.Name, d.Value)
		if err != nil {
			return err
		}
		ours = append(ours, line)
	}
	if line, err := notation.CheckScript(text, ours); err != nil {
		return fmt.Errorf("%s: line %d of the script: %w", name, line, err)
	}
	return nil
}

// builtin returns the built-in template, parsed once.
var builtin = sync.OnceValues(func() (*template.Template, error) {
	return template.New(templates.Job).
		Option("missingkey=error").
		Funcs(template.FuncMap{"quote": Quote, "directive": directive}).
		ParseFS(templates.Files, templates.Job)
})

// Plain returns a batch script with the job's requests that only runs a command.
func (s Script) Plain(command []string) (string, error) {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, d := range s.Directives() {
		line, err := directive(d.Name, d.Value)
		if err != nil {
			return "", err
		}
		b.WriteString(line + "\n")
	}
	mask := "077"
	if s.Shared {
		mask = "027"
	}
	b.WriteString("umask " + mask + "\nexec")
	for _, word := range command {
		quoted, err := Quote(word)
		if err != nil {
			return "", err
		}
		b.WriteString(" " + quoted)
	}
	return b.String() + "\n", nil
}

// DuplicateExit returns the constant, for the template.
func (s Script) DuplicateExit() int { return DuplicateExit }

// Tasks returns how many tasks the job starts.
func (s Script) Tasks() int { return s.Nodes * s.TasksPerNode }

// GRES returns the generic resource of a node, "gpu:a100:4"; "" without GPUs.
func (s Script) GRES() string { return gres(s.GPUsPerNode, s.GPUType) }

func gres(gpus int, kind string) string {
	switch {
	case gpus == 0:
		return ""
	case kind == "":
		return fmt.Sprintf("gpu:%d", gpus)
	}
	return fmt.Sprintf("gpu:%s:%d", kind, gpus)
}

// TimeLimit returns Time in Slurm's format, "1-02:03:00".
func (s Script) TimeLimit() string {
	n := minutes(s.Time)
	limit := fmt.Sprintf("%02d:%02d:00", n/60%24, n%60)
	if days := n / (24 * 60); days > 0 {
		limit = fmt.Sprintf("%d-%s", days, limit)
	}
	return limit
}

// minutes rounds up.
func minutes(d time.Duration) int64 { return int64((d + time.Minute - 1) / time.Minute) }

// Directives returns the #SBATCH options: first those that fields set, then Options by name.
func (s Script) Directives() []Option {
	var list []Option
	if s.Inside { // no job is requested
		return nil
	}
	add := func(name, value string) { list = append(list, Option{name, value}) }
	some := func(name, value string) {
		if value != "" {
			add(name, value)
		}
	}
	add("job-name", s.JobName)
	some("partition", s.Partition)
	some("account", s.Account)
	some("qos", s.QOS)
	add("nodes", strconv.Itoa(s.Nodes))
	// Without a number per node Slurm may distribute tasks unevenly.
	add("ntasks-per-node", strconv.Itoa(s.TasksPerNode))
	add("cpus-per-task", strconv.Itoa(s.CPUsPerTask))
	some("gres", s.GRES())
	if s.MemoryPerNodeMB > 0 {
		add("mem", fmt.Sprintf("%dM", s.MemoryPerNodeMB))
	}
	if s.Pack != nil && s.Pack.Array {
		add("array", s.Pack.indices())
		add("open-mode", "append") // all tasks write to Output until they have found their runs
	}
	add("time", s.TimeLimit())
	if s.Exclusive {
		add("exclusive", "")
	}
	some("hint", s.Hint)
	some("output", strings.ReplaceAll(s.Output, "%", "%%"))
	some("chdir", s.Workdir)
	if s.Requeue {
		add("requeue", "")
	} else {
		add("no-requeue", "") // the cluster's default may be either
	}
	if s.SignalBefore > 0 {
		add("signal", fmt.Sprintf("B:USR1@%d", s.signalSeconds()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		add(name, s.Options[name])
	}
	return list
}

func (s Script) signalSeconds() int64 {
	return int64((s.SignalBefore + time.Second - 1) / time.Second)
}

// Exports returns Environment, sorted by name.
func (s Script) Exports() []Option {
	var list []Option
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		list = append(list, Option{name, s.Environment[name]})
	}
	return list
}

// StepOptions returns the arguments of srun before the command. They repeat what the job requested, because
// what a step inherits depends on Slurm's version: since 22.05 not the CPUs per task, and not the GPUs if
// exclusive.
func (s Script) StepOptions() []string {
	var list []string
	if s.Pack == nil {
		step := Step{Nodes: s.Nodes, TasksPerNode: s.TasksPerNode, CPUsPerTask: s.CPUsPerTask,
			GPUsPerNode: s.GPUsPerNode, GPUType: s.GPUType, CPUBind: s.CPUBind, MPI: s.MPI, Name: s.StepName}
		if s.Inside {
			step.Time = s.Time
		}
		list = step.options()
	}
	list = append(list,
		"--kill-on-bad-exit=1", // otherwise the other ranks wait for one that is gone
		"--export=ALL")         // in a job submitted with --export=NONE, steps have no PATH
	if s.Inside {
		list = append(list, "--overlap") // the shell that runs this may itself be a step
	}
	if s.Container.Runtime == "pyxis" {
		list = append(list, "--container-image="+s.Container.Image,
			"--container-mounts="+strings.Join(s.mounts(), ","), "--no-container-mount-home")
		if dir := s.containerWorkdir(); dir != "" {
			list = append(list, "--container-workdir="+dir)
		}
	}
	return list
}

// Pinned reports whether the script's steps may be smaller than their job, so that the script must name their
// nodes. --relative=0 is not enough: it skips busy nodes.
func (s Script) Pinned() bool { return s.Allocation() || s.Inside }

// OncePerNode returns the arguments of srun for a step with one task per node, without the number of nodes,
// which only the script of a pack knows.
func (s Script) OncePerNode() []string {
	list := []string{"--ntasks-per-node=1", "--kill-on-bad-exit=1", "--export=ALL"}
	if s.Inside {
		list = append(list, "--overlap")
	}
	return list
}

// Wrapper returns the command that starts the container, between srun and Command.
func (s Script) Wrapper() []string {
	if s.Container.Runtime != "apptainer" {
		return nil
	}
	list := []string{"apptainer", "exec"}
	if s.GPUsPerNode > 0 {
		list = append(list, "--nv")
	}
	for _, m := range s.mounts() {
		list = append(list, "--bind", m)
	}
	if dir := s.containerWorkdir(); dir != "" {
		list = append(list, "--pwd", dir)
	}
	return append(list, s.Container.Image)
}

func (s Script) mounts() []string {
	folder := s.folder()
	return append([]string{folder + ":" + folder, s.Worker + ":" + s.Worker + ":ro"}, s.Container.Mounts...)
}

// folder returns the folder that holds everything the runs write: the run folder, or the parent folder of a
// pack.
func (s Script) folder() string {
	if s.Pack != nil {
		return filepath.Dir(s.Pack.Dir)
	}
	return s.RunDir
}

func (s Script) containerWorkdir() string {
	if s.Container.Workdir != "" {
		return s.Container.Workdir
	}
	return s.Workdir
}
