#include "train/pack_watch.h"

#include <string.h>

#include "base/memory.h"
#include "op/op.h"

stint_status sti_pack_watch_init(const sti_network *network, sti_pack_watch *watch)
{
    const stint_graph *graph = network->graph;
    *watch = (sti_pack_watch){.last_node = -1};
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        if (sti_graph_node(graph, n)->op == &sti_op_pack) {
            watch->last_node = n;
            watch->count++;
        }
    watch->overflow_at = sti_alloc_array((int64_t)watch->count + 1,
                                         sizeof *watch->overflow_at, "pack watch");
    if (!watch->overflow_at)
        return STINT_E_MEMORY;
    for (int32_t n = 0, i = 0; n <= watch->last_node; n++) {
        const sti_node *node = sti_graph_node(graph, n);
        if (node->op == &sti_op_pack)
            watch->overflow_at[i++] = network->plan->allocation[node->out[1]].offset +
                                      STI_PACK_OVERFLOW * sizeof(float);
    }
    return STINT_OK;
}

void sti_pack_watch_fini(sti_pack_watch *watch)
{
    sti_free(watch->overflow_at);
    *watch = (sti_pack_watch){.last_node = -1};
}

bool sti_pack_watch_overflows(const sti_pack_watch *watch, const char *block)
{
    bool any = false;
    for (int i = 0; i < watch->count; i++) {
        float overflow;
        memcpy(&overflow, block + watch->overflow_at[i], sizeof overflow);
        any = any || overflow > 0.0f;
    }
    return any;
}
