/* Preconditioners of Krylov's methods, made of triangular solves. */
#ifndef STI_SOLVE_PRECOND_H
#define STI_SOLVE_PRECOND_H

#include "solve/system.h"

typedef struct sti_preconditioner {
    sti_precond kind;
    int64_t n;
    const sti_csr *a;
    sti_team team;
    sti_csr factor;               /* of ic0 and ilu0 */
    sti_trsv *forward, *backward; /* of gs, ic0, ilu0 */
    double *diagonal;             /* of jacobi and gs */
    double *pack;                 /* [n, columns] for more than one */
    double factor_s, shift;
} sti_preconditioner;

/* `trsv` is a template: threads, strategy, tasks, columns, room, solves, name. kind is
 * not AUTO. STINT_E_FAILED, STINT_E_INPUT (a diagonal entry that is missing or zero),
 * STINT_E_MEMORY. */
stint_status sti_preconditioner_init(sti_precond kind, const sti_csr *a,
                                     const sti_trsv_desc *trsv,
                                     sti_preconditioner *p_out);
void sti_preconditioner_fini(sti_preconditioner *p); /* also of a zeroed one */

/* z[c] = M^-1 r[c]; the form that solve/krylov.h wants. */
stint_status sti_preconditioner_apply(void *preconditioner, int64_t count,
                                      const double *const *r, double *const *z);

#endif
