/* Top-k of a row that lies in parts on several ranks. Each selects from its own part;
 * lists of winners join along a binomial tree to rank 0, which tells all: the result is
 * that of one stint_topk on everything, bit for bit, for any number of ranks
 * (stint_topk_merge is associative and commutative).
 *
 * On the wire, up: the lists of ranks 1 .. size - 1, each stint_topk_list_bytes of as
 * many winners as its subtree has, at most k; down: a broadcast of the result. */
#ifndef STI_NET_TOPK_RANKS_H
#define STI_NET_TOPK_RANKS_H

#include "net/comm.h"
#include "stint/topk.h"

/* desc is equal on all ranks, but for n, the elements of this rank's part (0 will do),
 * index_base, the place of its first in the whole row (parts do not overlap), and
 * threads, costs. One row; no addend. index_out [k] and values_out [k, of the type] get
 * the min(k, all elements) best on every rank, *count_out how many those are. All ranks
 * call it, in the same order; where one fails (a NaN under STINT_TOPK_NAN_ERROR, no
 * memory) all give that status and its words. */
stint_status sti_topk_ranks(sti_comm *comm, const stint_topk_desc *desc, const void *x,
                            int64_t *index_out, void *values_out, int64_t *count_out);

#endif
