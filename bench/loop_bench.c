/* Loop strings: what walking a nest costs, and how well the model ranks.
 *
 *     loop_bench overhead
 *     loop_bench rank [--csv] [threads] [seconds a string] [shape ..]
 *
 * overhead: nanoseconds a call of the body, by the nest and by a list made beforehand,
 * beside the time of one BRGEMM of 32 x 32 x (32 * 8).
 *
 * rank: for five shapes that no constant of the model was measured on, the time of
 * every candidate, predicted and measured: Spearman's rank correlation, how far the
 * best of the model's first five is from the best of all, the way without a string
 * (sti_gemm_f32), and the time of the model against that of measuring. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/gemm/brgemm.h"
#include "kernel/loop/loop_tune.h"

/* ---- overhead ---- */

enum { SIDE = 64, CALLS = SIDE * SIDE, REPEATS = 21 };

static volatile int64_t sink;

static void empty_body(void *arg, const int64_t *at, const int64_t *to,
                       sti_loop_where where)
{
    (void)arg, (void)where;
    sink = at[0] + to[2];
}

static double nest_ns(const char *text, const sti_loop_spec *spec)
{
    sti_loop loop;
    double best = 1e30;
    if (sti_loop_bind(text, spec, 3, 1, &loop) != STINT_OK)
        return 0;
    for (int i = 0; i < REPEATS; i++) {
        const int64_t start = sti_clock_ns();
        sti_loop_walk(&loop, 0, empty_body, NULL);
        const double ns = (double)(sti_clock_ns() - start) / CALLS;
        best = ns < best ? ns : best;
    }
    return best;
}

/* The same calls as a list made beforehand, which a nest would have to lose to. */
typedef struct lister {
    int64_t count;
    int32_t *list;
} lister;

static void list_body(void *arg, const int64_t *at, const int64_t *to,
                      sti_loop_where where)
{
    lister *l = arg;
    (void)to, (void)where;
    for (int i = 0; i < 3; i++)
        l->list[3 * l->count + i] = (int32_t)at[i];
    l->count++;
}

static double list_ns(const char *text, const sti_loop_spec *spec)
{
    sti_loop loop;
    double best = 1e30;
    int32_t *list = sti_alloc_array(3 * CALLS, sizeof *list, "bench.list");
    if (!list || sti_loop_bind(text, spec, 3, 1, &loop) != STINT_OK)
        return 0;
    lister l = {.list = list};
    sti_loop_walk(&loop, 0, list_body, &l);
    for (int i = 0; i < REPEATS; i++) {
        const int64_t start = sti_clock_ns();
        for (int64_t c = 0; c < l.count; c++) {
            const int64_t at[3] = {list[3 * c], list[3 * c + 1], list[3 * c + 2]};
            empty_body(NULL, at, at, (sti_loop_where){0, 0});
        }
        const double ns = (double)(sti_clock_ns() - start) / CALLS;
        best = ns < best ? ns : best;
    }
    sti_free(list);
    return best;
}

static double bind_ns(const char *text, const sti_loop_spec *spec)
{
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        sti_loop loop;
        const int64_t start = sti_clock_ns();
        if (sti_loop_bind(text, spec, 3, 1, &loop) != STINT_OK)
            return 0;
        const double ns = (double)(sti_clock_ns() - start);
        best = ns < best ? ns : best;
    }
    return best;
}

static double brgemm_ns(void)
{
    enum { M = 32, N = 32, K = 32, BR = 8, ROUNDS = 200 };
    float *x =
        sti_alloc_array(M * K * BR + K * N * BR + M * N, sizeof *x, "bench.tile");
    const sti_brgemm g = {.m = M, .n = N, .k = K, .lda = K, .ldb = N, .ldc = N};
    double best = 1e30;
    for (int i = 0; x && i < REPEATS; i++) {
        const int64_t start = sti_clock_ns();
        for (int r = 0; r < ROUNDS; r++)
            sti_brgemm_stride_f32(&g, BR, x, x + M * K * BR, M * K, K * N,
                                  x + M * K * BR + K * N * BR);
        const double ns = (double)(sti_clock_ns() - start) / ROUNDS;
        best = ns < best ? ns : best;
    }
    sti_free(x);
    return best;
}

