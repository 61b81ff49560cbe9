/* The steps of a preconditioner made of two triangles, wherever these are solved: in
 * one process or over ranks. */
#ifndef STI_SOLVE_PRECOND_APPLY_H
#define STI_SOLVE_PRECOND_APPLY_H

#include "base/team.h"
#include "solve/system.h"

/* x [n, count] with T x = b, T the first triangle or the second; x may be b. */
typedef stint_status sti_precond_solve_fn(void *user, bool second, int64_t count,
                                          const double *b, double *x);

typedef struct sti_precond_steps {
    sti_precond kind; /* neither AUTO nor NONE */
    const sti_team *team;
    int64_t n;
    const double *diagonal; /* of jacobi and gs */
    double *pack;           /* [n, columns] for more than one */
    sti_precond_solve_fn *solve;
    void *user;
} sti_precond_steps;

/* z[c] = M^-1 r[c] for c < count: divided by the diagonal (jacobi), or both triangles
 * solved, for Gauss-Seidel's (D + L) D^-1 (D + U) with D between them. A failure is
 * that of a solve. */
stint_status sti_precond_apply(const sti_precond_steps *steps, int64_t count,
                               const double *const *r, double *const *z);

#endif
