/* Losses of a linear classifier over a large vocabulary against labels and against
 * another such classifier, with the gradients of their sum, rows in blocks: neither's
 * logits exist for all rows at once.
 *
 * x [rows, n] and table [classes, n] are trained, against_x [rows, m] and against_table
 * [classes, m] given; u = x table^T and v = against_x against_table^T are the logits.
 * Parts, each a sum over rows divided by rows:
 *   hard     -log softmax(u)_label
 *   pairing  w |u - v|^2 / classes, w = base, and right more where v is largest at the
 *            label
 *   soft     -T^2 sum_j q_j log softmax(u / T)_j, q = softmax(v / T) (Hinton et al.
 *            2015): forward KL times T^2, but for the entropy of q, which is given.
 *            top > 0: q over the `top` largest v and what equals the last of them
 * A row with label -1 is padding: 0. Any other label outside of 0..classes-1 gives NaN.
 *
 * Blocks are equal, a function of the shape, of at most 64 MiB of logits of each, or of
 * 64 rows. */
#ifndef STI_KERNEL_LINEAR_DISTILLATION_H
#define STI_KERNEL_LINEAR_DISTILLATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

enum { STI_DISTIL_HARD, STI_DISTIL_PAIRING, STI_DISTIL_SOFT, STI_DISTIL_PARTS };
enum { STI_DISTIL_TOP_MAX = 256 };

typedef struct sti_linear_distillation {
    int64_t rows, n, m, classes;
    float weight[STI_DISTIL_PARTS]; /* what parts count in the sum; 0: not computed */
    float temperature;              /* above 0 */
    int64_t top;                    /* 0: all; at most STI_DISTIL_TOP_MAX */
    float base, right;
    const float *x, *table, *against_x, *against_table;
    const int32_t *label;
} sti_linear_distillation;

/* Multiply-adds counted as two; of the gradients too. */
double sti_linear_distillation_flop(const sti_linear_distillation *args, int gradients);

/* part [STI_DISTIL_PARTS], without weights. Gradients of the weighed sum, each may be
 * NULL: dx [rows, n], dtable [classes, n]. scratch: 64-byte aligned. */
size_t sti_linear_distillation_scratch_bytes(const sti_linear_distillation *args,
                                             int threads);
void sti_linear_distillation_f32(const sti_team *team,
                                 const sti_linear_distillation *args, float *part,
                                 float *dx, float *dtable, void *scratch);

#endif
