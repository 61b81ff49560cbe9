/* Columns of a kernel matrix for a preconditioner (solve/low_rank.h): rows of one range
 * or two against a few pivots among them, which are gathered side by side first. */
#ifndef STI_SVM_KERNEL_COLUMNS_H
#define STI_SVM_KERNEL_COLUMNS_H

#include "svm/kernel_store.h"

typedef struct sti_kernel_columns sti_kernel_columns;

size_t sti_kernel_columns_bytes(const sti_gram_rows *rows, int threads);
/* What source points to must outlive it. STINT_E_MEMORY. */
stint_status sti_kernel_columns_create(const sti_kernel_source *source, int threads,
                                       sti_kernel_columns **columns_out);
void sti_kernel_columns_destroy(sti_kernel_columns *columns); /* NULL is fine */

/* The rows that the matrix is of, one range after the other. */
void sti_kernel_columns_select(sti_kernel_columns *columns,
                               const sti_row_range ranges[2]);
/* K's diagonal of these rows. */
void sti_kernel_columns_diagonal(const sti_kernel_columns *columns, double *out);
/* A sti_low_rank_pivots_fn and a sti_low_rank_columns_fn; arg is the columns. */
stint_status sti_kernel_columns_pivots(void *arg, int64_t count, const int64_t *pivot);
void sti_kernel_columns_get(void *arg, int64_t begin, int64_t rows, double *out,
                            int64_t ld, int worker);

/* A worker's scratch of sti_gram_tile, free while no columns are asked for. */
void *sti_kernel_columns_scratch(const sti_kernel_columns *columns, int worker);

#endif
