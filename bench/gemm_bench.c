/* Matrix products: ours beside oneDNN, OpenBLAS and libxsmm in one run, and BRGEMM
 * beside the peak of the multiply-add units, measured right after each sample of ours
 * so that both share one clock speed (which heavy vectors lower). Packing is inside
 * every time.
 *
 *     gemm_bench [-j THREADS] [-s SECTION] [-r ROUNDS] [-t MS] [-c CORETYPE] [--csv]
 *                [MxNxK[t|T]...]
 *
 * SECTION: brgemm, big, odd or int8 (default: all four). A shape with t has A stored
 * transposed, with T B, with tT both. Rates are medians over all samples. With -s int8
 * given shapes are measured in 8 bits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/team.h"
#include "gemm_bench_peers.h"
#include "gemm_bench_timing.h"
#include "kernel/gemm/brgemm.h"
#include "kernel/gemm/gemm.h"
#include "kernel/gemm/gemm_i8.h"

enum { SHAPES = 64 };

static struct options {
    int threads, rounds;
    double ms;
    const char *section, *coretype;
    bool csv;
} options = {.threads = 1, .rounds = 5, .ms = 25};

typedef struct shape {
    int64_t m, n, k;
    bool ta, tb;
} shape;

/* ---- timing ---- */

/* One round: warm up, then samples of at least 0.2 ms until the time is spent. After
 * each, unless `peak` is NULL, some 50 microseconds of multiply-adds in registers: a
 * product makes the clock fall, which rises again within a millisecond. */
static void sample(work_fn *work, void *user, double flop, samples *s,
                   const sti_team *team, samples *peak)
{
    const double warm_ms = options.threads > 1 ? 30 : 3;
    if (options.threads > 1)
        wait_for_quiet();
    int64_t start = sti_clock_ns(), once = repeat(work, user, 1);
    while (sti_seconds_since(start) * 1e3 < warm_ms)
        once = repeat(work, user, 1);
    const int64_t times = once > 200000 ? 1 : 200000 / (once > 0 ? once : 1) + 1;
    start = sti_clock_ns();
    do {
        const int64_t ns = repeat(work, user, times);
        if (s->count < SAMPLES)
            s->flop_per_ns[s->count++] = flop * (double)times / (double)ns;
        if (peak)
            sample_peak(team, peak);
    } while (sti_seconds_since(start) * 1e3 < options.ms);
}

/* ---- one product, by any library ---- */

typedef struct product {
    shape s;
    sti_team team;
    float *a, *b, *c, *c_peer;
    void *scratch;
    size_t scratch_bytes;
#ifdef BENCH_HAVE_LIBXSMM
    libxsmm_smmfunction xsmm;
#endif
} product;

static sti_gemm_shape gemm_shape(const shape *s)
{
    return (sti_gemm_shape){.m = s->m,
                            .n = s->n,
                            .k = s->k,
                            .lda = s->ta ? s->m : s->k,
                            .ldb = s->tb ? s->k : s->n,
                            .ldc = s->n,
                            .trans_a = s->ta,
                            .trans_b = s->tb};
}

static void run_ours(void *user)
{
    product *p = user;
    const sti_gemm_shape g = gemm_shape(&p->s);
    sti_gemm_f32(&p->team, &g, p->a, p->b, NULL, p->c, p->scratch);
}

static void run_dnnl(void *user)
{
    product *p = user;
    const sti_gemm_shape g = gemm_shape(&p->s);
    peers.dnnl_sgemm(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', g.m, g.n, g.k, 1,
                     p->a, g.lda, p->b, g.ldb, 0, p->c_peer, g.ldc);
}

static void run_blas(void *user)
{
    product *p = user;
    const sti_gemm_shape g = gemm_shape(&p->s);
    peers.blas_sgemm(101, g.trans_a ? 112 : 111, g.trans_b ? 112 : 111, (int)g.m,
                     (int)g.n, (int)g.k, 1, p->a, (int)g.lda, p->b, (int)g.ldb, 0,
                     p->c_peer, (int)g.ldc);
}

static int64_t fallbacks; /* calls for which libxsmm has no kernel */

#ifdef BENCH_HAVE_LIBXSMM
/* The BLAS that it falls back on then, whose time would go by its name. */
#define BLAS_STUB(NAME) \
    void NAME(void);    \
    void NAME(void)     \
    {                   \
        fallbacks++;    \
    }
BLAS_STUB(sgemm_)
BLAS_STUB(dgemm_)
BLAS_STUB(sgemv_)
BLAS_STUB(dgemv_)

