/* Speed of convolutions beside oneDNN and the machine's own limit.
 *
 *     conv_bench NET... [-d forward|data|weight] [-j THREADS] [-b BATCH] [-o TEXT]
 *                [-r REPEATS] [--cold] [--csv] [--direct] [--peer-auto]
 *
 * NET: resnet20, resnet50, vgg16, vgg16-32 or mobilenet, or several of them; every
 * shape once, or those whose name contains TEXT. The mean at the end is of them, and of
 * all convolutions, as often as the networks have each. Ours runs on channels-last
 * tensors and dense weights, packing included, by minimal filtering where the shape
 * fits as in training (marked W;
 * --direct: never); oneDNN (where it was found at build time) directly, in layouts of
 * its choice, its reorders not timed; with --peer-auto also by the algorithm of its
 * choice, which is Winograd's F(4 x 4, 3 x 3) for many: fewer products than ours,
 * larger errors. Both in turns, medians of REPEATS of at least 4 ms. --cold walks
 * through 32 MiB before each run, so that operands come from memory or the last-level
 * cache as within a training step. The peak of fused multiply-adds is measured in
 * between; rates are of the floating-point operations of the definition.
 *
 * With -r 5 and two directions at a time each call takes less than a minute. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "conv_bench_nets.h"
#ifdef STI_BENCH_WITH_DNNL
#include "conv_bench_dnnl.h"
#endif

enum { MAX_REPEATS = 101, COLD_FLOATS = 8 << 20 };

typedef struct bench {
    sti_team team;
    bool csv, cold, direct, peer_auto;
    int repeats, only_direction; /* -1: all */
    const char *only;
    int64_t batch;
    double peak; /* GFLOP/s of one thread, the best so far */
    sti_conv_shape shape;
    int direction;
    float *x, *w, *y, *walk;
    void *scratch;
    double log_sum, least; /* of the ratios */
    double log_times;      /* as often as the network has them */
    int count, times;
#ifdef STI_BENCH_WITH_DNNL
    peer peer;
#endif
} bench;

static const char *const directions[] = {"forward", "data", "weight"};

#if defined(__x86_64__)
/* Sixteen independent chains of fused multiply-adds in registers:
 * the arithmetic limit. */
enum { CHAINS = 16, CHAIN_STEPS = 20000 };

__attribute__((target("avx512f"))) static void run_peak_avx512(float *out)
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
        _mm512_storeu_ps(out + 16 * i, acc[i]);
}

__attribute__((target("avx2,fma"))) static void run_peak_avx2(float *out)
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
        _mm256_storeu_ps(out + 8 * i, acc[i]);
}
#endif

/* GFLOP/s of one thread, best of some; 0 for the plain C kernels. */
static double measure_peak(bench *b)
{
    double best = b->peak;
#if defined(__x86_64__)
    static float out[16 * CHAINS];
    const bool wide = sti_isa_now() == STI_ISA_AVX512;
    if (sti_isa_now() == STI_ISA_REF)
        return 0;
    for (int i = 0; i < 10; i++) {
        const int64_t start = sti_clock_ns();
        if (wide)
            run_peak_avx512(out);
        else
            run_peak_avx2(out);
        const double flop = 2.0 * (wide ? 16 * CHAINS : 8 * (CHAINS - 4)) * CHAIN_STEPS;
        const double rate = flop / (double)(sti_clock_ns() - start);
        best = rate > best ? rate : best;
    }
#endif
    return best;
}

static sti_conv_plan plan_of(const bench *b)
{
    return sti_conv_plan_f32(&b->shape, (sti_conv_direction)b->direction,
                             b->team.threads);
}

static void run_ours(bench *b)
{
    /* (Made anew each time, as operators do.) */
    const sti_conv_plan plan = plan_of(b);
    switch (plan.direction) {
    case STI_CONV_FORWARD:
        sti_conv_forward_f32(&b->team, &plan, b->x, b->w, NULL, b->y, b->scratch);
        break;
    case STI_CONV_BACKWARD_DATA:
        sti_conv_backward_data_f32(&b->team, &plan, b->y, b->w, b->x, b->scratch);
        break;
    case STI_CONV_BACKWARD_WEIGHT:
        sti_conv_backward_weight_f32(&b->team, &plan, b->x, b->y, b->w, NULL,
                                     b->scratch);
        break;
    }
}

#ifdef STI_BENCH_WITH_DNNL
static void run_theirs(bench *b)
{
    peer_run(&b->peer);
}
#endif

