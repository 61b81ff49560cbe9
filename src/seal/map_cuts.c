#include "seal/map_cuts.h"

#include <string.h>

#include "base/memory.h"

/* ---- which functions are cells ---- */

static const int permutations[24][4] = {
    {0, 1, 2, 3}, {1, 0, 2, 3}, {0, 2, 1, 3}, {1, 2, 0, 3}, {2, 0, 1, 3}, {2, 1, 0, 3},
    {0, 1, 3, 2}, {1, 0, 3, 2}, {0, 2, 3, 1}, {1, 2, 3, 0}, {2, 0, 3, 1}, {2, 1, 3, 0},
    {0, 3, 1, 2}, {1, 3, 0, 2}, {0, 3, 2, 1}, {1, 3, 2, 0}, {2, 3, 0, 1}, {2, 3, 1, 0},
    {3, 0, 1, 2}, {3, 1, 0, 2}, {3, 0, 2, 1}, {3, 1, 2, 0}, {3, 2, 0, 1}, {3, 2, 1, 0}};

static const uint32_t size_mask[STI_CELL_INPUTS + 1] = {0x1, 0x3, 0xF, 0xFF, 0xFFFF};

static uint32_t table_of(unsigned cell, int inputs, const sti_match *m)
{
    uint32_t table = 0;
    for (unsigned r = 0; r < 1U << inputs; r++) {
        unsigned q = 0;
        for (int i = 0; i < inputs; i++)
            q |= ((r >> m->from[i] ^ (unsigned)m->negate >> i) & 1) << i;
        table |= (cell >> q & 1) << r;
    }
    return table;
}

/* A permutation of the first n is one that leaves the rest in place. */
static bool permutes_first(const int *permutation, int n)
{
    for (int i = n; i < STI_CELL_INPUTS; i++)
        if (permutation[i] != i)
            return false;
    return true;
}

static void put_match(sti_matches *matches, int inputs, uint32_t table, sti_match m)
{
    sti_match *at = &matches->of_size[inputs][table & size_mask[inputs]];
    if (at->kind == 0)
        *at = m;
}

static void add_cell(sti_matches *matches, sti_cell_kind kind)
{
    const int inputs = sti_cell_row_of(kind)->inputs;
    const unsigned cell = sti_cell_table(kind);
    for (int p = 0; p < 24; p++) {
        if (!permutes_first(permutations[p], inputs))
            continue;
        for (unsigned negate = 0; negate < 1U << inputs; negate++) {
            sti_match m = {.kind = (uint8_t)(kind + 1), .negate = (uint8_t)negate};
            for (int i = 0; i < inputs; i++)
                m.from[i] = (uint8_t)permutations[p][i];
            const uint32_t table = table_of(cell, inputs, &m);
            put_match(matches, inputs, table, m);
            m.negate_out = 1;
            put_match(matches, inputs, ~table, m);
        }
    }
}

stint_status sti_matches_init(sti_matches *matches)
{
    *matches = (sti_matches){0};
    for (int size = 2; size <= STI_CELL_INPUTS; size++) {
        matches->of_size[size] = sti_alloc_array((int64_t)size_mask[size] + 1,
                                                 sizeof(sti_match), "seal.matches");
        if (!matches->of_size[size])
            return STINT_E_MEMORY;
    }
    for (int kind = 0; kind < STI_CELL_KINDS; kind++)
        add_cell(matches, (sti_cell_kind)kind);
    return STINT_OK;
}

void sti_matches_fini(sti_matches *matches)
{
    for (int size = 2; size <= STI_CELL_INPUTS; size++)
        sti_free(matches->of_size[size]);
    *matches = (sti_matches){0};
}

const sti_match *sti_matches_find(const sti_matches *matches, const sti_cut *cut)
{
    return &matches->of_size[cut->size][cut->table & size_mask[cut->size]];
}

/* ---- cuts ---- */

/* Leaves of both, ascending; false where they are more than four. */
static bool join_leaves(const sti_cut *a, const sti_cut *b, sti_cut *out)
{
    int i = 0, j = 0, n = 0;
    while (i < a->size || j < b->size) {
        if (n == STI_CELL_INPUTS)
            return false;
        if (j == b->size || (i < a->size && a->leaf[i] < b->leaf[j])) {
            out->leaf[n++] = a->leaf[i++];
        } else {
            i += i < a->size && a->leaf[i] == b->leaf[j];
            out->leaf[n++] = b->leaf[j++];
        }
    }
    out->size = (uint8_t)n;
    return true;
}

/* The table of `cut` over the leaves of `over`, which has all of them. */
static uint16_t spread_table(const sti_cut *cut, const sti_cut *over)
{
    int place[STI_CELL_INPUTS] = {0};
    uint16_t table = 0;
    for (int i = 0, j = 0; i < cut->size; i++) {
        while (j < STI_CELL_INPUTS - 1 && over->leaf[j] != cut->leaf[i])
            j++;
        place[i] = j;
    }
    for (unsigned r = 0; r < 16; r++) {
        unsigned q = 0;
        for (int i = 0; i < cut->size; i++)
            q |= (r >> place[i] & 1) << i;
        table = (uint16_t)(table | (cut->table >> q & 1U) << r);
    }
    return table;
}

