/* Element-wise kernels: y[i] = f(x[i]), z = a op b with broadcasting, copies between
 * strided layouts, ReLU with its sign bits.
 *
 * Every kernel comes as `ref`, `avx2` and `avx512` from one body and gives the same
 * bits on each; work is cut into fixed pieces of elements (a multiple of 8, so that
 * pieces own whole bytes of bits). All loops run through sti_team_run, hence with
 * FTZ/DAZ set. An output may be the very same array as an input of equal size, but not
 * overlap it otherwise. */
#ifndef STI_KERNEL_ELEMENTWISE_H
#define STI_KERNEL_ELEMENTWISE_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef enum sti_unary {
    STI_UNARY_COPY,
    STI_UNARY_NEG,
    STI_UNARY_SCALE,      /* p x */
    STI_UNARY_ADD_SCALAR, /* x + p */
    STI_UNARY_SQUARE,
    STI_UNARY_SQRT,
    STI_UNARY_RECIPROCAL,
    STI_UNARY_EXP,
    STI_UNARY_LOG,
    STI_UNARY_SIN,
    STI_UNARY_COS,
    STI_UNARY_TANH,
    STI_UNARY_SIGMOID,
    STI_UNARY_SILU,     /* x sigmoid(x) */
    STI_UNARY_GELU,     /* tanh form of Hendrycks and Gimpel */
    STI_UNARY_SOFTPLUS, /* log(1 + e^x) */
    STI_UNARY_SIGN,     /* -1 below 0, else 1; NaN stays */
    STI_UNARY_ABS,
    STI_UNARY_FLOOR,
    STI_UNARY_CEIL,
    STI_UNARY_ROUND, /* halves to even */
    STI_UNARY_ERF,
    STI_UNARY_COUNT
} sti_unary;

typedef enum sti_binary {
    STI_BINARY_ADD,
    STI_BINARY_SUB,
    STI_BINARY_MUL,
    STI_BINARY_DIV,
    STI_BINARY_EQUAL,     /* 1 where a == b, else 0 */
    STI_BINARY_SILU_GRAD, /* a silu'(b) */
    STI_BINARY_GELU_GRAD, /* a gelu'(b) */
    STI_BINARY_MAXIMUM,   /* NaN where either is */
    STI_BINARY_MINIMUM,
    STI_BINARY_LESS, /* 1 where a < b, else 0 */
    STI_BINARY_LESS_EQUAL,
    STI_BINARY_POWER, /* a^b, as C's pow */
    STI_BINARY_COUNT
} sti_binary;

/* Greatest rank that the strided kernels take (one more than tensors have). */
#define STI_STRIDED_RANK 8

/* y[i] = f(x[i]; p), n elements. */
void sti_unary_f32(const sti_team *team, sti_unary kind, int64_t n, float p,
                   const float *x, float *y);

/* z[i] = a[i] op b[i], all of n elements. */
void sti_binary_f32(const sti_team *team, sti_binary kind, int64_t n, const float *a,
                    const float *b, float *z);

/* z [dim] contiguous; a and b are read with the given strides in elements, of any sign,
 * 0 where an axis is broadcast. Axes that run on are merged, so that the same shape, a
 * row [c] over [.., c] and a scalar become plain loops; an innermost stride other than
 * 0 and 1 costs a copy. */
void sti_binary_broadcast_f32(const sti_team *team, sti_binary kind, int rank,
                              const int64_t *dim, const int64_t *a_stride,
                              const int64_t *b_stride, const float *a, const float *b,
                              float *z);

/* z [rows, c] = x [rows, c] + bias [c]; z may be x. */
void sti_bias_f32(const sti_team *team, int64_t rows, int64_t c, const float *x,
                  const float *bias, float *z);

/* y += x: the shard tree. */
void sti_add_f32(const sti_team *team, int64_t n, const float *x, float *y);
void sti_fill_f32(const sti_team *team, int64_t n, float value, float *y);

/* dst (strided) = src (strided), 4-byte elements of any type; the one kernel behind
 * transpose, slice, pad, concat and broadcast. Strides in elements, any sign, 0 in src
 * to repeat; dst must not write an element twice. dst and src are disjoint. */
void sti_copy_strided_32(const sti_team *team, int rank, const int64_t *dim,
                         const int64_t *src_stride, const int64_t *dst_stride,
                         const void *src, void *dst);

/* ReLU with slope (0 for the plain one): y = 0 > x ? slope * x : x, as in the epilogue
 * of gemm.h, so NaN and -0 pass. bits (may be NULL): bit i of byte i/8, least
 * significant first, set where x > 0; bits past n in the last byte are 0. y may be x.
 */
void sti_relu_f32(const sti_team *team, int64_t n, float slope, const float *x,
                  float *y, uint8_t *bits);
/* ReLU6: y = min(max(x, 0), 6), NaN passes. bits: set where 0 < x < 6, which is all
 * that the gradient needs (sti_relu_grad_f32 of slope 0). */
void sti_relu6_f32(const sti_team *team, int64_t n, const float *x, float *y,
                   uint8_t *bits);
/* dx = dy where the bit is set, else slope * dy (+0 for slope 0). dx may be dy. */
void sti_relu_grad_f32(const sti_team *team, int64_t n, float slope, const float *dy,
                       const uint8_t *bits, float *dx);

/* z[i] = c[i] != 0 ? a[i] : b[i], 4-byte elements of any type; z may be any of them. */
void sti_select_32(const sti_team *team, int64_t n, const float *c, const void *a,
                   const void *b, void *z);
/* Whole numbers to f32, and back, cut towards 0; beyond i32 the nearest, NaN 0. */
void sti_f32_from_i32(const sti_team *team, int64_t n, const int32_t *x, float *y);
void sti_i32_from_f32(const sti_team *team, int64_t n, const float *x, int32_t *y);

/* Bytes of packed bits for n elements. */
static inline int64_t sti_bits_bytes(int64_t n)
{
    return (n + 7) / 8;
}

#endif
