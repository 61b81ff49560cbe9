/* The loops of gram.h that differ by instruction set. */
#ifndef STI_KERNEL_GRAM_PRIV_H
#define STI_KERNEL_GRAM_PRIV_H

#include "kernel/gram/gram.h"

/* Rows of v side by side in a panel; columns that are packed at a time; rows of u that
 * are spread out side by side. */
enum { STI_GRAM_PANEL = 16, STI_GRAM_DEPTH = 256, STI_GRAM_SPREAD = 8 };

/* Values of a tile that are there already, if they are. */
static inline bool sti_gram_read(bool single, const sti_gram_rows *u, int64_t u_begin,
                                 int64_t u_count, const sti_gram_rows *v,
                                 int64_t v_begin, int64_t v_count, void *tile,
                                 int64_t ld)
{
    return u->kept && u->kept == v->kept && u->kept->single == single &&
           u->kept->read(u->kept, u->number + u_begin, u_count, v->number + v_begin,
                         v_count, tile, ld);
}

typedef struct sti_gram_kernels {
    /* c[i, j] (+)= sum over k of what a[i, k] and panel[k, j] are apart, for m rows and
     * one panel, by kind laplacian or chi_squared. */
    void (*apart)(sti_gram_kind kind, int64_t m, int64_t depth, const double *a,
                  int64_t lda, const double *panel, bool first, double *c, int64_t ldc);
    /* The same, or products, for eight sparse rows u at once: spread [columns, 8] holds
     * them, begin their sums over v of zeros. out [v_count, 8]. */
    void (*spread)(sti_gram_kind kind, const sti_csr *v, int64_t v_begin,
                   int64_t v_count, const double *spread, const double begin[8],
                   double *out);
    /* Products turned into kernel values in place: count of one row. */
    void (*finish)(const sti_gram_function *f, int64_t count, double u_term,
                   const double *v_term, double *row);
    void (*apply)(const double *tile, int64_t ld, int64_t u_count, int64_t v_count,
                  int64_t columns, const double *const *x, double *const *y_out,
                  const double *const *across, double *const *down);
    void (*finish_f32)(const sti_gram_function *f, int64_t count, double u_term,
                       const double *v_term, float *row);
    void (*apply_f32)(const float *tile, int64_t ld, int64_t u_count, int64_t v_count,
                      int64_t columns, const double *const *x, double *const *y_out,
                      const double *const *across, double *const *down);
    double (*dot)(int64_t count, const double *a, const double *b);
    void (*axpy)(int64_t count, double factor, const double *x, double *y);
    void (*axpby)(int64_t count, double factor, const double *x, double scale,
                  double *y);
    void (*xpay)(int64_t count, const double *x, double factor, double *y);
    void (*add_products)(int64_t count, const double *a, const double *b, double *y);
} sti_gram_kernels;

extern const sti_gram_kernels sti_gram_kernels_ref;
#if defined(__x86_64__)
extern const sti_gram_kernels sti_gram_kernels_avx2, sti_gram_kernels_avx512;
#endif

#endif