static void run_xsmm(void *user)
{
    product *p = user;
    const sti_gemm_shape g = gemm_shape(&p->s);
    const libxsmm_blasint m = (int)g.n, n = (int)g.m, k = (int)g.k, lda = (int)g.ldb,
                          ldb = (int)g.lda, ldc = (int)g.ldc;
    const float alpha = 1, beta = 0;
    if (p->xsmm)
        p->xsmm(p->b, p->a, p->c_peer);
    else
        libxsmm_sgemm_omp(g.trans_b ? "T" : "N", g.trans_a ? "T" : "N", &m, &n, &k,
                          &alpha, p->b, &lda, p->a, &ldb, &beta, p->c_peer, &ldc);
}
#endif

enum { OURS, DNNL, BLAS, XSMM, LIBRARIES };
static const char *const library_name[] = {"stint", "oneDNN", "OpenBLAS", "libxsmm"};

static work_fn *library_work(int library)
{
    switch (library) {
    case OURS:
        return run_ours;
    case DNNL:
        return peers.dnnl_sgemm ? run_dnnl : NULL;
    case BLAS:
        return peers.blas_sgemm ? run_blas : NULL;
    default:
#ifdef BENCH_HAVE_LIBXSMM
        return run_xsmm;
#else
        return NULL;
#endif
    }
}

static float *random_floats(int64_t count)
{
    float *x = sti_alloc_array(count, sizeof *x, "bench");
    uint32_t state = 12345;
    for (int64_t i = 0; x && i < count; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 8) * 0x1p-24f - 0.5f;
    }
    return x;
}

static bool product_make(product *p, const shape *s)
{
    const sti_gemm_shape g = gemm_shape(s);
    *p = (product){.s = *s, .team = {.threads = options.threads}};
    p->a = random_floats(s->m * s->k);
    p->b = random_floats(s->k * s->n);
    p->c = random_floats(s->m * s->n);
    p->c_peer = random_floats(s->m * s->n);
    p->scratch_bytes = sti_gemm_scratch_bytes(&g, options.threads);
    p->scratch = sti_alloc(p->scratch_bytes, "bench");
#ifdef BENCH_HAVE_LIBXSMM
    if (options.threads == 1)
        p->xsmm = xsmm_kernel(s->m, s->n, s->k, s->ta, s->tb);
#endif
    return p->a && p->b && p->c && p->c_peer && p->scratch;
}

static void product_free(product *p)
{
    sti_free(p->a);
    sti_free(p->b);
    sti_free(p->c);
    sti_free(p->c_peer);
    sti_free(p->scratch);
}

/* Peers sum in another order: as close as eps * k allows, never a wrong product. */
static bool agree(const product *p)
{
    for (int64_t i = 0; i < p->s.m * p->s.n; i++)
        if (fabsf(p->c[i] - p->c_peer[i]) > 1e-5f * (float)p->s.k + 1e-5f)
            return false;
    return true;
}

static void shape_text(const shape *s, char text[64])
{
    snprintf(text, 64, "%" PRId64 "x%" PRId64 "x%" PRId64 "%s%s", s->m, s->n, s->k,
             s->ta ? "t" : "", s->tb ? "T" : "");
}

static samples times[LIBRARIES], peak_times;
static double log_ratio;
static int ratios;

/* Columns: shape, rates, ours over the best peer, ours over the peak, scratch. */
static void print_product(const product *p)
{
    char text[64];
    double rate[LIBRARIES], best = 0;
    shape_text(&p->s, text);
    for (int i = 0; i < LIBRARIES; i++) {
        rate[i] = median(&times[i]);
        if (i != OURS && rate[i] > best)
            best = rate[i];
    }
    const double peak = median(&peak_times), over = best > 0 ? rate[OURS] / best : 0;
    if (best > 0) {
        log_ratio += log(over);
        ratios++;
    }
    printf(options.csv ? "%s,%d,%.1f,%.1f,%.1f,%.1f,%.3f,%.3f,%.1f\n"
                       : "%-20s %2d %9.1f %9.1f %9.1f %9.1f %8.3f %8.3f %9.1f\n",
           text, options.threads, rate[OURS], rate[DNNL], rate[BLAS], rate[XSMM], over,
           peak > 0 ? rate[OURS] / peak : 0, (double)p->scratch_bytes / 1024);
    fflush(stdout);
}

