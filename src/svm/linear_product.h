/* (X X^T + D) times vectors, X the rows of one range or two: X (X^T v), without the
 * matrix of rows times rows. Sums run over fixed slabs of rows, joined in ascending
 * order, so threads do not change a bit. */
#ifndef STI_SVM_LINEAR_PRODUCT_H
#define STI_SVM_LINEAR_PRODUCT_H

#include "svm/kernel_store.h"

typedef struct sti_linear_product sti_linear_product;

/* Bytes for so many columns of vectors. */
size_t sti_linear_product_bytes(const sti_gram_rows *rows, int64_t columns);
/* What is pointed to must outlive it. STINT_E_MEMORY. */
stint_status sti_linear_product_create(const sti_gram_rows *rows, int64_t columns,
                                       const sti_team *team,
                                       sti_linear_product **product_out);
void sti_linear_product_destroy(sti_linear_product *product); /* NULL is fine */

/* Begin with other rows, one range after the other, and their D [rows]. */
void sti_linear_product_select(sti_linear_product *product,
                               const sti_row_range ranges[2], const double *diagonal);
/* A sti_krylov_product_fn; arg is the product. Fails where a stop was asked for. */
stint_status sti_linear_product_run(void *arg, int64_t count, const double *const *x,
                                    double *const *y);

#endif
