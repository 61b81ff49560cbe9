/* Triangular solves by others, on the lower triangle of a Matrix Market file (ones
 * where a diagonal entry is missing): CXSparse's cs_lsolve, CHOLMOD's solve with that
 * triangle for its factor, MKL's mkl_sparse_d_trsv (with -DHAVE_MKL), and a plain loop
 * over rows. A line of JSON: medians in seconds, and the worst backward error.
 * Built by bench/sptrsv_bench.sh, outside of the tree's build.
 *
 *     sptrsv_peers FILE.mtx [RUNS]
 *     sptrsv_peers --factor FILE.mtx OUT.mtx     the Cholesky factor by CHOLMOD (AMD)
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <suitesparse/cholmod.h>
#include <suitesparse/cs.h>
#ifdef HAVE_MKL
#include <mkl_service.h>
#include <mkl_spblas.h>
#endif

enum { RUNS_MOST = 201 };

typedef struct matrix {
    int n;
    int *start, *column; /* rows of the lower triangle, diagonal last */
    double *value;
} matrix;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *seconds, int runs)
{
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    return seconds[runs / 2];
}

static void stop(const char *what)
{
    fprintf(stderr, "sptrsv_peers: %s\n", what);
    exit(1);
}

/* By columns as CXSparse reads it: the lower triangle with a whole diagonal. */
static cs_di *read_lower(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[1024];
    int rows, columns, i, j;
    long entries;
    if (!f || !fgets(line, sizeof line, f))
        stop("cannot read the file");
    const int pattern = strstr(line, "pattern") != NULL;
    do
        if (!fgets(line, sizeof line, f))
            stop("no size line");
    while (line[0] == '%');
    if (sscanf(line, "%d %d %ld", &rows, &columns, &entries) != 3)
        stop("no size line");
    cs_di *t = cs_di_spalloc(rows, rows, (int)entries + rows, 1, 1);
    char *there = calloc((size_t)rows, 1);
    for (long e = 0; e < entries; e++) {
        double x = 1;
        if (fscanf(f, pattern ? "%d %d" : "%d %d %lf", &i, &j, &x) < 2)
            stop("a line is no entry");
        if (i < j)
            continue;
        if (i == j)
            there[i - 1] = 1;
        cs_di_entry(t, i - 1, j - 1, x);
    }
    int ones = 0;
    for (i = 0; i < rows; i++)
        ones += !there[i];
    if (ones > 0) { /* a unit triangle, as `stint bench sptrsv` takes it */
        for (int k = 0; k < t->nz; k++)
            if (t->i[k] == t->p[k])
                t->x[k] = 1;
        for (i = 0; i < rows; i++)
            if (!there[i])
                cs_di_entry(t, i, i, 1);
    }
    fclose(f);
    free(there);
    cs_di *by_column = cs_di_compress(t), *turned = cs_di_transpose(by_column, 1);
    cs_di_spfree(by_column);
    by_column = cs_di_transpose(turned, 1); /* sorted by now */
    cs_di_spfree(turned);
    cs_di_spfree(t);
    return by_column;
}

static matrix rows_of(const cs_di *a)
{
    cs_di *turned = cs_di_transpose(a, 1);
    return (matrix){turned->n, turned->p, turned->i, turned->x};
}

/* ---- the ways ---- */

static void plain(const matrix *a, const double *b, double *x)
{
    for (int i = 0; i < a->n; i++) {
        double sum = b[i];
        int e = a->start[i];
        for (; e < a->start[i + 1] - 1; e++)
            sum -= a->value[e] * x[a->column[e]];
        x[i] = sum / a->value[e];
    }
}

static double time_plain(const matrix *a, const double *b, double *x, int runs)
{
    double seconds[RUNS_MOST];
    for (int r = 0; r < runs; r++) {
        const double begun = now();
        plain(a, b, x);
        seconds[r] = now() - begun;
    }
    return median(seconds, runs);
}

static double time_cxsparse(const cs_di *a, const double *b, double *x, int runs)
{
    double seconds[RUNS_MOST];
    for (int r = 0; r < runs; r++) {
        memcpy(x, b, sizeof *x * (size_t)a->n);
        const double begun = now();
        cs_di_lsolve(a, x);
        seconds[r] = now() - begun;
    }
    return median(seconds, runs);
}

/* A simplicial L L' whose L is the triangle. */
static cholmod_factor *factor_of(const cs_di *a, cholmod_common *c)
{
    const size_t n = (size_t)a->n, entries = (size_t)a->p[a->n];
    cholmod_factor *l = cholmod_allocate_factor(n, c);
    for (size_t k = 0; k < n; k++)
        ((int *)l->ColCount)[k] = a->p[k + 1] - a->p[k];
    cholmod_change_factor(CHOLMOD_REAL, 1, 0, 1, 1, l, c);
    if (l->nzmax < entries)
        cholmod_reallocate_factor(entries, l, c);
    memcpy(l->p, a->p, sizeof(int) * (n + 1));
    memcpy(l->i, a->i, sizeof(int) * entries);
    memcpy(l->x, a->x, sizeof(double) * entries);
    for (size_t k = 0; k < n; k++)
        ((int *)l->nz)[k] = a->p[k + 1] - a->p[k];
    return l;
}

