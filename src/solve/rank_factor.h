/* Incomplete factors of ranks that share memory: the rows of a factor lie in windows, a
 * rank writing its own and reading those of the others where they are. */
#ifndef STI_SOLVE_RANK_FACTOR_H
#define STI_SOLVE_RANK_FACTOR_H

#include "solve/factor.h"
#include "solve/rank_facts.h"
#include "solve/rank_trsv.h"

typedef struct sti_rank_factor sti_rank_factor;

/* Collective. ilu0: whole rows; else the lower triangle. `plan` is of the lower
 * triangle (a diagonal of ones for ilu0), says who has which row, and gets the factor's
 * values. shift_out: of IC(0). STINT_E_FAILED: a pivot, with its row. */
stint_status sti_rank_factor_create(sti_comm *comm, const sti_entry_source *source,
                                    const sti_rank_facts *facts, bool ilu0,
                                    sti_rank_trsv *plan, const char *name,
                                    double *shift_out, sti_rank_factor **factor_out);
void sti_rank_factor_destroy(sti_rank_factor *factor); /* NULL is fine */

/* Rows of L's part, and of U, or of the transpose of L: as sti_rank_rows_fn, user being
 * the factor. */
sti_rank_rows_fn sti_rank_factor_lower, sti_rank_factor_upper;

#endif
