/* Softmax cross-entropy of x table^T against labels, with the gradients of both, rows
 * in blocks: the logits of all rows never exist at once. x [rows, n], table [classes,
 * n], label [rows], as in softmax.h (-1: padding). The gradient of a block is taken
 * while its logits are there, so each product is made once (the idea of Wijmans et al.,
 * "Cut Your Losses in Large-Vocabulary Language Models", 2024, without their second
 * pass).
 *
 * Blocks are equal, a function of the shape, of at most 128 MiB of logits, or
 * 72 MiB where a block has no more rows than a chunk of gemm.h, so that the cut does
 * not show; sums go on from block to block in ascending order of the rows. Without
 * gradients no sum goes from row to row, and blocks are of 16 MiB. */
#ifndef STI_KERNEL_LINEAR_CROSS_ENTROPY_H
#define STI_KERNEL_LINEAR_CROSS_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

typedef struct sti_linear_cross_entropy {
    int64_t rows, n, classes;
    float smoothing;
    bool bf16;    /* x and table are sti_bf16, else float */
    bool forward; /* there are no gradients: smaller blocks, less scratch */
    const void *x, *table;
    const int32_t *label;
} sti_linear_cross_entropy;

/* Multiply-adds counted as two; of the gradients too. */
double sti_linear_cross_entropy_flop(const sti_linear_cross_entropy *args,
                                     int gradients);

/* loss [1] = sum of row losses / rows. Gradients of that loss, each may be NULL:
 * dx [rows, n], dtable [classes, n]. scratch: 64-byte aligned. */
size_t sti_linear_cross_entropy_scratch_bytes(const sti_linear_cross_entropy *args,
                                              int threads);
void sti_linear_cross_entropy_f32(const sti_team *team,
                                  const sti_linear_cross_entropy *args, float *loss,
                                  float *dx, float *dtable, void *scratch);

#endif
