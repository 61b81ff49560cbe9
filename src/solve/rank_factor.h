/* Incomplete factors over ranks: the rows of a factor lie in windows, a rank writing
 * its own and reading those of the others where they are. To a rank that shares no
 * memory one message a task brings the rows that it reads, once without and once with
 * values. When a triangle of the factor is asked for, its entries go to the ranks that
 * have the rows then, one message from each rank to each elsewhere. */
#ifndef STI_SOLVE_RANK_FACTOR_H
#define STI_SOLVE_RANK_FACTOR_H

#include "solve/factor.h"
#include "solve/rank_facts.h"
#include "solve/rank_trsv.h"

typedef struct sti_rank_factor sti_rank_factor;

/* All is borrowed until the factor is destroyed. */
typedef struct sti_rank_factor_desc {
    sti_comm *comm;
    const sti_entry_source *source;
    const sti_rank_facts *facts;
    bool ilu0;           /* whole rows; else the lower triangle */
    bool share;          /* memory with ranks of this host */
    sti_rank_trsv *plan; /* of the lower triangle (a diagonal of ones for ilu0): */
                         /* says who has which row */
    const char *name;    /* of the matrix */
} sti_rank_factor_desc;

/* Collective. shift_out: of IC(0). STINT_E_FAILED: a pivot, with its row. */
stint_status sti_rank_factor_create(const sti_rank_factor_desc *desc, double *shift_out,
                                    sti_rank_factor **factor_out);
void sti_rank_factor_destroy(sti_rank_factor *factor); /* NULL is fine */

/* Rows of L's part, and of U, or of the transpose of L: as sti_rank_rows_fn, user being
 * the factor. Collective. */
sti_rank_rows_fn sti_rank_factor_lower, sti_rank_factor_upper;

#endif
