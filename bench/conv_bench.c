/* Speed of convolutions and matrix products against the machine's own limit.
 *
 *     conv_bench [--csv] [threads] [batch]
 *
 * Prints GFLOP/s (median and best of repeats) and the share of the peak of fused
 * multiply-adds, measured in between, for every layer shape of ResNet-20 on 32x32
 * images in all three directions, some layers of VGG-16 and ResNet-50, and square
 * GEMMs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/conv.h"

enum { REPEATS = 11 };

typedef struct layer {
    const char *name;
    int64_t divide; /* the batch is divided by this: large images */
    sti_conv_shape shape;
} layer;

static const layer layers[] = {
    {"resnet20 stem 3-16 32", 1, {0, 32, 32, 3, 16, 3, 3, 1, 1, 1, 0, 0}},
    {"resnet20 16-16 32", 1, {0, 32, 32, 16, 16, 3, 3, 1, 1, 1, 0, 0}},
    {"resnet20 16-32 32/2", 1, {0, 32, 32, 16, 32, 3, 3, 2, 1, 1, 0, 0}},
    {"resnet20 1x1 16-32 32/2", 1, {0, 32, 32, 16, 32, 1, 1, 2, 0, 1, 0, 0}},
    {"resnet20 32-32 16", 1, {0, 16, 16, 32, 32, 3, 3, 1, 1, 1, 0, 0}},
    {"resnet20 32-64 16/2", 1, {0, 16, 16, 32, 64, 3, 3, 2, 1, 1, 0, 0}},
    {"resnet20 1x1 32-64 16/2", 1, {0, 16, 16, 32, 64, 1, 1, 2, 0, 1, 0, 0}},
    {"resnet20 64-64 8", 1, {0, 8, 8, 64, 64, 3, 3, 1, 1, 1, 0, 0}},
    {"vgg16 64-64 32", 4, {0, 32, 32, 64, 64, 3, 3, 1, 1, 1, 0, 0}},
    {"vgg16 128-128 16", 4, {0, 16, 16, 128, 128, 3, 3, 1, 1, 1, 0, 0}},
    {"vgg16 256-256 8", 4, {0, 8, 8, 256, 256, 3, 3, 1, 1, 1, 0, 0}},
    {"vgg16 512-512 4", 1, {0, 4, 4, 512, 512, 3, 3, 1, 1, 1, 0, 0}},
    {"vgg16 512-512 2", 1, {0, 2, 2, 512, 512, 3, 3, 1, 1, 1, 0, 0}},
    {"resnet50 stem 3-64 224/2", 32, {0, 224, 224, 3, 64, 7, 7, 2, 3, 1, 0, 0}},
    {"resnet50 1x1 64-256 56", 16, {0, 56, 56, 64, 256, 1, 1, 1, 0, 1, 0, 0}},
    {"resnet50 64-64 56", 16, {0, 56, 56, 64, 64, 3, 3, 1, 1, 1, 0, 0}},
    {"resnet50 128-128 28", 8, {0, 28, 28, 128, 128, 3, 3, 1, 1, 1, 0, 0}},
    {"resnet50 512-512 7", 8, {0, 7, 7, 512, 512, 3, 3, 1, 1, 1, 0, 0}},
    {"depthwise 64 32", 4, {0, 32, 32, 64, 64, 3, 3, 1, 1, 64, 0, 0}},
};

static const int64_t gemms[][3] = {
    {64, 64, 64}, {256, 256, 256}, {1024, 1024, 1024}, {2048, 2048, 2048},
    {37, 53, 29}, {32, 10, 64},    {32, 4096, 512},    {1, 4096, 4096}};

typedef struct bench {
    sti_team team;
    bool csv;
    double peak; /* GFLOP/s of one thread, the latest */
    const sti_conv_shape *conv;
    sti_gemm_shape gemm;
    int direction;
    float *a, *b, *c;
    void *scratch;
} bench;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One thread is timed by the processor time it gets, so that other programs on the
 * machine count little; several by the clock. */
