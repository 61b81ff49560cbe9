/* Incomplete factors without fill: ILU(0) (Meijerink and van der Vorst 1977) and IC(0),
 * row by row. A row needs the rows that its lower triangle reads, so rows are factored
 * in the tasks of a triangular solve, and each is one chain: the same bits for any
 * threads. */
#ifndef STI_SOLVE_FACTOR_H
#define STI_SOLVE_FACTOR_H

#include "base/csr.h"
#include "solve/trsv.h"
#include "solve/trsv_walk.h"
#include "stint/status.h"

/* `factor` holds a square matrix A and gets L and U in its place: L below the diagonal,
 * with a diagonal of ones that is not stored, U from the diagonal on. `tasks`: a plan
 * of its lower triangle. STINT_E_FAILED: a pivot that is missing, zero or not finite,
 * with its row. */
stint_status sti_ilu0_factor(sti_csr *factor, sti_trsv *tasks, const char *name);

/* `factor` holds the lower triangle of a symmetric A, diagonal and all, and gets L with
 * L L^T near A. A pivot that is not above 0 fails; then it is tried again with A + s
 * diag(A), s from 1/1000 on and four times as much each time; *shift_out is the last.
 * `a`: where A is copied from then. STINT_E_FAILED after many shifts. */
stint_status sti_ic0_factor(const sti_csr *a, sti_csr *factor, sti_trsv *tasks,
                            const char *name, double *shift_out);

/* ---- the same for rows that may lie anywhere ---- */

typedef struct sti_factor_row {
    const int32_t *column; /* ascending */
    double *value;         /* written only by who factors the row */
    int64_t count;
} sti_factor_row;

/* Rows, and who takes them in turn. */
typedef struct sti_factor_rows {
    sti_factor_row (*row)(const void *user, int64_t i);
    /* Every row once, after all that its lower triangle reads. */
    stint_status (*walk)(void *user, sti_trsv_row_fn *fn, void *arg);
    /* A's values again, its diagonal times 1 + shift; of IC(0). */
    stint_status (*reset)(void *user, double shift);
    /* The lowest row that failed anywhere, given that of this process. */
    stint_status (*lowest)(void *user, int64_t *row);
    void *user;
    const char *name; /* of the matrix */
} sti_factor_rows;

stint_status sti_ilu0_rows(const sti_factor_rows *rows);
stint_status sti_ic0_rows(const sti_factor_rows *rows, double *shift_out);

/* A copy of a matrix, or of its lower triangle. */
stint_status sti_csr_copy(const sti_csr *a, bool lower, sti_csr *copy_out);
void sti_csr_drop(sti_csr *a); /* also of a zeroed one */

#endif
