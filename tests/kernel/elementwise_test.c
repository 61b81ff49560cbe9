/* Element-wise kernels against plain loops, bit for bit, on every instruction set, for
 * sizes about the vector and piece lengths, in place and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "kernel/elementwise/elementwise.h"
#include "kernel/maths/maths.h"

static const int64_t sizes[] = {0, 1, 7, 8, 9, 16, 31, 64, 65, 1000, 16384, 40001};
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

static const sti_team team = {.threads = 3};

static float *random_floats(int64_t n, uint64_t seed)
{
    float *x = malloc((size_t)n * sizeof *x + 64);
    uint32_t w[4];
    for (int64_t i = 0; i < n; i++) {
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 0, w);
        x[i] = (sti_uniform(w[0]) - 0.5f) * 4.0f;
        if (w[1] % 50 == 0)
            x[i] = w[1] % 3 == 0 ? 0.0f : w[1] % 3 == 1 ? -0.0f : NAN;
    }
    return x;
}

static bool same(const float *a, const float *b, int64_t n)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void for_every_isa(void (*test)(int64_t n))
{
    sti_isa best = sti_isa_now();
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        for (int s = 0; s < SIZES; s++)
            test(sizes[s]);
    }
    sti_isa_force(best);
}

#define PARAMETER 1.75f

/* One value of every unary kernel; a kind that is missing here is a warning of the
 * compiler and a failure of the test. */
static float apply_unary(sti_unary kind, float x)
{
    switch (kind) {
    case STI_UNARY_COPY:
        return x;
    case STI_UNARY_NEG:
        return -x;
    case STI_UNARY_SCALE:
        return PARAMETER * x;
    case STI_UNARY_ADD_SCALAR:
        return x + PARAMETER;
    case STI_UNARY_SQUARE:
        return x * x;
    case STI_UNARY_SQRT:
        return sqrtf(x);
    case STI_UNARY_RECIPROCAL:
        return 1.0f / x;
    case STI_UNARY_EXP:
        return sti_exp_f32(x);
    case STI_UNARY_LOG:
        return sti_log_f32(x);
    case STI_UNARY_SIN:
        return sti_sin_f32(x);
    case STI_UNARY_COS:
        return sti_cos_f32(x);
    case STI_UNARY_TANH:
        return sti_tanh_f32(x);
    case STI_UNARY_SIGMOID:
        return sti_sigmoid_f32(x);
    case STI_UNARY_SILU:
        return sti_silu_f32(x);
    case STI_UNARY_GELU:
        return sti_gelu_f32(x);
    case STI_UNARY_SOFTPLUS:
        return sti_softplus_f32(x);
    case STI_UNARY_SIGN:
        return x >= 0 ? 1.0f : x < 0 ? -1.0f : x;
    case STI_UNARY_ABS:
        return x < 0 ? -x : x == 0 ? 0.0f : x;
    case STI_UNARY_FLOOR:
        return floorf(x);
    case STI_UNARY_CEIL:
        return ceilf(x);
    case STI_UNARY_ROUND:
        return nearbyintf(x);
    case STI_UNARY_ERF:
        return sti_erf_f32(x);
    case STI_UNARY_COUNT:
        break;
    }
    fail_msg("unary kernel %d has no case here", (int)kind);
    return NAN;
}

static float apply(sti_binary kind, float a, float b)
{
    switch (kind) {
    case STI_BINARY_ADD:
        return a + b;
    case STI_BINARY_SUB:
        return a - b;
    case STI_BINARY_MUL:
        return a * b;
    case STI_BINARY_DIV:
        return a / b;
    case STI_BINARY_EQUAL:
        return a == b ? 1.0f : 0.0f;
    case STI_BINARY_SILU_GRAD:
        return a * sti_silu_grad_f32(b);
    case STI_BINARY_GELU_GRAD:
        return a * sti_gelu_grad_f32(b);
    case STI_BINARY_MAXIMUM:
        return a != a ? a : b != b ? b : a > b ? a : b;
    case STI_BINARY_MINIMUM:
        return a != a ? a : b != b ? b : a < b ? a : b;
    case STI_BINARY_LESS:
        return a < b ? 1.0f : 0.0f;
    case STI_BINARY_LESS_EQUAL:
        return a <= b ? 1.0f : 0.0f;
    case STI_BINARY_POWER:
        return sti_power_f32(a, b);
    case STI_BINARY_COUNT:
        break;
    }
    fail_msg("binary kernel %d has no case here", (int)kind);
    return NAN;
}