static double time_cholmod(const cs_di *a, const double *b, double *x, int runs)
{
    cholmod_common c;
    double seconds[RUNS_MOST];
    cholmod_start(&c);
    cholmod_factor *l = factor_of(a, &c);
    cholmod_dense *side =
        cholmod_allocate_dense((size_t)a->n, 1, (size_t)a->n, CHOLMOD_REAL, &c);
    cholmod_dense *answer = NULL, *y = NULL, *e = NULL;
    memcpy(side->x, b, sizeof *b * (size_t)a->n);
    for (int r = 0; r < runs; r++) {
        const double begun = now();
        if (!cholmod_solve2(CHOLMOD_L, l, side, NULL, &answer, NULL, &y, &e, &c))
            stop("CHOLMOD does not solve");
        seconds[r] = now() - begun;
    }
    memcpy(x, answer->x, sizeof *x * (size_t)a->n);
    cholmod_free_dense(&side, &c);
    cholmod_free_dense(&answer, &c);
    cholmod_free_dense(&y, &c);
    cholmod_free_dense(&e, &c);
    cholmod_free_factor(&l, &c);
    cholmod_finish(&c);
    return median(seconds, runs);
}

#ifdef HAVE_MKL
static double time_mkl(const matrix *a, const double *b, double *x, int runs,
                       int threads)
{
    sparse_matrix_t m;
    double seconds[RUNS_MOST];
    const struct matrix_descr d = {SPARSE_MATRIX_TYPE_TRIANGULAR,
                                   SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_NON_UNIT};
    mkl_set_num_threads(threads);
    if (mkl_sparse_d_create_csr(&m, SPARSE_INDEX_BASE_ZERO, a->n, a->n, a->start,
                                a->start + 1, a->column,
                                a->value) != SPARSE_STATUS_SUCCESS)
        stop("MKL takes no matrix");
    mkl_sparse_set_sv_hint(m, SPARSE_OPERATION_NON_TRANSPOSE, d, 1000);
    mkl_sparse_optimize(m);
    for (int r = 0; r < runs; r++) {
        const double begun = now();
        mkl_sparse_d_trsv(SPARSE_OPERATION_NON_TRANSPOSE, 1.0, m, d, b, x);
        seconds[r] = now() - begun;
    }
    mkl_sparse_destroy(m);
    return median(seconds, runs);
}
#endif

/* |b - L x| / (|L| |x| + |b|), the worst row, in long doubles. */
static double backward(const matrix *a, const double *b, const double *x)
{
    double most = 0;
    for (int i = 0; i < a->n; i++) {
        long double r = b[i], size = fabs(b[i]);
        for (int e = a->start[i]; e < a->start[i + 1]; e++) {
            const long double part = (long double)a->value[e] * x[a->column[e]];
            r -= part;
            size += fabsl(part);
        }
        if (size > 0)
            most = fmax(most, (double)(fabsl(r) / size));
    }
    return most;
}

static int bench(const char *path, int runs)
{
    cs_di *a = read_lower(path);
    const matrix rows = rows_of(a);
    const size_t n = (size_t)a->n;
    double *b = malloc(sizeof *b * n), *x = malloc(sizeof *x * n);
    double *y = malloc(sizeof *y * n), far = 0;
    for (size_t i = 0; i < n; i++)
        b[i] = (double)(i * 2654435761u % 1000) / 1000 - 0.5;
    const double natural = time_plain(&rows, b, x, runs);
    const double cxsparse = time_cxsparse(a, b, y, runs);
    far = fmax(far, backward(&rows, b, y));
    printf("{\"n\":%d,\"loop_s\":%.3g,\"cxsparse_s\":%.3g", a->n, natural, cxsparse);
    const double cholmod = time_cholmod(a, b, y, runs);
    /* Columns with a count of a supernode's are taken for one: of other triangles than
     * Cholesky factors that is wrong, and no answer. */
    if (backward(&rows, b, y) < 1e-10)
        printf(",\"cholmod_s\":%.3g", cholmod);
#ifdef HAVE_MKL
    for (int threads = 1; threads <= 2; threads++) {
        printf(",\"mkl%d_s\":%.3g", threads, time_mkl(&rows, b, y, runs, threads));
        far = fmax(far, backward(&rows, b, y));
    }
#endif
    printf(",\"backward\":%.2g}\n", far);
    return 0;
}

/* The lower triangle of a symmetric matrix factored, entries that are exactly zero left
 * out. */
static int write_factor(const char *from, const char *to)
{
    cholmod_common c;
    cholmod_start(&c);
    c.supernodal = CHOLMOD_SIMPLICIAL;
    c.final_ll = 1;
    c.nmethods = 1;
    c.method[0].ordering = CHOLMOD_AMD;
    FILE *f = fopen(from, "r"), *out = fopen(to, "w");
    if (!f || !out)
        stop("cannot open the files");
    cholmod_sparse *a = cholmod_read_sparse(f, &c);
    cholmod_factor *l = a ? cholmod_analyze(a, &c) : NULL;
    if (!l || !cholmod_factorize(a, l, &c) || c.status != CHOLMOD_OK)
        stop("CHOLMOD does not factor it");
    cholmod_sparse *s = cholmod_factor_to_sparse(l, &c);
    const int *p = s->p, *i = s->i;
    const double *x = s->x;
    fprintf(out, "%%%%MatrixMarket matrix coordinate real general\n%zu %zu %d\n",
            s->nrow, s->ncol, p[s->ncol]);
    for (size_t j = 0; j < s->ncol; j++)
        for (int e = p[j]; e < p[j + 1]; e++)
            fprintf(out, "%d %zu %.17g\n", i[e] + 1, j + 1, x[e]);
    fclose(f);
    return fclose(out) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--factor") == 0)
        return write_factor(argv[2], argv[3]);
    if (argc < 2)
        stop("usage: sptrsv_peers FILE.mtx [RUNS] | --factor FILE.mtx OUT.mtx");
    const int runs = argc > 2 ? atoi(argv[2]) : 21;
    return bench(argv[1], runs < 1 || runs > RUNS_MOST ? 21 : runs);
}
