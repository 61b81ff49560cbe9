/* Other ways to a sum modulo two: of nodes that are there already, wherever they stand.
 *
 * A node of XORs is a sum of terms: inputs, products, and sums of too many terms. Cuts
 * follow the gates that a circuit happens to have; a cell can compute a node from any
 * others whose terms come to the same. Each term has a random number of 64 bits, and
 * the XOR of them is a sum's signature: what has equal signatures is then compared term
 * by term. Private to the room. */
#ifndef STI_SEAL_MAP_XOR_H
#define STI_SEAL_MAP_XOR_H

#include "seal/map_cuts.h"

typedef struct sti_map_sums sti_map_sums;

/* nodes: of the cover, whose `users` are read at each search. Both must outlive it. */
stint_status sti_map_sums_create(const sti_netlist *netlist, const sti_map_node *nodes,
                                 sti_map_sums **out);
void sti_map_sums_destroy(sti_map_sums *sums); /* NULL is fine */

/* A cut of a node whose leaves are inputs or in use, with lower numbers; false: none
 * was found. It has leaves, size and table. */
bool sti_map_sums_find(const sti_map_sums *sums, uint32_t node, sti_cut *cut_out);

#endif