static bool alike(float a, float b)
{
    return a == b || (a != a && b != b);
}

static void unary_of_size(int64_t n)
{
    float *x = random_floats(n, 7), *y = random_floats(n, 8);
    for (int kind = 0; kind < STI_UNARY_COUNT; kind++) {
        sti_unary_f32(&team, (sti_unary)kind, n, PARAMETER, x, y);
        for (int64_t i = 0; i < n; i++)
            if (!alike(y[i], apply_unary((sti_unary)kind, x[i])))
                fail_msg("unary kernel %d of %a: %a, wanted %a", kind, (double)x[i],
                         (double)y[i], (double)apply_unary((sti_unary)kind, x[i]));
        float *again = malloc((size_t)n * sizeof *again + 1);
        memcpy(again, x, (size_t)n * sizeof *x);
        sti_unary_f32(&team, (sti_unary)kind, n, PARAMETER, again, again);
        for (int64_t i = 0; i < n; i++)
            assert_true(alike(y[i], again[i]));
        free(again);
    }
    free(x);
    free(y);
}

static void unary_functions(void **state)
{
    (void)state;
    for_every_isa(unary_of_size);
}

static void binary_of_size(int64_t n)
{
    float *a = random_floats(n, 1), *b = random_floats(n, 2), *z = random_floats(n, 3);
    for (int kind = 0; kind < STI_BINARY_COUNT; kind++) {
        sti_binary_f32(&team, (sti_binary)kind, n, a, b, z);
        for (int64_t i = 0; i < n; i++)
            assert_true(alike(z[i], apply((sti_binary)kind, a[i], b[i])));
        float *again = malloc((size_t)n * sizeof *again + 1);
        memcpy(again, a, (size_t)n * sizeof *a);
        sti_binary_f32(&team, (sti_binary)kind, n, again, b, again);
        for (int64_t i = 0; i < n; i++)
            assert_true(alike(z[i], again[i]));
        free(again);
    }
    free(a);
    free(b);
    free(z);
}

static void binary_functions(void **state)
{
    (void)state;
    for_every_isa(binary_of_size);
}

static void relu_of_size(int64_t n)
{
    float *x = random_floats(n, 4), *y = random_floats(n, 5), *dx = random_floats(n, 6);
    uint8_t *bits = malloc((size_t)sti_bits_bytes(n) + 1);
    for (int slope = 0; slope < 2; slope++) {
        float p = slope ? 0.25f : 0.0f;
        bits[sti_bits_bytes(n)] = 0xa5; /* must stay */
        sti_relu_f32(&team, n, p, x, y, bits);
        sti_relu_grad_f32(&team, n, p, x, bits, dx);
        assert_int_equal(bits[sti_bits_bytes(n)], 0xa5);
        for (int64_t i = 0; i < sti_bits_bytes(n) * 8; i++)
            assert_int_equal(bits[i / 8] >> i % 8 & 1, i < n && x[i] > 0.0f);
        for (int64_t i = 0; i < n; i++) {
            float off = slope ? p * x[i] : 0.0f;
            assert_true(alike(y[i], 0.0f > x[i] ? off : x[i]));
            assert_true(alike(dx[i], x[i] > 0.0f ? x[i] : off));
        }
        float *again = malloc((size_t)n * sizeof *again + 1);
        memcpy(again, x, (size_t)n * sizeof *x);
        sti_relu_f32(&team, n, p, again, again, NULL);
        assert_true(same(again, y, n));
        free(again);
    }
    free(x);
    free(y);
    free(dx);
    free(bits);
}

static void relu_with_sign_bits(void **state)
{
    (void)state;
    for_every_isa(relu_of_size);
}

