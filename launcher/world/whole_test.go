package world

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Variables describe the job as sbatch would for 2 nodes with 3 ranks of 4 CPUs each, regardless of the
// process's step. A site's arguments for mpirun's daemons are kept.
func TestWholeJob(t *testing.T) {
	w := World{Nodes: 2, Size: 6, LocalSize: 3, Hosts: []string{"n1", "n4"}, JobID: "7"}
	environ := []string{"PATH=/bin", "SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=n[1,4]",
		"SLURM_NTASKS=2", "SLURM_TASKS_PER_NODE=1(x2)", "SLURM_CPU_BIND=quiet", "SLURM_JOB_NAME=step", "SLURM_NODELIST=n[1-4]",
		"PMIX_RANK=0", "PMI_FD=3", "SLURM_MEM_PER_NODE=100", "SLURM_CPUS_PER_TASK=12"}
	want := []string{"PATH=/bin", "SLURM_JOB_ID=7", "SLURM_NNODES=2", "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS=6", "SLURM_NPROCS=6",
		"SLURM_NTASKS_PER_NODE=3", "SLURM_TASKS_PER_NODE=3(x2)", "SLURM_NODELIST=n1,n4", "SLURM_JOB_NODELIST=n1,n4", "SLURM_CPUS_PER_TASK=4", "SRUN_CPUS_PER_TASK=4",
		"SLURM_OVERLAP=1", "SLURM_MEM_PER_NODE=0", "SLURM_MPI_TYPE=pmix", "OMPI_MCA_plm_slurm_args=--overlap --mpi=none --cpus-per-task=12", "PRTE_MCA_plm_slurm_args=--overlap --mpi=none --cpus-per-task=12"}
	before := slices.Clone(environ)
	if diff := cmp.Diff(want, w.WholeJob(environ, 4, "pmix")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.Equal(before, environ) {
		t.Error("the environment that was given changed")
	}
	w = World{Nodes: 1, Size: 2, LocalSize: 2}
	want = []string{"OMPI_MCA_plm_slurm_args=--x", "SLURM_NNODES=1", "SLURM_JOB_NUM_NODES=1", "SLURM_NTASKS=2", "SLURM_NPROCS=2", "SLURM_NTASKS_PER_NODE=2",
		"SLURM_TASKS_PER_NODE=2", "SLURM_CPUS_PER_TASK=1", "SRUN_CPUS_PER_TASK=1", "SLURM_OVERLAP=1", "SLURM_MEM_PER_NODE=0", "PRTE_MCA_plm_slurm_args=--overlap --mpi=none --cpus-per-task=2"}
	if diff := cmp.Diff(want, w.WholeJob([]string{"OMPI_MCA_plm_slurm_args=--x"}, 1, "")); diff != "" {
		t.Errorf("one node (-want +got):\n%s", diff)
	}
}
