/* Shift registers: against one register of single bits, back to where they came from,
 * primitive taps, counts of binomial distribution, and no memory between numbers. */
#include "kernel/normal/lfsr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "stint/status.h"

static _Alignas(64) uint8_t state[STI_LFSR_BYTES], first[STI_LFSR_BYTES];

static const sti_normal_key keys[] = {
    {STI_NORMAL_LFSR256, 0x123456789abcdef0u, 70, 3, 2, 5},
    {STI_NORMAL_LFSR64, 0x123456789abcdef0u, 70, 3, 2, 5},
};
static const char *const taps_texts[][2] = {
    {"", "256,162,127,91"}, /* what the loops know, and what not */
    {"", "64,63,61,60"},
};

/* ---- one register, one bit at a time ---- */

typedef struct one_register {
    uint8_t bit[256]; /* a ring: s[t + i] is bit[(t + i) % n] */
    int n, ones;
    uint64_t t;
    const sti_lfsr_taps *taps;
} one_register;

static int bit_of(const uint8_t *words, int i, int lane)
{
    return words[64 * i + lane / 8] >> lane % 8 & 1;
}

static one_register register_of(const sti_lfsr_taps *taps, int lane)
{
    one_register r = {.n = sti_lfsr_bits(taps->generator), .taps = taps};
    for (int i = 0; i < r.n; i++)
        r.ones += r.bit[i] = (uint8_t)bit_of(state, i, lane);
    return r;
}

static int tapped(const one_register *r, uint64_t t)
{
    const uint64_t m = (uint64_t)r->n - 1;
    return r->bit[(t + (uint64_t)r->taps->a) & m] ^
           r->bit[(t + (uint64_t)r->taps->b) & m] ^
           r->bit[(t + (uint64_t)r->taps->c) & m] ^ r->bit[t & m];
}

/* The new bit takes the place of the one that is dropped, and back. */
static void shift(one_register *r)
{
    uint8_t *place = &r->bit[r->t & ((uint64_t)r->n - 1)];
    const int in = tapped(r, r->t);
    r->ones += in - *place;
    *place = (uint8_t)in;
    r->t++;
}

static void shift_back(one_register *r)
{
    r->t--;
    uint8_t *place = &r->bit[r->t & ((uint64_t)r->n - 1)];
    const int out = tapped(r, r->t);
    r->ones += out - *place;
    *place = (uint8_t)out;
}

static float number_of(const one_register *r)
{
    return (float)(r->ones - r->n / 2) / (r->n == 256 ? 8.0f : 4.0f);
}

static void compare(const one_register *r, int lane)
{
    for (int i = 0; i < r->n; i++)
        assert_int_equal(bit_of(state, i, lane), r->bit[i]);
}

static sti_lfsr_taps taps_of(int kind, int other)
{
    sti_lfsr_taps taps;
    assert_int_equal(
        sti_lfsr_taps_parse(taps_texts[kind][other], keys[kind].generator, &taps),
        STINT_OK);
    return taps;
}

/* `refreshes` forward and back of one register beside all of ours. */
static void walk(int kind, int other, int lane, int refreshes)
{
    float eps[STI_LFSR_LANES];
    const sti_lfsr_taps taps = taps_of(kind, other);
    sti_lfsr_seed(&keys[kind], state);
    memcpy(first, state, sizeof first);
    one_register r = register_of(&taps, lane);
    for (int i = 0; i < refreshes; i++) {
        sti_lfsr_next(&taps, state, eps);
        for (int t = 0; t < r.n; t++)
            shift(&r);
        assert_true(eps[lane] == number_of(&r));
    }
    compare(&r, lane);
    assert_false(sti_lfsr_is_seed(&keys[kind], state));
    for (int i = 0; i < refreshes; i++) {
        sti_lfsr_back(&taps, state, eps);
        assert_true(eps[lane] == number_of(&r));
        for (int t = 0; t < r.n; t++)
            shift_back(&r);
    }
    compare(&r, lane);
    assert_memory_equal(state, first, sizeof first);
    assert_true(sti_lfsr_is_seed(&keys[kind], state));
}

static void beside_one_register(void **unused)
{
    (void)unused;
    const sti_isa best = sti_isa_now();
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        for (int kind = 0; kind < 2; kind++)
            for (int other = 0; other < 2; other++) {
                walk(kind, other, 0, 20);
                walk(kind, other, 200 + 311 * kind, 20);
            }
    }
    sti_isa_force(best);
}

