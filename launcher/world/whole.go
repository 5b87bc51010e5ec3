package world

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ofTask matches the variables in which srun describes one task, its step and the step's options. A nested srun
// or mpirun would apply them to itself.
var ofTask = regexp.MustCompile(`^(SLURM_(PROCID|LOCALID|NODEID|GTIDS|TASK_PID|STEP_|STEPID|SRUN_|CPU_BIND|MEM_BIND|DISTRIBUTION|LAUNCH_NODE_IPADDR|NTASKS|NPROCS|TASKS_PER_NODE|NNODES|JOB_NUM_NODES|NODELIST|JOB_NODELIST|CPUS_PER_TASK|KILL_BAD_EXIT|JOB_NAME|OVERLAP|TRES_PER_TASK|PMI|PMIX|MPI_TYPE|MEM_PER_)|SRUN_CPUS_PER_TASK|PMI_|PMIX_)`)

// WholeJob returns the environment of a process that starts the ranks of all nodes
// itself, by mpirun or srun, from the environment of the task that it runs in. It
// describes a job of the run's nodes and ranks in which no step is running yet.
func (w World) WholeJob(environ []string, cpusPerRank int, mpi string) []string {
	list := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return ofTask.MatchString(entry) })
	set := func(name, value string) { list = append(list, name+"="+value) }
	nodes, ranks, cpus := strconv.Itoa(w.Nodes), strconv.Itoa(w.Size), strconv.Itoa(cpusPerRank)
	set("SLURM_NNODES", nodes)
	set("SLURM_JOB_NUM_NODES", nodes)
	set("SLURM_NTASKS", ranks)
	set("SLURM_NPROCS", ranks)
	set("SLURM_NTASKS_PER_NODE", strconv.Itoa(w.LocalSize))
	perNode := strconv.Itoa(w.LocalSize)
	if w.Nodes > 1 {
		perNode += fmt.Sprintf("(x%d)", w.Nodes)
	}
	set("SLURM_TASKS_PER_NODE", perNode)
	if hosts := strings.Join(w.Hosts, ","); hosts != "" {
		set("SLURM_NODELIST", hosts)
		set("SLURM_JOB_NODELIST", hosts)
	}
	set("SLURM_CPUS_PER_TASK", cpus)
	set("SRUN_CPUS_PER_TASK", cpus)
	// The task that this process runs in has all CPUs and memory of its node: steps
	// share them. A memory of 0 is Slurm's word for all that the job has.
	set("SLURM_OVERLAP", "1")
	set("SLURM_MEM_PER_NODE", "0")
	if mpi != "" {
		set("SLURM_MPI_TYPE", mpi)
	}
	// mpirun starts one daemon a node by srun, which all ranks of the node run in.
	daemon := fmt.Sprintf("--overlap --mpi=none --cpus-per-task=%d", cpusPerRank*w.LocalSize)
	for _, name := range []string{"OMPI_MCA_plm_slurm_args", "PRTE_MCA_plm_slurm_args"} {
		if !slices.ContainsFunc(list, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			set(name, daemon)
		}
	}
	return list
}
