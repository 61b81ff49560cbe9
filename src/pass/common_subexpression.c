/* Merges nodes that compute the same: equal operator, attributes and inputs. Random
 * operators are functions of their attributes too, so they merge like any other.
 *
 * One walk in order suffices, because a node's inputs are merged before it is met. */
#include <string.h>

#include "pass/pass_priv.h"

/* A constant is cheaper to write again than to keep from the forward half to the
 * backward half, so large ones stay apart. */
#define SMALL_CONSTANT_BYTES 4096

static uint64_t mix(uint64_t hash, const void *bytes, size_t n_bytes)
{
    const unsigned char *at = bytes; /* FNV-1a */
    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The name, not the address, of the operator: the order of buckets never matters, but a
 * hash that is the same in every run is easier to debug. */
static uint64_t node_hash(const sti_node *node)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = mix(hash, node->op->name, strlen(node->op->name));
    hash = mix(hash, node->in, (size_t)node->n_in * sizeof *node->in);
    return mix(hash, node->attr, node->attr ? node->op->attr_bytes : 0);
}

static bool same_node(const sti_node *a, const sti_node *b)
{
    return a->op == b->op && a->n_in == b->n_in &&
           memcmp(a->in, b->in, (size_t)a->n_in * sizeof *a->in) == 0 &&
           (!a->attr || memcmp(a->attr, b->attr, a->op->attr_bytes) == 0);
}

static bool is_large_constant(const stint_graph *graph, const sti_node *node)
{
    if (node->n_in > 0)
        return false;
    return stint_shape_bytes(&sti_graph_value(graph, node->out[0])->shape) >
           SMALL_CONSTANT_BYTES;
}

/* The node like this one met before, or NULL after entering this one. */
static sti_node *find_or_enter(sti_node **table, size_t slots, sti_node *node)
{
    size_t at = (size_t)node_hash(node) & (slots - 1);
    while (table[at]) {
        if (same_node(table[at], node))
            return table[at];
        at = (at + 1) & (slots - 1);
    }
    table[at] = node;
    return NULL;
}

static int32_t merge(stint_graph *graph, sti_node **table, size_t slots,
                     stint_value *instead)
{
    int32_t merged = 0;
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        sti_node *node = sti_graph_node(graph, n);
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                node->in[i] = instead[node->in[i]];
        if (is_large_constant(graph, node))
            continue;
        const sti_node *same = find_or_enter(table, slots, node);
        if (!same)
            continue;
        for (int32_t i = 0; i < node->n_out; i++)
            instead[node->out[i]] = same->out[i];
        sti_graph_kill(graph, node);
        merged++;
    }
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++) {
        sti_output *output = &sti_graph_outputs(graph)[i];
        output->value = instead[output->value];
    }
    return merged;
}

stint_status sti_pass_common_subexpression(stint_graph *graph, sti_pass_note *note)
{
    int32_t nodes = sti_graph_node_count(graph), values = sti_graph_value_count(graph);
    size_t slots = 64;
    stint_status status = STINT_E_MEMORY;

    while (slots < 2 * (size_t)nodes)
        slots *= 2;
    sti_node **table =
        sti_alloc_array((int64_t)slots, sizeof *table, "pass.common_subexpression");
    stint_value *instead =
        sti_alloc_array(values, sizeof *instead, "pass.common_subexpression");
    if (!table || !instead)
        goto done;
    sti_pass_clear_inplace(graph);
    for (int32_t v = 0; v < values; v++)
        instead[v] = v;
    int32_t merged = merge(graph, table, slots, instead);
    sti_pass_note_set(note, "%d of %d nodes merged", (int)merged, (int)nodes);
    status = sti_graph_sweep(graph);
done:
    sti_free(table);
    sti_free(instead);
    return status;
}