/* One round of one library; false: it is left out from now on. */
static bool measure_library(product *p, int library, double flop)
{
    work_fn *work = library_work(library);
    if (!work)
        return false;
    fallbacks = 0;
    sample(work, p, flop, &times[library], &p->team,
           library == OURS ? &peak_times : NULL);
    const char *why = fallbacks > 0                  ? "has no kernel for"
                      : library != OURS && !agree(p) ? "differs from ours in"
                                                     : NULL;
    if (why) {
        char text[64];
        shape_text(&p->s, text);
        printf("# %s %s %s\n", library_name[library], why, text);
        times[library].count = 0;
    }
    return !why;
}

static void measure_product(const shape *s)
{
    product p;
    bool left_out[LIBRARIES] = {false};
    const double flop = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    memset(times, 0, sizeof times);
    memset(&peak_times, 0, sizeof peak_times);
    if (product_make(&p, s)) {
        for (int round = 0; round < options.rounds; round++)
            for (int i = 0; i < LIBRARIES; i++)
                left_out[i] = left_out[i] || !measure_library(&p, i, flop);
        print_product(&p);
    }
    product_free(&p);
}

static void section_products(const char *title, const shape *shapes, size_t count)
{
    printf("# %s\n", title);
    printf(options.csv
               ? "shape,threads,stint,onednn,openblas,libxsmm,over_best_peer,"
                 "over_peak,scratch_kib\n"
               : "# shape         threads     stint    oneDNN  OpenBLAS   libxsmm"
                 "  /best    /peak  scratch KiB (GFLOP/s)\n");
    log_ratio = 0;
    ratios = 0;
    for (size_t i = 0; i < count; i++)
        measure_product(&shapes[i]);
    if (ratios > 0)
        printf("# geometric mean over the best peer: %.3f\n", exp(log_ratio / ratios));
}

static const shape big[] = {{512, 512, 512, 0, 0},    {768, 768, 768, 0, 0},
                            {1024, 1024, 1024, 0, 0}, {1536, 1536, 1536, 0, 0},
                            {2048, 2048, 2048, 0, 0}, {3072, 3072, 3072, 0, 0},
                            {4096, 4096, 4096, 0, 0}};

static const shape odd[] = {
    {37, 53, 29, 0, 0},    {1, 1000, 4096, 0, 0},   {8, 1000, 2048, 0, 0},
    {32, 32, 32, 0, 0},    {64, 64, 64, 0, 0},      {100, 100, 100, 0, 0},
    {127, 129, 131, 0, 0}, {4096, 16, 64, 0, 0},    {32768, 64, 64, 0, 0},
    {16, 4096, 512, 0, 0}, {1024, 1024, 8, 0, 0},   {1000, 10, 512, 0, 0},
    {64, 64, 16384, 0, 0}, {256, 256, 256, 1, 0},   {256, 256, 256, 0, 1},
    {512, 384, 640, 1, 1}, {1024, 768, 3072, 0, 0}, {128, 3072, 768, 0, 0},
    {512, 768, 768, 0, 1}, {768, 768, 512, 1, 0},   {256, 5025, 768, 0, 0},
    {128, 64, 128, 0, 1},  {128, 10, 512, 0, 0},    {512, 10, 128, 1, 0},
    {128, 512, 10, 0, 1},  {64, 64, 64, 0, 1}};

/* ---- 8-bit ---- */

typedef struct i8_product {
    shape s;
    sti_team team;
    uint8_t *a;
    int8_t *b;
    int32_t *c, *c_peer;
    void *scratch;
} i8_product;

static sti_gemm_i8_shape i8_shape(const shape *s)
{
    const sti_gemm_shape g = gemm_shape(s);
    return (sti_gemm_i8_shape){.m = g.m,
                               .n = g.n,
                               .k = g.k,
                               .lda = g.lda,
                               .ldb = g.ldb,
                               .ldc = g.ldc,
                               .trans_a = g.trans_a,
                               .trans_b = g.trans_b};
}

static void run_i8(void *user)
{
    i8_product *p = user;
    const sti_gemm_i8_shape g = i8_shape(&p->s);
    sti_gemm_i8(&p->team, &g, p->a, p->b, p->c, p->scratch);
}

static void run_i8_dnnl(void *user)
{
    i8_product *p = user;
    const sti_gemm_i8_shape g = i8_shape(&p->s);
    const int32_t zero = 0;
    peers.dnnl_u8s8s32(g.trans_a ? 'T' : 'N', g.trans_b ? 'T' : 'N', 'F', g.m, g.n, g.k,
                       1, p->a, g.lda, 0, p->b, g.ldb, 0, 0, p->c_peer, g.ldc, &zero);
}

