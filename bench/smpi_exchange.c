/* The messages of a sum of gradients (net/exchange_schedule.h, the schedule that real
 * sums and the rehearsal follow) under SimGrid's SMPI, in its simulated time. For
 * bench/rehearse_oracle.sh, which compiles it with smpicc:
 *
 *   smpi_exchange SCHEME GROUP VALUES BYTES
 *
 * SCHEME: 0 scatter, 1 ring, 2 two levels; BYTES of an encoded value. One part, and
 * ranks take no time to compute. Rank 0 prints seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/exchange_schedule.h"

static double bytes_of(const sti_move *m, double slice, double bytes)
{
    const int raw = m->kind == STI_MOVE_SEND_RAW || m->kind == STI_MOVE_ADD_RAW;
    return slice * m->count * (raw ? 4 : bytes);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const sti_scheme scheme = (sti_scheme)atoi(argv[1]);
    const double slice = atof(argv[3]) / ranks, bytes = atof(argv[4]);
    const int64_t count = sti_schedule_make(scheme, ranks, atoi(argv[2]), rank, NULL);
    sti_move *moves = malloc((size_t)count * sizeof *moves);
    MPI_Request *requests = malloc((size_t)count * sizeof *requests);
    sti_schedule_make(scheme, ranks, atoi(argv[2]), rank, moves);
    char *x = malloc((size_t)(slice * ranks * 4) + 1); /* nobody looks at it */
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime(), longest;
    for (int64_t i = 0, end; i < count; i = end) {
        int pending = 0;
        for (end = i; end < count && moves[end].round == moves[i].round; end++) {
            const sti_move *m = &moves[end];
            const int n = (int)bytes_of(m, slice, bytes);
            if (sti_move_sends(m->kind))
                MPI_Isend(x, n, MPI_CHAR, m->peer, 0, MPI_COMM_WORLD,
                          &requests[pending++]);
            else if (sti_move_receives(m->kind))
                MPI_Irecv(x, n, MPI_CHAR, m->peer, 0, MPI_COMM_WORLD,
                          &requests[pending++]);
        }
        MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    }
    seconds = MPI_Wtime() - seconds;
    MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9g\n", longest);
    free(x);
    free(requests);
    free(moves);
    MPI_Finalize();
    return 0;
}
