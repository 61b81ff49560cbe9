/* Products and convolutions of bfloat16 beside ours in float32 and, for the products,
 * oneDNN's in bfloat16 (where it was found at build time).
 *
 *     bf16_bench [-j THREADS] [-r ROUNDS]
 *
 * Rows of CSV: what, float32 GFLOP/s, bfloat16 GFLOP/s, ratio, oneDNN GFLOP/s. Packing
 * is included in ours. All take turns; medians of the rounds. About half a minute. */
#include <inttypes.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/conv/conv_bf16.h"
#include "kernel/gemm/gemm_bf16.h"
#ifdef STI_BENCH_WITH_DNNL
#include "bf16_bench_dnnl.h"
#else
typedef struct peer {
    bool ready;
} peer;
#endif

enum { ROUNDS_MAX = 51, FLOATS = 17 << 20, CONV_FLOATS = 4 << 20 };

typedef struct bench {
    sti_team team;
    int rounds;
    float *a, *b, *c;
    sti_bf16 *ha, *hb, *hc;
    void *scratch;
    size_t scratch_bytes;
    sti_gemm_shape gemm;
    sti_gemm_bf16_shape gemm_bf16;
    sti_conv_shape conv;
    int direction;
    peer peer;
} bench;

typedef void run_fn(bench *b);

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds a call, of as many calls as take 3 ms. */
static double time_once(bench *b, run_fn *run)
{
    const int64_t start = sti_clock_ns();
    int64_t end;
    int calls = 0;
    do {
        run(b);
        calls++;
        end = sti_clock_ns();
    } while (end - start < 3000000);
    return (double)(end - start) / (double)calls * 1e-9;
}

/* Medians of runs in turns. */
static void time_turns(bench *b, run_fn *const *runs, int count, double *seconds)
{
    static double all[3][ROUNDS_MAX];
    for (int r = -1; r < b->rounds; r++) /* one to warm up */
        for (int i = 0; i < count; i++)
            all[i][r < 0 ? 0 : r] = time_once(b, runs[i]);
    for (int i = 0; i < count; i++) {
        qsort(all[i], (size_t)b->rounds, sizeof **all, compare);
        seconds[i] = all[i][b->rounds / 2];
    }
}

static void gemm_f32(bench *b)
{
    sti_gemm_f32(&b->team, &b->gemm, b->a, b->b, NULL, b->c, b->scratch);
}

static void gemm_bf16(bench *b)
{
    sti_gemm_bf16(&b->team, &b->gemm_bf16, b->ha, b->hb, NULL, b->c, b->scratch);
}

#ifdef STI_BENCH_WITH_DNNL
static void gemm_peer(bench *b)
{
    peer_run(&b->peer);
}
#endif

static bool want_scratch(bench *b, size_t bytes)
{
    if (bytes <= b->scratch_bytes)
        return true;
    sti_free(b->scratch);
    b->scratch = sti_alloc(bytes, "bench");
    b->scratch_bytes = b->scratch ? bytes : 0;
    return b->scratch != NULL;
}