/* Ours, oneDNN's, and ours in f32, interleaved. */
static void i8_rounds(i8_product *p, product *f32, samples s[3])
{
    const double flop = 2.0 * (double)p->s.m * (double)p->s.n * (double)p->s.k;
    for (int round = 0; round < options.rounds; round++) {
        sample(run_i8, p, flop, &s[0], NULL, NULL);
        if (peers.dnnl_u8s8s32)
            sample(run_i8_dnnl, p, flop, &s[1], NULL, NULL);
        sample(run_ours, f32, flop, &s[2], NULL, NULL);
    }
    if (peers.dnnl_u8s8s32 &&
        memcmp(p->c, p->c_peer, (size_t)(p->s.m * p->s.n) * sizeof *p->c) != 0)
        printf("# oneDNN differs from ours\n");
}

static void measure_i8(const shape *shape_of)
{
    char text[64];
    product f32;
    i8_product p = {.s = *shape_of, .team = {.threads = options.threads}};
    const sti_gemm_i8_shape g = i8_shape(&p.s);
    const size_t bytes = sti_gemm_i8_scratch_bytes(&g, options.threads);
    p.a = sti_alloc_array(g.m * g.k, 1, "bench");
    p.b = sti_alloc_array(g.k * g.n, 1, "bench");
    p.c = sti_alloc_array(g.m * g.n, 4, "bench");
    p.c_peer = sti_alloc_array(g.m * g.n, 4, "bench");
    p.scratch = sti_alloc(bytes, "bench");
    memset(times, 0, sizeof times);
    if (product_make(&f32, shape_of) && p.a && p.b && p.c && p.c_peer && p.scratch) {
        for (int64_t i = 0; i < g.m * g.k; i++)
            p.a[i] = (uint8_t)(i * 7919 % 251);
        for (int64_t i = 0; i < g.k * g.n; i++)
            p.b[i] = (int8_t)(i * 104729 % 249 - 124);
        i8_rounds(&p, &f32, times);
        const double ours = median(&times[0]), dnnl = median(&times[1]),
                     floats = median(&times[2]);
        shape_text(&p.s, text);
        printf(options.csv ? "%s,%d,%.1f,%.1f,%.1f,%.3f,%.3f,%.1f\n"
                           : "%-20s %2d %9.1f %9.1f %9.1f %8.3f %8.3f %9.1f\n",
               text, options.threads, ours, dnnl, floats, dnnl > 0 ? ours / dnnl : 0,
               ours / floats, (double)bytes / 1024);
        fflush(stdout);
    }
    product_free(&f32);
    sti_free(p.a);
    sti_free(p.b);
    sti_free(p.c);
    sti_free(p.c_peer);
    sti_free(p.scratch);
}

static void section_i8(const shape *shapes, size_t count)
{
    printf("# u8 x s8 -> s32\n");
    printf(
        options.csv
            ? "shape,threads,stint,onednn,stint_f32,over_onednn,over_f32,scratch_kib\n"
            : "# shape         threads     stint    oneDNN       f32  /oneDNN     /f32"
              "  scratch KiB (GOP/s)\n");
    for (size_t i = 0; i < count; i++)
        measure_i8(&shapes[i]);
}

/* ---- BRGEMM ---- */

typedef struct reduce_case {
    sti_brgemm g;
    int64_t br, sets;
    float *a, *b, *c;
} reduce_case;

static void run_reduce(void *user)
{
    const reduce_case *r = user;
    const int64_t a = r->g.m * r->g.k, b = r->g.k * r->g.n;
    for (int64_t i = 0; i < r->sets; i++)
        sti_brgemm_stride_f32(&r->g, r->br, r->a + i * r->br * a, r->b + i * r->br * b,
                              a, b, r->c + i * r->g.m * r->g.n);
}

static void measure_reduce(int64_t m, int64_t n, int64_t k, int64_t br, int64_t sets)
{
    static samples s, peak;
    const sti_team team = {.threads = 1};
    reduce_case r = {.g = {.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n},
                     .br = br,
                     .sets = sets};
    s.count = peak.count = 0;
    r.a = random_floats(m * k * br * sets);
    r.b = random_floats(k * n * br * sets);
    r.c = random_floats(m * n * sets);
    for (int round = 0; r.a && r.b && r.c && round < options.rounds; round++) {
        sample(run_reduce, &r, 2.0 * (double)(m * n * k * br * sets), &s, &team, &peak);
    }
    const double rate = median(&s), top = median(&peak);
    const double kib = 4.0 / 1024 * (double)(sets * (br * (m * k + k * n) + m * n));
    printf(options.csv ? "%d,%d,%d,%d,%.1f,%.1f,%.1f,%.3f\n"
                       : "%5d %5d %5d %5d %10.1f %10.1f %10.1f %8.3f\n",
           (int)m, (int)n, (int)k, (int)br, kib, rate, top, top > 0 ? rate / top : 0);
    fflush(stdout);
    sti_free(r.a);
    sti_free(r.b);
    sti_free(r.c);
}

