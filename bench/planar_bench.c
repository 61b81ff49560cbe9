/* Sparse convolutions and dense layers on planar images beside the dense kernels.
 *
 *     planar_bench [-j THREADS] [-n IMAGES] [-r REPEATS] [--cold] [TEXT]
 *
 * Layers of known networks (those whose name contains TEXT) at shares of their kernels,
 * of four taps in eight shapes or whole, and of single weights. Prints milliseconds of
 * both, medians of runs in turns, their ratio, and the ratio that the choice of a
 * compact file expects (kernel/planar/planar_cost.h). --cold walks through 32 MiB
 * before each run, as a network does between two visits of a layer. About a minute. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "kernel/conv/conv.h"
#include "kernel/gemm/gemm.h"
#include "kernel/planar/planar.h"
#include "kernel/planar/planar_cost.h"

enum { MOST_REPEATS = 101, COLD_FLOATS = 8 << 20 };

typedef enum kind { PATTERNS, KERNELS, ELEMENTS } kind;
static const char *const kinds[] = {"patterns", "kernels", "elements"};

typedef struct layer {
    const char *name;
    int64_t side, channels, filters, k, stride;
    kind kind;
    double keep; /* of kernels, of elements */
} layer;

#define BY_SHARES(label, side, c, f, k, s)         \
    {label, side, c, f, k, s, PATTERNS, 0.6},      \
        {label, side, c, f, k, s, PATTERNS, 0.25}, \
        {label, side, c, f, k, s, KERNELS, 0.4},   \
        {label, side, c, f, k, s, ELEMENTS, 0.2},  \
    {                                              \
        label, side, c, f, k, s, ELEMENTS, 0.05    \
    }

static const layer layers[] = {
    BY_SHARES("16-16 32", 32, 16, 16, 3, 1),
    BY_SHARES("64-64 32", 32, 64, 64, 3, 1),
    BY_SHARES("32-32 16", 16, 32, 32, 3, 1),
    BY_SHARES("128-128 16", 16, 128, 128, 3, 1),
    BY_SHARES("64-64 8", 8, 64, 64, 3, 1),
    BY_SHARES("256-256 8", 8, 256, 256, 3, 1),
    BY_SHARES("512-512 4", 4, 512, 512, 3, 1),
    BY_SHARES("512-512 2", 2, 512, 512, 3, 1),
    BY_SHARES("64-128 16/2", 16, 64, 128, 3, 2),
    {"1x1 256-64 28", 28, 256, 64, 1, 1, ELEMENTS, 0.2},
    {"1x1 256-512 8", 8, 256, 512, 1, 1, ELEMENTS, 0.1},
    {"dense 512-512", 1, 512, 512, 1, 1, ELEMENTS, 0.1},
    {"dense 1024-1024", 1, 1024, 1024, 1, 1, ELEMENTS, 0.1},
    {"dense 2048-2048", 1, 2048, 2048, 1, 1, ELEMENTS, 0.1},
    {"dense 4096-4096", 1, 4096, 4096, 1, 1, ELEMENTS, 0.1},
    {"dense 4096-4096", 1, 4096, 4096, 1, 1, ELEMENTS, 0.02},
};

typedef struct bench {
    sti_team team;
    int repeats;
    bool cold;
    int64_t n;
    sti_conv_shape dense;
    sti_planar_plan planar;
    float *x, *w, *y, *walk; /* both layouts have the same room */
    void *packed, *dense_scratch, *planar_scratch;
} bench;

static uint32_t state = 7;

static double uniform(void)
{
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) * 0x1p-24;
}

static void *room(size_t bytes)
{
    void *p = sti_alloc(bytes, "bench");
    if (!p)
        exit(7);
    return p;
}

static void fill_weights(const layer *l, float *w)
{
    static const int shapes[] = {0x1b, 0x36, 0xd8, 0x1b0, 0x1c8, 0x27, 0xf, 0x1e0};
    const int64_t kernels = l->channels * l->filters, taps = l->k * l->k;
    for (int64_t i = 0; i < kernels; i++) {
        const bool kept = uniform() < l->keep;
        const int shape = shapes[state >> 8 & 7];
        for (int64_t t = 0; t < taps; t++) {
            const bool one = l->kind == PATTERNS  ? kept && shape >> t & 1
                             : l->kind == KERNELS ? kept
                                                  : uniform() < l->keep;
            w[t * kernels + i] = one ? (float)uniform() : 0;
        }
    }
}

static void run_dense(bench *b)
{
    const sti_conv_plan plan =
        sti_conv_plan_f32(&b->dense, STI_CONV_FORWARD, b->team.threads);
    const sti_gemm_shape shape = {.m = b->n,
                                  .n = b->dense.co,
                                  .k = b->dense.ci,
                                  .lda = b->dense.ci,
                                  .ldb = b->dense.co,
                                  .ldc = b->dense.co};
    if (b->dense.h == 1)
        sti_gemm_f32(&b->team, &shape, b->x, b->w, NULL, b->y, b->dense_scratch);
    else
        sti_conv_forward_f32(&b->team, &plan, b->x, b->w, NULL, b->y, b->dense_scratch);
}

