/* Dot products of all pairs of vectors of a sample: the interaction of DLRM (Naumov et
 * al. 2019). Sums have one order whatever the instruction set: sixteen chains of
 * elements that are sixteen apart, joined by halves. */
#ifndef STI_KERNEL_INTERACTION_H
#define STI_KERNEL_INTERACTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

/* Pairs (i, j) of n vectors with i < j, in that order. */
static inline int64_t sti_interaction_pairs(int64_t vectors)
{
    return vectors * (vectors - 1) / 2;
}

/* y [samples, pairs] = x_i . x_j of x [samples, vectors, width]. */
void sti_interaction_f32(const sti_team *team, int64_t samples, int64_t vectors,
                         int64_t width, const float *x, float *y);
/* dx [samples, vectors, width]: dx_i = sum over j of dy_ij x_j, j ascending. */
void sti_interaction_grad_f32(const sti_team *team, int64_t samples, int64_t vectors,
                              int64_t width, const float *x, const float *dy,
                              float *dx);

/* ---- private to the folder: a sample ---- */

typedef struct sti_interaction_kernels {
    void (*pairs)(int64_t vectors, int64_t width, const float *x, float *y);
    void (*grad)(int64_t vectors, int64_t width, const float *x, const float *dy,
                 float *dx);
} sti_interaction_kernels;

extern const sti_interaction_kernels sti_interaction_kernels_ref;
#if defined(__x86_64__)
extern const sti_interaction_kernels sti_interaction_kernels_avx2,
    sti_interaction_kernels_avx512;
#endif

#endif
