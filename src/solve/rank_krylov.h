/* Krylov's methods over ranks: each holds all vectors and a stretch of A's rows, and
 * computes what the others compute, but for products and preconditioners, of which it
 * makes its rows. So sums have the trees, and x the bits, of one process. */
#ifndef STI_SOLVE_RANK_KRYLOV_H
#define STI_SOLVE_RANK_KRYLOV_H

#include "solve/rank_facts.h"
#include "solve/rank_trsv.h"
#include "solve/system.h"

typedef struct sti_rank_krylov sti_rank_krylov;

typedef struct sti_rank_krylov_desc {
    sti_comm *comm;
    const sti_entry_source *source;
    sti_rank_facts *facts; /* borrowed; its levels are taken */
    const int32_t *order; /* [n] old numbers of the rows that the source has; or NULL */
    const sti_system_desc *d;
    const sti_system_info *info; /* of the choice */
    bool share;
} sti_rank_krylov_desc;

/* What making has found: levels and tasks of the forward solve, times, messages and
 * bytes of an iteration by all ranks, bytes of this rank's rows. */
typedef struct sti_rank_krylov_info {
    sti_trsv_info trsv;
    double factor_s, predicted_s, shift;
    int64_t messages, bytes;
    size_t matrix_bytes;
    bool shares;
} sti_rank_krylov_info;

/* Collective, as all of these. STINT_E_FAILED, STINT_E_INPUT, STINT_E_MEMORY as
 * sti_preconditioner_init. */
stint_status sti_rank_krylov_create(const sti_rank_krylov_desc *desc,
                                    sti_rank_krylov **krylov_out);
void sti_rank_krylov_destroy(sti_rank_krylov *krylov); /* NULL is fine */
const sti_rank_krylov_info *sti_rank_krylov_info_of(const sti_rank_krylov *krylov);

/* b and x [n, columns], as rows lie without an order, the same on all ranks. */
stint_status sti_rank_krylov_solve(sti_rank_krylov *krylov, int64_t columns,
                                   const double *b, double *x, int64_t *iterations_out);
/* The plan of the forward solve; NULL: there is none. */
sti_rank_trsv *sti_rank_krylov_plan(const sti_rank_krylov *krylov);
/* This rank's rows, which begin at *first_out. */
const sti_csr *sti_rank_krylov_rows(const sti_rank_krylov *krylov, int64_t *first_out);
/* y [n] has this rank's rows: all of it on every rank. */
stint_status sti_rank_krylov_spread(sti_rank_krylov *krylov, double *y);

#endif