static void run_planar(bench *b)
{
    const sti_planar_epilogue none = {.relu = false};
    sti_planar_conv_f32(&b->team, &b->planar, b->x, b->packed, &none, b->y,
                        b->planar_scratch);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_run(bench *b, void (*run)(bench *))
{
    for (int64_t k = 0; b->cold && k < COLD_FLOATS; k += 16)
        b->walk[k] += 1.0F;
    const int64_t start = sti_clock_ns();
    run(b);
    return (double)(sti_clock_ns() - start) * 1e-6;
}

static void measure(bench *b, double *dense, double *planar)
{
    double times[2][MOST_REPEATS];
    run_dense(b);
    run_planar(b);
    for (int r = 0; r < b->repeats; r++) {
        times[0][r] = time_run(b, run_dense);
        times[1][r] = time_run(b, run_planar);
    }
    for (int i = 0; i < 2; i++)
        qsort(times[i], (size_t)b->repeats, sizeof(double), compare);
    *dense = times[0][b->repeats / 2];
    *planar = times[1][b->repeats / 2];
}

static void bench_layer(bench *b, const layer *l)
{
    const int64_t out = (l->side + 2 * (l->k / 2) - l->k) / l->stride + 1;
    const int64_t filled = b->n + STI_PLANAR_LANES;
    const size_t weights = (size_t)(l->k * l->k * l->channels * l->filters);
    const sti_planar_shape s = {.n = b->n,
                                .h = l->side,
                                .w = l->side,
                                .channels = l->channels,
                                .filters = l->filters,
                                .kh = l->k,
                                .kw = l->k,
                                .stride = l->stride,
                                .pad = l->k / 2,
                                .oh = out,
                                .ow = out};
    sti_planar_zeros zeros;
    double dense, planar;
    b->dense = (sti_conv_shape){.n = b->n,
                                .h = l->side,
                                .w = l->side,
                                .ci = l->channels,
                                .co = l->filters,
                                .kh = l->k,
                                .kw = l->k,
                                .stride = l->stride,
                                .pad = l->k / 2,
                                .groups = 1,
                                .oh = out,
                                .ow = out};
    b->dense.winograd = sti_conv_winograd_fits(&b->dense);
    b->w = room(weights * sizeof(float));
    b->x = room((size_t)(filled * l->channels * l->side * l->side) * sizeof(float));
    b->y = room((size_t)(filled * l->filters * out * out) * sizeof(float));
    fill_weights(l, b->w);
    if (!sti_planar_look(&s, b->w, &zeros))
        exit(7);
    b->planar = sti_planar_plan_of(&s, &zeros, b->team.threads);
    b->packed = room(b->planar.weights_bytes);
    b->planar_scratch = room(b->planar.scratch_bytes);
    const sti_gemm_shape product = {.m = b->n,
                                    .n = l->filters,
                                    .k = l->channels,
                                    .lda = l->channels,
                                    .ldb = l->filters,
                                    .ldc = l->filters};
    b->dense_scratch = room(
        l->side == 1 ? sti_gemm_scratch_bytes(&product, b->team.threads)
                     : sti_conv_plan_f32(&b->dense, STI_CONV_FORWARD, b->team.threads)
                           .scratch_bytes);
    if (!sti_planar_pack(&b->planar, b->w, b->packed))
        exit(7);
    measure(b, &dense, &planar);
    printf(
        "%-16s %-8s %4.0f %%  dense %8.3f  sparse %8.3f ms  %5.2f expected %5.2f %s\n",
        l->name, kinds[l->kind], 100 * l->keep, dense, planar, dense / planar,
        sti_planar_dense_cost(&s) / sti_planar_cost(&s, &zeros),
        b->planar.outer  ? "by inputs"
        : b->planar.flat ? "side by side"
                         : "chains");
    fflush(stdout);
    sti_free(b->w);
    sti_free(b->x);
    sti_free(b->y);
    sti_free(b->packed);
    sti_free(b->planar_scratch);
    sti_free(b->dense_scratch);
}

int main(int argc, char **argv)
{
    bench b = {.team = {1}, .repeats = 7, .n = 1};
    const char *only = "";
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--cold") == 0)
            b.cold = true;
        else if (argv[i][0] != '-')
            only = argv[i];
        else if (i + 1 < argc && argv[i][1] == 'j')
            b.team.threads = atoi(argv[++i]);
        else if (i + 1 < argc && argv[i][1] == 'n')
            b.n = atoi(argv[++i]);
        else if (i + 1 < argc && argv[i][1] == 'r')
            b.repeats = atoi(argv[++i]);
    b.repeats = b.repeats < 1 || b.repeats > MOST_REPEATS ? 7 : b.repeats;
    b.walk = room(COLD_FLOATS * sizeof(float));
    memset(b.walk, 0, COLD_FLOATS * sizeof(float));
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (strstr(layers[i].name, only))
            bench_layer(&b, &layers[i]);
    sti_free(b.walk);
    return 0;
}
