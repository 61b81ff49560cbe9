/* Batch normalisation of bfloat16 activations [rows, c], rows and c >= 1, as norm.h:
 * statistics, parameters and all arithmetic in float32 and float64; each result is
 * rounded once, when it is stored.
 *
 * Sums. Rows are cut into chunks of about 8192 elements (at least 64 rows, a multiple
 * of 16). In a chunk s = sum (x - x0) and q = sum (x - x0)^2 around its first row x0:
 * no element of eight bits is so far from the others that this would cancel. Row i goes
 * to accumulator i % 4; these join as (0 + 1) + (2 + 3). Chunks join in float64 by the
 * formula of Chan, Golub and LeVeque (1979) along a binary tree over the chunk index.
 * No fused multiply-adds. The bits depend on rows and c alone.
 *
 * c that is no multiple of 16 is right but slow. */
#ifndef STI_KERNEL_NORM_BF16_H
#define STI_KERNEL_NORM_BF16_H

#include <stdbool.h>
#include <stddef.h>

#include "base/team.h"
#include "kernel/lane/bf16.h"

/* Scratch of each call below, 64-byte aligned. */
size_t sti_norm_bf16_scratch_bytes(int64_t rows, int64_t c);

/* mean, inv and unbiased variance (0 for one row), [c] each; unbiased may be NULL. */
void sti_norm_bf16_statistics(const sti_team *team, int64_t rows, int64_t c,
                              float epsilon, const sti_bf16 *x, float *mean_out,
                              float *inv_out, float *unbiased_out, void *scratch);

/* As sti_norm_forward_f32; y may be x or residual. */
typedef struct sti_norm_bf16_forward_args {
    int64_t rows, c;
    bool relu;
    const sti_bf16 *x;
    const float *mean, *inv, *scale, *shift;
    const sti_bf16 *residual;
    sti_bf16 *y;
    uint8_t *bits;
} sti_norm_bf16_forward_args;
void sti_norm_bf16_forward(const sti_team *team,
                           const sti_norm_bf16_forward_args *args);

/* As sti_norm_backward_f32; dx may be dy or x, dresidual may be dy. */
typedef struct sti_norm_bf16_backward_args {
    int64_t rows, c;
    const sti_bf16 *dy, *x;
    const float *scale, *mean, *inv;
    const uint8_t *bits;
    sti_bf16 *dx;
    float *dscale, *dshift;
    sti_bf16 *dresidual;
} sti_norm_bf16_backward_args;
void sti_norm_bf16_backward(const sti_team *team,
                            const sti_norm_bf16_backward_args *args, void *scratch);

#endif
