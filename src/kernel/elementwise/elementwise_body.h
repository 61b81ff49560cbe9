/* The loops of elementwise_priv.h, included once by the file of each instruction set,
 * which defines TABLE (the name of its table), SIGN_BITS_8 (8 floats to the byte of
 * their bits x > 0) and nothing else. Plain loops: the compiler vectorises them, and
 * every operation is exact by IEEE-754, so the width does not show. An output may be an
 * input, hence the promise that iterations are independent. */
#include <math.h>
#include <string.h>

#include "kernel/elementwise/elementwise_priv.h"
#include "kernel/maths/maths.h"

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define UNARY(name, value)                                                 \
    static void unary_##name(int64_t n, float p, const float *x, float *y) \
    {                                                                      \
        (void)p;                                                           \
        INDEPENDENT                                                        \
        for (int64_t i = 0; i < n; i++)                                    \
            y[i] = (value);                                                \
    }

UNARY(neg, -x[i])
UNARY(scale, p *x[i])
UNARY(add_scalar, x[i] + p)
UNARY(square, x[i] * x[i])
UNARY(sqrt, sqrtf(x[i]))
UNARY(reciprocal, 1.0f / x[i])
UNARY(exp, sti_exp_f32(x[i]))
UNARY(log, sti_log_f32(x[i]))
UNARY(tanh, sti_tanh_f32(x[i]))
UNARY(sigmoid, sti_sigmoid_f32(x[i]))
UNARY(silu, sti_silu_f32(x[i]))
UNARY(gelu, sti_gelu_f32(x[i]))
UNARY(softplus, sti_softplus_f32(x[i]))
UNARY(sign, x[i] != x[i] ? x[i] : x[i] < 0.0f ? -1.0f : 1.0f)
UNARY(abs, fabsf(x[i]))
UNARY(floor, floorf(x[i]))
UNARY(ceil, ceilf(x[i]))
UNARY(round, rintf(x[i]))
UNARY(erf, sti_erf_f32(x[i]))

static void unary_copy(int64_t n, float p, const float *x, float *y)
{
    (void)p;
    if (x != y)
        memcpy(y, x, (size_t)n * sizeof *y);
}

/* Blocks: all of a block by the branch-free form, then the rare far arguments again. */
#define BLOCK 64

static void sine_block(int64_t n, uint64_t shift, const float *x, float *y)
{
    float in[BLOCK], out[BLOCK];
    int far = 0;
    memcpy(in, x, (size_t)n * sizeof *in);
    for (int64_t i = 0; i < n; i++)
        far |= sti_sin_is_far(in[i]);
    for (int64_t i = 0; i < n; i++)
        out[i] = sti_sin_near_f32(in[i], shift);
    if (shift == 0)
        for (int64_t i = 0; i < n; i++)
            out[i] = fabsf(in[i]) < STI_F32_MIN_NORMAL ? sti_f32_with_sign(0.0f, in[i])
                                                       : out[i];
    if (far)
        for (int64_t i = 0; i < n; i++)
            if (sti_sin_is_far(in[i]))
                out[i] = sti_sin_far_f32(in[i], shift);
    memcpy(y, out, (size_t)n * sizeof *out);
}

static void sine_loop(int64_t n, uint64_t shift, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i += BLOCK)
        sine_block(n - i < BLOCK ? n - i : BLOCK, shift, x + i, y + i);
}

static void unary_sin(int64_t n, float p, const float *x, float *y)
{
    (void)p;
    sine_loop(n, 0, x, y);
}

static void unary_cos(int64_t n, float p, const float *x, float *y)
{
    (void)p;
    sine_loop(n, 1, x, y);
}

#define BINARY_LOOP(name, a_value, b_value, value)                                 \
    static void binary_##name(int64_t n, const float *a, const float *b, float *z) \
    {                                                                              \
        INDEPENDENT                                                                \
        for (int64_t i = 0; i < n; i++) {                                          \
            float u = (a_value), v = (b_value);                                    \
            z[i] = (value);                                                        \
        }                                                                          \
    }