static void section_reduce(void)
{
    /* Operands within 48 KiB, then sets that only the second level holds. */
    static const int64_t cases[][5] = {
        {28, 32, 64, 2, 1},  {28, 32, 32, 4, 1},  {32, 32, 32, 4, 1},
        {56, 32, 96, 1, 1},  {64, 32, 64, 1, 1},  {37, 53, 29, 4, 1},
        {28, 32, 64, 8, 8},  {56, 64, 64, 8, 4},  {64, 64, 64, 8, 4},
        {32, 32, 32, 8, 16}, {112, 64, 64, 4, 4}, {37, 53, 29, 8, 10}};
    printf("# BRGEMM, stride form, one thread\n");
    printf(options.csv ? "m,n,k,br,kib,stint,peak,over_peak\n"
                       : "#   m     n     k    br        KiB    GFLOP/s       peak    "
                         "/peak\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        measure_reduce(cases[i][0], cases[i][1], cases[i][2], cases[i][3], cases[i][4]);
}

/* ---- command line ---- */

static bool parse_shape(const char *text, shape *s)
{
    char flags[3] = "";
    const int got = sscanf(text, "%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%2[tT]", &s->m,
                           &s->n, &s->k, flags);
    s->ta = strchr(flags, 't') != NULL;
    s->tb = strchr(flags, 'T') != NULL;
    return got >= 3 && s->m > 0 && s->n > 0 && s->k > 0;
}

/* NULL is all of them. */
static bool section_is_known(void)
{
    static const char *const known[] = {"brgemm", "big", "odd", "int8"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (options.section && strcmp(options.section, known[i]) == 0)
            return true;
    return !options.section;
}

/* Shapes found, or -1. */
static int parse(int argc, char **argv, shape *shapes)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--csv") == 0) {
            options.csv = true;
            continue;
        }
        if (argv[i][0] != '-') {
            if (count == SHAPES || !parse_shape(argv[i], &shapes[count++]))
                return -1;
            continue;
        }
        switch (argv[i++][1]) {
        case 'j':
            options.threads = atoi(value);
            break;
        case 'r':
            options.rounds = atoi(value);
            break;
        case 't':
            options.ms = atof(value);
            break;
        case 's':
            options.section = value;
            break;
        case 'c':
            options.coretype = strcmp(value, "auto") == 0 ? NULL : value;
            break;
        default:
            return -1;
        }
    }
    return options.threads > 0 && options.rounds > 0 && section_is_known() ? count : -1;
}

static bool wanted(const char *section)
{
    return !options.section || strcmp(options.section, section) == 0;
}

int main(int argc, char **argv)
{
    shape shapes[SHAPES];
    /* What OpenBLAS itself takes such CPUs for is slower. */
    if (__builtin_cpu_supports("avx512f"))
        options.coretype = "SKYLAKEX";
    const int count = parse(argc, argv, shapes);
    if (count < 0) {
        fprintf(stderr, "usage: gemm_bench [-j THREADS] [-s brgemm|big|odd|int8] "
                        "[-r ROUNDS] [-t MS] [-c CORETYPE] [--csv] [MxNxK[t|T]...]\n");
        return 2;
    }
    printf("# %s, %s, %d threads, gcc %s\n", sti_cpu_name(),
           sti_isa_name(sti_isa_now()), options.threads, __VERSION__);
    peers_open(options.coretype);
    peers_threads(options.threads);
    if (count > 0) {
        if (options.section && strcmp(options.section, "int8") == 0)
            section_i8(shapes, (size_t)count);
        else
            section_products("given shapes", shapes, (size_t)count);
        return 0;
    }
    if (wanted("brgemm"))
        section_reduce();
    if (wanted("big"))
        section_products("square", big, sizeof big / sizeof *big);
    if (wanted("odd"))
        section_products("odd", odd, sizeof odd / sizeof *odd);
    if (wanted("int8")) {
        section_i8(big, sizeof big / sizeof *big);
        section_i8(odd, sizeof odd / sizeof *odd);
    }
    return 0;
}
