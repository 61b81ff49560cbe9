/* Batch normalisation over the columns of x [rows, c], rows and c >= 1 (Ioffe and
 * Szegedy 2015), with residual add, ReLU and sign bits fused in:
 *
 *     y = relu((x - mean) * (scale * inv) + shift + residual)
 *     inv = 1 / sqrt(var + epsilon)
 *
 * Forward reads x twice, backward reads x and dy twice: statistics need a whole column
 * before the first element can be written.
 *
 * Statistics. Rows are cut into chunks that fit the first cache (8192 elements, at
 * least 128 rows, a multiple of 16). A chunk goes over its elements twice, once from
 * memory for the sum and once from cache for e = sum (x - m) and q = sum (x - m)^2
 * around the rounded mean m; m + e/k and q - e^2/k are the chunk's mean and squared
 * deviation almost to the last bit even where the mean is 1e4 deviations away. Chunks
 * join in float64 by the formula of Chan, Golub and LeVeque (1979) along a binary tree
 * over the chunk index. In a chunk, row i goes to accumulator i % 4; these join as
 * (0 + 1) + (2 + 3).
 *
 * Where c does not fill a vector, k = 16 / gcd(c, 16) rows are taken as one row of k c
 * columns (if k c <= 1024), whose sums join in ascending order of the k.
 *
 * The bits depend on rows and c alone. No fused multiply-adds. Bits: see elementwise.h;
 * an element passes if > 0 or NaN. Arrays that are both read and written may be the
 * very same, as said below, but not overlap otherwise. */
#ifndef STI_KERNEL_NORM_H
#define STI_KERNEL_NORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

/* Scratch of each call below, 64-byte aligned: about 1/32 of x, at most. */
size_t sti_norm_scratch_bytes(int64_t rows, int64_t c);

/* mean, inv and unbiased variance (0 for one row), [c] each; unbiased may be NULL.
 * 5 flop an element; reads x once. */
void sti_norm_statistics_f32(const sti_team *team, int64_t rows, int64_t c,
                             float epsilon, const float *x, float *mean_out,
                             float *inv_out, float *unbiased_out, void *scratch);

/* inv = 1 / sqrt(variance + epsilon), as the statistics round it. */
void sti_norm_inverse_f32(int64_t c, float epsilon, const float *variance,
                          float *inv_out);

/* y from given mean and inv (batch or running ones). residual may be NULL; bits, of the
 * flat y, are written if relu is set and the pointer is not NULL (spare bits of the
 * last byte are 0). y may be x or residual. */
typedef struct sti_norm_forward {
    int64_t rows, c;
    bool relu;
    const float *x, *mean, *inv, *scale, *shift, *residual;
    float *y;
    uint8_t *bits;
} sti_norm_forward;
void sti_norm_forward_f32(const sti_team *team, const sti_norm_forward *args);

/* With z = dy where the bit is set (bits NULL: everywhere):
 *     dshift = sum z                     dscale = inv sum z (x - mean)
 *     dx = scale inv (z - dshift / rows - (x - mean) inv dscale / rows)
 *     dresidual = z
 * Each output may be NULL. dx may be dy or x, dresidual may be dy. */
typedef struct sti_norm_backward {
    int64_t rows, c;
    const float *dy, *x, *scale, *mean, *inv;
    const uint8_t *bits;
    float *dx, *dscale, *dshift, *dresidual;
} sti_norm_backward;
void sti_norm_backward_f32(const sti_team *team, const sti_norm_backward *args,
                           void *scratch);

#endif
