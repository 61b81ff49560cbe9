/* A vector of which every rank has made a stretch, made whole on all of them: through
 * windows within a host, by one message a rank between hosts. */
#ifndef STI_SOLVE_RANK_SPREAD_H
#define STI_SOLVE_RANK_SPREAD_H

#include "net/rank_window.h"

/* Zeroed: none. */
typedef struct sti_rank_spread {
    sti_comm *comm;
    const int64_t *first; /* [size + 1] */
    sti_window values, flags;
    long long turns;
    sti_comm_request *requests; /* [2 size] */
} sti_rank_spread;

/* Collective. Rank r has rows [first[r], first[r + 1]), which are borrowed. */
stint_status sti_rank_spread_init(sti_comm *comm, const int64_t *first, bool share,
                                  sti_rank_spread *spread_out);
void sti_rank_spread_fini(sti_rank_spread *spread); /* also of a zeroed one */
/* Collective. y [n]. STINT_E_PEER. */
stint_status sti_rank_spread_run(sti_rank_spread *spread, double *y);
/* Messages that this rank sends in a run, and their bytes. */
void sti_rank_spread_count(const sti_rank_spread *spread, int64_t *messages_out,
                           int64_t *bytes_out);

#endif
