/* How the rows of a triangle are best cut into stretches, by a simulation of tasks. */
#ifndef STI_SOLVE_TRSV_STRETCH_H
#define STI_SOLVE_TRSV_STRETCH_H

#include "net/link_model.h"
#include "solve/trsv_priv.h"

/* What rows read, [n] each: the first and the last column in the order of substitution,
 * -1: none. Columns between them are taken to wait for no more than these do. */
typedef struct sti_stretch_reach {
    const int32_t *first, *last;
} sti_stretch_reach;

/* Tasks are dealt to the ranks in turn, and the threads of a rank take its next one. */
typedef struct sti_stretch_workers {
    int ranks, threads;         /* of each rank */
    double handoff_s;           /* between threads, and ranks that share memory */
    const sti_link_model *link; /* between ranks; NULL: memory is shared */
} sti_stretch_workers;

/* A cutting of a triangle, whose rows' levels are given, that one thread solves in
 * serial_s, and what workers take with it. reach NULL: from the triangle itself.
 * *seconds_out INFINITY: rows read what lies too near for stretches, or later parts of
 * lines that would be one task. Only counts of `t` are read with `reach`, and lines are
 * then a task each. STINT_E_MEMORY. */
stint_status sti_trsv_choose_stretches(const sti_sparse_natural *t,
                                       const int32_t *level,
                                       const sti_stretch_reach *reach,
                                       const sti_stretch_workers *workers,
                                       double serial_s, sti_trsv_cutting *cutting_out,
                                       double *seconds_out);

#endif
