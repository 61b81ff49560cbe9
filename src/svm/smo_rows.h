/* Rows of the kernel matrix of some points, in float as LIBSVM keeps them: made as
 * products of blocks of rows, and kept as far as there is room. A row that is made
 * again has the bits of one that was kept, so the room changes time alone. */
#ifndef STI_SVM_SMO_ROWS_H
#define STI_SVM_SMO_ROWS_H

#include <stdbool.h>

#include "base/team.h"
#include "kernel/gram/gram.h"
#include "net/comm.h"
#include "stint/status.h"
#include "svm/kernel_store.h"

typedef struct sti_smo_rows sti_smo_rows;

/* Bytes for at most n points, beside the rows kept. */
size_t sti_smo_rows_bytes(const sti_gram_rows *rows, int64_t n, int threads);

/* Room for problems of at most n points and kept_bytes of rows. What is pointed to must
 * outlive it. */
stint_status sti_smo_rows_create(const sti_team *team, const sti_gram_rows *rows,
                                 const sti_gram_function *function, int64_t n,
                                 size_t kept_bytes, sti_smo_rows **out);
void sti_smo_rows_destroy(sti_smo_rows *rows); /* NULL is fine */

/* Share sums out among ranks, of which every one calls with the same: each makes and
 * keeps the columns of its part of the points. STINT_E_MEMORY. */
stint_status sti_smo_rows_share(sti_smo_rows *rows, sti_comm *comm);
/* STINT_OK, or why ranks no longer hear of each other: sums are then of no use. */
stint_status sti_smo_rows_status(const sti_smo_rows *rows);

/* Begin with other points, those of the two ranges one after the other. All of them are
 * columns; no row is kept. */
void sti_smo_rows_select(sti_smo_rows *rows, const sti_row_range range[2]);

/* From now on columns are these points only, ascending. Where they are some of the
 * columns before, rows kept stay so, but for what falls away. */
void sti_smo_rows_columns(sti_smo_rows *rows, int64_t count, const int32_t *point);

/* k(x, x) of every point. diagonal_out [n]. */
void sti_smo_rows_diagonal(sti_smo_rows *rows, double *diagonal_out);

/* k_out[i * stride + j] = k of points i and j, at most STI_SMO_SET of them. */
void sti_smo_rows_block(sti_smo_rows *rows, int64_t count, const int32_t *point,
                        int64_t stride, float *k_out);

/* out[p] = sum over t of factor[t] k(point[t], p) in ascending t, for every point p
 * that is a column. The rows of point[] are kept if there is room. */
void sti_smo_rows_sum(sti_smo_rows *rows, int64_t count, const int32_t *point,
                      const double *factor, double *out);

#endif
