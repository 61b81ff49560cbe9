/* The loops of fold.h by instruction set. Private to the kernel room. */
#ifndef STI_KERNEL_FOLD_PRIV_H
#define STI_KERNEL_FOLD_PRIV_H

#include "kernel/fold.h"

/* Some rows; arrays of elements begin at the block's first, a multiple of 8. */
typedef struct sti_fold_block {
    int64_t rows, c;
    const float *from;
    const float *mean, *inv, *deviation, *scale, *shift;
    const uint8_t *bits;
    float *x, *y; /* fold: u is x */
} sti_fold_block;

typedef struct sti_fold_kernels {
    void (*fold)(const sti_fold_block *b);
    void (*unfold)(const sti_fold_block *b);
} sti_fold_kernels;

extern const sti_fold_kernels sti_fold_kernels_ref, sti_fold_kernels_any;
#if defined(__x86_64__)
extern const sti_fold_kernels sti_fold_kernels_avx2, sti_fold_kernels_avx512;
#endif

#endif