static void sums_of_size(int64_t n)
{
    float *x = random_floats(n, 7), *y = random_floats(n, 8);
    float *wanted = malloc((size_t)n * sizeof *wanted + 1);
    for (int64_t i = 0; i < n; i++)
        wanted[i] = y[i] + x[i];
    sti_add_f32(&team, n, x, y);
    for (int64_t i = 0; i < n; i++)
        assert_true(alike(y[i], wanted[i]));
    sti_fill_f32(&team, n, 1.5f, y);
    for (int64_t i = 0; i < n; i++)
        assert_true(y[i] == 1.5f);
    free(x);
    free(y);
    free(wanted);
}

static void accumulate_scale_fill(void **state)
{
    (void)state;
    for_every_isa(sums_of_size);
}

/* Random shapes of rank 0..5, each axis of each operand kept or repeated. */
static void broadcasting(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint32_t w[4];
        int64_t dim[8], stride[2][8], run[2] = {1, 1}, n = 1;
        sti_random4(seed, STI_STREAM_TEST, 0, 1, w);
        int rank = (int)(w[0] % 6);
        for (int i = rank - 1; i >= 0; i--) {
            sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 2, w);
            dim[i] = 1 + w[0] % (i == rank - 1 ? 70 : 6);
            n *= dim[i];
            for (int o = 0; o < 2; o++) {
                bool kept = w[1 + o] % 3 != 0 && dim[i] > 1;
                stride[o][i] = kept ? run[o] : 0;
                run[o] *= kept ? dim[i] : 1;
            }
        }
        float *a = random_floats(run[0], seed), *b = random_floats(run[1], seed + 1);
        float *z = malloc((size_t)n * sizeof *z);
        sti_binary_broadcast_f32(&team, STI_BINARY_SUB, rank, dim, stride[0], stride[1],
                                 a, b, z);
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, at[2] = {0, 0};
            for (int k = rank - 1; k >= 0; k--) {
                for (int o = 0; o < 2; o++)
                    at[o] += rest % dim[k] * stride[o][k];
                rest /= dim[k];
            }
            assert_true(alike(z[i], a[at[0]] - b[at[1]]));
        }
        free(a);
        free(b);
        free(z);
    }
}

/* Rank 1 to 4 with strides of 0, 1, 2 and more, of operands that overlap or leave
 * elements out; some axes are longer than a piece of copies. */
static void strides_of_size(uint64_t seed)
{
    enum { ELEMENTS = 1 << 16 };
    uint32_t w[4];
    int64_t dim[4], stride[2][4], reach[2] = {0, 0}, n = 1;
    sti_random4(seed, STI_STREAM_TEST, 0, 3, w);
    const int rank = 1 + (int)(w[0] % 4);
    const sti_binary kind = (sti_binary)(w[1] % STI_BINARY_COUNT);
    for (int i = 0; i < rank; i++) {
        sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 4, w);
        dim[i] = 1 + w[0] % (i == rank - 1 ? w[3] % 4 == 0 ? 20000 / n : 60 : 6);
        n *= dim[i];
        for (int o = 0; o < 2; o++) {
            stride[o][i] = w[1 + o] % 4 == 3 ? 3 + w[1 + o] / 4 % 40 : w[1 + o] % 4;
            if (stride[o][i] > (ELEMENTS / 4 - 1) / dim[i])
                stride[o][i] = 2;
            reach[o] += stride[o][i] * (dim[i] - 1);
        }
    }
    assert_true(reach[0] < ELEMENTS && reach[1] < ELEMENTS);
    float *a = random_floats(reach[0] + 1, seed), *b = random_floats(reach[1] + 1, 1);
    float *z = malloc((size_t)n * sizeof *z);
    sti_binary_broadcast_f32(&team, kind, rank, dim, stride[0], stride[1], a, b, z);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at[2] = {0, 0};
        for (int k = rank - 1; k >= 0; k--) {
            for (int o = 0; o < 2; o++)
                at[o] += rest % dim[k] * stride[o][k];
            rest /= dim[k];
        }
        assert_true(alike(z[i], apply(kind, a[at[0]], b[at[1]])));
    }
    free(a);
    free(b);
    free(z);
}

