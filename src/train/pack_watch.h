/* Which packed blocks of a run turned out too small, before its results are summed over
 * ranks: a compressed sum must not owe anything for a step that is void. */
#ifndef STI_TRAIN_PACK_WATCH_H
#define STI_TRAIN_PACK_WATCH_H

#include "model/network.h"

typedef struct sti_pack_watch {
    size_t *overflow_at; /* [count]: bytes from the beginning of a result block */
    int count;
    int32_t last_node; /* after which all blocks are packed; -1: there are none */
} sti_pack_watch;

/* The packed blocks of a planned network. STINT_E_MEMORY. */
stint_status sti_pack_watch_init(const sti_network *network, sti_pack_watch *watch);
void sti_pack_watch_fini(sti_pack_watch *watch); /* a zeroed one is fine */
/* Did a block overflow in a run that left its results here? */
bool sti_pack_watch_overflows(const sti_pack_watch *watch, const char *block);

#endif