#define BINARY(name, value)                   \
    BINARY_LOOP(name##_vv, a[i], b[i], value) \
    BINARY_LOOP(name##_vs, a[i], *b, value)   \
    BINARY_LOOP(name##_sv, *a, b[i], value)
#define BINARY_ROW(name)                                           \
    {                                                              \
        binary_##name##_vv, binary_##name##_vs, binary_##name##_sv \
    }

BINARY(add, u + v)
BINARY(sub, u - v)
BINARY(mul, u *v)
BINARY(div, u / v)
BINARY(equal, u == v ? 1.0f : 0.0f)
BINARY(silu_grad, u *sti_silu_grad_f32(v))
BINARY(gelu_grad, u *sti_gelu_grad_f32(v))
BINARY(maximum, u > v || u != u ? u : v)
BINARY(minimum, u < v || u != u ? u : v)
BINARY(less, u < v ? 1.0f : 0.0f)
BINARY(less_equal, u <= v ? 1.0f : 0.0f)
BINARY(power, sti_power_f32(u, v))

/* n may be any number here: the last byte gets the bits that there are. */
static void relu_loop(int64_t n, float slope, const float *x, float *y, uint8_t *bits)
{
    int64_t whole = n / 8 * 8;
    if (bits) {
        for (int64_t i = 0; i < whole; i += 8)
            bits[i / 8] = (uint8_t)SIGN_BITS_8(x + i);
        if (whole < n) {
            unsigned last = 0;
            for (int64_t i = whole; i < n; i++)
                last |= (unsigned)(x[i] > 0.0f) << (i - whole);
            bits[whole / 8] = (uint8_t)last;
        }
    }
    if (slope == 0.0f) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            y[i] = 0.0f > x[i] ? 0.0f : x[i];
        return;
    }
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.0f > x[i] ? slope * x[i] : x[i];
}

static void relu6_loop(int64_t n, const float *x, float *y, uint8_t *bits)
{
    for (int64_t i = 0; i < n && bits; i += 8) {
        unsigned byte = 0;
        for (int64_t k = i; k < n && k < i + 8; k++)
            byte |= (unsigned)(x[k] > 0.0f && x[k] < 6.0f) << (k - i);
        bits[i / 8] = (uint8_t)byte;
    }
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float low = 0.0f > x[i] ? 0.0f : x[i];
        y[i] = 6.0f < low ? 6.0f : low;
    }
}

static void relu_grad_loop(int64_t n, float slope, const float *dy, const uint8_t *bits,
                           float *dx)
{
    int64_t whole = n / 8 * 8;
    for (int64_t i = 0; i < whole; i += 8)
        RELU_GRAD_8(slope, dy + i, bits[i / 8], dx + i);
    for (int64_t i = whole; i < n; i++) {
        float off = slope == 0.0f ? 0.0f : slope * dy[i];
        dx[i] = bits[i / 8] >> (i % 8) & 1 ? dy[i] : off;
    }
}

const sti_elementwise_table TABLE = {
    .unary =
        {
            [STI_UNARY_COPY] = unary_copy,
            [STI_UNARY_NEG] = unary_neg,
            [STI_UNARY_SCALE] = unary_scale,
            [STI_UNARY_ADD_SCALAR] = unary_add_scalar,
            [STI_UNARY_SQUARE] = unary_square,
            [STI_UNARY_SQRT] = unary_sqrt,
            [STI_UNARY_RECIPROCAL] = unary_reciprocal,
            [STI_UNARY_EXP] = unary_exp,
            [STI_UNARY_LOG] = unary_log,
            [STI_UNARY_SIN] = unary_sin,
            [STI_UNARY_COS] = unary_cos,
            [STI_UNARY_TANH] = unary_tanh,
            [STI_UNARY_SIGMOID] = unary_sigmoid,
            [STI_UNARY_SILU] = unary_silu,
            [STI_UNARY_GELU] = unary_gelu,
            [STI_UNARY_SOFTPLUS] = unary_softplus,
            [STI_UNARY_SIGN] = unary_sign,
            [STI_UNARY_ABS] = unary_abs,
            [STI_UNARY_FLOOR] = unary_floor,
            [STI_UNARY_CEIL] = unary_ceil,
            [STI_UNARY_ROUND] = unary_round,
            [STI_UNARY_ERF] = unary_erf,
        },
    .binary =
        {
            [STI_BINARY_ADD] = BINARY_ROW(add),
            [STI_BINARY_SUB] = BINARY_ROW(sub),
            [STI_BINARY_MUL] = BINARY_ROW(mul),
            [STI_BINARY_DIV] = BINARY_ROW(div),
            [STI_BINARY_EQUAL] = BINARY_ROW(equal),
            [STI_BINARY_SILU_GRAD] = BINARY_ROW(silu_grad),
            [STI_BINARY_GELU_GRAD] = BINARY_ROW(gelu_grad),
            [STI_BINARY_MAXIMUM] = BINARY_ROW(maximum),
            [STI_BINARY_MINIMUM] = BINARY_ROW(minimum),
            [STI_BINARY_LESS] = BINARY_ROW(less),
            [STI_BINARY_LESS_EQUAL] = BINARY_ROW(less_equal),
            [STI_BINARY_POWER] = BINARY_ROW(power),
        },
    .relu = relu_loop,
    .relu6 = relu6_loop,
    .relu_grad = relu_grad_loop,
};
