/* Seconds of MPI_Allreduce over VALUES floats: the median of RUNS. For
 * bench/net_train_bench.sh, which compiles it with mpicc. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int values = argc > 1 ? atoi(argv[1]) : 1 << 20;
    const int runs = argc > 2 ? atoi(argv[2]) : 3;
    float *x = malloc((size_t)values * sizeof *x);
    double *seconds = malloc((size_t)runs * sizeof *seconds);
    if (!x || !seconds)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int run = -1; run < runs; run++) { /* the first one wakes the link */
        for (int i = 0; i < values; i++)
            x[i] = (float)(rank + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, x, run < 0 ? values / 16 : values, MPI_FLOAT,
                      MPI_SUM, MPI_COMM_WORLD);
        double mine = MPI_Wtime() - start, most;
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (run >= 0)
            seconds[run] = most;
        if (run >= 0 && x[values - 1] != (float)(ranks * (ranks + 1) / 2))
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, by_value);
    if (rank == 0)
        printf("%.6f\n", seconds[runs / 2]);
    free(x);
    free(seconds);
    MPI_Finalize();
    return 0;
}
