/* The gradient quantiser on one core: encoding and decode-and-add as a share of what
 * the core reads from memory, and the error of the mean of N ranks at equal bytes.
 *
 *   gradient_bench [MEBIBYTES [RUNS]]     (256 MiB of float32 and 7 runs unless given)
 *
 * Every run times all ways one after another, and reading before each: GB/s of float32,
 * the best of the runs, and the median share of what was read just before. "Update in
 * place" adds 1 to every value: no decode-and-add can be faster. The second
 * table gives root mean square errors of the mean of N ranks' gradients, relative to
 * the mean's size, of plain max-min with stochastic rounding, and how many times lower
 * each refinement is at the same number of bytes. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/rng.h"
#include "codec/gradient_codec.h"
#include "kernel/lane/dispatch.h"
#include "kernel/machine/machine_priv.h"

static const sti_gradient_key bench_key = {.seed = 1, .step = 3, .parts = 1};

/* ---- speed ---- */

enum { RUNS_MAX = 100 };

typedef struct bench {
    int64_t n;
    float *x, *y;
    uint8_t *out;
} bench;

static volatile uint64_t sink;

static void run_read(bench *b, const sti_gradient_form *form)
{
    (void)form;
    sink = STI_KERNELS_NOW(sti_machine_kernels)->read(b->x, b->n * 4);
}

static void run_encode(bench *b, const sti_gradient_form *form)
{
    sink = (uint64_t)sti_gradient_encode(&sti_team_serial, form, &bench_key, b->n, b->x,
                                         b->out);
}

static void run_add(bench *b, const sti_gradient_form *form)
{
    sink = sti_gradient_decode(&sti_team_serial, form, b->n, b->out, STI_GRADIENT_ADD,
                               b->y);
}

/* What decode-and-add cannot beat: every value of the sum read and written. */
static void run_update(bench *b, const sti_gradient_form *form)
{
    enum { AHEAD = 1024, STEP = 128 };
    (void)form;
    for (int64_t i = 0; i < b->n; i += STEP) {
        for (int line = 0; line < STEP; line += 16)
            __builtin_prefetch(b->y + i + AHEAD + line);
        for (int k = 0; k < STEP; k++)
            b->y[i + k] += 1.0f;
    }
}

typedef struct way {
    const char *name;
    void (*run)(bench *b, const sti_gradient_form *form);
    sti_gradient_form form;
    double wanted;
} way;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rate_of(bench *b, const way *w)
{
    const int64_t start = sti_clock_ns();
    w->run(b, &w->form);
    return (double)b->n * 4e-9 / sti_seconds_since(start);
}

static void speed(bench *b, int runs)
{
    static const sti_gradient_form four = {.bits = 4, .bucket = 1024},
                                   two = {.bits = 2, .bucket = 1024},
                                   eight = {.bits = 8, .bucket = 1024};
    sti_gradient_form stochastic = four, clip = four;
    stochastic.rounding = STI_GRADIENT_STOCHASTIC;
    clip.clip = true;
    const sti_gradient_form qsgd = {
        .bits = 3, .bucket = 1024, .method = STI_GRADIENT_QSGD_L2};
    const way ways[] = {
        {"read", run_read, four, 0},
        {"encode 4 bits nearest", run_encode, four, 0.7},
        {"decode-and-add 4 bits", run_add, four, 0.6},
        {"update in place", run_update, four, 0},
        {"encode 4 bits stochastic", run_encode, stochastic, 0.4},
        {"encode 4 bits nearest, clip", run_encode, clip, 0},
        {"encode 2 bits nearest", run_encode, two, 0},
        {"decode-and-add 2 bits", run_add, two, 0},
        {"encode 8 bits nearest", run_encode, eight, 0},
        {"decode-and-add 8 bits", run_add, eight, 0},
        {"encode 3 bits QSGD L2", run_encode, qsgd, 0},
    };
    enum { WAYS = sizeof ways / sizeof *ways };
    double best[WAYS] = {0}, share[WAYS][RUNS_MAX];
    for (int run = -1; run < runs; run++)
        for (int w = 0; w < WAYS; w++) {
            const double read = rate_of(b, &ways[0]), rate = rate_of(b, &ways[w]);
            if (run < 0)
                continue;
            if (rate > best[w])
                best[w] = rate;
            share[w][run] = rate / read;
        }
    printf("%s, %s, one thread, %.0f MiB of float32, best and median of %d\n",
           sti_cpu_name(), sti_isa_name(sti_isa_now()), (double)b->n * 4 / 1048576,
           runs);
    for (int w = 0; w < WAYS; w++) {
        qsort(share[w], (size_t)runs, sizeof share[w][0], by_value);
        printf("%-28s %7.2f GB/s %6.1f %% of read", ways[w].name, best[w],
               100 * share[w][runs / 2]);
        if (ways[w].wanted > 0)
            printf("  (wanted %.0f %%)", 100 * ways[w].wanted);
        printf("\n");
    }
}

static float normal(uint64_t id, int64_t i)
{
    float sum = 0;
    for (uint64_t k = 0; k < 3; k++) {
        uint32_t w[4];
        sti_random4(1, STI_STREAM_TEST, id * 4 + k, (uint64_t)i, w);
        for (int j = 0; j < 4; j++)
            sum += sti_uniform(w[j]) - 0.5f;
    }
    return sum;
}

