/* Krylov's methods for A x = b with a matrix that need be neither symmetric nor
 * definite: restarted GMRES (Saad and Schultz 1986) and BiCGStab (van der Vorst 1992),
 * both preconditioned from the right, so that residuals are those of the system.
 *
 * Dot products are sums of stretches of 4096 in their order: the same bits for any
 * threads. An end that the recursion claims is checked by a residual computed anew from
 * x; where that one disagrees, the method goes on from x. */
#ifndef STI_SOLVE_KRYLOV_GENERAL_H
#define STI_SOLVE_KRYLOV_GENERAL_H

#include "solve/krylov.h"

typedef struct sti_krylov_general {
    int64_t n;
    double tolerance;
    int64_t iterations; /* at most: products but for those of checks */
    int64_t restart;    /* of GMRES: vectors that are kept */
    sti_krylov_product_fn *product;
    void *product_arg;
    sti_krylov_product_fn *precondition; /* NULL: none */
    void *precondition_arg;
    sti_krylov_progress_fn *progress; /* or NULL */
    void *progress_user;
} sti_krylov_general;

/* Bytes taken beside b and x. */
size_t sti_gmres_bytes(int64_t n, int64_t restart);
size_t sti_bicgstab_bytes(int64_t n);

/* b and x_out [n]; x begins at 0. As sti_krylov_solve: STINT_E_FAILED with result_out
 * and x set to the last there was. */
stint_status sti_gmres_solve(const sti_team *team, const sti_krylov_general *desc,
                             const double *b, double *x_out,
                             sti_krylov_result *result_out);
stint_status sti_bicgstab_solve(const sti_team *team, const sti_krylov_general *desc,
                                const double *b, double *x_out,
                                sti_krylov_result *result_out);

#endif
