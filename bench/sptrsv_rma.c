/* The triangular solve by pushes of MPI's one-sided calls, as zero-copy designs for
 * several devices have it: columns in blocks dealt to the ranks, and for every entry of
 * a column one accumulation of the product and one of the count, since every rank may
 * add to a row. Every rank holds the matrix. A line of JSON from rank 0. Built by
 * bench/sptrsv_ranks.sh.
 *
 *     mpirun -n 2 sptrsv_rma FILE.mtx [RUNS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { BLOCK = 512 };

typedef struct lower {
    int n;
    int *start, *row; /* by columns, diagonal first */
    double *value;
} lower;

static int by_place(const void *a, const void *b)
{
    const long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static int read_lower(const char *path, lower *l)
{
    char line[1024];
    long stored, kept = 0;
    int columns;
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        return 0;
    do
        if (!fgets(line, sizeof line, f))
            return 0;
    while (line[0] == '%');
    if (sscanf(line, "%d %d %ld", &l->n, &columns, &stored) != 3)
        return 0;
    struct entry {
        long place;
        double value;
    } *all = malloc(sizeof *all * (size_t)stored);
    for (long e = 0; e < stored; e++) {
        int i, j;
        double x;
        if (fscanf(f, "%d %d %lf", &i, &j, &x) != 3)
            return 0;
        if (i >= j)
            all[kept++] = (struct entry){(long)(j - 1) * l->n + i - 1, x};
    }
    fclose(f);
    qsort(all, (size_t)kept, sizeof *all, by_place);
    l->start = calloc((size_t)l->n + 1, sizeof(int));
    l->row = malloc(sizeof(int) * (size_t)kept);
    l->value = malloc(sizeof(double) * (size_t)kept);
    for (long e = 0; e < kept; e++) {
        l->start[all[e].place / l->n + 1]++;
        l->row[e] = (int)(all[e].place % l->n);
        l->value[e] = all[e].value;
    }
    for (int j = 0; j < l->n; j++)
        l->start[j + 1] += l->start[j];
    free(all);
    return 1;
}

typedef struct windows {
    MPI_Win sums, counts;
    double *sum; /* [n] of products for the own rows */
    int *count;  /* [n] of entries that have come */
} windows;

static int owner(int row, int ranks)
{
    return row / BLOCK % ranks;
}

static long solve(const lower *l, const int *wanted, windows *w, int rank, int ranks,
                  double *x)
{
    const int one = 1;
    long pushes = 0;
    for (int j = 0; j < l->n; j++) {
        if (owner(j, ranks) != rank)
            continue;
        int e = l->start[j];
        while (__atomic_load_n(&w->count[j], __ATOMIC_ACQUIRE) < wanted[j])
            MPI_Win_sync(w->counts);
        x[j] = (1 - w->sum[j]) / l->value[e];
        for (e++; e < l->start[j + 1]; e++) {
            const int i = l->row[e], to = owner(i, ranks);
            const double part = l->value[e] * x[j];
            MPI_Accumulate(&part, 1, MPI_DOUBLE, to, i, 1, MPI_DOUBLE, MPI_SUM,
                           w->sums);
            MPI_Win_flush(to, w->sums);
            MPI_Accumulate(&one, 1, MPI_INT, to, i, 1, MPI_INT, MPI_SUM, w->counts);
            MPI_Win_flush(to, w->counts);
            pushes += to != rank;
        }
    }
    return pushes;
}

int main(int argc, char **argv)
{
    lower l;
    windows w;
    int rank, ranks, runs = argc > 2 ? atoi(argv[2]) : 1;
    double best = INFINITY;
    long pushes = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2 || !read_lower(argv[1], &l)) {
        fprintf(stderr, "sptrsv_rma: cannot read the matrix\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int *wanted = calloc((size_t)l.n, sizeof *wanted);
    double *x = calloc((size_t)l.n, sizeof *x);
    for (int j = 0; j < l.n; j++)
        for (int e = l.start[j] + 1; e < l.start[j + 1]; e++)
            wanted[l.row[e]]++;
    MPI_Win_allocate(sizeof(double) * (MPI_Aint)l.n, sizeof(double), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &w.sum, &w.sums);
    MPI_Win_allocate(sizeof(int) * (MPI_Aint)l.n, sizeof(int), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &w.count, &w.counts);
    MPI_Win_lock_all(0, w.sums);
    MPI_Win_lock_all(0, w.counts);
    for (int r = 0; r < runs; r++) {
        memset(w.sum, 0, sizeof *w.sum * (size_t)l.n);
        memset(w.count, 0, sizeof *w.count * (size_t)l.n);
        MPI_Win_sync(w.sums);
        MPI_Win_sync(w.counts);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = MPI_Wtime();
        pushes = solve(&l, wanted, &w, rank, ranks, x);
        MPI_Barrier(MPI_COMM_WORLD);
        best = fmin(best, MPI_Wtime() - begun);
    }
    long all = 0;
    MPI_Reduce(&pushes, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"n\":%d,\"pushes\":%ld,\"solve_s\":%.4g}\n", l.n, all, best);
    MPI_Win_unlock_all(w.sums);
    MPI_Win_unlock_all(w.counts);
    MPI_Win_free(&w.sums);
    MPI_Win_free(&w.counts);
    return MPI_Finalize();
}