static int overhead(void)
{
    static const char *const strings[] = {"abc",   "BCa",    "aBC",
                                          "bcabc", "cbabcb", "sfc"};
    const sti_loop_spec spec[3] = {
        {.end = 4, .step = 1, .reduces = true},
        {.end = SIDE / 2, .step = 1, .block = {8, 4}, .blocks = 2},
        {.end = SIDE / 2, .step = 1, .block = {8, 4}, .blocks = 2}};
    const double tile = brgemm_ns();
    printf("one BRGEMM of 32 x 32 x (32 * 8): %.0f ns\n", tile);
    printf("%-8s %10s %10s %10s %10s\n", "string", "nest ns", "share", "list ns",
           "bind ns");
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        const double nest = nest_ns(strings[i], spec);
        printf("%-8s %10.2f %9.2f%% %10.2f %10.0f\n", strings[i], nest,
               100 * nest / tile, list_ns(strings[i], spec), bind_ns(strings[i], spec));
    }
    return 0;
}

/* ---- rank ---- */

static const int64_t shapes[][3] = {{320, 640, 512},
                                    {1800, 160, 256},
                                    {128, 1024, 768},
                                    {450, 350, 600},
                                    {56, 800, 1600}};

typedef struct ranked {
    double predicted, measured, rank_p, rank_m;
    const sti_loop_choice *choice;
} ranked;

static int by_predicted(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->predicted > y->predicted) - (x->predicted < y->predicted);
}

static int by_measured(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->measured > y->measured) - (x->measured < y->measured);
}

/* Equal predictions share the mean of their ranks. */
static void set_ranks(ranked *r, int count)
{
    qsort(r, (size_t)count, sizeof *r, by_measured);
    for (int i = 0; i < count; i++)
        r[i].rank_m = i;
    qsort(r, (size_t)count, sizeof *r, by_predicted);
    for (int i = 0, j; i < count; i = j) {
        for (j = i; j < count && !(r[j].predicted > r[i].predicted); j++)
            ;
        for (int l = i; l < j; l++)
            r[l].rank_p = (i + j - 1) / 2.0;
    }
}

static double spearman(ranked *r, int count)
{
    double p = 0, m = 0, pp = 0, mm = 0, pm = 0;
    set_ranks(r, count);
    for (int i = 0; i < count; i++) {
        p += r[i].rank_p / count;
        m += r[i].rank_m / count;
    }
    for (int i = 0; i < count; i++) {
        pp += (r[i].rank_p - p) * (r[i].rank_p - p);
        mm += (r[i].rank_m - m) * (r[i].rank_m - m);
        pm += (r[i].rank_p - p) * (r[i].rank_m - m);
    }
    return pm / sqrt(pp * mm);
}

/* The best measured time among the first `first` by the model. */
static double best_of(const ranked *r, int count, int first)
{
    double best = r[0].measured;
    for (int i = 1; i < first && i < count; i++)
        best = r[i].measured < best ? r[i].measured : best;
    return best;
}

typedef struct options {
    int threads;
    double seconds;
    bool csv;
} options;

static void print_rank(const options *o, const sti_gemm_shape *s, ranked *r, int count,
                       double plain_s, double model_s, double tune_s)
{
    const double flop = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    const double rho = spearman(r, count);
    const double top = best_of(r, count, 5), all = best_of(r, count, count);
    char name[48];
    int best = 0;
    for (int i = 0; i < count; i++)
        best = r[i].measured < r[best].measured ? i : best;
    snprintf(name, sizeof name, "%" PRId64 "x%" PRId64 "x%" PRId64, s->m, s->n, s->k);
    printf("%-14s %4d %6d %7.3f %7.2f%% %8.3f %8.1f %8.1f %7.2f%%  %s\n", name,
           o->threads, count, rho, 100 * (top / all - 1), all * 1e3, flop / all * 1e-9,
           flop / plain_s * 1e-9, 100 * model_s / tune_s, r[best].choice->text);
    fflush(stdout);
}

