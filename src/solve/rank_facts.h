/* What ranks learn of a matrix by looking at its entries as they pass by, in memory for
 * its rows alone; and the rows that a rank keeps of it. */
#ifndef STI_SOLVE_RANK_FACTS_H
#define STI_SOLVE_RANK_FACTS_H

#include "base/entries.h"
#include "net/comm.h"
#include "solve/sparse_operator.h"

/* Entries of rows, counted as they came; all arrays [n]. A row of a transposed matrix
 * is a column of the file. */
typedef struct sti_rank_facts {
    int64_t n, entries;
    sti_matrix_kind kind; /* as the matrix lies, not transposed */
    bool transpose;
    int32_t *lower, *on, *upper; /* left of the diagonal, on it, right of it */
    double *diagonal;            /* NaN: no entry is there */
    /* First and last columns of a row's triangle in the order of substitution, from the
     * left in the lower one and from the right in the upper one; -1: none. */
    int32_t *lower_first, *lower_last, *upper_first, *upper_last;
    /* Levels of the lower triangle, if entries came in an order that tells them. */
    int32_t *level;
    int64_t levels;
} sti_rank_facts;

/* One pass. Symmetric is what has equal sums of hashes on both sides. STINT_E_INPUT:
 * not square, or what a pass meets; STINT_E_MEMORY. */
stint_status sti_rank_look(const sti_entry_source *source, bool transpose,
                           const char *name, sti_rank_facts *facts_out);
void sti_rank_facts_fini(sti_rank_facts *facts); /* also of zeroed ones */

/* The rows that `local` numbers (-1: another's), names[k] being the k-th, with the
 * entries of a part; one pass. own: how many. */
typedef struct sti_rank_pick {
    const int32_t *local; /* [n] */
    const int32_t *names; /* [own] */
    int64_t own;
    sti_part part;
} sti_rank_pick;
stint_status sti_rank_load(const sti_entry_source *source, const sti_rank_facts *facts,
                           const sti_rank_pick *pick, sti_csr *rows_out);

/* Contiguous rows of about equal work: first_out [ranks + 1]. */
void sti_rank_divide(const sti_rank_facts *facts, int ranks, int64_t *first_out);
/* Rows [first[rank], first[rank + 1]) with all their entries; one pass. */
stint_status sti_rank_load_block(const sti_entry_source *source,
                                 const sti_rank_facts *facts, const int64_t *first,
                                 int rank, sti_csr *rows_out);

/* Levels of a triangle, from blocks that each rank has of it, one after the other.
 * Collective. level [n]. */
stint_status sti_rank_levels(sti_comm *comm, const sti_csr *block, const int64_t *first,
                             bool upper, int32_t *level, int64_t *levels_out);
/* The same with what the facts have, or else with blocks that are read for it, two
 * passes at most. *level_out: the caller's; those of the facts are taken. Collective.
 */
stint_status sti_rank_find_levels(sti_comm *comm, const sti_entry_source *source,
                                  sti_rank_facts *facts, bool upper,
                                  int32_t **level_out, int64_t *levels_out);

#endif