static bool bench_gemm(bench *b, int64_t n)
{
    run_fn *runs[3] = {gemm_f32, gemm_bf16, NULL};
    double seconds[3];
    int count = 2;
    b->gemm = (sti_gemm_shape){.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    b->gemm_bf16 =
        (sti_gemm_bf16_shape){.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    if (!want_scratch(b, sti_gemm_scratch_bytes(&b->gemm, b->team.threads)) ||
        !want_scratch(b, sti_gemm_bf16_scratch_bytes(&b->gemm_bf16, b->team.threads)))
        return false;
#ifdef STI_BENCH_WITH_DNNL
    peer_open(&b->peer, n);
    if (b->peer.ready)
        runs[count++] = gemm_peer;
#endif
    time_turns(b, runs, count, seconds);
    const double gflop = 2e-9 * (double)n * (double)n * (double)n;
    printf("gemm %" PRId64 ",%.0f,%.0f,%.2f,", n, gflop / seconds[0],
           gflop / seconds[1], seconds[0] / seconds[1]);
    if (count == 3)
        printf("%.0f\n", gflop / seconds[2]);
    else
        printf("none\n");
#ifdef STI_BENCH_WITH_DNNL
    if (b->peer.ready)
        peer_close(&b->peer);
#endif
    return true;
}

static void conv_f32(bench *b)
{
    const sti_conv_plan plan =
        sti_conv_plan_f32(&b->conv, (sti_conv_direction)b->direction, b->team.threads);
    if (plan.direction == STI_CONV_FORWARD)
        sti_conv_forward_f32(&b->team, &plan, b->a, b->b, NULL, b->c, b->scratch);
    else if (plan.direction == STI_CONV_BACKWARD_DATA)
        sti_conv_backward_data_f32(&b->team, &plan, b->c, b->b, b->a, b->scratch);
    else
        sti_conv_backward_weight_f32(&b->team, &plan, b->a, b->c, b->b, NULL,
                                     b->scratch);
}

static void conv_bf16(bench *b)
{
    const sti_conv_plan plan =
        sti_conv_plan_bf16(&b->conv, (sti_conv_direction)b->direction, b->team.threads);
    if (plan.direction == STI_CONV_FORWARD)
        sti_conv_bf16_forward(&b->team, &plan, b->ha, b->b, NULL, b->hc, b->scratch);
    else if (plan.direction == STI_CONV_BACKWARD_DATA)
        sti_conv_bf16_data(&b->team, &plan, b->hc, b->b, b->ha, b->scratch);
    else
        sti_conv_bf16_weight(&b->team, &plan, b->ha, b->hc, b->b, b->scratch);
}

static bool conv_scratch(bench *b)
{
    const sti_conv_shape *s = &b->conv;
    const int t = b->team.threads;
    for (int i = 0; i < 3; i++) {
        const sti_conv_direction d = (sti_conv_direction)i;
        if (!want_scratch(b, sti_conv_plan_f32(s, d, t).scratch_bytes) ||
            !want_scratch(b, sti_conv_plan_bf16(s, d, t).scratch_bytes))
            return false;
    }
    return true;
}

static void fill(bench *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        b->a[i] = (float)(i % 251) / 251.0F - 0.5F;
        b->b[i] = (float)(i % 241) / 241.0F - 0.5F;
        b->c[i] = (float)(i % 239) / 239.0F - 0.5F;
        b->ha[i] = sti_bf16_from_f32(b->a[i]);
        b->hb[i] = sti_bf16_from_f32(b->b[i]);
        b->hc[i] = sti_bf16_from_f32(b->c[i]);
    }
}

static bool bench_conv(bench *b, int64_t n, int64_t size, int64_t ci, int64_t co,
                       int64_t window, int64_t stride)
{
    static const char *const names[] = {"forward", "data", "weight"};
    run_fn *runs[2] = {conv_f32, conv_bf16};
    sti_conv_shape s = {.n = n,
                        .h = size,
                        .w = size,
                        .ci = ci,
                        .co = co,
                        .kh = window,
                        .kw = window,
                        .stride = stride,
                        .pad = window / 2,
                        .groups = 1};
    s.oh = s.ow = sti_conv_out_length(size, window, stride, s.pad);
    b->conv = s;
    if (!conv_scratch(b))
        return false;
    fill(b, CONV_FLOATS); /* results of the last shape would grow to infinities */
    for (b->direction = 0; b->direction < 3; b->direction++) {
        double seconds[2];
        time_turns(b, runs, 2, seconds);
        const double gflop = sti_conv_flop(&s) * 1e-9;
        printf("%s %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " to %" PRId64
               " %" PRId64 "x%" PRId64 "/%" PRId64 ",%.0f,%.0f,%.2f,\n",
               names[b->direction], n, size, size, ci, co, window, window, stride,
               gflop / seconds[0], gflop / seconds[1], seconds[0] / seconds[1]);
    }
    return true;
}

static bool bench_all(bench *b)
{
    bool ok = true;
    printf("what,f32 GFLOP/s,bf16 GFLOP/s,ratio,oneDNN bf16 GFLOP/s\n");
    for (int64_t n = 512; n <= 4096 && ok; n *= 2)
        ok = bench_gemm(b, n);
    /* ResNet-20 with 32 images, then some of ResNet-50 with 4. */
    return ok && bench_conv(b, 32, 32, 3, 16, 3, 1) &&
           bench_conv(b, 32, 32, 16, 16, 3, 1) && bench_conv(b, 32, 32, 16, 32, 3, 2) &&
           bench_conv(b, 32, 16, 32, 32, 3, 1) && bench_conv(b, 32, 8, 64, 64, 3, 1) &&
           bench_conv(b, 4, 56, 64, 64, 3, 1) && bench_conv(b, 4, 56, 64, 256, 1, 1) &&
           bench_conv(b, 4, 14, 256, 256, 3, 1) && bench_conv(b, 4, 7, 512, 512, 3, 1);
}

int main(int argc, char **argv)
{
    bench b = {.team = {1}, .rounds = 5};
    bool ok;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-j") == 0)
            b.team.threads = atoi(argv[i + 1]);
        if (strcmp(argv[i], "-r") == 0)
            b.rounds = atoi(argv[i + 1]);
    }
    if (b.team.threads < 1 || b.rounds < 1 || b.rounds > ROUNDS_MAX) {
        fprintf(stderr, "bf16_bench: at least one thread, 1 to %d rounds\n",
                ROUNDS_MAX);
        return 2;
    }
    b.a = sti_alloc_array(FLOATS, sizeof *b.a, "bench");
    b.b = sti_alloc_array(FLOATS, sizeof *b.b, "bench");
    b.c = sti_alloc_array(FLOATS, sizeof *b.c, "bench");
    b.ha = sti_alloc_array(FLOATS, sizeof *b.ha, "bench");
    b.hb = sti_alloc_array(FLOATS, sizeof *b.hb, "bench");
    b.hc = sti_alloc_array(FLOATS, sizeof *b.hc, "bench");
    ok = b.a && b.b && b.c && b.ha && b.hb && b.hc;
    if (ok) {
        static const char *const unit[] = {"", ", AVX512_BF16", ", AMX_BF16"};
        printf("# %s, %s%s, %d threads\n", sti_cpu_name(), sti_isa_name(sti_isa_now()),
               unit[sti_bf16_unit_now()], b.team.threads);
        omp_set_num_threads(b.team.threads); /* of oneDNN */
        fill(&b, FLOATS);
        ok = bench_all(&b);
    }
    if (!ok)
        fprintf(stderr, "bf16_bench: out of memory\n");
    sti_free(b.a);
    sti_free(b.b);
    sti_free(b.c);
    sti_free(b.ha);
    sti_free(b.hb);
    sti_free(b.hc);
    sti_free(b.scratch);
    return ok ? 0 : 1;
}
