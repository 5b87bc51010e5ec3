/* Times MPI_Allreduce of float32 sums in place. Each argument is
 * BYTES:BATCHES:OPERATIONS; for each, rank 0 prints the bytes and, of every
 * batch, the seconds that one operation took in it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 1; i < argc; i++) {
		long bytes, batches, operations;

		if (sscanf(argv[i], "%ld:%ld:%ld", &bytes, &batches, &operations) != 3) {
			fprintf(stderr, "%s: want BYTES:BATCHES:OPERATIONS\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		int n = bytes / sizeof(float);
		float *v = calloc(n, sizeof *v);
		if (rank == 0)
			printf("%ld", bytes);
		for (long batch = -1; batch < batches; batch++) { /* the first warms up */
			MPI_Barrier(MPI_COMM_WORLD);
			double begin = MPI_Wtime();
			for (long k = 0; k < operations; k++)
				MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
			if (rank == 0 && batch >= 0)
				printf(" %.9g", (MPI_Wtime() - begin) / operations);
		}
		if (rank == 0)
			printf("\n");
		free(v);
	}
	MPI_Finalize();
	return 0;
}
