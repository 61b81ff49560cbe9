/* Products by FFT against the schoolbook's, exactly, and the same bits for every
 * instruction set; the torus loops against their definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/fft/negacyclic.h"
#include "kernel/ntt_product.h"
#include "kernel/torus/torus.h"

static uint32_t word_of(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    sti_random4(seed, STI_STREAM_TEST, i, 0, word);
    return word[0];
}

/* sum += d g modulo X^n + 1 and 2^32, of lane `lane` of d. */
static void schoolbook(int64_t n, const int32_t *d, int lane, const uint32_t *g,
                       uint32_t *sum)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const uint32_t term = (uint32_t)d[8 * i + lane] * g[j];
            if (i + j < n)
                sum[i + j] += term;
            else
                sum[i + j - n] -= term;
        }
}

typedef struct problem {
    int64_t n;
    int rows, cols;
    int32_t *d;  /* [rows][n][8] */
    uint32_t *g; /* [rows][cols][n] */
} problem;

/* kind 0: random; 1: the largest digits and words, all alike; 2: the same, signs mixed;
 * 3: the largest digits and random words; 4: the other way round. */
static problem make(int64_t n, int rows, int cols, int kind)
{
    problem p = {n, rows, cols, NULL, NULL};
    p.d = sti_alloc((size_t)(rows * n * 8) * 4, "test");
    p.g = sti_alloc((size_t)(rows * cols * n) * 4, "test");
    for (int64_t i = 0; i < rows * n * 8; i++) {
        const uint32_t word = word_of(1, (uint64_t)i);
        p.d[i] = kind == 0 || kind == 4   ? (int32_t)(word >> 23) - 256
                 : kind == 1 || kind == 3 ? -256
                                          : (word & 1 ? -256 : 255);
    }
    for (int64_t i = 0; i < rows * cols * n; i++) {
        const uint32_t word = word_of(2, (uint64_t)i);
        p.g[i] = kind == 0 || kind == 3   ? word
                 : kind == 1 || kind == 4 ? 0x80000000u
                                          : 0x7FFFFFFFu + (word & 1);
    }
    return p;
}

/* acc [cols][n][8] by FFT. */
static void by_fft(const problem *p, uint32_t *acc)
{
    const int64_t n = p->n, m = n / 2;
    const int rows = p->rows, cols = p->cols;
    double *factors = sti_alloc(sti_negacyclic_factors(n) * 8, "test");
    double *d = sti_alloc((size_t)(rows * m * 16) * 8, "test");
    double *g = sti_alloc((size_t)(m * rows * cols * 2 + 16) * 8, "test");
    double *out = sti_alloc((size_t)(cols * m * 16) * 8, "test");
    double *z = sti_alloc((size_t)(3 * m * 8) * 8, "test");
    uint32_t *eight = sti_alloc((size_t)(8 * n) * 4, "test");
    double *spectrum = sti_alloc((size_t)(8 * 2 * m) * 8, "test");
    sti_negacyclic_fill(n, factors);
    for (int r = 0; r < rows; r++)
        sti_negacyclic_forward(n, factors, p->d + r * n * 8, d + r * m * 16);
    for (int rc = 0; rc < rows * cols; rc += 8) {
        const int count = rows * cols - rc < 8 ? rows * cols - rc : 8;
        memcpy(eight, p->g + rc * n, (size_t)(count * n) * 4);
        sti_negacyclic_spectrum(n, factors, eight, z, 2 * m, 2, spectrum);
        for (int e = 0; e < count; e++)
            for (int64_t f = 0; f < m; f++)
                memcpy(g + 2 * (f * rows * cols + rc + e), spectrum + e * 2 * m + 2 * f,
                       16);
    }
    sti_negacyclic_product(m, rows, cols, d, g, out);
    for (int c = 0; c < cols; c++)
        sti_negacyclic_inverse_add(n, factors, out + c * m * 16, acc + c * n * 8);
    sti_free(factors);
    sti_free(d);
    sti_free(g);
    sti_free(out);
    sti_free(z);
    sti_free(eight);
    sti_free(spectrum);
}

static void check(int64_t n, int rows, int cols, int kind)
{
    problem p = make(n, rows, cols, kind);
    const size_t bytes = (size_t)(cols * n * 8) * 4;
    uint32_t *acc = sti_alloc(bytes, "test"), *want = sti_alloc((size_t)n * 4, "test");
    by_fft(&p, acc);
    for (int c = 0; c < cols; c++)
        for (int lane = 0; lane < 8; lane += 7) {
            memset(want, 0, (size_t)n * 4);
            for (int r = 0; r < rows; r++)
                schoolbook(n, p.d + r * n * 8, lane, p.g + (r * cols + c) * n, want);
            for (int64_t i = 0; i < n; i++)
                if (want[i] != acc[8 * (c * n + i) + lane])
                    fail_msg("n %d, kind %d, column %d, lane %d, coefficient %d: %u, "
                             "wanted %u",
                             (int)n, kind, c, lane, (int)i, acc[8 * (c * n + i) + lane],
                             want[i]);
        }
    sti_free(p.d);
    sti_free(p.g);
    sti_free(acc);
    sti_free(want);
}

