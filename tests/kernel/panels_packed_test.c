/* Matrices in blocks of 16, 8 and 4 bits: rounded as the formats round, packed alike by
 * rows and by columns, and products within rounding of a loop in double precision, with
 * one set of bits for any number of rows, threads and instruction set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/gemm/panels_packed.h"

typedef struct packed_case {
    int64_t m, k, n;
} packed_case;

static const packed_case cases[] = {{1, 1, 1},    {1, 32, 64},  {3, 33, 65},
                                    {4, 95, 130}, {9, 256, 64}, {6, 100, 17},
                                    {1, 4128, 70}};
enum { CASES = sizeof cases / sizeof *cases };

static float *numbers(int64_t count, uint32_t state, float size)
{
    float *x = sti_alloc_array(count + 1, sizeof *x, "test");
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = size * ((float)(state >> 8) / 8388608.0f - 1.0f);
    }
    return x;
}

static sti_packed_panels make(int64_t k, int64_t n, int bits)
{
    sti_packed_panels w = {.k = k, .n = n, .bits = bits};
    w.data = sti_alloc(sti_packed_panels_bytes(k, n, bits), "test");
    assert_non_null(w.data);
    return w;
}

/* Every weight within half a step of its block, and half a unit of the scale's rounding
 * for each of its steps; the largest of a block is held by 127, or by -8. */
static void check_rounding(const sti_packed_panels *w, const float *m)
{
    float *column = sti_alloc_array(w->k, sizeof *column, "test");
    const double steps = w->bits == 8 ? 127 : 8;
    const double half_a_unit = 0x1p-8; /* of bfloat16, at most, of a number of 1 */
    for (int64_t j = 0; j < w->n; j++) {
        sti_packed_column(w, j, column);
        for (int64_t i = 0; i < w->k; i++) {
            double most = 0;
            for (int64_t o = i / 32 * 32; o < w->k && o < i / 32 * 32 + 32; o++)
                most = fmax(most, fabs((double)m[o * w->n + j]));
            /* 4 bits reach to 7 of a step upwards only */
            const double size = fabs((double)m[i * w->n + j]);
            const double bound =
                w->bits == 16
                    ? size * half_a_unit
                    : most / steps * ((w->bits == 8 ? 0.5 : 1.0) + steps * 0x1p-11) +
                          1e-7;
            assert_true(fabs((double)column[i] - (double)m[i * w->n + j]) <= bound);
        }
    }
    sti_free(column);
}

static void expect(const sti_packed_panels *w, const packed_case *c, const float *x,
                   const float *bias, const float *y)
{
    float *column = sti_alloc_array(c->k, sizeof *column, "test");
    for (int64_t j = 0; j < c->n; j++) {
        sti_packed_column(w, j, column);
        for (int64_t r = 0; r < c->m; r++) {
            double sum = (double)bias[j], size = fabs(sum);
            for (int64_t i = 0; i < c->k; i++) {
                sum += (double)x[r * (c->k + 3) + i] * (double)column[i];
                size += fabs((double)x[r * (c->k + 3) + i] * (double)column[i]);
            }
            assert_true(fabs((double)y[r * (c->n + 2) + j] - sum) <=
                        1e-5 * size + 1e-9);
        }
    }
    sti_free(column);
}

static void check_case(const packed_case *c, int bits)
{
    float *m = numbers(c->k * c->n, 3, 0.7f), *turned = numbers(c->k * c->n, 1, 1);
    float *x = numbers(c->m * (c->k + 3), 5, 1), *bias = numbers(c->n, 9, 1);
    const int64_t count = c->m * (c->n + 2);
    float *first = numbers(count, 0, 0), *y = numbers(count, 0, 0);
    sti_packed_panels w = make(c->k, c->n, bits), by_columns = make(c->k, c->n, bits);
    for (int64_t i = 0; i < c->k; i++)
        for (int64_t j = 0; j < c->n; j++)
            turned[j * c->k + i] = m[i * c->n + j];
    for (int64_t i = 0; i < c->k; i += 64)
        sti_packed_pack_rows(&w, i, c->k - i < 64 ? c->k - i : 64, m + i * c->n);
    for (int64_t j = 0; j < c->n; j += 64)
        sti_packed_pack_columns(&by_columns, j, c->n - j < 64 ? c->n - j : 64,
                                turned + j * c->k);
    assert_memory_equal(w.data, by_columns.data,
                        sti_packed_panels_bytes(c->k, c->n, bits));
    check_rounding(&w, m);
    for (int isa = STI_ISA_REF; isa < STI_ISA_COUNT; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int threads = 1; threads <= 3; threads++) {
            const sti_team team = {threads};
            sti_packed_product_f32(&team, &w, c->m, x, c->k + 3, bias, y, c->n + 2);
            if (isa == STI_ISA_REF && threads == 1)
                memcpy(first, y, (size_t)count * sizeof *y);
            assert_memory_equal(first, y, (size_t)count * sizeof *y);
        }
        for (int64_t r = 0; r < c->m; r++) /* a row at a time */
            sti_packed_product_f32(&sti_team_serial, &w, 1, x + r * (c->k + 3),
                                   c->k + 3, bias, y + r * (c->n + 2), c->n + 2);
        assert_memory_equal(first, y, (size_t)count * sizeof *y);
    }
    expect(&w, c, x, bias, first);
    float *const all[] = {m, turned, x, bias, first, y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sti_free(all[i]);
    sti_free(w.data);
    sti_free(by_columns.data);
}

static void test_products(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++)
        for (int bits = 4; bits <= 16; bits *= 2)
            check_case(&cases[i], bits);
}

/* What came from such blocks has its values again. */
static void test_again(void **state)
{
    enum { K = 64, N = 70 };
    (void)state;
    for (int bits = 4; bits <= 16; bits *= 2) {
        float *m = numbers(K * N, 7, 2), *column = numbers(K, 0, 0);
        sti_packed_panels w = make(K, N, bits);
        sti_packed_pack_rows(&w, 0, K, m);
        for (int64_t j = 0; j < N; j++) {
            sti_packed_column(&w, j, column);
            for (int64_t i = 0; i < K; i++)
                m[i * N + j] = column[i];
        }
        sti_packed_pack_rows(&w, 0, K, m);
        for (int64_t j = 0; j < N; j++) {
            sti_packed_column(&w, j, column);
            for (int64_t i = 0; i < K; i++)
                assert_true(m[i * N + j] == column[i]);
        }
        sti_free(m);
        sti_free(column);
        sti_free(w.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products),
                                       cmocka_unit_test(test_again)};
    return cmocka_run_group_tests_name("panels_packed", tests, NULL, NULL);
}