static void a_million_refreshes_and_back(void **unused)
{
    (void)unused;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    walk(0, 0, 77, 50000);
#else
    walk(0, 0, 77, 1000000);
#endif
}

/* ---- all registers, all instruction sets ---- */

static void every_instruction_set(void **unused)
{
    (void)unused;
    static float want[2][STI_LFSR_LANES], got[STI_LFSR_LANES];
    const sti_isa best = sti_isa_now();
    for (int kind = 0; kind < 2; kind++)
        for (int isa = 0; isa <= (int)best; isa++) {
            const sti_lfsr_taps taps = taps_of(kind, 0);
            sti_isa_force((sti_isa)isa);
            sti_lfsr_seed(&keys[kind], state);
            for (int i = 0; i < 9; i++)
                sti_lfsr_next(&taps, state, got);
            memcpy(isa == 0 ? want[0] : got, got, sizeof got);
            assert_memory_equal(got, want[0], sizeof got);
            sti_lfsr_back(&taps, state, got);
            assert_memory_equal(got, want[0], sizeof got);
            sti_lfsr_back(&taps, state, got);
            memcpy(isa == 0 ? want[1] : got, got, sizeof got);
            assert_memory_equal(got, want[1], sizeof got);
        }
    sti_isa_force(best);
}

/* A register of ones alone: its count, 256, is no byte. */
static void a_register_full_of_ones(void **unused)
{
    (void)unused;
    float eps[STI_LFSR_LANES];
    const sti_isa best = sti_isa_now();
    for (int isa = 0; isa <= (int)best; isa++)
        for (int kind = 0; kind < 2; kind++) {
            const sti_lfsr_taps taps = taps_of(kind, 0);
            sti_isa_force((sti_isa)isa);
            sti_lfsr_seed(&keys[kind], state);
            for (int i = 0; i < sti_lfsr_bits(taps.generator); i++)
                state[64 * i + 9] |= 0x20;
            sti_lfsr_back(&taps, state, eps);
            assert_true(eps[8 * 9 + 5] == (kind == 0 ? 16.0f : 8.0f));
        }
    sti_isa_force(best);
}

static void seeds(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 2; kind++) {
        sti_normal_key key[5];
        for (int i = 0; i < 5; i++)
            key[i] = keys[kind];
        key[1].seed++, key[2].step++, key[3].micro++, key[4].sample++;
        for (int i = 0; i < 5; i++) {
            sti_lfsr_seed(key + i, state);
            for (int j = 0; j < 5; j++)
                assert_int_equal(sti_lfsr_is_seed(key + j, state), i == j);
        }
        key[0].layer++; /* (the state goes through all of them) */
        sti_lfsr_seed(key, state);
        assert_true(sti_lfsr_is_seed(&keys[kind], state));
        state[64] ^= 1;
        assert_false(sti_lfsr_is_seed(&keys[kind], state));
    }
}

/* ---- taps ---- */

static void primitive_taps(void **unused)
{
    (void)unused;
    static const char *const good[] = {"256,10,5,2",     "256,254,251,246",
                                       "256,162,127,91", "256,170,123,77",
                                       "256,169,119,71", "256,137,115,75"};
    static const char *const bad[] = {"256,248,246,241",
                                      "256,255,254,250",
                                      "256,4,3,1",
                                      "256,5,10,2",
                                      "256,10,5",
                                      "256,10,5,2,1",
                                      "255,10,5,2",
                                      "64,4,3,1",
                                      "256,10,5,0",
                                      "256,256,5,2",
                                      "256,10,10,2",
                                      "256, 10,5,2",
                                      "256,10,5,2 ",
                                      "-256,10,5,2",
                                      "taps",
                                      "256,99999999999999999999,5,2"};
    sti_lfsr_taps taps;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(sti_lfsr_taps_parse(good[i], STI_NORMAL_LFSR256, &taps),
                         STINT_OK);
    assert_int_equal(taps.a * 10000 + taps.b * 100 + taps.c, 137 * 10000 + 11500 + 75);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sti_lfsr_taps_parse(bad[i], STI_NORMAL_LFSR256, &taps),
                         STINT_E_USAGE);
    assert_int_equal(sti_lfsr_taps_parse("64,4,3,1", STI_NORMAL_LFSR64, &taps),
                     STINT_OK);
    assert_int_equal(sti_lfsr_taps_parse("64,63,61,60", STI_NORMAL_LFSR64, &taps),
                     STINT_OK);
    assert_int_equal(sti_lfsr_taps_parse("64,5,3,1", STI_NORMAL_LFSR64, &taps),
                     STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "not primitive"));
    for (int kind = 0; kind < 2; kind++) { /* the default is one */
        char text[64];
        taps = taps_of(kind, 0);
        snprintf(text, sizeof text, "%d,%d,%d,%d", sti_lfsr_bits(taps.generator),
                 taps.a, taps.b, taps.c);
        assert_int_equal(sti_lfsr_taps_parse(text, taps.generator, &taps), STINT_OK);
    }
}

