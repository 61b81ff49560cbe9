/* Products of a linear classifier, logits = x table^T, for a block of rows. */
#ifndef STI_KERNEL_LINEAR_CLASSIFIER_H
#define STI_KERNEL_LINEAR_CLASSIFIER_H

#include "kernel/gemm/gemm.h"

/* [rows, classes] of x [rows, n] and table [classes, n]. */
static inline sti_gemm_shape sti_classifier_logits(int64_t rows, int64_t n,
                                                   int64_t classes)
{
    return (sti_gemm_shape){.m = rows,
                            .n = classes,
                            .k = n,
                            .lda = n,
                            .ldb = n,
                            .ldc = classes,
                            .trans_b = true};
}

/* dx [rows, n] of the logits' gradient and the table. */
static inline sti_gemm_shape sti_classifier_dx(int64_t rows, int64_t n, int64_t classes)
{
    return (sti_gemm_shape){
        .m = rows, .n = n, .k = classes, .lda = classes, .ldb = n, .ldc = n};
}

/* dtable [classes, n] of the logits' gradient and x. */
static inline sti_gemm_shape sti_classifier_dtable(int64_t rows, int64_t n,
                                                   int64_t classes)
{
    return (sti_gemm_shape){.m = classes,
                            .n = n,
                            .k = rows,
                            .lda = classes,
                            .ldb = n,
                            .ldc = n,
                            .trans_a = true};
}

#endif
