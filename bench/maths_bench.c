/* Every float32 through our elementary functions: largest and mean error in units in
 * the last place, and a hash of all results on each instruction set.
 *
 * The truth is libm's in float64 (within 1 ulp of float64, which is 2^-29 of a
 * float32's); the input with the largest error, and 20,000 spread ones, are judged once
 * more by MPFR at 120 bits, which also bounds what libm may have got wrong. usage:
 * maths_bench [FUNCTION...] [-s STEP | -i BITS]
 * STEP: every STEP-th input only; BITS: that input, by MPFR, without the search */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"
#include "kernel/elementwise/elementwise.h"

#ifdef STI_BENCH_WITH_MPFR
#include <mpfr.h>
#endif

enum { BLOCK = 1 << 16 };

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

#ifdef STI_BENCH_WITH_MPFR
static int mpfr_sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_neg(y, x, round);
    mpfr_exp(y, y, round);
    mpfr_add_ui(y, y, 1, round);
    return mpfr_ui_div(y, 1, y, round);
}
#define MPFR(f) f
#else
#define MPFR(f) NULL
#endif

static const struct function {
    const char *name;
    sti_unary kind;
    double (*truth)(double);
#ifdef STI_BENCH_WITH_MPFR
    int (*exact)(mpfr_t, const mpfr_t, mpfr_rnd_t);
#else
    void *exact;
#endif
} functions[] = {
    {"exp", STI_UNARY_EXP, exp, MPFR(mpfr_exp)},
    {"log", STI_UNARY_LOG, log, MPFR(mpfr_log)},
    {"tanh", STI_UNARY_TANH, tanh, MPFR(mpfr_tanh)},
    {"sigmoid", STI_UNARY_SIGMOID, sigmoid, MPFR(mpfr_sigmoid)},
    {"sin", STI_UNARY_SIN, sin, MPFR(mpfr_sin)},
    {"cos", STI_UNARY_COS, cos, MPFR(mpfr_cos)},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Distance of one ulp at the true value y, by the float32 grid. */
static double ulp_at(double y)
{
    int exponent;
    (void)frexp(fabs(y), &exponent);
    return ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

/* Inputs and results that our contract flushes to zero are no errors. */
static bool flushed(float x, double want)
{
    return (x != 0.0f && fabsf(x) < 0x1p-126f) || fabs(want) < 0x1p-126;
}

typedef struct worst {
    double error, sum;
    uint32_t at;
    uint64_t count;
    uint64_t special; /* NaN or infinity where the other has none */
} worst;

static void judge(const struct function *f, uint32_t bits, float got, worst *w)
{
    const float x = of_bits(bits);
    const double want = f->truth((double)x);
    if (isnan(want) || isinf((float)want) || isnan(got) || isinf(got)) {
        const bool same = isnan(want) ? isnan(got) : (float)want == got;
        /* Between the largest float and infinity both are right to half an ulp. */
        w->special += !same && !flushed(x, want);
        return;
    }
    if (flushed(x, want))
        return;
    const double error = fabs((double)got - want) / ulp_at(want);
    w->sum += error;
    w->count++;
    if (error > w->error) {
        w->error = error;
        w->at = bits;
    }
}

static void run_block(const struct function *f, uint64_t first, uint64_t step, float *x,
                      float *y)
{
    for (int i = 0; i < BLOCK; i++)
        x[i] = of_bits((uint32_t)(first + (uint64_t)i * step));
    sti_unary_f32(&sti_team_serial, f->kind, BLOCK, 0.0f, x, y);
}

typedef struct search {
    const struct function *f;
    uint64_t step;
    worst *worst;   /* [threads] */
    float **x, **y; /* [threads][BLOCK] */
} search;

static void search_block(void *arg, int64_t block, int worker)
{
    const search *s = arg;
    const uint64_t first = (uint64_t)block * BLOCK * s->step;
    float *x = s->x[worker], *y = s->y[worker];
    run_block(s->f, first, s->step, x, y);
    for (int i = 0; i < BLOCK; i++)
        judge(s->f, (uint32_t)(first + (uint64_t)i * s->step), y[i], &s->worst[worker]);
}

static worst find_errors(const struct function *f, uint64_t step, int threads)
{
    const sti_team team = {threads};
    worst total = {0};
    search s = {.f = f, .step = step};
    s.worst = calloc((size_t)threads, sizeof *s.worst);
    s.x = calloc((size_t)threads, sizeof *s.x);
    s.y = calloc((size_t)threads, sizeof *s.y);
    for (int i = 0; i < threads; i++) {
        s.x[i] = malloc(BLOCK * sizeof(float));
        s.y[i] = malloc(BLOCK * sizeof(float));
    }
    sti_team_run(&team, (int64_t)((UINT64_C(1) << 32) / step / BLOCK), search_block,
                 &s);
    for (int i = 0; i < threads; i++) {
        if (s.worst[i].error > total.error) {
            total.error = s.worst[i].error;
            total.at = s.worst[i].at;
        }
        total.sum += s.worst[i].sum;
        total.count += s.worst[i].count;
        total.special += s.worst[i].special;
        free(s.x[i]);
        free(s.y[i]);
    }
    free(s.worst);
    free(s.x);
    free(s.y);
    return total;
}

/* SHA-256 over all results in the order of the inputs' bits. */
static void hash_all(const struct function *f, uint64_t step, char hex[65])
{
    sti_sha256 hash;
    float *x = malloc(BLOCK * sizeof *x), *y = malloc(BLOCK * sizeof *y);
    sti_sha256_init(&hash);
    for (uint64_t at = 0; at < UINT64_C(1) << 32; at += BLOCK * step) {
        run_block(f, at, step, x, y);
        sti_sha256_add(&hash, y, BLOCK * sizeof *y);
    }
    sti_sha256_hex(&hash, hex);
    free(x);
    free(y);
}

#ifdef STI_BENCH_WITH_MPFR
static double exact_error(const struct function *f, uint32_t bits)
{
    const float x = of_bits(bits);
    float y;
    mpfr_t in, out;
    sti_unary_f32(&sti_team_serial, f->kind, 1, 0.0f, &x, &y);
    mpfr_init2(in, 120);
    mpfr_init2(out, 120);
    mpfr_set_flt(in, x, MPFR_RNDN);
    f->exact(out, in, MPFR_RNDN);
    const double want = mpfr_get_d(out, MPFR_RNDN), unit = ulp_at(want);
    mpfr_sub_d(out, out, (double)y, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(out, MPFR_RNDN)) / unit;
    const bool counts = isfinite(want) && isfinite(y) && !flushed(x, want);
    mpfr_clear(in);
    mpfr_clear(out);
    return counts ? error : 0;
}

static void check_exact(const struct function *f, const worst *w)
{
    double largest = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        const double e = exact_error(f, (uint32_t)(i * UINT64_C(214748) + 12345));
        largest = e > largest ? e : largest;
    }
    printf("  MPFR: %.6f ulp at that input; at most %.6f over 20,000 others\n",
           exact_error(f, w->at), largest);
    mpfr_free_cache();
}
#else
static void check_exact(const struct function *f, const worst *w)
{
    (void)f;
    (void)w;
    printf("  built without MPFR\n");
}
#endif

static void run(const struct function *f, uint64_t step, int threads)
{
    static const sti_isa isas[] = {STI_ISA_AVX2, STI_ISA_AVX512};
    static const char *const names[] = {"avx2", "avx512"};
    const int64_t begin = sti_clock_ns();
    const worst w = find_errors(f, step, threads);
    printf("%-8s largest error %.6f ulp at %a (0x%08" PRIx32 "), mean %.4f, %" PRIu64
           " inputs, %" PRIu64 " wrong NaN or infinity, %.0f s\n",
           f->name, w.error, (double)of_bits(w.at), w.at, w.sum / (double)w.count,
           w.count, w.special, sti_seconds_since(begin));
    check_exact(f, &w);
    for (int i = 0; i < 2; i++) {
        char hex[65];
        if (!sti_isa_force(isas[i])) {
            printf("  %-7s not on this machine\n", names[i]);
            continue;
        }
        hash_all(f, step, hex);
        printf("  %-7s %s\n", names[i], hex);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t step = 1;
    int named = 0, threads = 1;
    worst only = {0};
    bool searched = true;
    (void)sti_threads_choose(0, &threads, NULL);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
            step = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "-i") == 0 && i + 1 < argc) {
            only.at = (uint32_t)strtoul(argv[++i], NULL, 16);
            searched = false;
        } else
            named++;
    printf("%s\n", sti_cpu_name());
    for (int k = 0; k < FUNCTIONS; k++) {
        bool wanted = named == 0;
        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], functions[k].name) == 0;
        if (wanted && searched)
            run(&functions[k], step, threads);
        else if (wanted) {
            printf("%-8s at %a\n", functions[k].name, (double)of_bits(only.at));
            check_exact(&functions[k], &only);
        }
    }
    return 0;
}