/* Seconds a run. */
static double time_runs(bench *b, void (*run)(bench *), int count)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++) {
        for (int64_t k = 0; b->cold && k < COLD_FLOATS; k += 16)
            b->walk[k] += 1.0F;
        const int64_t start = sti_clock_ns();
        run(b);
        total += sti_clock_ns() - start;
    }
    return (double)total * 1e-9 / count;
}

static int runs_of(bench *b, void (*run)(bench *))
{
    time_runs(b, run, 1);
    const double once = time_runs(b, run, 1), want = b->cold ? 1e-3 : 4e-3;
    return once < want ? (int)(want / once) + 1 : 1;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Medians; 0 where there is no peer. */
static void measure(bench *b, bool with_peer, double *ours, double *theirs)
{
    double all[2][MAX_REPEATS] = {{0}};
    int runs[2] = {runs_of(b, run_ours), 0};
#ifdef STI_BENCH_WITH_DNNL
    if (with_peer)
        runs[1] = runs_of(b, run_theirs);
#endif
    for (int r = 0; r < b->repeats; r++) {
        all[0][r] = time_runs(b, run_ours, runs[0]);
#ifdef STI_BENCH_WITH_DNNL
        if (with_peer)
            all[1][r] = time_runs(b, run_theirs, runs[1]);
#endif
    }
    (void)with_peer;
    for (int i = 0; i < 2; i++)
        qsort(all[i], (size_t)b->repeats, sizeof **all, by_size);
    *ours = all[0][b->repeats / 2];
    *theirs = all[1][b->repeats / 2];
}

static size_t scratch_bytes(const bench *b)
{
    return plan_of(b).scratch_bytes;
}

static void report(bench *b, const bench_layer *l, double ours, double theirs,
                   const char *peer_words)
{
    const double flop = sti_conv_flop(&b->shape) * 1e-9;
    const double share =
        b->peak > 0 ? 100 * flop / ours / b->peak / b->team.threads : 0;
    const double ratio = theirs > 0 ? theirs / ours : 0;
    const double kib = (double)scratch_bytes(b) / 1024;
    const bool filtered = b->shape.winograd && sti_conv_winograd_fits(&b->shape);
    printf(b->csv ? "%s,%s%s,%.1f,%.1f,%.4f,%.0f,%.1f,%.3f,%s\n"
                  : "%-20s %-8s%s %7.1f %5.1f %% %9.4f ms %6.0f KiB %7.1f %6.3f  %s\n",
           l->name, directions[b->direction],
           filtered ? "W"
           : b->csv ? ""
                    : " ",
           flop / ours, share, ours * 1e3, kib, theirs > 0 ? flop / theirs : 0, ratio,
           peer_words);
    fflush(stdout);
    if (ratio > 0) {
        b->log_sum += log(ratio);
        b->least = b->count == 0 || ratio < b->least ? ratio : b->least;
        b->count++;
        b->log_times += l->times * log(ratio);
        b->times += l->times;
    }
}

static void bench_direction(bench *b, const bench_layer *l)
{
    double ours, theirs;
    char words[64] = "";
    bool with_peer = false;
    b->scratch = sti_alloc(scratch_bytes(b), "bench.scratch");
    if (!b->scratch)
        return;
    b->peak = measure_peak(b);
#ifdef STI_BENCH_WITH_DNNL
    with_peer = peer_open(&b->peer, &b->shape, b->direction, b->peer_auto,
                          b->team.threads, words);
#endif
    measure(b, with_peer, &ours, &theirs);
#ifdef STI_BENCH_WITH_DNNL
    if (with_peer)
        peer_close(&b->peer);
#endif
    report(b, l, ours, theirs, words);
    sti_free(b->scratch);
}

static float *some_floats(int64_t count)
{
    float *x = sti_alloc_array(count, sizeof *x, "bench.tensor");
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(i * 7 % 19 - 9) / 64.0F;
    return x;
}

static void bench_one(bench *b, const bench_layer *l)
{
    sti_conv_shape *s = &b->shape;
    *s = l->shape;
    s->n = b->batch;
    s->oh = sti_conv_out_length(s->h, s->kh, s->stride, s->pad);
    s->ow = sti_conv_out_length(s->w, s->kw, s->stride, s->pad);
    s->winograd = !b->direct;
    b->x = some_floats(s->n * s->h * s->w * s->ci);
    b->w = some_floats(s->kh * s->kw * s->ci / s->groups * s->co);
    b->y = some_floats(s->n * s->oh * s->ow * s->co);
    for (b->direction = 0; b->direction < 3; b->direction++)
        if (b->x && b->w && b->y &&
            (b->only_direction < 0 || b->only_direction == b->direction))
            bench_direction(b, l);
    sti_free(b->x);
    sti_free(b->w);
    sti_free(b->y);
}

static const bench_net *find_net(const char *name)
{
    for (int i = 0; i < BENCH_NETS; i++)
        if (strcmp(bench_nets[i].name, name) == 0)
            return &bench_nets[i];
    return NULL;
}

static int find_direction(const char *name)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(directions[i], name) == 0)
            return i;
    return -1;
}

