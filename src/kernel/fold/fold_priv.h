/* The loops of fold.h by instruction set. Private to the kernel room. */
#ifndef STI_KERNEL_FOLD_PRIV_H
#define STI_KERNEL_FOLD_PRIV_H

#include "kernel/fold/fold.h"

/* Some rows, or a part of one; pointers are to the block's first elements, which is one
 * that bits have a byte of their own for. */
typedef struct sti_fold_block {
    int64_t rows, c;
    float factor; /* where the bit is not set */
    const float *from;
    const float *mean, *inv, *deviation, *scale, *shift, *residual;
    const uint8_t *bits;
    float *x, *y; /* fold: u is x */
} sti_fold_block;

typedef struct sti_fold_kernels {
    void (*fold)(const sti_fold_block *b);
    void (*unfold)(const sti_fold_block *b);
} sti_fold_kernels;

extern const sti_fold_kernels sti_fold_kernels_ref;
#if defined(__x86_64__)
extern const sti_fold_kernels sti_fold_kernels_avx2, sti_fold_kernels_avx512;
#endif

#endif
