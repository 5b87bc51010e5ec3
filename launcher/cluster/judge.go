package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/number"
)

// neverStarts lists Slurm's reasons for which a pending job stays pending until someone changes something.
var neverStarts = []string{"PartitionDown", "PartitionInactive", "PartitionNodeLimit", "PartitionTimeLimit", "PartitionConfig",
	"InvalidAccount", "InvalidQOS", "BadConstraints", "AssocMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit", "Licenses", "JobHeldUser", "JobHeldAdmin"}

// judge turns the results of a probe job into findings.
func (j *job) judge(waited time.Duration) []Finding {
	first, ok := j.ran(waited)
	list := []Finding{first}
	if !ok {
		return list
	}
	list = append(list, j.folder()...)
	if !slices.ContainsFunc(j.answers, func(a *probe.Answer) bool { return a != nil }) {
		return append(list, j.silent())
	}
	list = append(list, j.worker())
	list = append(list, j.links()...)
	list = append(list, j.clock()...)
	list = append(list, j.network()...)
	list = append(list, j.cpus(), j.gpus())
	list = append(list, j.nccl()...)
	return append(list, j.interpreter()...)
}

// ran reports whether the job ran at all.
func (j *job) ran(waited time.Duration) (Finding, bool) {
	f := Finding{Check: "probe job", Subject: j.use.subject()}
	answered := 0
	for _, a := range j.answers {
		if a != nil && a.Phase == probe.Done {
			answered++
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	began := exists(j.dir.Begun()) || answered > 0
	state := "not in the queue"
	if j.state != nil {
		state = j.state.Word
		if j.state.Reason != "" {
			state += " (" + j.state.Reason + ")"
		}
	}
	switch {
	case answered == len(j.answers):
		f.Verdict, f.Found = OK, fmt.Sprintf("job %s: %s on %s answered", j.id, number.Count(answered, "task"), number.Count(j.script.Nodes, "node"))
	case began && (j.gone || j.state != nil && j.state.State.Terminal()):
		f.Verdict, f.Found, f.Advice = Fail, fmt.Sprintf("job %s is %s; %s", j.id, state, j.unanswered()), "see "+j.dir.JobLog()
	case began:
		f.Verdict, f.Found, f.Advice = Fail, fmt.Sprintf("job %s is %s after %v; %s", j.id, state, waited, j.unanswered()), "see "+j.dir.JobLog()
	case j.state != nil && !j.state.State.Terminal():
		f.Verdict, f.Found, f.Advice = NotTested, fmt.Sprintf("job %s is still %s after %v and was cancelled", j.id, state, waited), "try again when the queue is shorter, or give it longer with --timeout"
		if slices.Contains(neverStarts, j.state.Reason) {
			f.Verdict, f.Advice = Fail, "it would wait forever: correct the site file; Slurm's reason says what is wrong"
		}
	case j.state != nil:
		f.Verdict, f.Found = Fail, fmt.Sprintf("job %s is %s, but no file that it wrote is visible in %s", j.id, state, j.dir.Path())
		f.Advice = "put the runs folder (--runs) on a file system that the compute nodes share, and make sure that they can write there"
	default:
		f.Verdict, f.Found, f.Advice = NotTested, fmt.Sprintf("job %s never appeared in the queue", j.id), "try again"
	}
	return f, began
}

// unanswered names the tasks that did not finish.
func (j *job) unanswered() string {
	var parts []string
	for rank, a := range j.answers {
		switch {
		case a == nil:
			parts = append(parts, fmt.Sprintf("task %d never answered", rank))
		case a.Phase != probe.Done:
			parts = append(parts, fmt.Sprintf("task %d on %s stopped after phase %q", rank, a.Host, a.Phase))
		}
	}
	return brief(parts)
}

// silent judges a script that ran although no task answered: the script's log says why.
func (j *job) silent() Finding {
	f := Finding{Check: "worker", Subject: j.use.subject(), Verdict: Fail, Found: "no task answered: " + tail(j.dir.JobLog()),
		Advice: "see " + j.dir.JobLog()}
	if strings.Contains(f.Found, "address failed") {
		f.Advice = fmt.Sprintf("%s must be a program on a file system that the compute nodes see, built for them; name it in the site file (worker = …)", j.script.Worker)
	}
	return f
}

// tail returns the end of a log as one line. It leaves out srun's messages about ended tasks if there are
// others.
func tail(path string) string {
	text, err := rundir.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slurms := func(line string) bool {
		return strings.HasPrefix(line, "srun: ") || strings.HasPrefix(line, "slurmstepd: ")
	}
	if others := slices.DeleteFunc(slices.Clone(lines), slurms); len(others) > 0 {
		lines = others
	}
	if len(lines) > 4 {
		lines = lines[len(lines)-4:]
	}
	if s := oneLine(strings.Join(lines, "\n")); s != "" {
		return s
	}
	return "its log is empty"
}

// host returns the name of a node of the job, from the answer of any of its tasks; "node N of the job"
// if none answered.
func (j *job) host(node int) string {
	for _, a := range j.answers {
		if a != nil && a.Node == node {
			return a.Host
		}
	}
	return fmt.Sprintf("node %d of the job", node)
}

// leader returns the answer of a node's first task, or nil if it is missing.
func (j *job) leader(node int) *probe.Answer {
	for _, a := range j.answers {
		if a != nil && a.Node == node && a.LocalRank == 0 {
			return a
		}
	}
	return nil
}

// folder judges the run folder: the nodes must see this host's files, and this host theirs.
func (j *job) folder() []Finding {
	var list []Finding
	for node, c := range j.clocks {
		f := Finding{Check: "run folder", Subject: j.use.subject() + "/" + j.host(node), Verdict: OK}
		leader := j.leader(node)
		switch {
		case c.rounds == 0 && leader != nil && leader.Files != nil && leader.Files.Error != "":
			f.Verdict, f.Found = Fail, leader.Files.Error
		case c.rounds == 0 && leader == nil && node == 0 && exists(j.dir.Begun()):
			f.Verdict, f.Found = NotTested, "the batch script wrote there, but no task answered"
		case c.rounds == 0 && leader == nil && node > 0 && j.leader(0) != nil:
			f.Verdict, f.Found = Fail, "no file that this node's tasks wrote is visible here"
		case c.rounds == 0 && leader == nil:
			f.Verdict, f.Found = NotTested, "no task answered"
		case c.rounds == 0:
			f.Verdict, f.Found = Fail, fmt.Sprint(c.err)
		default:
			f.Found = fmt.Sprintf("written here, read there, and back: %s (shortest of %d)", number.ShortSeconds(c.best.RoundTrip), c.rounds)
			if c.best.RoundTrip > 5 {
				f.Verdict, f.Advice = Warn, "new files appear late: status, collect and the end of a run lag by that much"
			}
		}
		if f.Verdict == Fail {
			f.Advice = "put the runs folder (--runs) on a file system that this host and the compute nodes share, and make sure that they can write there"
		}
		list = append(list, f)
	}
	return list
}

// worker judges whether the worker started, and whether all nodes see the same binary.
func (j *job) worker() Finding {
	f := Finding{Check: "worker", Subject: j.use.subject(), Verdict: OK}
	var versions []string
	started := 0
	for _, a := range j.answers {
		if a == nil {
			continue
		}
		started++
		if !slices.Contains(versions, a.Version) {
			versions = append(versions, a.Version)
		}
	}
	f.Found = fmt.Sprintf("%s started in %d of %s: %s", j.script.Worker, started, number.Count(len(j.answers), "task"), strings.Join(versions, "; "))
	switch {
	case started < len(j.answers):
		f.Verdict, f.Found, f.Advice = Fail, f.Found+"; "+tail(j.dir.JobLog()), "see "+j.dir.JobLog()
	case len(versions) > 1:
		f.Verdict, f.Advice = Fail, "the nodes see different binaries; put one on a shared file system"
	}
	return f
}

// cpus judges the CPU sets: large enough, and not shared between tasks.
func (j *job) cpus() Finding {
	f := Finding{Check: "CPU set", Subject: j.use.subject(), Verdict: OK}
	want := j.script.CPUsPerTask
	var few, shared, seen []string
	byNode := map[int][]*probe.Answer{}
	for _, a := range j.answers {
		if a == nil || len(a.CPUs) == 0 { // the kernel did not report them
			continue
		}
		if len(a.CPUs) < want {
			few = append(few, fmt.Sprintf("task %d on %s may use %s", a.Rank, a.Host, ranges(a.CPUs)))
		}
		for _, b := range byNode[a.Node] {
			if overlap(a.CPUs, b.CPUs) {
				shared = append(shared, fmt.Sprintf("tasks %d and %d on %s share %s", b.Rank, a.Rank, a.Host, ranges(common(a.CPUs, b.CPUs))))
			}
		}
		byNode[a.Node] = append(byNode[a.Node], a)
		if a.Node == 0 {
			seen = append(seen, fmt.Sprintf("task %d: %s", a.Rank, ranges(a.CPUs)))
		}
	}
	f.Found = brief(seen) + " on " + j.host(0)
	switch {
	case len(byNode) == 0:
		f.Verdict, f.Found = NotTested, "no task could tell which CPUs it may use"
	case len(few) > 0:
		f.Verdict, f.Found = Fail, fmt.Sprintf("cpus_per_worker is %d, but %s", want, brief(few))
		f.Advice = "lower cpus_per_worker, or set cpu_bind or hint in the site file as the cluster's documentation says"
	case len(shared) > 0:
		f.Verdict, f.Found = Warn, brief(shared)
		f.Advice = "workers can disturb each other: set cpu_bind = \"cores\" in the site file, if the cluster binds tasks (TaskPlugin)"
	}
	return f
}

// gpus judges which GPUs the tasks see.
func (j *job) gpus() Finding {
	f := Finding{Check: "GPU", Subject: j.use.subject(), Verdict: OK}
	if j.script.GPUsPerNode == 0 {
		f.Verdict, f.Found = NotTested, "no GPU was asked for"
		return f
	}
	var seen, none, silent []string
	missing := "" // why nvidia-smi is missing in one of them
	for _, a := range j.answers {
		switch {
		case a == nil:
		case len(a.GPUs.List) > 0:
			seen = append(seen, fmt.Sprintf("task %d on %s sees %d (CUDA_VISIBLE_DEVICES=%s)", a.Rank, a.Host, len(a.GPUs.List), text(a.GPUs.Visible)))
			if len(a.GPUs.List) < j.script.GPUsPerNode && len(a.GPUs.List) != 1 {
				none = append(none, fmt.Sprintf("task %d on %s sees %d of %s", a.Rank, a.Host, len(a.GPUs.List), number.Count(j.script.GPUsPerNode, "GPU")))
			}
		case a.GPUs.Visible == nil:
			none = append(none, fmt.Sprintf("task %d on %s has no CUDA_VISIBLE_DEVICES", a.Rank, a.Host))
		default:
			silent = append(silent, fmt.Sprintf("task %d on %s has CUDA_VISIBLE_DEVICES=%s", a.Rank, a.Host, *a.GPUs.Visible))
			missing = oneLine(a.GPUs.Error)
		}
	}
	switch {
	case len(none) > 0:
		f.Verdict, f.Found, f.Advice = Fail, brief(none), "the step did not get the GPUs it asked for: correct gpus_per_node and gpu_type in the site file"
	case len(silent) > 0:
		f.Verdict, f.Found = Warn, brief(silent)+"; "+missing
		f.Advice = "without nvidia-smi the GPUs themselves cannot be checked"
	default:
		f.Found = brief(seen)
	}
	return f
}

// text returns a variable's value, or "(not set)" for nil.
func text(v *string) string {
	if v == nil {
		return "(not set)"
	}
	return *v
}

// interpreter judges the start of Python and the imports.
func (j *job) interpreter() []Finding {
	if j.asked.Python == "" {
		why := "the site file names no interpreter (python = …)"
		if len(j.asked.Imports) == 0 {
			return []Finding{{"interpreter", j.use.subject(), NotTested, why, ""}}
		}
		return []Finding{{"interpreter", j.use.subject(), Fail, why + ", and the study needs " + strings.Join(j.asked.Imports, ", "), "name the interpreter in the site file"}}
	}
	var list []Finding
	for node := range j.clocks {
		a := j.leader(node)
		if a == nil || a.Phase != probe.Done || a.Python == nil {
			list = append(list, Finding{"interpreter", j.use.subject() + "/" + j.host(node), NotTested, "the task did not get that far", ""})
			continue
		}
		for i, s := range append([]probe.Trial{*a.Python}, a.Imports...) {
			f := Finding{Check: "interpreter", Subject: j.use.subject() + "/" + a.Host, Verdict: OK}
			if i > 0 {
				f.Check = "import"
			}
			switch {
			case s.Error != "":
				f.Verdict, f.Found, f.Advice = Fail, s.Name+": "+s.Error, "correct python, modules or setup in the site file"
			case *s.Seconds > 60:
				f.Verdict, f.Found = Warn, fmt.Sprintf("%s %s in %s", s.Name, s.Version, number.ShortSeconds(*s.Seconds))
				f.Advice = "every rank waits that long at its start: put the environment on a faster or node-local file system"
			default:
				f.Found = fmt.Sprintf("%s %s in %s", s.Name, s.Version, number.ShortSeconds(*s.Seconds))
			}
			list = append(list, f)
		}
	}
	return list
}
