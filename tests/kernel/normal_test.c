/* Counter-based normal numbers: ARS against Random123's answers, Box and Muller's
 * method in double, ranges, keys, the distribution, and the bits of every instruction
 * set. */
#include "kernel/normal/normal.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/normal/normal_priv.h"

enum { N = 5000 };

static const sti_normal_key keys[] = {
    {STI_NORMAL_ARS, 0x123456789abcdef0u, 70, 3, 2, 5},
    {STI_NORMAL_PHILOX, 0x123456789abcdef0u, 70, 3, 2, 5},
};

/* What Random123 1.14 (ars4x32_R, seven rounds) answers to zeros, ones and digits of
 * pi. */
static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint64_t counter[2], key[2];
        uint32_t out[4];
    } cases[] = {
        {{0, 0}, {0, 0}, {0xdacf61ff, 0xc45798f3, 0x113c7eeb, 0x101e27f3}},
        {{UINT64_MAX, UINT64_MAX},
         {UINT64_MAX, UINT64_MAX},
         {0xfbaaff1f, 0xbb547ef9, 0x13d8cd78, 0x7aaa969b}},
        {{0x85a308d3243f6a88, 0x0370734413198a2e},
         {0x299f31d0a4093822, 0xec4e6c89082efa98},
         {0xd1df87af, 0xf67d43ba, 0x4f66afdb, 0x393dcb2d}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        sti_ars_block(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

/* Words 0 to 31 of a unit of 64 are lengths, 32 to 63 directions. */
static void unit_words(const sti_normal_key *key, int64_t unit, uint32_t words[64])
{
    const uint64_t a = (uint64_t)key->layer << 48 | (uint64_t)key->step;
    const uint64_t b = (uint64_t)key->micro << 40 | (uint64_t)key->sample << 32;
    for (uint64_t i = 0; i < 16; i++) {
        const uint64_t c[2] = {a, b + (uint64_t)unit * 16 + i};
        const uint64_t k[2] = {key->seed, STI_STREAM_WEIGHTS};
        uint32_t w[4];
        if (key->generator == STI_NORMAL_ARS)
            sti_ars_block(c, k, w);
        else
            sti_random4(key->seed, STI_STREAM_WEIGHTS, c[0], c[1], w);
        for (uint64_t j = 0; j < 4; j++)
            words[key->generator == STI_NORMAL_ARS ? 4 * i + j : 16 * j + i] = w[j];
    }
}

/* The direction's angle, from the meaning of its bits. */
static void in_double(uint32_t length, uint32_t direction, double out[2])
{
    const double u = (double)((length & 0x7fffffffu) | 1u) / 0x1p31;
    const double x = ((double)(direction & 0x7fffff) / 0x1p23 - 0.5) * acos(-1) / 2;
    const double r = sqrt(-2 * log(u));
    const double c = direction >> 31 ? -cos(x) : cos(x), s = sin(x);
    const bool swap = direction >> 30 & 1;
    out[0] = r * (swap ? s : c);
    out[1] = r * (swap ? c : s);
}

static void box_and_muller(void **state)
{
    (void)state;
    static float eps[N];
    for (int k = 0; k < 2; k++) {
        sti_normal_fill(keys + k, 0, N, eps);
        for (int64_t unit = 0; unit < N / 64; unit++) {
            uint32_t words[64];
            unit_words(keys + k, unit, words);
            for (int j = 0; j < 32; j++) {
                double want[2];
                in_double(words[j], words[32 + j], want);
                const float *got = eps + unit * 64 + j;
                assert_true(fabs((double)got[0] - want[0]) < 2e-6);
                assert_true(fabs((double)got[32] - want[1]) < 2e-6);
            }
        }
    }
}

/* Any part is that part of the whole. */
static void ranges(void **state)
{
    (void)state;
    static float whole[N], part[N];
    static const int64_t first[] = {0, 1, 63, 64, 65, 128, 1000, 1024, 3000};
    static const int64_t count[] = {1, 2, 63, 64, 65, 100, 1024, 2000};
    for (int k = 0; k < 2; k++) {
        sti_normal_fill(keys + k, 0, N, whole);
        for (size_t i = 0; i < sizeof first / sizeof *first; i++)
            for (size_t j = 0; j < sizeof count / sizeof *count; j++) {
                part[count[j]] = 77;
                sti_normal_fill(keys + k, first[i], count[j], part);
                assert_memory_equal(part, whole + first[i], (size_t)count[j] * 4);
                assert_true(part[count[j]] == 77);
            }
    }
}

static void every_instruction_set(void **state)
{
    (void)state;
    static float want[N], got[N];
    const sti_isa best = sti_isa_now();
    for (int k = 0; k < 2; k++) {
        sti_isa_force(STI_ISA_REF);
        sti_normal_fill(keys + k, 5, N, want);
        for (int isa = STI_ISA_AVX2; isa <= (int)best; isa++) {
            sti_isa_force((sti_isa)isa);
            sti_normal_fill(keys + k, 5, N, got);
            assert_memory_equal(got, want, sizeof want);
        }
    }
    sti_isa_force(best);
}

#if defined(__x86_64__)
/* Four blocks a register are chosen before one: both are run here. */
static void aes_of_128_bits(void **state)
{
    (void)state;
    const sti_normal_counter counter = {.seed = 11, .a = 12, .b = 13};
    uint32_t want[3 * 64], got[3 * 64];
    if (!__builtin_cpu_supports("aes"))
        skip();
    sti_ars_words_ref(&counter, 7, 3, want);
    sti_ars_words_aes(&counter, 7, 3, got);
    assert_memory_equal(got, want, sizeof want);
}
#endif

static double correlation(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum / (double)n;
}

/* Each part of the key makes other numbers. */
static void keys_are_independent(void **state)
{
    (void)state;
    static float eps[6][N];
    for (int k = 0; k < 2; k++) {
        sti_normal_key key[6];
        for (int i = 0; i < 6; i++)
            key[i] = keys[k];
        key[1].seed++, key[2].step++, key[3].micro++, key[4].sample++, key[5].layer++;
        for (int i = 0; i < 6; i++)
            sti_normal_fill(key + i, 0, N, eps[i]);
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < i; j++)
                assert_true(fabs(correlation(eps[i], eps[j], N)) < 4.5 / sqrt(N));
    }
}

/* ---- the distribution ---- */

static int ascending(const void *a_, const void *b_)
{
    const float a = *(const float *)a_, b = *(const float *)b_;
    return (a > b) - (a < b);
}

/* Kolmogorov and Smirnov's distance to the normal distribution. */
static double distance(float *x, int64_t n)
{
    double most = 0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int64_t i = 0; i < n; i++) {
        const double p = 0.5 * erfc(-(double)x[i] / sqrt(2));
        const double below = p - (double)i / (double)n;
        const double above = (double)(i + 1) / (double)n - p;
        most = fmax(most, fmax(below, above));
    }
    return most;
}

/* Means of powers 1 to 4; what they are of, and 4.5 standard errors of it. */
static void check_moments(const float *x, int64_t n)
{
    static const double want[] = {0, 1, 0, 3}, variance[] = {1, 2, 15, 96};
    double sum[4] = {0};
    for (int64_t i = 0; i < n; i++) {
        double power = 1;
        for (int k = 0; k < 4; k++)
            sum[k] += power *= (double)x[i];
    }
    for (int k = 0; k < 4; k++)
        assert_true(fabs(sum[k] / (double)n - want[k]) <
                    4.5 * sqrt(variance[k] / (double)n));
}

static void is_normal(void **state)
{
    (void)state;
    enum { MANY = 1 << 18 };
    float *x = malloc(MANY * sizeof *x);
    for (int k = 0; k < 2; k++) {
        sti_normal_fill(keys + k, 0, MANY, x);
        check_moments(x, MANY);
        /* Neighbours, and the two of a pair, squared too: their lengths are one. */
        assert_true(fabs(correlation(x, x + 1, MANY - 1)) < 4.5 / sqrt(MANY));
        assert_true(fabs(correlation(x, x + 32, MANY - 32)) < 4.5 / sqrt(MANY));
        for (int64_t i = 0; i < MANY; i++)
            x[i] = x[i] * x[i] - 1;
        assert_true(fabs(correlation(x, x + 32, MANY - 32)) < 2 * 4.5 / sqrt(MANY));
        sti_normal_fill(keys + k, 0, MANY, x);
        assert_true(distance(x, MANY) < 1.63 / sqrt(MANY)); /* at 1 % */
    }
    free(x);
}

/* How many of 2^24 lie beyond 4 and 5 standard deviations: 1063 and 9.6 are expected.
 */
static void tails(void **state)
{
    (void)state;
    enum { BLOCK = 1 << 12, BLOCKS = 1 << 12 };
    static float x[BLOCK];
    int beyond[2] = {0};
    for (int64_t b = 0; b < BLOCKS; b++) {
        sti_normal_fill(keys, b * BLOCK, BLOCK, x);
        for (int i = 0; i < BLOCK; i++) {
            beyond[0] += fabsf(x[i]) > 4;
            beyond[1] += fabsf(x[i]) > 5;
            assert_true(fabsf(x[i]) < 6.56f);
        }
    }
    for (int k = 0; k < 2; k++) {
        const double want = (double)BLOCK * BLOCKS * erfc((4 + k) / sqrt(2));
        assert_true(fabs(beyond[k] - want) < 4 * sqrt(want));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(box_and_muller),
        cmocka_unit_test(ranges),
        cmocka_unit_test(every_instruction_set),
#if defined(__x86_64__)
        cmocka_unit_test(aes_of_128_bits),
#endif
        cmocka_unit_test(keys_are_independent),
        cmocka_unit_test(is_normal),
        cmocka_unit_test(tails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
