/* Rows of a table made ready for kernel tiles: in an order of one's own, dense where
 * one entry in eight or more is there, sparse else. Sparse rows have columns that are
 * places among those present (svm_present.h), but for precomputed kernels. For rbf,
 * dense rows are centred on the mean of the data, which takes from |u - v|^2 what
 * cancels. */
#ifndef STI_SVM_SVM_ROWS_H
#define STI_SVM_SVM_ROWS_H

#include <stdbool.h>

#include "base/fail.h"
#include "data/data_table.h"
#include "kernel/gram/gram.h"
#include "stint/status.h"
#include "svm/svm_present.h"

typedef struct sti_svm_rows {
    sti_gram_rows rows;
    double *dense, *term;
    sti_csr sparse;
    sti_svm_present present; /* of sparse rows; a band's is that of other rows */
    bool borrows_present;
    int64_t *number; /* of rows in a matrix that is kept, or NULL */
} sti_svm_rows;

/* Can the function be taken of these rows? Chi_squared wants no negative entry,
 * precomputed numbers 0:n of the rows with a column each. path: of the file, which a
 * complaint then names with the line; NULL: rows made of others. STINT_E_INPUT. */
stint_status sti_svm_check_rows(const sti_gram_function *function,
                                const sti_table *table, const char *path);

/* Records and gives STINT_E_INPUT: what is wrong with row i, in words, begun with file
 * and line. Every line of LIBSVM text is a row; of other formats the row is named. */
stint_status sti_svm_row_fail(const sti_table *table, const char *path, int64_t row,
                              const char *format, ...) STI_PRINTF(4, 5);

/* Are rows like these to be dense? A function of the data alone. */
bool sti_svm_rows_dense(const sti_csr *x);
size_t sti_svm_rows_bytes(const sti_csr *x, int64_t columns, bool dense);
/* Columns that rows made of a table have for tiles. */
stint_status sti_svm_rows_columns(const sti_gram_function *function, const sti_csr *x,
                                  int64_t columns, bool dense, int64_t *columns_out);

/* mean_out [columns] of column first and on. */
void sti_svm_mean(const sti_csr *x, int64_t first, int64_t columns, double *mean_out);

/* Variance of all values of a table, zeros included. */
double sti_svm_variance(const sti_table *table);

/* Room for bands of a table's rows, `most` at a time, which meet other rows. */
size_t sti_svm_band_bytes(const sti_csr *x, int64_t most, int64_t columns, bool dense);
stint_status sti_svm_band_create(const sti_csr *x, int64_t most, int64_t columns,
                                 bool dense, const sti_svm_rows *others,
                                 sti_svm_rows *band_out);
/* Rows [begin, begin + count) of it, as sti_svm_rows_create has them. */
void sti_svm_band_fill(const sti_gram_function *function, const sti_csr *x,
                       int64_t begin, int64_t count, int64_t first, const double *mean,
                       sti_svm_rows *band);

/* Rows for a function; order [x->rows] or NULL; mean NULL: not centred, as sparse rows
 * never are. Entries beyond `columns` may not be there. */
stint_status sti_svm_rows_create(const sti_gram_function *function, const sti_csr *x,
                                 const int64_t *order, int64_t first, int64_t columns,
                                 bool dense, const double *mean,
                                 sti_svm_rows *rows_out);
/* Rows made with `order` are those numbers of a matrix that is kept. */
stint_status sti_svm_rows_keep(const sti_gram_kept *kept, const int64_t *number,
                               const int64_t *order, sti_svm_rows *rows);
void sti_svm_rows_fini(sti_svm_rows *rows); /* also of a zeroed one */

/* Room for copies of any `count` rows, and such copies in it. Rows whose matrix is kept
 * in double as a whole are copied without their features, which nobody asks for. */
size_t sti_svm_rows_gather_bytes(const sti_gram_rows *rows, int64_t count);
stint_status sti_svm_rows_gather_room(const sti_gram_rows *rows, int64_t count,
                                      sti_svm_rows *rows_out);
void sti_svm_rows_gather(const sti_gram_rows *rows, int64_t count, const int64_t *row,
                         sti_svm_rows *copies);

#endif
