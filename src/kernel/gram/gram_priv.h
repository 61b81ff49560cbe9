/* The loops of gram.h that differ by instruction set. */
#ifndef STI_KERNEL_GRAM_PRIV_H
#define STI_KERNEL_GRAM_PRIV_H

#include "kernel/gram/gram.h"

/* Rows of v side by side in a panel; columns that are packed at a time. */
enum { STI_GRAM_PANEL = 16, STI_GRAM_DEPTH = 256 };

typedef struct sti_gram_kernels {
    /* c[i, j] (+)= sum over k of a[i, k] panel[k, j], for m rows and one panel; first:
     * starts at 0, not at c. lda and ldc are doubles between rows. */
    void (*panel)(int64_t m, int64_t depth, const double *a, int64_t lda,
                  const double *panel, double *c, int64_t ldc, int first);
    /* Products turned into kernel values in place: count of one row, u2 its square. */
    void (*finish)(const sti_gram_function *f, int64_t count, double u2,
                   const double *v2, double *row);
    void (*apply)(const double *tile, int64_t u_count, int64_t v_count, const double *x,
                  double *y_out, const double *across, double *down);
    double (*dot)(int64_t count, const double *a, const double *b);
} sti_gram_kernels;

extern const sti_gram_kernels sti_gram_kernels_ref;
#if defined(__x86_64__)
extern const sti_gram_kernels sti_gram_kernels_avx2, sti_gram_kernels_avx512;
#endif

#endif
