/* Any work on rows that needs the rows which a triangle reads, on the tasks of its
 * plan. */
#ifndef STI_SOLVE_TRSV_WALK_H
#define STI_SOLVE_TRSV_WALK_H

#include "solve/trsv.h"

typedef void sti_trsv_row_fn(void *arg, int64_t row);

/* Each row once, after all that it reads, by threads as a solve has them. Not of a plan
 * by supernodes or pushes, whose rows are taken as they lie. */
void sti_trsv_walk(sti_trsv *plan, sti_trsv_row_fn *fn, void *arg);

/* Take the values of the matrix anew, which has the places that it had; of doubles, not
 * of a transposed plan. Diagonal entries are not looked at. */
stint_status sti_trsv_refill(sti_trsv *plan);

#endif
