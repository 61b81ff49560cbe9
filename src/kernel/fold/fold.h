/* Batch-norm inputs made ready for the codec, and back.
 *
 * fold:    u = (x - mean) * inv, and coarse times that where the bit is not set
 * unfold:  n = u, and u / coarse where the bit is not set
 *          x = n * deviation + mean
 *          y = n * scale + shift (+ residual) where the bit is set, else 0
 *
 * coarse: 1/8 to 1/64. Under one bound on u all channels have the same error in units
 * of their deviation, and what a ReLU lets no gradient through (where batch-norm's
 * gradient reads x only in a small correction) an error 1 / coarse times as large:
 * fewer bits.
 *
 * x, u, y, residual [rows, c], c >= 1; mean, inv, deviation, scale, shift [c]; bits
 * as in elementwise.h, NULL: all set. No fused multiply-adds; the bits are the same on
 * every instruction set. */
#ifndef STI_KERNEL_FOLD_H
#define STI_KERNEL_FOLD_H

#include <stdint.h>

/* How much coarser values are held where a batch-norm over so many rows lets no
 * gradient through: a power of two, so that nothing is rounded on the way back. What it
 * lets through to the gradient of x shrinks with the root of the rows, so it may grow
 * with it: that error stays below 0.01 of the gradient where bounds are usual, and is
 * found and held to the limit in any case (op_error_gain.c).
 */
float sti_fold_coarse(int64_t rows);

/* Parts of the arrays: elements [begin, begin + n), both multiples of 16, n but at the
 * arrays' end. One thread. */

typedef struct sti_fold {
    int64_t c;
    float coarse;
    const float *x, *mean, *inv;
    const uint8_t *bits; /* of the whole array */
    int64_t first;       /* the element that lies at x */
} sti_fold;
void sti_fold_f32(const sti_fold *args, int64_t begin, int64_t n,
                  float *u_out /* [n], may be where the x are */);

/* x or y may be NULL, and either may be u. */
typedef struct sti_unfold {
    int64_t c;
    float coarse;
    const float *u;
    const float *mean, *deviation; /* for x; deviation: 1 / inv */
    const float *scale, *shift;    /* for y */
    const float *residual;         /* added to y, or NULL */
    const uint8_t *bits;           /* both of the whole array */
    float *x, *y;
    int64_t first; /* the element that lies at u, x and y */
} sti_unfold;
void sti_unfold_f32(const sti_unfold *args, int64_t begin, int64_t n);

#endif
