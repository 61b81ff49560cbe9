/* Everything held packed, where that is the cheaper way not to keep it. A network's
 * first convolution sees few channels: it makes its large result in less time than a
 * block of it takes to code, and to the last bit. */
#include <string.h>

#include "op/op.h"
#include "plan/budget.h"
#include "plan/plan_priv.h"

static bool reads_leaves_only(const stint_graph *graph, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_in; i++)
        if (node->in[i] >= 0 && sti_graph_value(graph, node->in[i])->producer)
            return false;
    return true;
}

/* To make the candidate again, and what its block would stand for beside it. */
static double again_seconds(const stint_graph *graph, const sti_pack_candidate *c)
{
    const sti_node *node = sti_graph_value(graph, c->value)->producer;
    double seconds = sti_budget_node_seconds(graph, node);
    if (c->also >= 0)
        seconds +=
            sti_budget_node_seconds(graph, sti_graph_value(graph, c->also)->producer);
    return seconds;
}

static sti_form form_of(const stint_graph *graph, const sti_pack_candidate *c)
{
    const sti_node *node = sti_graph_value(graph, c->value)->producer;
    return reads_leaves_only(graph, node) &&
                   again_seconds(graph, c) < c->pack_s + c->unpack_s
               ? STI_FORM_RECOMPUTE
               : STI_FORM_PACK;
}

stint_status sti_budget_pack_all(const stint_graph *graph, uint8_t *form_out)
{
    const int32_t values = sti_graph_value_count(graph);
    sti_pack_candidate *list = sti_alloc_array(values, sizeof *list, "budget.packs");
    uint8_t *saved = sti_alloc((size_t)values, "budget.packs");
    int count = 0;
    stint_status status =
        list && saved ? sti_pack_candidates(graph, list, &count) : STINT_E_MEMORY;
    if (status == STINT_OK)
        status = sti_budget_saved(graph, saved);
    memset(form_out, STI_FORM_KEEP, (size_t)values);
    for (int i = 0; i < count && status == STINT_OK; i++) {
        const sti_pack_candidate *c = &list[i];
        if (!saved[c->value]) /* images are there anyway */
            continue;
        form_out[c->value] = (uint8_t)form_of(graph, c);
        if (c->also >= 0 && form_out[c->value] == STI_FORM_RECOMPUTE)
            form_out[c->also] = STI_FORM_RECOMPUTE;
    }
    sti_free(list);
    sti_free(saved);
    return status;
}
