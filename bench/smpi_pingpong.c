/* Half round trips under SimGrid's SMPI, in its simulated time: "bytes seconds" a line.
 * For bench/link_oracle_bench.sh, which compiles it with smpicc. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank;
    const int sizes = argc > 1 ? atoi(argv[1]) : 40;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *x = malloc(1 << 22);
    for (int i = 0; i < sizes; i++) {
        const int bytes = (int)floor(exp(log(1 << 22) * i / (sizes - 1)));
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(x, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(x, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("%d %.12g\n", bytes, (MPI_Wtime() - start) / 2);
        } else {
            MPI_Recv(x, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(x, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    free(x);
    MPI_Finalize();
    return 0;
}
