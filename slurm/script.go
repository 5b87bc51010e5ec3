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

// DuplicateExit is the exit status of a batch script that found its attempt
// claimed by another copy of itself and ran nothing. It is not 0, so that
// Slurm does not call the copy COMPLETED and no dependency is satisfied by it.
const DuplicateExit = 75

// Script is a batch job: what it asks Slurm for, and what it runs. Values are
// passed on as they are, never expanded by a shell; only Setup is shell code.
// A zero value leaves a choice to the cluster unless said otherwise.
type Script struct {
	JobName   string // needed; unique per attempt, so that a lost submission can be found again
	StepName  string // of the step that the programs are; "" for srun's own. A Pack has it in its list
	Partition string
	Account   string
	QOS       string

	Nodes           int           // needed
	TasksPerNode    int           // needed
	CPUsPerTask     int           // needed
	GPUsPerNode     int           // 0: no GPUs
	GPUType         string        // "a100" in gpu:a100:4
	MemoryPerNodeMB int           // MiB, Slurm's "M"
	Time            time.Duration // needed; rounded up to whole minutes, which is how Slurm counts
	Exclusive       bool          // whole nodes
	Requeue         bool          // start again after a node failure or a preemption
	SignalBefore    time.Duration // SIGUSR1 to the script so long before Time is over, in whole seconds; 0: none
	Hint            string        // "nomultithread", …; excludes CPUBind
	CPUBind         string        // srun --cpu-bind
	MPI             string        // srun --mpi, such as "pmix"
	Shared          bool          // the group may read what the job writes: umask 027, else 077
	Output          string        // file of the script's own output; a plain path, no % patterns

	// Options are further sbatch options by long name without the dashes; an
	// empty value is an option without one ("contiguous"). Those that a field
	// of Script decides are refused.
	Options map[string]string

	Modules     []string          // loaded in this order
	Setup       []string          // lines of shell, run as they stand after the modules
	Environment map[string]string // exported after Setup, not expanded
	Container   Container

	RunDir    string   // needed, unless Pack; absolute, on a file system that all nodes share
	Worker    string   // needed; absolute path of the worker binary
	Workdir   string   // where Command is started; absolute
	Interface string   // network interface of the collectives
	Command   []string // needed; what srun starts, once a task

	// Stage is what srun starts before Command and waits for, one task a node of
	// the run; Unstage the same when the script ends, for a short time. nil:
	// nothing.
	Stage, Unstage []string

	// Pack makes the script serve several runs; what they share stands here,
	// what differs in the list. nil: it serves the one in RunDir.
	Pack *Pack
	// Inside is for a script that bash runs within an allocation that is there
	// already, in place of sbatch. Time is then the limit of its step.
	Inside bool
}

// Container is the image that Command runs in. The batch script itself, its
// setup lines and the search for an address stay outside.
type Container struct {
	Runtime string   // "" or "none", "pyxis", "apptainer"
	Image   string   // as the runtime takes it
	Mounts  []string // SOURCE:TARGET[:OPTIONS]; the run folder and the worker binary are always mounted
	Workdir string   // inside; "": Script.Workdir
}

// Option is an option's or a variable's name and value.
type Option struct{ Name, Value string }

// Render writes the batch script.
func (s Script) Render(w io.Writer) error {
	return s.render(w, "", "")
}

// RenderWith writes the batch script by a site's own template. name, usually
// the template's path, stands in errors beside the line. The template may call
// the blocks of the built-in one, as its first comment says.
func (s Script) RenderWith(w io.Writer, name, text string) error {
	return s.render(w, name, text)
}

func (s Script) render(w io.Writer, name, text string) error {
	if err := s.Validate(); err != nil {
		return err
	}
	t, err := builtin()
	if err == nil && name != "" {
		if t, err = t.Clone(); err == nil { // what it defines stays its own
			t, err = t.New(name).Funcs(boundedFuncs()).Parse(text)
		}
		if err == nil {
			err = bound(t)
		}
	}
	if err != nil {
		return fmt.Errorf("script template: %w", err)
	}
	var b boundedWriter // so that a script is written whole or not at all
	b.Grow(16 << 10)    // most are 9 KiB
	if err := t.Execute(&b, s); err != nil {
		if limit := limitError(""); errors.As(err, &limit) {
			return fmt.Errorf("%s: %w", name, limit)
		}
		return fmt.Errorf("script template: %w", err)
	}
	if name != "" {
		var claim bytes.Buffer
		ours, err := builtin() // not what the site's may have put in its place
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

// checkDirectives refuses a site's template that writes, among its own #SBATCH
// lines, one of an option that Script decides.
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

// builtin is the built-in template, parsed once.
var builtin = sync.OnceValues(func() (*template.Template, error) {
	return template.New(templates.Job).
		Option("missingkey=error").
		Funcs(template.FuncMap{"quote": Quote, "directive": directive}).
		ParseFS(templates.Files, templates.Job)
})

// DuplicateExit is the constant, for the template.
func (s Script) DuplicateExit() int { return DuplicateExit }

// Tasks is how many tasks the job starts.
func (s Script) Tasks() int { return s.Nodes * s.TasksPerNode }

// GRES is the generic resource of a node, "gpu:a100:4"; "" without GPUs.
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

// TimeLimit is Time in Slurm's form, "1-02:03:00".
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

// Directives are the #SBATCH lines: those of the fields, then Options by name.
func (s Script) Directives() []Option {
	var list []Option
	if s.Inside { // there is nothing to ask for
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
	// Without a number per node Slurm may place tasks unevenly.
	add("ntasks-per-node", strconv.Itoa(s.TasksPerNode))
	add("cpus-per-task", strconv.Itoa(s.CPUsPerTask))
	some("gres", s.GRES())
	if s.MemoryPerNodeMB > 0 {
		add("mem", fmt.Sprintf("%dM", s.MemoryPerNodeMB))
	}
	if s.Pack != nil && s.Pack.Array {
		add("array", s.Pack.indices())
		add("open-mode", "append") // Output is of all tasks until each has found its run
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

// Exports is Environment, by name.
func (s Script) Exports() []Option {
	var list []Option
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		list = append(list, Option{name, s.Environment[name]})
	}
	return list
}

// StepOptions are the arguments of srun before the command. They repeat what
// the job asked for, because a step inherits it differently from one version
// of Slurm to the next: CPUs per task not since 22.05, GPUs not when exclusive.
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
		"--kill-on-bad-exit=1", // else the others wait for a rank that is gone
		"--export=ALL")         // a job submitted with --export=NONE has no PATH in its steps
	if s.Inside {
		list = append(list, "--overlap") // the shell that this runs in may be a step itself
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

// Pinned reports whether the script's steps may be smaller than their job, so that
// the script must name their nodes. --relative=0 does not: it skips busy nodes.
func (s Script) Pinned() bool { return s.Allocation() || s.Inside }

// OncePerNode are the arguments of srun for a step of one task a node, but for
// the number of nodes, which only the script of a pack knows.
func (s Script) OncePerNode() []string {
	list := []string{"--ntasks-per-node=1", "--kill-on-bad-exit=1", "--export=ALL"}
	if s.Inside {
		list = append(list, "--overlap")
	}
	return list
}

// Wrapper is what stands between srun and Command: the container's start.
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

// folder is what holds all that the runs write: the run folder, or where those
// of a pack stand beside it.
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