/* Networks up to a NULL. */
static bool parse(int argc, char **argv, bench *b, const bench_net **nets)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--csv") == 0)
            b->csv = true;
        else if (strcmp(argv[i], "--peer-auto") == 0)
            b->peer_auto = true;
        else if (strcmp(argv[i], "--direct") == 0)
            b->direct = true;
        else if (strcmp(argv[i], "--cold") == 0)
            b->cold = true;
        else if (strcmp(argv[i], "-d") == 0) {
            if ((b->only_direction = find_direction(value)) < 0)
                return false;
            i++;
        } else if (strcmp(argv[i], "-j") == 0)
            b->team.threads = atoi(value), i++;
        else if (strcmp(argv[i], "-b") == 0)
            b->batch = atoi(value), i++;
        else if (strcmp(argv[i], "-r") == 0)
            b->repeats = atoi(value), i++;
        else if (strcmp(argv[i], "-o") == 0)
            b->only = value, i++;
        else if (count == BENCH_NETS || !(nets[count++] = find_net(argv[i])))
            return false;
    }
    return count > 0 && b->team.threads > 0 && b->repeats > 0 &&
           b->repeats <= MAX_REPEATS;
}

static void print_head(bench *b, const bench_net *net)
{
    const char *lead = b->csv ? "# " : "";
    printf("%s%s, %s, compiler %s, %d threads, %s batch %" PRId64 "%s\n", lead,
           sti_cpu_name(), sti_isa_name(sti_isa_now()), __VERSION__, b->team.threads,
           net->name, b->batch, b->cold ? ", cold" : "");
#ifdef STI_BENCH_WITH_DNNL
    const dnnl_version_t *v = dnnl_version();
    printf("%speer: oneDNN %d.%d.%d, its own layouts\n", lead, v->major, v->minor,
           v->patch);
#else
    printf("%speer: none, oneDNN was not found at build time\n", lead);
#endif
    puts(b->csv ? "layer,direction,gflops,percent_of_peak,ms,scratch_kib,peer_gflops,"
                  "ratio,peer_kernel"
                : "layer                direction  GFLOP/s  peak           time     "
                  "scratch    peer  ratio");
}

int main(int argc, char **argv)
{
    bench b = {.team = {.threads = 1}, .repeats = 5, .only_direction = -1};
    const bench_net *nets[BENCH_NETS + 1] = {NULL};
    if (!parse(argc, argv, &b, nets)) {
        fputs(
            "usage: conv_bench NET... [-d forward|data|weight] [-j THREADS] [-b BATCH] "
            "[-o TEXT] [-r REPEATS] [--cold] [--csv] [--direct] [--peer-auto]\n",
            stderr);
        return 2;
    }
    const int64_t batch = b.batch;
    b.walk = some_floats(COLD_FLOATS);
    if (!b.walk)
        return 7;
#ifdef STI_BENCH_WITH_DNNL
    if (!peer_init(&b.peer))
        return 1;
#endif
    for (const bench_net **net = nets; *net; net++) {
        b.batch = batch > 0 ? batch : (*net)->batch;
        print_head(&b, *net);
        for (int i = 0; i < (*net)->count; i++)
            if (!b.only || strstr((*net)->layers[i].name, b.only))
                bench_one(&b, &(*net)->layers[i]);
    }
    const char *lead = b.csv ? "# " : "";
    printf("%speak a thread %.1f GFLOP/s", lead, b.peak);
    if (b.count > 0)
        printf("; %d ratios, geometric mean %.3f, least %.3f; of all %d %.3f", b.count,
               exp(b.log_sum / b.count), b.least, b.times, exp(b.log_times / b.times));
    puts("");
#ifdef STI_BENCH_WITH_DNNL
    peer_fini(&b.peer);
#endif
    sti_free(b.walk);
    return 0;
}
