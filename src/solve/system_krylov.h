/* Krylov's methods of a system, whoever multiplies and preconditions: one process or a
 * rank of several. */
#ifndef STI_SOLVE_SYSTEM_KRYLOV_H
#define STI_SOLVE_SYSTEM_KRYLOV_H

#include "solve/krylov_general.h"
#include "solve/system.h"

typedef struct sti_krylov_run {
    const sti_system_desc *d;
    const sti_system_info *info;
    const sti_team *team;
    int64_t n;
    const int32_t *order; /* [n] old numbers of new rows; NULL: as they are */
    double *b, *x;        /* [columns, n] for an order or many columns; else NULL */
    sti_krylov_product_fn *product, *precondition; /* the latter NULL: none */
    void *product_arg, *precondition_arg;
} sti_krylov_run;

/* Bytes of vectors, those of b and x in a run with them. */
size_t sti_system_krylov_bytes(const sti_system_desc *desc, const sti_system_info *info,
                               int64_t n);

/* b and x [n, columns]. STINT_E_FAILED: no convergence, a breakdown, or sides whose
 * squares overflow or vanish; x is then the best there is. */
stint_status sti_system_krylov(const sti_krylov_run *run, int64_t columns,
                               const double *b, double *x, int64_t *iterations_out);

#endif