/* ---- error of the mean ---- */

enum { VALUES = 1 << 16, RANKS_MAX = 16 };

typedef struct gradients {
    float *x[RANKS_MAX];
    double *mean;
} gradients;

/* `common`: the share of what all ranks have alike; tail: some values are much larger.
 */
static void make(gradients *g, int ranks, float common, bool tail)
{
    memset(g->mean, 0, VALUES * sizeof *g->mean);
    for (int r = 0; r < ranks; r++)
        for (int64_t i = 0; i < VALUES; i++) {
            const float size = tail && i % 128 == 7 ? 10.0f : 1.0f;
            g->x[r][i] = size * (common * normal(1000, i) +
                                 sqrtf(1 - common * common) * normal((uint64_t)r, i));
            g->mean[i] += (double)g->x[r][i] / ranks;
        }
}

static double mean_error(const gradients *g, int ranks, const sti_gradient_form *form,
                         uint8_t *out, float *sum)
{
    double error = 0, size = 0;
    memset(sum, 0, VALUES * sizeof *sum);
    for (int r = 0; r < ranks; r++) {
        const sti_gradient_key key = {.seed = 1,
                                      .rank = (uint32_t)r,
                                      .part = (uint32_t)r,
                                      .parts = (uint32_t)ranks};
        sti_gradient_encode(&sti_team_serial, form, &key, VALUES, g->x[r], out);
        sti_gradient_decode(&sti_team_serial, form, VALUES, out, STI_GRADIENT_ADD, sum);
    }
    for (int64_t i = 0; i < VALUES; i++) {
        const double d = (double)sum[i] / ranks - g->mean[i];
        error += d * d;
        size += g->mean[i] * g->mean[i];
    }
    return sqrt(error / size);
}

static void errors_of(const gradients *g, const char *kind, int ranks, uint8_t *out,
                      float *sum)
{
    for (int bits = 1; bits <= 8; bits = bits < 4 ? bits + 1 : bits + 2) {
        sti_gradient_form form = {
            .bits = bits, .bucket = 1024, .rounding = STI_GRADIENT_STOCHASTIC};
        double e[6];
        for (int k = 0; k < 6; k++) {
            static const sti_gradient_rounding rounding[] = {
                STI_GRADIENT_STOCHASTIC, STI_GRADIENT_CORRELATED, STI_GRADIENT_NEAREST};
            form.rounding = rounding[k % 3];
            form.clip = k >= 3;
            e[k] = mean_error(g, ranks, &form, out, sum);
        }
        printf("%-24s %5d %4d %9.4f %10.2f %10.2f %10.2f %10.2f %10.2f\n", kind, ranks,
               bits, e[0], e[0] / e[1], e[0] / e[3], e[0] / e[4], e[0] / e[2],
               e[0] / e[5]);
    }
}

static int errors(void)
{
    static const struct kind {
        const char *name;
        float common;
        bool tail;
    } kinds[] = {{"noise", 0, false},
                 {"half alike", 0.707f, false},
                 {"alike", 1, false},
                 {"noise, heavy tail", 0, true}};
    gradients g = {{NULL}, malloc(VALUES * sizeof(double))};
    uint8_t *out = malloc(VALUES * 2);
    float *sum = malloc(VALUES * sizeof *sum);
    for (int r = 0; r < RANKS_MAX; r++)
        if (!(g.x[r] = malloc(VALUES * sizeof(float))))
            return 1;
    if (!g.mean || !out || !sum)
        return 1;
    printf(
        "\nrelative error of the mean; times lower than plain max-min at equal bytes\n"
        "%-24s %5s %4s %9s %10s %10s %10s %10s %10s\n",
        "gradients", "ranks", "bits", "plain", "correlated", "clip", "both", "nearest",
        "near+clip");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int ranks = 2; ranks <= RANKS_MAX; ranks *= 8) {
            make(&g, ranks, kinds[k].common, kinds[k].tail);
            errors_of(&g, kinds[k].name, ranks, out, sum);
        }
    for (int r = 0; r < RANKS_MAX; r++)
        free(g.x[r]);
    free(g.mean);
    free(out);
    free(sum);
    return 0;
}

int main(int argc, char **argv)
{
    const double mebibytes = argc > 1 ? atof(argv[1]) : 256;
    const int asked = argc > 2 ? atoi(argv[2]) : 7;
    const int runs = asked < RUNS_MAX ? asked : RUNS_MAX;
    bench b = {.n = (int64_t)(mebibytes * 262144) / 1024 * 1024};
    if (b.n < 1024 || runs < 1) {
        (void)fprintf(stderr, "gradient_bench [MEBIBYTES [RUNS]]\n");
        return 2;
    }
    b.x = aligned_alloc(64, (size_t)b.n * 4);
    b.y = aligned_alloc(64, (size_t)b.n * 4);
    b.out = malloc((size_t)b.n * 2);
    if (!b.x || !b.y || !b.out)
        return 1;
    for (int64_t i = 0; i < b.n; i++) {
        b.x[i] = i < VALUES ? normal(77, i) : b.x[i % VALUES];
        b.y[i] = 0.0f;
    }
    memset(b.out, 0, (size_t)b.n * 2);
    speed(&b, runs);
    free(b.x);
    free(b.y);
    free(b.out);
    return errors();
}
