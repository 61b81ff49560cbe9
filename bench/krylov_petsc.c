/* CG with IC(0) by PETSc, as bench/krylov_bench.sh compares it: the matrix of a Matrix
 * Market file (lower triangle of a symmetric one), b = A 1, until ||b - A x|| <= 1e-8
 * ||b||. On several processes IC(0) of each one's block (PETSc has no parallel one). A
 * line of JSON from rank 0. Built outside of the tree's build.
 *
 *     krylov_petsc FILE.mtx [RUNS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <petscksp.h>

typedef struct entries {
    int n;
    long count;
    int *row, *column;
    double *value;
} entries;

/* Both halves. */
static int read_matrix(const char *path, entries *a)
{
    char line[1024];
    long stored;
    int columns;
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        return 0;
    const int pattern = strstr(line, "pattern") != NULL;
    const int whole = strstr(line, "general") != NULL;
    do
        if (!fgets(line, sizeof line, f))
            return 0;
    while (line[0] == '%');
    if (sscanf(line, "%d %d %ld", &a->n, &columns, &stored) != 3)
        return 0;
    a->row = malloc(sizeof(int) * 2 * (size_t)stored);
    a->column = malloc(sizeof(int) * 2 * (size_t)stored);
    a->value = malloc(sizeof(double) * 2 * (size_t)stored);
    a->count = 0;
    for (long e = 0; e < stored; e++) {
        int i, j;
        double x = 1;
        if (fscanf(f, pattern ? "%d %d" : "%d %d %lf", &i, &j, &x) < 2)
            return 0;
        for (int side = 0; side < (i == j || whole ? 1 : 2); side++) {
            a->row[a->count] = (side ? j : i) - 1;
            a->column[a->count] = (side ? i : j) - 1;
            a->value[a->count++] = x;
        }
    }
    fclose(f);
    return 1;
}

static PetscErrorCode make_matrix(const entries *a, Mat *m)
{
    PetscInt first, end, most = 0;
    int *length = calloc((size_t)a->n, sizeof *length);
    for (long e = 0; e < a->count; e++)
        most = ++length[a->row[e]] > most ? length[a->row[e]] : most;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, a->n, a->n,
                           most, NULL, most, NULL, m));
    PetscCall(MatGetOwnershipRange(*m, &first, &end));
    for (long e = 0; e < a->count; e++)
        if (a->row[e] >= first && a->row[e] < end)
            PetscCall(
                MatSetValue(*m, a->row[e], a->column[e], a->value[e], ADD_VALUES));
    PetscCall(MatAssemblyBegin(*m, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*m, MAT_FINAL_ASSEMBLY));
    free(length);
    return 0;
}

static PetscErrorCode make_solver(Mat m, KSP *ksp)
{
    PC pc;
    int ranks;
    MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
    PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
    PetscCall(KSPSetOperators(*ksp, m, m));
    PetscCall(KSPSetType(*ksp, KSPCG));
    PetscCall(KSPSetNormType(*ksp, KSP_NORM_UNPRECONDITIONED));
    PetscCall(KSPSetTolerances(*ksp, 1e-8, 1e-300, 1e10, 10000));
    PetscCall(KSPGetPC(*ksp, &pc));
    PetscCall(PCSetType(pc, ranks > 1 ? PCBJACOBI : PCICC));
    if (ranks > 1)
        PetscCall(PetscOptionsSetValue(NULL, "-sub_pc_type", "icc"));
    PetscCall(KSPSetFromOptions(*ksp));
    return 0;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    entries a;
    Mat m;
    KSP ksp;
    Vec x, b;
    PetscInt iterations;
    double seconds[101];
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    int rank, runs = argc > 2 ? atoi(argv[2]) : 3;
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    runs = runs < 1 || runs > 101 ? 3 : runs;
    if (argc < 2 || !read_matrix(argv[1], &a)) {
        fprintf(stderr, "krylov_petsc: cannot read the matrix\n");
        return 1;
    }
    PetscCall(make_matrix(&a, &m));
    PetscCall(MatCreateVecs(m, &x, &b));
    PetscCall(VecSet(x, 1));
    PetscCall(MatMult(m, x, b));
    PetscCall(make_solver(m, &ksp));
    const double begun = MPI_Wtime();
    PetscCall(KSPSetUp(ksp));
    PetscCall(KSPSetUpOnBlocks(ksp));
    const double setup = MPI_Wtime() - begun;
    for (int r = 0; r < runs; r++) {
        PetscCall(VecSet(x, 0));
        MPI_Barrier(PETSC_COMM_WORLD);
        const double start = MPI_Wtime();
        PetscCall(KSPSolve(ksp, b, x));
        seconds[r] = MPI_Wtime() - start;
    }
    PetscCall(KSPGetIterationNumber(ksp, &iterations));
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    if (rank == 0)
        printf("{\"n\":%d,\"iterations\":%d,\"setup_s\":%.4g,\"solve_s\":%.4g}\n", a.n,
               (int)iterations, setup, seconds[runs / 2]);
    return PetscFinalize();
}
