/* What running a node changes in the bytes alive, as an order is made. */
#include "pass/schedule_priv.h"

/* Threads for which scratch is estimated; the plan asks again with the true number. */
#define ESTIMATE_THREADS 2

bool sti_schedule_is_view(const sti_node *node)
{
    return (node->op->flags & STI_OP_VIEW) != 0;
}

/* Does input i of the node repeat an earlier one's content? */
bool sti_schedule_repeats(const sti_scheduler *s, const sti_node *node, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (node->in[k] >= 0 && s->content[node->in[k]] == s->content[node->in[i]])
            return true;
    return false;
}

/* Bytes that running the node makes and frees, now. */
void sti_schedule_effect(const sti_scheduler *s, const sti_node *node, size_t *made,
                         size_t *freed)
{
    *made = *freed = 0;
    if (sti_schedule_is_view(node))
        return;
    for (int32_t i = 0; i < node->n_out; i++) {
        *made += s->bytes[node->out[i]];
        if (s->readers[node->out[i]] == 0)
            *freed += s->bytes[node->out[i]];
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] < 0 || sti_schedule_repeats(s, node, i))
            continue;
        stint_value content = s->content[node->in[i]];
        if (s->readers[content] == 1)
            *freed += s->bytes[content];
    }
}

/* Bytes that output 0 saves by lying over an operand which dies here. */
static size_t overlaid(const sti_scheduler *s, const sti_node *node)
{
    for (int k = 0; k < 2 && k < node->n_in; k++) {
        stint_value in = node->in[k];
        if (!(node->op->flags & (unsigned)(STI_OP_INPLACE_0 << k)) || in < 0)
            continue;
        stint_value content = s->content[in];
        size_t bytes = s->bytes[content];
        if (sti_graph_value(s->graph, content)->role == STI_ROLE_NODE &&
            s->readers[content] == 1 && bytes == s->bytes[node->out[0]])
            return bytes;
    }
    return 0;
}

size_t sti_schedule_scratch(const sti_scheduler *s, const sti_node *node)
{
    return node->op->scratch_bytes
               ? node->op->scratch_bytes(s->graph, node, ESTIMATE_THREADS)
               : 0;
}

size_t sti_schedule_room(const sti_scheduler *s, const sti_node *node)
{
    size_t made, freed;
    sti_schedule_effect(s, node, &made, &freed);
    return made - overlaid(s, node) + sti_schedule_scratch(s, node);
}

void sti_schedule_consume(sti_scheduler *s, const sti_node *node, int32_t by)
{
    for (int32_t i = 0; i < node->n_in && !sti_schedule_is_view(node); i++)
        if (node->in[i] >= 0 && !sti_schedule_repeats(s, node, i))
            s->readers[s->content[node->in[i]]] -= by;
}