static int rank_shape(const options *o, const sti_machine *machine, const int64_t *mnk)
{
    const sti_gemm_shape s = {.m = mnk[0],
                              .n = mnk[1],
                              .k = mnk[2],
                              .lda = mnk[2],
                              .ldb = mnk[1],
                              .ldc = mnk[1]};
    const sti_team team = {o->threads};
    sti_loop_choice *choices = NULL;
    int count = 0;
    double plain_s = 0;
    int64_t start = sti_clock_ns();
    if (sti_loop_gemm_rank(machine, &s, o->threads, &choices, &count) != STINT_OK)
        return 1;
    const double model_s = sti_seconds_since(start);
    start = sti_clock_ns();
    ranked *r = sti_alloc_array(count, sizeof *r, "bench.ranked");
    if (!r || sti_loop_gemm_measure(&team, &s, choices, count, o->seconds, &plain_s))
        return 1;
    const double tune_s = sti_seconds_since(start);
    for (int i = 0; i < count; i++)
        r[i] = (ranked){.predicted = choices[i].predicted_s,
                        .measured = choices[i].measured_s,
                        .choice = &choices[i]};
    for (int i = 0; o->csv && i < count; i++)
        printf("%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%.9g,%.9g\n", o->threads, s.m,
               s.n, s.k, choices[i].text, choices[i].predicted_s,
               choices[i].measured_s);
    print_rank(o, &s, r, count, plain_s, model_s, tune_s);
    sti_free(r);
    sti_free(choices);
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: loop_bench overhead | loop_bench rank [--csv] [threads] "
                    "[seconds a string] [MxNxK ..]\n");
    return 2;
}

static bool parse_shape(const char *text, int64_t mnk[3])
{
    int end = 0;
    return sscanf(text, "%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%n", &mnk[0], &mnk[1],
                  &mnk[2], &end) == 3 &&
           text[end] == '\0' && mnk[0] > 0 && mnk[1] > 0 && mnk[2] > 0;
}

static int rank(int argc, char **argv)
{
    int64_t mnk[3];
    options o = {.threads = 1, .seconds = 0.05};
    sti_machine machine;
    if (argc > 0 && strcmp(argv[0], "--csv") == 0) {
        o.csv = true;
        argc--, argv++;
    }
    if (argc > 0)
        o.threads = atoi(argv[0]);
    if (argc > 1)
        o.seconds = atof(argv[1]);
    if (o.threads < 1 || !(o.seconds > 0))
        return usage();
    for (int i = 2; i < argc; i++) /* all before the first is measured */
        if (!parse_shape(argv[i], mnk))
            return usage();
    if (sti_machine_now(&machine) != STINT_OK) {
        fprintf(stderr, "loop_bench: %s\n", stint_last_error());
        return 1;
    }
    printf("%-14s %4s %6s %7s %8s %8s %8s %8s %8s  %s\n", "m x n x k", "thr", "count",
           "rho", "top 5", "best ms", "GFLOP/s", "without", "model", "best string");
    int failed = 0;
    for (size_t i = 0; argc < 3 && i < sizeof shapes / sizeof shapes[0]; i++)
        failed |= rank_shape(&o, &machine, shapes[i]);
    for (int i = 2; i < argc; i++)
        failed |= parse_shape(argv[i], mnk) && rank_shape(&o, &machine, mnk);
    if (failed)
        fprintf(stderr, "loop_bench: a shape is left out: %s\n", stint_last_error());
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "overhead") == 0)
        return overhead();
    if (argc > 1 && strcmp(argv[1], "rank") == 0)
        return rank(argc - 2, argv + 2);
    return usage();
}
