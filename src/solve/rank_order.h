/* Reverse Cuthill-McKee over ranks: each rank tells rank 0 the pattern of a stretch of
 * rows, which finds the order and tells it to all. Rank 0 has the pattern as a graph
 * for as long as that takes, never a value; then every rank sees the entries of the
 * source in the new order, and goes on as it would with a file that lies so. */
#ifndef STI_SOLVE_RANK_ORDER_H
#define STI_SOLVE_RANK_ORDER_H

#include "solve/rank_facts.h"

/* Must stay where it is once it is made; zeroed: none. */
typedef struct sti_rank_order {
    int32_t *order;  /* [n] old numbers of new rows; NULL: there is none */
    int32_t *number; /* [n] new numbers of old rows */
    const sti_entry_source *from;
    sti_entry_source source; /* the entries, rows and columns in the order */
} sti_rank_order;

/* Collective; the facts are of the source as it lies. What a pass meets;
 * STINT_E_MEMORY, STINT_E_PEER. */
stint_status sti_rank_order_init(sti_comm *comm, const sti_entry_source *source,
                                 const sti_rank_facts *facts,
                                 sti_rank_order *order_out);
void sti_rank_order_fini(sti_rank_order *order);
/* Bytes that it takes of this rank at most, the stretch of rows with them. */
size_t sti_rank_order_bytes(const sti_comm *comm, const sti_rank_facts *facts);

/* vector [n] from the new order to the old one, by scratch [n]. */
void sti_rank_order_back(const sti_rank_order *order, int64_t n, double *vector,
                         double *scratch);

#endif