static int64_t now_ns(const bench *b)
{
    struct timespec t;
    if (b->team.threads > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return sti_clock_ns();
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Seconds of one run, median and best of REPEATS of about 10 ms each. */
static void measure(bench *b, void (*run)(bench *), double *median, double *best)
{
    double all[REPEATS];
    int64_t start = now_ns(b);
    run(b);
    run(b);
    const double once = (double)(now_ns(b) - start) * 0.5e-9;
    const int count = once < 5e-3 ? (int)(10e-3 / once) + 1 : 1;
    for (int r = 0; r < REPEATS; r++) {
        start = now_ns(b);
        for (int i = 0; i < count; i++)
            run(b);
        all[r] = (double)(now_ns(b) - start) * 1e-9 / count;
    }
    qsort(all, REPEATS, sizeof *all, by_size);
    *median = all[REPEATS / 2];
    *best = all[0];
}

#if defined(__x86_64__)
/* Sixteen independent chains of fused multiply-adds in registers:
 * the arithmetic limit. */
enum { CHAINS = 16, CHAIN_STEPS = 20000 };

__attribute__((target("avx512f"))) static void run_peak_avx512(bench *b)
{
    __m512 acc[CHAINS];
    const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm512_set1_ps((float)i);
    for (int k = 0; k < CHAIN_STEPS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm512_fmadd_ps(acc[i], x, y);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        _mm512_storeu_ps(b->c + 16 * i, acc[i]);
}

__attribute__((target("avx2,fma"))) static void run_peak_avx2(bench *b)
{
    __m256 acc[CHAINS];
    const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm256_set1_ps((float)i);
    for (int k = 0; k < CHAIN_STEPS; k++)
#pragma GCC unroll 16
        for (int i = 0; i < CHAINS - 4; i++)
            acc[i] = _mm256_fmadd_ps(acc[i], x, y);
#pragma GCC unroll 16
    for (int i = 0; i < CHAINS; i++)
        _mm256_storeu_ps(b->c + 8 * i, acc[i]);
}
#endif

/* GFLOP/s of one thread; 1 (no shares of a peak) for the plain C kernels. */
static double measure_peak(bench *b)
{
    double median, best;
#if defined(__x86_64__)
    if (sti_isa_now() == STI_ISA_AVX512) {
        measure(b, run_peak_avx512, &median, &best);
        return 2e-9 * 16 * CHAINS * CHAIN_STEPS / best;
    }
    if (sti_isa_now() == STI_ISA_AVX2) {
        measure(b, run_peak_avx2, &median, &best);
        return 2e-9 * 8 * (CHAINS - 4) * CHAIN_STEPS / best;
    }
#endif
    (void)b, (void)median, (void)best;
    return 1.0;
}

static void report(bench *b, const char *name, const char *direction, double flop,
                   void (*run)(bench *))
{
    double median, best;
    measure(b, run, &median, &best);
    const double peak = b->peak * b->team.threads, rate = flop * 1e-9 / median;
    if (b->csv)
        printf("%s,%s,%.1f,%.1f,%.1f\n", name, direction, rate, flop * 1e-9 / best,
               100 * rate / peak);
    else
        printf("%-26s %-8s %8.1f %8.1f %6.1f %% %8.3f ms\n", name, direction, rate,
               flop * 1e-9 / best, 100 * rate / peak, median * 1e3);
    fflush(stdout);
}

static void run_conv(bench *b)
{
    const sti_epilogue relu = {.relu = true};
    switch (b->direction) {
    case 0:
        sti_conv_forward_f32(&b->team, b->conv, b->a, b->b, &relu, b->c, b->scratch);
        break;
    case 1:
        sti_conv_backward_data_f32(&b->team, b->conv, b->c, b->b, b->a, b->scratch);
        break;
    default:
        sti_conv_backward_weight_f32(&b->team, b->conv, b->a, b->c, b->b, NULL,
                                     b->scratch);
        break;
    }
}

static void run_gemm(bench *b)
{
    sti_gemm_f32(&b->team, &b->gemm, b->a, b->b, NULL, b->c, b->scratch);
}

static float *some_floats(int64_t count)
{
    float *x = sti_alloc_array(count, sizeof *x, "bench.tensor");
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(i * 7 % 19 - 9) / 64.0F;
    return x;
}

static size_t conv_scratch(const sti_conv_shape *s, int threads, int direction)
{
    return direction == 0   ? sti_conv_forward_scratch_bytes(s, threads)
           : direction == 1 ? sti_conv_backward_data_scratch_bytes(s, threads)
                            : sti_conv_backward_weight_scratch_bytes(s, threads);
}

static void bench_free(bench *b)
{
    sti_free(b->a);
    sti_free(b->b);
    sti_free(b->c);
}

static void bench_layer(bench *b, const layer *l, int64_t batch)
{
    static const char *const names[] = {"forward", "data", "weight"};
    sti_conv_shape s = l->shape;
    s.n = batch / l->divide > 0 ? batch / l->divide : 1;
    s.oh = sti_conv_out_length(s.h, s.kh, s.stride, s.pad);
    s.ow = sti_conv_out_length(s.w, s.kw, s.stride, s.pad);
    b->conv = &s;
    b->a = some_floats(s.n * s.h * s.w * s.ci);
    b->b = some_floats(s.kh * s.kw * s.ci / s.groups * s.co);
    b->c = some_floats(s.n * s.oh * s.ow * s.co);
    if (b->a && b->b && b->c)
        b->peak = measure_peak(b);
    for (b->direction = 0; b->direction < 3; b->direction++) {
        b->scratch =
            sti_alloc(conv_scratch(&s, b->team.threads, b->direction), "bench.scratch");
        if (b->a && b->b && b->c && b->scratch)
            report(b, l->name, names[b->direction], sti_conv_flop(&s), run_conv);
        sti_free(b->scratch);
    }
    bench_free(b);
}

static void bench_gemm(bench *b, int64_t m, int64_t n, int64_t k)
{
    char name[64];
    snprintf(name, sizeof name, "gemm %" PRId64 "x%" PRId64 "x%" PRId64, m, n, k);
    b->gemm = (sti_gemm_shape){.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
    b->a = some_floats(m * k);
    b->b = some_floats(k * n);
    b->c = some_floats(m * n);
    b->scratch =
        sti_alloc(sti_gemm_scratch_bytes(&b->gemm, b->team.threads), "bench.scratch");
    if (b->a && b->b && b->c && b->scratch)
        report(b, name, "", 2.0 * (double)m * (double)n * (double)k, run_gemm);
    sti_free(b->scratch);
    bench_free(b);
}

int main(int argc, char **argv)
{
    bench b = {.team = {.threads = 1}};
    int64_t number[2] = {1, 32}; /* threads, batch */
    int at = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--csv") == 0)
            b.csv = true;
        else if (at < 2 && atoi(argv[i]) > 0)
            number[at++] = atoi(argv[i]);
        else
            return 2;
    }
    b.team.threads = (int)number[0];
    b.a = some_floats(8192);
    b.b = some_floats(64);
    b.c = some_floats(1024);
    if (!b.a || !b.b || !b.c)
        return 7;
    b.peak = measure_peak(&b);
    bench_free(&b);
    printf(
        b.csv ? "# %s, %s, %d threads, batch %" PRId64 ", peak a thread %.1f GFLOP/s\n"
              : "%s, %s, %d threads, batch %" PRId64 ", peak a thread %.1f GFLOP/s\n",
        sti_cpu_name(), sti_isa_name(sti_isa_now()), b.team.threads, number[1], b.peak);
    if (b.csv)
        printf("case,direction,median_gflops,best_gflops,percent_of_peak\n");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        bench_layer(&b, &layers[i], number[1]);
    for (size_t i = 0; i < sizeof gemms / sizeof *gemms; i++)
        bench_gemm(&b, gemms[i][0], gemms[i][1], gemms[i][2]);
    return 0;
}