static void products_are_exact(void **state)
{
    (void)state;
    for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int kind = 0; kind < 5; kind++) {
            check(8, 2, 1, kind);
            check(16, 3, 2, kind);
            check(32, 3, 5, kind);
            check(256, 4, 6, kind);
            /* 2 rows of 512 coefficients of the largest sizes sum to 2^49. */
            check(512, kind == 1 || kind == 2 ? 2 : 8, 4, kind);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
}

/* All lanes of sums as the parameter sets have them against an exact transform: 10^5
 * coefficients and more. */
static void products_agree_with_a_number_transform(void **state)
{
    static const struct {
        int n, rows, cols;
    } shapes[] = {{512, 8, 4}, {256, 12, 6}, {1024, 4, 2}};
    int64_t count = 0;
    (void)state;
    for (int s = 0; s < 9; s++) {
        const int64_t n = shapes[s % 3].n;
        const int rows = shapes[s % 3].rows, cols = shapes[s % 3].cols;
        /* Worst cases of few rows: the largest sums are 2^50. */
        problem p = make(n, rows, cols, s < 3 ? 0 : s < 6 ? 3 : 4);
        uint32_t *acc = sti_alloc((size_t)(cols * n * 8) * 4, "test");
        uint32_t *want = sti_alloc((size_t)n * 4, "test");
        by_fft(&p, acc);
        for (int c = 0; c < cols; c++)
            for (int lane = 0; lane < 8; lane++, count += n) {
                ntt_product(n, rows, p.d + lane, 8, p.g + c * n, cols * n, want);
                for (int64_t i = 0; i < n; i++)
                    if (want[i] != acc[8 * (c * n + i) + lane])
                        fail_msg("shape %d, column %d, lane %d, coefficient %d", s, c,
                                 lane, (int)i);
            }
        sti_free(p.d);
        sti_free(p.g);
        sti_free(acc);
        sti_free(want);
    }
    assert_true(count >= 100000);
}

/* A row's polynomial in each lane gives the bits that a lane of eight gives. */
static void one_by_one_gives_the_same_bits(void **state)
{
    static const struct {
        int m, levels, cols;
    } shapes[] = {{16, 2, 2}, {64, 3, 2}, {32, 2, 4},
                  {16, 3, 4}, {32, 2, 6}, {8, 1, 8}};
    (void)state;
    for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            const int m = shapes[s].m, levels = shapes[s].levels, cols = shapes[s].cols;
            const int rows = levels * cols;
            const int groups = sti_negacyclic_group(cols, levels - 1) + 1;
            double *d = sti_alloc((size_t)(rows * m * 16) * 8, "test");
            double *one = sti_alloc((size_t)(groups * m * 16) * 8, "test");
            double *g = sti_alloc((size_t)(m * rows * cols * 2) * 8, "test");
            double *out = sti_alloc((size_t)(cols * m * 16) * 8, "test");
            double *out_one = sti_alloc((size_t)(m * 16) * 8, "test");
            for (int64_t i = 0; i < rows * m * 16; i++)
                d[i] = (double)(int32_t)word_of(20, (uint64_t)i) * 0x1.3p-9;
            for (int64_t i = 0; i < m * rows * cols * 2; i++)
                g[i] = (double)(int32_t)word_of(21, (uint64_t)i) * 0x1.7p-3;
            for (int r = 0; r < rows; r++)
                for (int f = 0; f < 2 * m; f++) {
                    const int c = r / levels, l = r % levels;
                    one[(sti_negacyclic_group(cols, l) * 2 * m + f) * 8 +
                        sti_negacyclic_lane(cols, l) + c] = d[(r * 2 * m + f) * 8 + 5];
                }
            sti_negacyclic_product(m, rows, cols, d, g, out);
            sti_negacyclic_product_one(m, levels, cols, one, g, out_one);
            for (int f = 0; f < 2 * m; f++)
                for (int c = 0; c < 8; c++) {
                    const double want = c < cols ? out[(c * 2 * m + f) * 8 + 5] : 0;
                    assert_memory_equal(&out_one[8 * f + c], &want, sizeof want);
                }
            sti_free(d);
            sti_free(one);
            sti_free(g);
            sti_free(out);
            sti_free(out_one);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
}

