package framework

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/scalebench/scalebench/launcher/study"
)

// patience limits how many seconds a node waits for the others, which may be importing PyTorch from a slow file
// system.
const patience = 600

func byTorchrun(p study.Point) bool { return p.Resources.Launch == "torchrun" }

// torchrun returns the command line of PyTorch's launcher, which starts a program once per rank on this node.
// The nodes meet at the run's address with a job-specific id. torchrun chooses the node of rank 0; the ranks'
// events record it.
//
// PyTorch 1.13 on Python 3.11 fails with "'NoneType' object has no attribute 'get'" unless output is redirected
// (pytorch#92319): --redirects 1 --tee 1.
func torchrun(s Rank, program string) []string {
	w := s.World
	id := filepath.Base(s.Run.Path())
	if w.JobID != "" {
		id = w.JobID + "-" + strconv.Itoa(w.Restart)
	}
	return append(pythonRank(s, "torchrun.py"),
		"--nnodes="+strconv.Itoa(w.Nodes), "--nproc_per_node="+strconv.Itoa(w.LocalSize),
		"--rdzv_backend=c10d", "--rdzv_id="+id,
		"--rdzv_endpoint="+net.JoinHostPort(w.Address, strconv.Itoa(w.Port)),
		fmt.Sprintf("--rdzv_conf=is_host=%t,read_timeout=%d,join_timeout=%d", w.Node == 0, patience, patience),
		"--max_restarts=0", "--redirects=1", "--tee=1",
		filepath.Join(s.Run.Programs(), program))
}

var pythonName = regexp.MustCompile(`^python[0-9.]*$`)

// TorchrunPython returns the interpreter whose torchrun starts a command: the command's first word if it is
// one, else the site's.
func TorchrunPython(s Rank) string {
	if run := s.Point.Command.Run; len(run) > 0 {
		if first := expand(run[0], s); pythonName.MatchString(filepath.Base(first)) {
			return first
		}
	}
	return s.interpreter()
}

// torchrunProgram is torchrun for a user's program with unchanged arguments. The rendezvous is static: nodes
// and ranks have the plan's numbers, so that rank 0, whose output is read, is on the first node, and all meet
// at the run's address. For the output options see torchrun.
func torchrunProgram(s Rank, arguments []string) []string {
	w := s.World
	return append([]string{TorchrunPython(s), "-B", "-u", filepath.Join(s.Run.Programs(), "torchrun.py"),
		"--nnodes=" + strconv.Itoa(w.Nodes), "--nproc_per_node=" + strconv.Itoa(w.LocalSize), "--node_rank=" + strconv.Itoa(w.Node),
		"--rdzv_backend=static", "--master_addr=" + w.Address, "--master_port=" + strconv.Itoa(w.Port),
		"--max_restarts=0", "--redirects=1", "--tee=1", "--no_python"}, arguments...)
}
