/* A sparse matrix, or a triangle of one, as what it does to vectors: products, and how
 * well an answer solves. Sums of a row are one chain in the order of its columns; for a
 * transposed one in the order of its rows. */
#ifndef STI_SOLVE_SPARSE_OPERATOR_H
#define STI_SOLVE_SPARSE_OPERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/csr.h"
#include "base/team.h"
#include "stint/status.h"

typedef enum sti_part { STI_PART_WHOLE, STI_PART_LOWER, STI_PART_UPPER } sti_part;

typedef struct sti_operator {
    const sti_csr *a;
    sti_part part; /* diagonal and what is beside it */
    bool transpose;
    bool unit; /* a diagonal of ones, whatever is stored there */
} sti_operator;

typedef enum sti_matrix_kind {
    STI_MATRIX_LOWER, /* a diagonal one, too */
    STI_MATRIX_UPPER,
    STI_MATRIX_SYMMETRIC, /* in values */
    STI_MATRIX_GENERAL,
    STI_MATRIX_KIND_COUNT
} sti_matrix_kind;

extern const char *const sti_matrix_kind_names[STI_MATRIX_KIND_COUNT];

sti_matrix_kind sti_matrix_kind_of(const sti_csr *a);
/* Are all diagonal entries there and above 0? */
bool sti_matrix_has_positive_diagonal(const sti_csr *a);
int64_t sti_matrix_bandwidth(const sti_csr *a); /* the most that |i - j| is */

/* y = A x, x and y [n, columns]. */
void sti_operator_apply(const sti_operator *op, int64_t columns, const double *x,
                        double *y);
/* y = A x of one vector by all rows at once, of a whole matrix that is not transposed.
 */
void sti_operator_product(const sti_team *team, const sti_csr *a, const double *x,
                          double *y);

typedef struct sti_residual {
    double relative; /* ||b - A x|| / ||b||, the worst of the columns */
    double backward; /* |b - A x| / (|A| |x| + |b|), the worst of all rows */
} sti_residual;

/* Raise `worst` by one column, from b - A x and |A| |x| + |b| of every row; b's rows
 * are `columns` apart. */
void sti_residual_add(int64_t rows, const double *r, const double *size,
                      int64_t columns, const double *b, sti_residual *worst);

/* Computed anew from x; NaN where x has any. STINT_E_MEMORY: two vectors are taken. */
stint_status sti_operator_residual(const sti_operator *op, int64_t columns,
                                   const double *b, const double *x,
                                   sti_residual *residual_out);

#endif
