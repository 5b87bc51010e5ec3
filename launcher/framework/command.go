package framework

import (
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/scalebench/scalebench/launcher/study"
)

// The helper is one file of the Python package, so that a copy of it needs nothing else.
//
//go:generate cp ../python/src/scalebench/_events.py programs/scalebench.py

//go:embed programs/scalebench.py programs/torchrun.py
var helper embed.FS

// command starts a program of the user's own, as [command] has it. The program
// reports by scalebench.py, which it can import from the run folder, or its
// output is read; see package worker.
var command = Framework{
	Name:        "command",
	UserProgram: true,
	Programs:    programs(helper),
	PerNode:     func(p study.Point) bool { return p.Command.Start == "node" || once(p) || byTorchrun(p) },
	Launchers:   []string{"torchrun"},
	Check: func(p study.Point) map[string]string {
		wrong := map[string]string{}
		c := p.Command
		if (len(c.Run) == 0 || c.Run[0] == "") && (!p.Workload.UnderLoad() || p.Workload.Serve.Starts()) {
			wrong["command.run"] = "missing; say what to start, like [\"python3\", \"train.py\", \"--batch\", \"{batch}\"]"
		}
		for i, argument := range c.Run {
			if w := wrongPlaceholder(argument, p); w != "" {
				wrong[fmt.Sprintf("command.run[%d]", i)] = w
			}
		}
		if w := wrongPlaceholder(c.Directory, p); w != "" {
			wrong["command.directory"] = w
		}
		for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
			if w := wrongPlaceholder(c.Environment[name], p); w != "" {
				wrong["command.environment"] = name + ": " + w
			}
		}
		if w := wrongPlaceholder(c.Log, p); w != "" {
			wrong["command.log"] = w
		}
		for _, name := range p.Own.Names() {
			if slices.ContainsFunc(placeholders, func(q placeholder) bool { return q.name == name && !q.yields(p) }) {
				wrong["parameters."+name] = fmt.Sprintf("{%s} already has a meaning in [command]; choose another name, like own_%s", name, name)
			}
		}
		readers, unread := extractors(c)
		maps.Copy(wrong, unread)
		for _, q := range c.Patterns {
			if pattern(q).NeedsBatch() && !slices.Contains(used(p), batchKey) && !slices.Contains(used(p), accumulateKey) {
				wrong["extract"] = fmt.Sprintf("%s in %s becomes samples/s by the batch, which [command] does not pass to the program; write {batch} where the program takes it", q.Name, q.Unit)
			}
		}
		switch {
		case !byTorchrun(p):
		case c.Start == "node", once(p):
			wrong["command.start"] = fmt.Sprintf("%q leaves the start of the ranks to the command, and launch = \"torchrun\" starts them itself; keep one of the two", c.Start)
		case len(readers) > 0 && c.Log == "":
			wrong["command.log"] = "launch = \"torchrun\" starts every line of a rank with [default0]:; let the program write its results to a file and name it here, or report through scalebench.py"
		}
		if len(readers) == 0 && (c.Log != "" || len(c.Columns) > 0) {
			wrong["command.log"] = "nothing reads it; name its format in command.extract, or give [[extract]] patterns"
		}
		if len(readers) == 0 && c.PrintedBy == study.LastRank && !slices.Contains(c.Extract, Time) {
			wrong["command.printed_by"] = "nothing reads what that rank prints; name its format in command.extract, or give [[extract]] patterns"
		}
		if once(p) && c.PrintedBy == study.LastRank {
			wrong["command.printed_by"] = "start = \"once\" starts one process, which prints for all ranks; leave it out"
		}
		return wrong
	},
	Uses: used,
	Command: func(s Rank) []string {
		var arguments []string
		for _, a := range s.Point.Command.Run {
			arguments = append(arguments, expand(a, s))
		}
		if byTorchrun(s.Point) {
			return torchrunProgram(s, arguments)
		}
		return arguments
	},
	Environment: commandEnvironment,
	Directory: func(s Rank) string {
		directory := expand(s.Point.Command.Directory, s)
		if !filepath.IsAbs(directory) {
			directory = filepath.Join(s.Point.Command.Folder, directory)
		}
		return directory
	},
}

func once(p study.Point) bool { return p.Command.Start == study.StartOnce }

// used returns the keys whose values reach a command through its placeholders.
func used(p study.Point) (keys []string) {
	c := p.Command
	if p.Workload.UnderLoad() { // the load generator receives all of them
		keys = p.WorkloadKeys()
	}
	for _, text := range slices.Concat(c.Run, []string{c.Directory}, slices.Collect(maps.Values(c.Environment))) {
		for _, found := range named(text) {
			keys = append(keys, findPlaceholder(found, p).uses...)
		}
	}
	return keys
}

// commandEnvironment returns the variables that a command gets in addition to its place in the
// world: the study's own parameters, the variables of [command], and scalebench.py on Python's
// path. Unless set otherwise, a process uses as many threads as it has CPUs, because a library that
// takes all of the node's would measure the contention. The collectives' network interface is set
// too: left alone, libraries use the interface of the host's name, which may be loopback.
func commandEnvironment(s Rank) []string {
	path := s.Run.Programs()
	if before := os.Getenv("PYTHONPATH"); before != "" {
		path += string(filepath.ListSeparator) + before
	}
	list := []string{"PYTHONPATH=" + path, "SCALEBENCH_OUTPUT=" + s.Run.Output()}
	unset := func(name, value string) {
		if os.Getenv(name) == "" {
			list = append(list, name+"="+value)
		}
	}
	threads := s.Point.Resources.CPUsPerWorker
	if s.Point.Command.Start == "node" { // with "once", the ranks inherit the variables
		threads *= s.World.LocalSize
	}
	if Resumes(s.Point.Command) {
		list = append(list, "SCALEBENCH_CHECKPOINT="+s.Run.Checkpoints(), "SCALEBENCH_RESUME="+s.Resume)
	}
	unset("OMP_NUM_THREADS", strconv.Itoa(threads))
	if s.Interface != "" && s.World.Nodes > 1 {
		unset("GLOO_SOCKET_IFNAME", s.Interface)
		unset("NCCL_SOCKET_IFNAME", s.Interface)
	}
	for _, name := range s.Point.Own.Names() {
		list = append(list, study.ParameterVariable(name)+"="+s.Point.Own[name].String())
	}
	variables := s.Point.Command.Environment
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := expand(variables[name], s)
		if name == "PYTHONPATH" {
			value = path + string(filepath.ListSeparator) + value
		}
		list = append(list, name+"="+value)
	}
	return list
}

// Resumes reports whether a command can continue from a checkpoint of an earlier attempt: it
// contains {checkpoint} or {resume}.
func Resumes(c study.Command) bool {
	for _, text := range slices.Concat(c.Run, []string{c.Directory}, slices.Collect(maps.Values(c.Environment))) {
		if slices.ContainsFunc(named(text), func(found string) bool { return found == "{checkpoint}" || found == "{resume}" }) {
			return true
		}
	}
	return false
}
