/* Where products lose with threads: the product by a team beside its parts, each a
 * product of one thread, cut in columns, in rows and in k, alone and all side by side.
 *
 *     parts_bench [-j THREADS] [-r ROUNDS] MxNxK...
 *
 * "alone" is what a part takes while the other cores rest: a worse way of meeting
 * memory or tiles that the part's shape brings. "together" adds what cores take from
 * each other, the product by the team whatever handing over and planning cost. Parts in
 * k are sums of their own (no product of ours is cut so: the order of a sum is fixed),
 * without adding them up: the least that another order could reach. Microseconds,
 * medians; everything is measured in turns, the third of three runs in a row. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/team.h"
#include "kernel/gemm/gemm.h"

enum { ROUNDS_MAX = 1000, RUNS = 3, CUTS = 3 };

typedef enum cut { COLUMNS, ROWS, STEPS } cut;

typedef struct bench {
    sti_gemm_shape shape;
    int parts;
    cut by;
    float *a, *b, *c;
    uint8_t *scratch;
    size_t scratch_bytes; /* of a part */
} bench;

static int64_t part_begin(int64_t length, int parts, int64_t part, int64_t unit)
{
    const int64_t each = (length + parts * unit - 1) / (parts * unit) * unit;
    return part * each < length ? part * each : length;
}

/* The part's product; from is where it begins in what is cut. */
static sti_gemm_shape part_shape(const bench *t, int64_t part, int64_t *from)
{
    sti_gemm_shape s = t->shape;
    int64_t *const length = t->by == COLUMNS ? &s.n : t->by == ROWS ? &s.m : &s.k;
    const int64_t all = *length, unit = t->by == COLUMNS ? 32 : 1;
    *from = part_begin(all, t->parts, part, unit);
    *length = part_begin(all, t->parts, part + 1, unit) - *from;
    return s;
}

static void run_part(void *arg, int64_t part, int worker)
{
    const bench *t = arg;
    int64_t from;
    const sti_gemm_shape s = part_shape(t, part, &from);
    const float *a = t->a, *b = t->b;
    float *c = t->c;
    (void)worker;
    if (t->by == COLUMNS) {
        b += from;
        c += from;
    } else if (t->by == ROWS) {
        a += from * s.lda;
        c += from * s.ldc;
    } else {
        a += from;
        b += from * s.ldb;
        c += part * s.m * s.n; /* each its own */
    }
    sti_gemm_f32(&sti_team_serial, &s, a, b, NULL, c,
                 t->scratch + (size_t)part * t->scratch_bytes);
}

/* Scratch of a part, however it is cut, and enough that all parts' serve the whole
 * product. */
static size_t scratch_of_part(bench *t)
{
    const size_t whole = sti_gemm_scratch_bytes(&t->shape, t->parts);
    size_t most = whole / (size_t)t->parts + 64;
    for (int by = 0; by < CUTS; by++)
        for (int64_t part = 0; part < t->parts; part++) {
            int64_t from;
            t->by = (cut)by;
            const sti_gemm_shape s = part_shape(t, part, &from);
            const size_t bytes = sti_gemm_scratch_bytes(&s, 1);
            most = bytes > most ? bytes : most;
        }
    return most;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* parts > 0: so many of the parts side by side; 0: the product by a team. */
static double microseconds(bench *t, int parts, int threads)
{
    const sti_team team = {.threads = threads};
    int64_t start = 0;
    for (int i = 0; i < RUNS; i++) {
        start = sti_clock_ns();
        if (parts > 0)
            sti_team_run(&team, parts, run_part, t);
        else
            sti_gemm_f32(&team, &t->shape, t->a, t->b, NULL, t->c, t->scratch);
    }
    return (double)(sti_clock_ns() - start) * 1e-3;
}

enum { WHOLE = 2 * CUTS, WHOLE_ONE, TIMES };

static void measure(bench *t, int rounds)
{
    static double times[TIMES][ROUNDS_MAX];
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < CUTS; i++) {
            t->by = (cut)i;
            times[2 * i][r] = microseconds(t, 1, 1);
            times[2 * i + 1][r] = microseconds(t, t->parts, t->parts);
        }
        times[WHOLE][r] = microseconds(t, 0, t->parts);
        times[WHOLE_ONE][r] = microseconds(t, 0, 1);
    }
    for (int i = 0; i < TIMES; i++)
        qsort(times[i], (size_t)rounds, sizeof(double), by_value);
    const sti_gemm_shape *s = &t->shape;
    printf("%" PRId64 "x%" PRId64 "x%" PRId64 ": one thread %.1f, %d threads %.1f us\n",
           s->m, s->n, s->k, times[WHOLE_ONE][rounds / 2], t->parts,
           times[WHOLE][rounds / 2]);
    static const char *const name[CUTS] = {"columns", "rows", "k"};
    for (int i = 0; i < CUTS; i++)
        printf("    cut in %-8s alone %.1f, together %.1f\n", name[i],
               times[2 * i][rounds / 2], times[2 * i + 1][rounds / 2]);
    fflush(stdout);
}

static float *floats(int64_t count)
{
    float *x = sti_alloc_array(count, sizeof *x, "bench");
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(i % 17) * 0.125F - 1.0F;
    return x;
}

static void bench_shape(int64_t m, int64_t n, int64_t k, int parts, int rounds)
{
    bench t = {.shape = {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n},
               .parts = parts};
    t.scratch_bytes = scratch_of_part(&t);
    t.a = floats(m * k);
    t.b = floats(k * n);
    t.c = floats(parts * m * n);
    t.scratch = sti_alloc((size_t)parts * t.scratch_bytes, "bench");
    if (t.a && t.b && t.c && t.scratch)
        measure(&t, rounds);
    sti_free(t.a);
    sti_free(t.b);
    sti_free(t.c);
    sti_free(t.scratch);
}

int main(int argc, char **argv)
{
    int parts = 2, rounds = 200, i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (argv[i][1] == 'j')
            parts = atoi(argv[i + 1]);
        else if (argv[i][1] == 'r')
            rounds = atoi(argv[i + 1]);
        else
            parts = 0;
    }
    if (parts < 1 || rounds < 1 || rounds > ROUNDS_MAX || i == argc) {
        fprintf(stderr, "usage: parts_bench [-j THREADS] [-r ROUNDS] MxNxK...\n");
        return 1;
    }
    for (; i < argc; i++) {
        int64_t m, n, k;
        if (sscanf(argv[i], "%" SCNd64 "x%" SCNd64 "x%" SCNd64, &m, &n, &k) != 3 ||
            m < 1 || n < 1 || k < 1) {
            fprintf(stderr, "parts_bench: %s is no MxNxK, such as 8x1000x2048\n",
                    argv[i]);
            return 1;
        }
        bench_shape(m, n, k, parts, rounds);
    }
    return 0;
}
