/* The cells of a circuit shared among ranks.
 *
 * All ranks walk through the same waves (waves.h) and share each: as much as their
 * threads are of all, a cell where most of its inputs are made. A result travels to the
 * ranks that need it and to no other; rank 0 needs the outputs. Every rank works the
 * whole table out by itself, so that nothing about it travels. */
#ifndef STI_SEAL_SHARE_H
#define STI_SEAL_SHARE_H

#include "seal/waves.h"

enum { STI_SHARE_RANKS = 64 };

typedef struct sti_share {
    int ranks;
    int64_t width;    /* cells of a wave */
    int64_t most;     /* cells that a rank has of a wave, at most */
    uint8_t *owner;   /* [cells] */
    uint64_t *wanted; /* [cells]: bit r: rank r needs it and does not make it */
    int64_t sent;     /* results that travel, each counted as often as it does */
} sti_share;

/* threads [ranks] of each rank. STINT_E_UNSUPPORTED: more than STI_SHARE_RANKS. */
stint_status sti_share_make(const sti_circuit *circuit, const int *threads, int ranks,
                            bool by_levels, sti_share *out);
void sti_share_fini(sti_share *share);

#endif
