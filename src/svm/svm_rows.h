/* Rows of a table made ready for kernel tiles: in an order of one's own, dense where
 * one entry in eight or more is there, sparse else. For rbf, dense rows are centred on
 * the mean of the data, which takes from |u - v|^2 what cancels. */
#ifndef STI_SVM_SVM_ROWS_H
#define STI_SVM_SVM_ROWS_H

#include <stdbool.h>

#include "kernel/gram/gram.h"
#include "stint/status.h"

typedef struct sti_svm_rows {
    sti_gram_rows rows;
    double *dense, *square;
    sti_csr sparse;
} sti_svm_rows;

/* Are rows like these to be dense? A function of the data alone. */
bool sti_svm_rows_dense(const sti_csr *x);
size_t sti_svm_rows_bytes(const sti_csr *x, int64_t columns, bool dense);

/* mean_out [columns] of column first and on. */
void sti_svm_mean(const sti_csr *x, int64_t first, int64_t columns, double *mean_out);

/* order [x->rows] or NULL; mean NULL: not centred, as sparse rows never are. Entries
 * beyond `columns` may not be there. */
stint_status sti_svm_rows_create(const sti_csr *x, const int64_t *order, int64_t first,
                                 int64_t columns, bool dense, const double *mean,
                                 sti_svm_rows *rows_out);
void sti_svm_rows_fini(sti_svm_rows *rows); /* also of a zeroed one */

#endif
