//go:build slurm

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// mpiProgram prints once how many ranks have met, on how many hosts, and how many CPUs
// each may use.
const mpiProgram = `#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
	int rank, size, sum, length, least, cpus;
	char name[MPI_MAX_PROCESSOR_NAME] = "", all[64][MPI_MAX_PROCESSOR_NAME];
	cpu_set_t set;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Get_processor_name(name, &length);
	sched_getaffinity(0, sizeof set, &set);
	cpus = CPU_COUNT(&set);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&cpus, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Gather(name, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		int hosts = 0;
		for (int i = 0; i < size; i++) {
			int before = 0;
			for (int k = 0; k < i; k++)
				before |= !strcmp(all[i], all[k]);
			hosts += !before;
		}
		printf("sum=%d ranks=%d hosts=%d cpus=%d\n", sum, size, hosts, least);
	}
	MPI_Finalize();
	return 0;
}
`

// TestSlurmOnce: one mpirun starts the 4 ranks of an MPI program on 2 nodes; one srun
// starts any program there; and PMIx joins ranks that srun starts, all at once or one by
// one. The last two are on one node: the nodes of this cluster share /tmp, where
// Slurm's PMIx plugin keeps a folder for each step. Each run has one world of 4 ranks.
func TestSlurmOnce(t *testing.T) {
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	b.write("site.toml", "[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\n")
	b.write("mpi.c", mpiProgram)
	program := filepath.Join(b.dir, "mpi")
	if out, err := exec.Command("mpicc", "-o", program, filepath.Join(b.dir, "mpi.c")).CombinedOutput(); err != nil {
		t.Fatalf("mpicc (make test-packages installs it): %v\n%s", err, out)
	}
	for name, keys := range map[string]struct {
		command, resources string
		nodes              int
	}{
		"mpirun": {"start = \"once\"\nrun = [\"mpirun\", \"-np\", \"{workers}\", PROGRAM]\nenvironment = { OMPI_ALLOW_RUN_AS_ROOT = \"1\", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = \"1\" }", "", 2},
		"srun":   {"start = \"once\"\nrun = [\"bash\", \"-c\", 'srun --mpi=none hostname | sort -u | { mapfile -t h; echo sum=6 ranks=$SLURM_NTASKS hosts=${#h[@]}; }']", "", 2},
		"pmix":   {"start = \"once\"\nrun = [\"srun\", PROGRAM]", "mpi = \"pmix\"", 1},
		"ranks":  {"run = [PROGRAM]", "mpi = \"pmix\"", 1},
	} {
		b.write(name+".toml", fmt.Sprintf(`[study]
name = %q
[command]
%s
[[extract]]
name = "ranks"
pattern = 'ranks=(?P<value>\d+)'
unit = "ranks"
better = "higher"
[[extract]]
name = "hosts"
pattern = 'sum=6 ranks=4 hosts=(?P<value>\d+)'
unit = "hosts"
[resources]
time = "3m"
workers_per_node = %d
%s
[sweep]
framework = ["command"]
workers = [4]
`, name, strings.ReplaceAll(keys.command, "PROGRAM", fmt.Sprintf("%q", program)), 4/keys.nodes, keys.resources))
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		b.must(0, nil, "collect", name)
		for measure, want := range map[string]string{"ranks": "4", "hosts": fmt.Sprint(keys.nodes)} {
			out, complaint, code := b.run("scaling", name, "-m", measure, "--format", "csv")
			if code != 0 {
				t.Fatalf("%s: exit code %d\n%s", name, code, complaint)
			}
			if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || !strings.Contains(lines[1], ","+want+",") {
				t.Errorf("%s: %s is not %s:\n%s", name, measure, want, out)
			}
		}
	}
}
