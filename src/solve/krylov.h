/* Conjugate gradients for A X = B with many right-hand sides (Hestenes and Stiefel
 * 1952), A symmetric and positive definite, known by its products alone, with a
 * preconditioner that is known likewise.
 *
 * Every column has its own coefficients and its own end, and a column that is done
 * takes part no more, so its bits do not depend on the others beside it. Start is 0, or
 * a vector that is given, times the factor that brings it nearest to the solution in
 * the norm of A, so that no start is worse than 0. A column is done when ||b - A x|| <=
 * tolerance ||b|| by a residual computed anew from x; where the one carried along only
 * claims so, the column begins again from x. */
#ifndef STI_SOLVE_KRYLOV_H
#define STI_SOLVE_KRYLOV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "stint/status.h"

/* y[c] = A x[c] for `count` columns of n doubles. STINT_OK, or a failure (as of a user
 * who stops) that ends the solution. */
typedef stint_status sti_krylov_product_fn(void *arg, int64_t count,
                                           const double *const *x, double *const *y);

/* Told once an iteration; relative: the largest ||r|| / ||b|| of columns at work. */
typedef void sti_krylov_progress_fn(void *user, int64_t iteration, double relative);

typedef struct sti_krylov_desc {
    int64_t n, columns;
    double tolerance;   /* above 0 */
    int64_t iterations; /* at most so many products a column, checks not counted */
    sti_krylov_product_fn *product;
    void *product_arg;
    /* The product that true residuals are of, where `product` is only near it, with the
     * same arg; or NULL: the same. The solution is then refined: columns wait for each
     * other at every hundred-thousandth of the true residual, and begin again. */
    sti_krylov_product_fn *exact;
    /* y[c] = M^-1 x[c], M symmetric, positive definite and near A; or NULL: none */
    sti_krylov_product_fn *precondition;
    void *precondition_arg;
    bool warm;                        /* x holds where every column starts */
    sti_krylov_progress_fn *progress; /* or NULL */
    void *progress_user;
} sti_krylov_desc;

typedef struct sti_krylov_result {
    int64_t iterations; /* the most of a column */
    double residual;    /* the largest ||b - A x|| / ||b||, computed anew */
} sti_krylov_result;

/* Bytes that a solution takes beside b and x. */
size_t sti_krylov_bytes(int64_t n, int64_t columns, bool preconditioned);

/* b and x [columns, n]; x is read only if warm. *result_out is set also where the
 * status is STINT_E_FAILED: not done in so many iterations, as near as rounding lets
 * it come, or p.A p <= 0, which says that A is not positive definite. */
stint_status sti_krylov_solve(const sti_team *team, const sti_krylov_desc *desc,
                              const double *b, double *x,
                              sti_krylov_result *result_out);

#endif