static void digits_of_one_are_those_of_a_lane(void **state)
{
    enum { N = 32, LEVELS = 2, BITS = 9, COLS = 6 };
    _Alignas(64) uint32_t x[8 * N] = {0};
    uint32_t apart[8 * N];
    int32_t one[2 * 8 * N + 8] = {0}, by[8], digit[LEVELS * 8 * N];
    (void)state;
    for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int turn = 0; turn < 2 * N; turn += 7) {
            for (int i = 0; i < 8 * N; i++)
                x[i] = i % 8 < COLS ? word_of(22, (uint64_t)i) : 0;
            for (int g = 0; g < 8; g++)
                by[g] = turn;
            memcpy(apart, x, sizeof x);
            sti_torus_rotate_digits(N, LEVELS, BITS, apart, by, digit);
            sti_torus_rotate_digits_one(N, LEVELS, BITS, COLS, x, turn, one);
            for (int l = 0; l < LEVELS; l++)
                for (int i = 0; i < 8 * N; i++)
                    assert_int_equal(one[8 * N * l + i], digit[8 * N * l + i]);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
}

static void binary_products_are_exact(void **state)
{
    enum { N = 64 };
    uint32_t a[N], mask[N], twice[2 * N], sum[N] = {0}, want[N] = {0};
    int32_t bit[8 * N] = {0};
    (void)state;
    for (int i = 0; i < N; i++) {
        a[i] = word_of(5, (uint64_t)i);
        mask[i] = 0 - (word_of(6, (uint64_t)i) & 1);
        bit[8 * i] = (int32_t)(mask[i] & 1);
    }
    sti_negacyclic_binary_add(N, a, mask, twice, sum);
    schoolbook(N, bit, 0, a, want);
    assert_memory_equal(sum, want, sizeof sum);
}

static void digits_are_near(void **state)
{
    enum { N = 32, LEVELS = 3, BITS = 7 };
    uint32_t x[8 * N];
    int32_t by[8], digit[LEVELS * 8 * N];
    (void)state;
    for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int i = 0; i < 8 * N; i++)
            x[i] = word_of(7, (uint64_t)i);
        for (int g = 0; g < 8; g++)
            by[g] = g == 0 ? 0 : (int32_t)(word_of(8, (uint64_t)g) % (2 * N));
        sti_torus_rotate_digits(N, LEVELS, BITS, x, by, digit);
        for (int j = 0; j < N; j++)
            for (int g = 0; g < 8; g++) {
                const int from = ((j - by[g]) % (2 * N) + 2 * N) % (2 * N);
                const uint32_t moved =
                    from < N ? x[8 * from + g] : 0 - x[8 * (from - N) + g];
                uint32_t back = 0;
                for (int i = 0; i < LEVELS; i++) {
                    const int32_t d = digit[8 * (i * N + j) + g];
                    assert_true(d >= -64 && d < 64);
                    back += (uint32_t)d << (32 - (i + 1) * BITS);
                }
                const int32_t error = (int32_t)(moved - x[8 * j + g] - back);
                assert_true(error >= -(1 << 10) && error <= 1 << 10);
            }
    }
    sti_isa_force(STI_ISA_AVX512);
}

static void key_switch_is_its_sum(void **state)
{
    enum { COUNT = 5, LEVELS = 4, BITS = 3, WIDTH = 37 };
    uint32_t a[COUNT * 8], key[COUNT * LEVELS * WIDTH], out[8 * WIDTH];
    (void)state;
    for (int isa = STI_ISA_REF; isa <= STI_ISA_AVX512; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int i = 0; i < COUNT * 8; i++)
            a[i] = word_of(9, (uint64_t)i);
        for (int i = 0; i < COUNT * LEVELS * WIDTH; i++)
            key[i] = word_of(10, (uint64_t)i);
        memset(out, 0, sizeof out);
        sti_torus_key_switch(COUNT, LEVELS, BITS, WIDTH, 8, a, key, out);
        for (int g = 0; g < 8; g++)
            for (int k = 0; k < WIDTH; k++) {
                uint32_t want = 0;
                for (int i = 0; i < COUNT; i++) {
                    /* Nearest multiple of 2^20, then digits from the least on. */
                    int64_t rest = (a[8 * i + g] + UINT64_C(0x80000)) >> 20;
                    for (int j = LEVELS - 1; j >= 0; j--) {
                        int64_t d = ((rest % 8) + 8) % 8;
                        d = d >= 4 ? d - 8 : d;
                        rest = (rest - d) / 8;
                        want -= (uint32_t)d * key[(i * LEVELS + j) * WIDTH + k];
                    }
                }
                assert_int_equal(out[g * WIDTH + k], want);
            }
    }
    sti_isa_force(STI_ISA_AVX512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact),
        cmocka_unit_test(products_agree_with_a_number_transform),
        cmocka_unit_test(one_by_one_gives_the_same_bits),
        cmocka_unit_test(digits_of_one_are_those_of_a_lane),
        cmocka_unit_test(binary_products_are_exact),
        cmocka_unit_test(digits_are_near),
        cmocka_unit_test(key_switch_is_its_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
