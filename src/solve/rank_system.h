/* Sparse systems by several ranks, none of which holds the matrix: triangles by
 * solve/rank_trsv.h, Krylov's methods with all vectors on every rank, whose sums follow
 * the trees of one process, and products and preconditioners by rows. The bits of x are
 * those of one process. */
#ifndef STI_SOLVE_RANK_SYSTEM_H
#define STI_SOLVE_RANK_SYSTEM_H

#include "base/entries.h"
#include "net/comm.h"
#include "solve/rank_trsv.h"
#include "solve/system.h"

typedef struct sti_rank_system_desc {
    sti_comm *comm;
    const sti_entry_source *source;
    sti_system_desc d; /* as of one process, the same on all ranks; `a` is not used */
    bool share;        /* memory with ranks of this host */
} sti_rank_system_desc;

typedef struct sti_rank_system_info {
    sti_system_info system;
    int64_t n, entries;      /* of the whole matrix */
    int64_t messages, bytes; /* of one triangular solve by all ranks, beforehand; */
                             /* of a Krylov method: one application of its parts */
    size_t matrix_bytes;     /* of this rank's rows */
    bool shares;
} sti_rank_system_info;

typedef struct sti_rank_system sti_rank_system;

/* Look at the matrix and choose; then make plans and factors. Collective, as everything
 * below. STINT_E_UNSUPPORTED: a strategy; else as sti_system_create. */
stint_status sti_rank_system_create(const sti_rank_system_desc *desc,
                                    sti_rank_system **system_out);
stint_status sti_rank_system_prepare(sti_rank_system *system);
/* Parts of a rank's account, once it is chosen: upper bounds. */
void sti_rank_system_account(const sti_rank_system *system, sti_account *account);
void sti_rank_system_destroy(sti_rank_system *system); /* NULL is fine */
const sti_rank_system_info *sti_rank_system_info_of(const sti_rank_system *system);

/* b = A 1, [n], on every rank. */
stint_status sti_rank_system_ones(sti_rank_system *system, double *b);
/* b and x [n, columns] as of sti_system_solve, b the same on all ranks. Of a triangle a
 * rank gets its own rows of x, and the others' by sti_rank_system_gather. */
stint_status sti_rank_system_solve(sti_rank_system *system, int64_t columns,
                                   const void *b, void *x, int64_t *iterations_out);
stint_status sti_rank_system_gather(const sti_rank_system *system, int64_t columns,
                                    void *x);
/* Tasks of a triangular solve, 0: there is none; one of them watched, if there is one,
 * as by sti_rank_trsv_watch. */
int64_t sti_rank_system_tasks(const sti_rank_system *system);
stint_status sti_rank_system_watch(sti_rank_system *system, sti_trsv_span *spans_out);
/* The order of rows that iterations have, [n] old numbers; NULL: as they are. */
const int32_t *sti_rank_system_order(const sti_rank_system *system);
/* How good x is, computed anew, doubles. */
stint_status sti_rank_system_judge(sti_rank_system *system, int64_t columns,
                                   const double *b, const double *x,
                                   sti_residual *residual_out);

#endif
