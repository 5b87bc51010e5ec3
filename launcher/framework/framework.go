// Package framework knows, for each training framework, what it needs and how
// one rank of it is started. A framework is one value in one file; All lists
// them. The native trainer is one of them and gets no special treatment: like
// the others it is a command line that reads point.json and appends events.
package framework

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// Framework is one way to run a point.
type Framework struct {
	Name string

	// Check says, by TOML path, what in the point the framework cannot do.
	Check func(study.Point) map[string]string

	// PerNode is for frameworks whose own launcher starts the ranks of a node:
	// Command is then run once a node, otherwise once a rank.
	PerNode bool

	// Import is the Python module that the program needs; "" for none.
	Import string

	// Programs are the files that the run folder must hold before the attempt
	// begins; nil: none.
	Programs fs.FS

	// Command is what to start, by its arguments.
	Command func(Start) []string
}

// Start is what a framework's command line is made from. The world (rank,
// size, address) reaches the program through its environment.
type Start struct {
	Point  study.Point
	Run    rundir.Run
	Worker string // absolute path of scalebench-worker
	Python string // interpreter of the Python frameworks
}

// RunVariable is the environment variable that names the run folder to a
// program.
const RunVariable = "SCALEBENCH_RUN"

// All lists the frameworks, in the order in which they are offered.
var All = []Framework{native, pytorchDDP}

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

// ForStudy is what launcher/study needs to know of the frameworks.
func ForStudy() []study.Framework {
	list := make([]study.Framework, len(All))
	for i, f := range All {
		list[i] = study.Framework{Name: f.Name, Check: f.Check}
	}
	return list
}
