// Package framework describes each training framework: what it needs and how a rank starts. A framework is one
// value in one file; All lists them. The native trainer gets no special treatment: like the others it is a
// command line that reads point.json and appends events.
package framework

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/launcher/world"
)

// A Framework is one way to run a point.
type Framework struct {
	Name string

	// Check returns, by TOML path, what the framework cannot do in a point.
	Check func(study.Point) map[string]string

	// UserProgram: it starts the program of [command].
	UserProgram bool

	// Uses returns the keys whose values reach the program; nil means all.
	Uses func(study.Point) []string

	// PerNode reports whether the framework's launcher starts the ranks of a node for a point: Command then
	// runs once per node. nil means once per rank.
	PerNode func(study.Point) bool

	// Launchers holds the values of resources.launch that can start its ranks, in addition to srun and the
	// local launcher; nil means none.
	Launchers []string

	// Server is set if it only serves models.
	Server bool
	// Language is set for servers of language models, which speak OpenAI's protocol and serve ServedModel.
	Language bool

	// Imports lists the Python modules that the program needs; nil means none.
	Imports []string

	// versions lists distributions whose versions a service's runs record; see ServerVersions.
	versions []string

	// Family is the folder of locks/ for Imports; "" means Debian's packages, or none.
	Family string

	// Programs are files that the run folder must contain before the attempt starts; may be nil.
	Programs fs.FS

	// Command returns the command line.
	Command func(Rank) []string

	// Environment returns variables in addition to the world's, as "NAME=value"; may be nil.
	Environment func(Rank) []string

	// Directory returns the program's working directory; nil means the supervisor's.
	Directory func(Rank) string
}

// OncePerNode reports whether a point's program is started once a node.
func (f Framework) OncePerNode(p study.Point) bool { return f.PerNode != nil && f.PerNode(p) }

// Once reports whether a point's program is started once for all nodes, by the
// supervisor of the first; the other supervisors wait for it.
func (f Framework) Once(p study.Point) bool { return f.StartsUsers(p) && once(p) }

// StartsUsers reports whether the supervisor starts the program of [command] itself. For a service it starts
// scalebench's program, which queries it.
func (f Framework) StartsUsers(p study.Point) bool { return f.UserProgram && !p.Workload.UnderLoad() }

// Started returns the command line that the supervisor starts. For a service it is scalebench's own
// program, which starts Command as a replica.
func (f Framework) Started(s Rank) []string {
	if s.Point.Workload.UnderLoad() {
		return native.Command(s)
	}
	return f.Command(s)
}

// A Rank holds what a framework's command line depends on. The program also gets the world (rank,
// size, address) through its environment.
type Rank struct {
	Point  study.Point
	Run    rundir.Folder
	World  world.World // of the process, or of the first rank of its node
	Worker string      // absolute path of scalebench-worker
	Python string      // interpreter of the Python frameworks
	// Resume is the checkpoint to continue from, or "".
	Resume string
	// Interface is the network interface that reaches the other nodes; "" if unknown.
	Interface string
	// Listen and Ports are where a service listens; "" and 0 for other programs.
	Listen string
	Ports  Ports
}

// Ports are free ones of a service, each another.
type Ports struct {
	HTTP, GRPC, Metrics int
}

// Of returns the port for requests to a target.
func (p Ports) Of(target string) int {
	if target == study.GRPC {
		return p.GRPC
	}
	return p.HTTP
}

// interpreter returns the Python to start.
func (s Rank) interpreter() string {
	if s.Python == "" {
		return trust.DefaultPython
	}
	return s.Python
}

// Interpreter returns the Python that runs the framework's program, as found on this host; "" if
// the program is not Python.
func (f Framework) Interpreter(s Rank) string {
	asks := func(argument string) bool { return slices.Contains(named(argument), "{python}") }
	if f.Imports == nil && !slices.ContainsFunc(s.Point.Command.Run, asks) {
		return ""
	}
	python := s.interpreter()
	if path, err := exec.LookPath(python); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			return path
		}
	}
	return python
}

// hosts returns the names of the nodes; outside Slurm only "localhost".
func (s Rank) hosts() []string {
	if len(s.World.Hosts) > 0 {
		return s.World.Hosts
	}
	return []string{"localhost"}
}

// RunVariable is the environment variable that names the run folder to a
// program.
const RunVariable = "SCALEBENCH_RUN"

// PythonVariable is the environment variable with the interpreter for scalebench's programs that start Python.
const PythonVariable = "SCALEBENCH_PYTHON"

// DataVariable is the environment variable with the folder of the data: data.path, or its staged copy on the
// node.
const DataVariable = "SCALEBENCH_DATA"

// All lists the frameworks, in the order in which they are offered.
var All = []Framework{native, pytorchDDP, pytorchFSDP, deepspeed, pytorchHorovod, tensorflowHorovod, kerasHorovod, tensorflowMultiworker, kerasMirrored, jax, mxnet, triton, mlserver, kserve, vllm, sglang, llamaCPP, onnxruntime, command}

// Find returns the framework of a name. The error lists the valid ones.
func Find(name string) (Framework, error) {
	i := slices.IndexFunc(All, func(f Framework) bool { return f.Name == name })
	if i < 0 {
		names := make([]string, len(All))
		for i, f := range All {
			names[i] = f.Name
		}
		return Framework{}, fmt.Errorf("framework %q is not known; valid: %s", name, strings.Join(names, ", "))
	}
	return All[i], nil
}

// ForStudy returns what launcher/study needs to know about the frameworks.
func ForStudy() []study.Framework {
	list := make([]study.Framework, len(All))
	for i, f := range All {
		list[i] = study.Framework{Name: f.Name, Check: f.check, Command: f.UserProgram, Server: f.Server, Uses: f.Uses, Placeholder: placeholderOf}
	}
	return list
}

// check returns what the framework or its launcher cannot do in a point.
func (f Framework) check(p study.Point) map[string]string {
	wrong := f.Check(p)
	if p.Workload.Train.SaveModel && f.Name != native.Name {
		wrong["workload.save_model"] = fmt.Sprintf("only framework = %q saves its model in the run folder; leave save_model out for others", native.Name)
	}
	if l := p.Resources.Launch; l != "srun" && !slices.Contains(f.Launchers, l) {
		valid := "\"" + strings.Join(append([]string{"srun"}, f.Launchers...), "\", \"") + "\""
		wrong["resources.launch"] = fmt.Sprintf("%q cannot start %s; valid for it: %s", l, f.Name, valid)
	}
	return wrong
}