/* Tables in which input i makes no difference are the same with it moved away. */
static const uint16_t input_mask[STI_CELL_INPUTS] = {0xAAAA, 0xCCCC, 0xF0F0, 0xFF00};

static bool depends_on(uint16_t table, int i)
{
    return ((table & input_mask[i]) >> (1 << i)) != (table & (uint16_t)~input_mask[i]);
}

/* Drop the leaves that the function does not depend on. */
static void shrink_support(sti_cut *cut)
{
    sti_cut kept = *cut;
    int n = 0;
    for (int i = 0; i < cut->size; i++)
        if (depends_on(cut->table, i))
            kept.leaf[n++] = cut->leaf[i];
    if (n == cut->size)
        return;
    kept.size = (uint8_t)n;
    kept.table = 0;
    for (unsigned r = 0; r < 16; r++) {
        unsigned q = 0;
        for (int i = 0, k = 0; i < cut->size; i++)
            if (k < n && cut->leaf[i] == kept.leaf[k])
                q |= (r >> k++ & 1) << i;
        kept.table = (uint16_t)(kept.table | (cut->table >> q & 1U) << r);
    }
    *cut = kept;
}

static void judge(const sti_map_node *nodes, const sti_matches *matches, sti_cut *cut)
{
    cut->fits = sti_matches_find(matches, cut)->kind != 0;
    cut->flow = 1;
    cut->depth = 0;
    for (int i = 0; i < cut->size; i++) {
        const sti_map_node *leaf = &nodes[cut->leaf[i]];
        cut->flow += leaf->flow;
        cut->depth = leaf->depth > cut->depth ? leaf->depth : cut->depth;
    }
    cut->depth++;
}

static bool is_better(const sti_cut *a, const sti_cut *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (a->flow != b->flow)
        return a->flow < b->flow;
    if (a->depth != b->depth)
        return a->depth < b->depth;
    return a->size < b->size;
}

static bool is_same(const sti_cut *a, const sti_cut *b)
{
    return a->size == b->size &&
           memcmp(a->leaf, b->leaf, a->size * sizeof a->leaf[0]) == 0;
}

/* Keep the list sorted: cuts that a cell computes first, then those that may become
 * part of one that does. */
static void insert(sti_map_node *node, const sti_cut *cut)
{
    int at = node->cuts;
    for (int i = 0; i < node->cuts; i++)
        if (is_same(&node->cut[i], cut))
            return;
    while (at > 0 && is_better(cut, &node->cut[at - 1]))
        at--;
    if (at == STI_CUTS_KEPT)
        return;
    if (node->cuts < STI_CUTS_KEPT)
        node->cuts++;
    for (int i = node->cuts - 1; i > at; i--)
        node->cut[i] = node->cut[i - 1];
    node->cut[at] = *cut;
}

static sti_cut cut_of_itself(uint32_t node)
{
    return (sti_cut){.leaf = {node}, .table = 0xAAAA, .size = 1};
}

/* Cut number i of a node; after all of its own the node itself. */
static sti_cut cut_at(const sti_map_node *nodes, uint32_t node, int i)
{
    return i < nodes[node].cuts ? nodes[node].cut[i] : cut_of_itself(node);
}

static void try_pair(const sti_netlist *netlist, const sti_matches *matches,
                     sti_map_node *nodes, int64_t node, const sti_cut *a,
                     const sti_cut *b)
{
    const sti_gate *gate = &netlist->gate[node];
    sti_cut cut = {.size = 0};
    if (!join_leaves(a, b, &cut))
        return;
    const uint16_t ta = (uint16_t)(spread_table(a, &cut) ^ (gate->a & 1 ? 0xFFFF : 0));
    const uint16_t tb = (uint16_t)(spread_table(b, &cut) ^ (gate->b & 1 ? 0xFFFF : 0));
    cut.table = gate->kind == STI_GATE_AND ? ta & tb : ta ^ tb;
    shrink_support(&cut);
    if (cut.size < 2) /* no cell, and no way to more than one */
        return;
    judge(nodes, matches, &cut);
    insert(&nodes[node], &cut);
}

void sti_cuts_enumerate(const sti_netlist *netlist, const sti_matches *matches,
                        sti_map_node *nodes, int64_t node)
{
    const sti_gate *gate = &netlist->gate[node];
    const uint32_t a = gate->a >> 1, b = gate->b >> 1;
    sti_map_node *at = &nodes[node];
    at->cuts = 0;
    for (int i = nodes[a].cuts; i >= 0; i--) {
        const sti_cut first = cut_at(nodes, a, i);
        for (int j = nodes[b].cuts; j >= 0; j--) {
            const sti_cut second = cut_at(nodes, b, j);
            try_pair(netlist, matches, nodes, node, &first, &second);
        }
    }
    at->flow = at->cut[0].flow / at->shares;
    at->depth = at->cut[0].depth;
}