/* ---- the distribution ---- */

/* Chi-square of counts against the binomial distribution, in cells of 10 and more. */
static void counts_are_binomial(void **unused)
{
    (void)unused;
    enum { REFRESHES = 4000 };
    for (int kind = 0; kind < 2; kind++) {
        const sti_lfsr_taps taps = taps_of(kind, 0);
        const int n = sti_lfsr_bits(taps.generator);
        const double step = n == 256 ? 8 : 4;
        int64_t seen[257] = {0};
        float eps[STI_LFSR_LANES];
        sti_lfsr_seed(&keys[kind], state);
        for (int i = 0; i < REFRESHES; i++) {
            sti_lfsr_next(&taps, state, eps);
            for (int lane = 0; lane < STI_LFSR_LANES; lane++)
                seen[(int)((double)eps[lane] * step) + n / 2]++;
        }
        double chi = 0, cells = 0;
        for (int k = 0; k <= n; k++) {
            const double p =
                exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
            const double want = p * REFRESHES * STI_LFSR_LANES;
            if (want < 10)
                continue;
            chi += ((double)seen[k] - want) * ((double)seen[k] - want) / want;
            cells++;
        }
        assert_true(cells > 30);
        assert_true(fabs(chi - cells) < 4 * sqrt(2 * cells));
    }
}

/* Largest correlation over lags 1 to 10,000. */
static double largest_correlation(const int8_t *x, int n)
{
    double most = 0, squares = 0;
    for (int i = 0; i < n; i++)
        squares += x[i] * x[i];
    for (int lag = 1; lag <= 10000; lag++) {
        int64_t sum = 0;
        for (int i = 0; i + lag < n; i++)
            sum += x[i] * x[i + lag];
        most = fmax(most, fabs((double)sum) / squares);
    }
    return most;
}

enum { LAGS_N = 1 << 15 };

/* Numbers in the order they come in, and those of one register alone; then what one
 * fresh bit a number would be: its neighbours have a correlation of 255 / 256. */
static void no_memory(void **unused)
{
    (void)unused;
    static int8_t all[LAGS_N], one[LAGS_N], sliding[LAGS_N];
    float eps[STI_LFSR_LANES];
    const sti_lfsr_taps taps = taps_of(0, 0);
    sti_lfsr_seed(&keys[0], state);
    one_register r = register_of(&taps, 5);
    for (int i = 0; i < LAGS_N; i++) {
        sti_lfsr_next(&taps, state, eps);
        one[i] = (int8_t)(eps[300] * 8);
        for (int lane = 0; lane < STI_LFSR_LANES && i < LAGS_N / STI_LFSR_LANES; lane++)
            all[i * STI_LFSR_LANES + lane] = (int8_t)(eps[lane] * 8);
        shift(&r);
        sliding[i] = (int8_t)(r.ones - 128);
    }
    assert_true(largest_correlation(all, LAGS_N) < 5 / sqrt(LAGS_N - 10000));
    assert_true(largest_correlation(one, LAGS_N) < 5 / sqrt(LAGS_N - 10000));
    assert_true(largest_correlation(sliding, LAGS_N) > 0.98);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_one_register),
        cmocka_unit_test(a_million_refreshes_and_back),
        cmocka_unit_test(every_instruction_set),
        cmocka_unit_test(a_register_full_of_ones),
        cmocka_unit_test(seeds),
        cmocka_unit_test(primitive_taps),
        cmocka_unit_test(counts_are_binomial),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