static void broadcasting_any_strides(void **state)
{
    const sti_isa best = sti_isa_now();
    (void)state;
    for (int isa = 0; isa <= (int)best; isa++) {
        sti_isa_force((sti_isa)isa);
        for (uint64_t seed = 1; seed <= 200; seed++)
            strides_of_size(seed);
    }
    sti_isa_force(best);
}

static void large_broadcasts_and_bias(void **state)
{
    enum { ROWS = 300, C = 130, N = ROWS * C };
    const int64_t dim[2] = {ROWS, C}, full[2] = {C, 1}, row[2] = {0, 1};
    const int64_t column[2] = {1, 0}, none[2] = {0, 0};
    float *x = random_floats(N, 1), *b = random_floats(ROWS, 2);
    float *z = malloc(N * sizeof *z), *y = malloc(N * sizeof *y);
    (void)state;
    sti_binary_broadcast_f32(&team, STI_BINARY_MUL, 2, dim, full, row, x, b, z);
    for (int i = 0; i < N; i++)
        assert_true(alike(z[i], x[i] * b[i % C]));
    sti_binary_broadcast_f32(&team, STI_BINARY_MUL, 2, dim, column, full, b, x, z);
    for (int i = 0; i < N; i++)
        assert_true(alike(z[i], x[i] * b[i / C]));
    sti_binary_broadcast_f32(&team, STI_BINARY_ADD, 2, dim, none, full, b, x, z);
    for (int i = 0; i < N; i++)
        assert_true(alike(z[i], x[i] + b[0]));
    sti_binary_broadcast_f32(&team, STI_BINARY_ADD, 2, dim, none, none, b, x, z);
    for (int i = 0; i < N; i++)
        assert_true(alike(z[i], x[0] + b[0]));
    sti_bias_f32(&team, ROWS, C, x, b, y);
    for (int i = 0; i < N; i++)
        assert_true(alike(y[i], x[i] + b[i % C]));
    free(x);
    free(b);
    free(z);
    free(y);
}

static void strided_copies(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint32_t w[4];
        int64_t dim[6], to[6], from[6], n = 1;
        int order[6], rank;
        sti_random4(seed, STI_STREAM_TEST, 5, 5, w);
        rank = 1 + (int)(w[0] % 5);
        for (int i = 0; i < rank; i++) {
            sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 6, w);
            dim[i] = 1 + w[0] % (rank < 3 ? 60 : 9);
            n *= dim[i];
            order[i] = i;
        }
        for (int i = rank - 1; i > 0; i--) {
            sti_random4(seed, STI_STREAM_TEST, (uint64_t)i, 7, w);
            int j = (int)(w[0] % (uint32_t)(i + 1)), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        int64_t run = 1; /* src is laid out in the shuffled order of axes */
        for (int i = rank - 1; i >= 0; i--) {
            from[order[i]] = run;
            run *= dim[order[i]];
        }
        run = 2; /* dst with gaps */
        for (int i = rank - 1; i >= 0; i--) {
            to[i] = run;
            run *= dim[i];
        }
        float *src = random_floats(n, seed), *dst = calloc((size_t)run, sizeof *dst);
        sti_copy_strided_32(&team, rank, dim, from, to, src, dst);
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, a = 0, b = 0;
            for (int k = rank - 1; k >= 0; k--) {
                a += rest % dim[k] * from[k];
                b += rest % dim[k] * to[k];
                rest /= dim[k];
            }
            assert_memory_equal(&src[a], &dst[b], sizeof *src);
            assert_true(dst[b + 1] == 0.0f);
        }
        free(src);
        free(dst);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_functions),
        cmocka_unit_test(binary_functions),
        cmocka_unit_test(relu_with_sign_bits),
        cmocka_unit_test(accumulate_scale_fill),
        cmocka_unit_test(broadcasting),
        cmocka_unit_test(broadcasting_any_strides),
        cmocka_unit_test(large_broadcasts_and_bias),
        cmocka_unit_test(strided_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
