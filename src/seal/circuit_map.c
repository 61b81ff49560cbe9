/* The choice of cells that cover a netlist.
 *
 * Few cells first, then little depth. Rounds by area flow (Manohararajah, Brown and
 * Vranesic 2006), in which a cell used by many counts each of them for a share, are
 * followed by rounds of exact local area (Mishchenko, Chatterjee and Brayton 2007): a
 * node in use is taken out, and put back by the cut that needs the fewest new cells, or
 * as a sum of nodes elsewhere that are in use anyway (map_xor.h). Where several need as
 * few, one is drawn: walking among equal covers finds ways down that a choice by depth
 * does not. The last rounds choose by depth. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "seal/circuit.h"
#include "seal/map_cuts.h"
#include "seal/map_xor.h"

/* Rounds of exact area without draws, before those with and after them. */
enum { FLOW_ROUNDS = 3, FIRST_ROUNDS = 2, LAST_ROUNDS = 2 };

/* The table of sums takes 256 bytes a node: larger netlists go without. */
#define SUMS_MOST_NODES (INT64_C(1) << 20)

typedef struct mapping {
    const sti_circuit_source *source;
    const sti_netlist *netlist;
    sti_map_node *node; /* [nodes of the netlist] */
    uint32_t *stack;    /* [nodes]: visits without recursion */
    sti_matches matches;
    sti_map_sums *sums; /* where effort is made */
    int64_t outputs;
    uint64_t round; /* of exact area */
    bool draws;     /* among equals, in this round */
} mapping;

static bool is_logic(const mapping *m, uint32_t node)
{
    return sti_gate_is_logic(&m->netlist->gate[node]);
}

static void reach(mapping *m, uint32_t root)
{
    int64_t depth = 0;
    if (m->node[root].reached)
        return;
    m->node[root].reached = true;
    m->stack[depth++] = root;
    while (depth > 0) {
        const uint32_t at = m->stack[--depth];
        if (!is_logic(m, at))
            continue;
        const uint32_t in[2] = {m->netlist->gate[at].a >> 1,
                                m->netlist->gate[at].b >> 1};
        for (int i = 0; i < 2; i++) {
            m->node[in[i]].shares++;
            if (!m->node[in[i]].reached) {
                m->node[in[i]].reached = true;
                m->stack[depth++] = in[i];
            }
        }
    }
}

static bool in_cover(const mapping *m, int64_t node)
{
    return m->node[node].reached && is_logic(m, (uint32_t)node);
}

/* Count a cut's leaves as used by one more (+1) or one less (-1), and so on downwards
 * where that begins or ends their use. Returns the cells that come or go, this one
 * among them. */
static int64_t count_uses(mapping *m, const sti_cut *cut, int step)
{
    int64_t depth = 0, cells = 1;
    for (int i = 0; i < cut->size; i++)
        m->stack[depth++] = cut->leaf[i];
    while (depth > 0) {
        const uint32_t at = m->stack[--depth];
        sti_map_node *node = &m->node[at];
        const int32_t before = node->users;
        node->users += step;
        if (!is_logic(m, at) || (step > 0 ? before : node->users) != 0)
            continue;
        cells++;
        for (int i = 0; i < node->cut[0].size; i++)
            m->stack[depth++] = node->cut[0].leaf[i];
    }
    return cells;
}

/* Users of every node by the chosen cuts; returns the number of cells. */
static int64_t count_cover(mapping *m)
{
    int64_t cells = 0;
    for (int64_t i = 0; i < m->netlist->nodes; i++)
        m->node[i].users = 0;
    for (int64_t o = 0; o < m->outputs; o++)
        m->node[m->source->result[o] >> 1].users++;
    for (int64_t i = m->netlist->nodes - 1; i > 0; i--) {
        const sti_map_node *node = &m->node[i];
        if (!in_cover(m, i) || node->users == 0)
            continue;
        cells++;
        for (int k = 0; k < node->cut[0].size; k++)
            m->node[node->cut[0].leaf[k]].users++;
    }
    return cells;
}

static void flow_round(mapping *m)
{
    for (int64_t i = 1; i < m->netlist->nodes; i++)
        if (in_cover(m, i))
            sti_cuts_enumerate(m->netlist, &m->matches, m->node, i);
    count_cover(m);
    for (int64_t i = 1; i < m->netlist->nodes; i++) {
        sti_map_node *node = &m->node[i];
        const float users = node->users > 1 ? (float)node->users : 1.0f;
        node->shares = (node->shares + 2 * users) / 3;
    }
}

static int32_t depth_by(const mapping *m, const sti_cut *cut)
{
    int32_t depth = 0;
    for (int i = 0; i < cut->size; i++)
        if (m->node[cut->leaf[i]].depth > depth)
            depth = m->node[cut->leaf[i]].depth;
    return depth + 1;
}

/* A cut across the circuit in the place of the last one kept; returns its place, or -1.
 */
static int find_across(mapping *m, sti_map_node *node)
{
    sti_cut cut;
    if (!m->sums || !sti_map_sums_find(m->sums, (uint32_t)(node - m->node), &cut))
        return -1;
    cut.fits = sti_matches_find(&m->matches, &cut)->kind != 0;
    if (!cut.fits)
        return -1;
    const int at = node->cuts < STI_CUTS_KEPT ? node->cuts++ : node->cuts - 1;
    node->cut[at] = cut;
    return at;
}

/* What cut i of a node has among equals, the less the better: its depth, or a byte that
 * is drawn. */
static int32_t rank_of(const mapping *m, const sti_map_node *node, int i,
                       const uint32_t word[4])
{
    return m->draws ? (int32_t)(word[i / 4 % 4] >> 8 * (i % 4) & 0xff)
                    : depth_by(m, &node->cut[i]);
}

/* The cut of a node in use by which the fewest cells are there for it alone. */
static void choose_again(mapping *m, sti_map_node *node)
{
    int best = 0;
    int64_t best_cells = INT64_MAX;
    int32_t best_rank = 0;
    uint32_t word[4];
    sti_random4(0, STI_STREAM_COVER, (uint64_t)(node - m->node), m->round, word);
    count_uses(m, &node->cut[0], -1);
    for (int i = 0; i < node->cuts; i++) {
        if (!node->cut[i].fits)
            continue;
        const int64_t cells = count_uses(m, &node->cut[i], 1);
        count_uses(m, &node->cut[i], -1);
        const int32_t rank = rank_of(m, node, i, word);
        if (cells < best_cells || (cells == best_cells && rank < best_rank)) {
            best = i;
            best_cells = cells;
            best_rank = rank;
        }
    }
    if (best_cells > 1) {
        const int across = find_across(m, node);
        best = across >= 0 ? across : best;
    }
    const sti_cut chosen = node->cut[best];
    node->cut[best] = node->cut[0];
    node->cut[0] = chosen;
    count_uses(m, &node->cut[0], 1);
}

static void exact_round(mapping *m)
{
    for (int64_t i = 1; i < m->netlist->nodes; i++) {
        sti_map_node *node = &m->node[i];
        if (!in_cover(m, i))
            continue;
        if (node->users > 0)
            choose_again(m, node);
        node->depth = depth_by(m, &node->cut[0]);
    }
}

/* ---- the circuit of the cover ---- */

static void add_cell(const mapping *m, int64_t node, const sti_literal *literal,
                     sti_cell *cell)
{
    const sti_cut *cut = &m->node[node].cut[0];
    const sti_match *match = sti_matches_find(&m->matches, cut);
    *cell = (sti_cell){.kind = (uint8_t)(match->kind - 1),
                       .line = m->netlist->gate[node].line};
    for (int i = 0; i < cut->size; i++)
        cell->in[i] = literal[cut->leaf[match->from[i]]] ^ (match->negate >> i & 1U);
}

/* literal [nodes]: what stands for a node in the circuit. */
static void emit(const mapping *m, sti_literal *literal, sti_circuit *c)
{
    int64_t wires = 1;
    for (int64_t i = 1; i < m->netlist->nodes; i++) {
        if (m->netlist->gate[i].kind == STI_GATE_INPUT) {
            literal[i] = (sti_literal)(2 * wires++);
        } else if (in_cover(m, i) && m->node[i].users > 0) {
            const sti_cut *cut = &m->node[i].cut[0];
            add_cell(m, i, literal, &c->cell[c->cells++]);
            literal[i] = (sti_literal)(2 * wires++) |
                         sti_matches_find(&m->matches, cut)->negate_out;
        }
    }
    for (int64_t o = 0; o < m->outputs; o++)
        c->result[o] = literal[m->source->result[o] >> 1] ^ (m->source->result[o] & 1);
}

static stint_status copy_ports(const sti_port *port, int64_t count, sti_port **out)
{
    *out = sti_alloc_array(count, sizeof **out, "seal.ports");
    if (!*out)
        return STINT_E_MEMORY;
    if (count > 0)
        memcpy(*out, port, (size_t)count * sizeof *port);
    return STINT_OK;
}

static stint_status build(mapping *m, int64_t cells, sti_circuit *c)
{
    const sti_circuit_source *s = m->source;
    stint_status st;
    sti_literal *literal =
        sti_alloc_array(m->netlist->nodes, sizeof *literal, "seal.map");
    *c = (sti_circuit){.inputs = s->inputs, .outputs = s->outputs};
    if (!literal)
        return STINT_E_MEMORY;
    STI_TRY(copy_ports(s->input, s->inputs, &c->input));
    STI_TRY(copy_ports(s->output, s->outputs, &c->output));
    c->input_bits = sti_ports_bits(c->input, c->inputs);
    c->output_bits = m->outputs;
    c->cell = sti_alloc_array(cells, sizeof *c->cell, "seal.cells");
    c->result = sti_alloc_array(m->outputs, sizeof *c->result, "seal.results");
    st = c->cell && c->result ? STINT_OK : STINT_E_MEMORY;
    if (st != STINT_OK)
        goto out;
    for (int64_t i = 0; i < m->netlist->nodes; i++)
        c->gates += in_cover(m, i);
    emit(m, literal, c);
    st = sti_circuit_identify(c);
out:
    sti_free(literal);
    if (st != STINT_OK)
        sti_circuit_fini(c);
    return st;
}

static stint_status begin(mapping *m)
{
    const int64_t nodes = m->netlist->nodes;
    stint_status st = sti_matches_init(&m->matches);
    if (st != STINT_OK)
        return st;
    m->node = sti_alloc_array(nodes, sizeof *m->node, "seal.map");
    /* A visit pushes at most the leaves of every node once. */
    m->stack =
        sti_alloc_array(STI_CELL_INPUTS * (nodes + 1), sizeof *m->stack, "seal.map");
    if (!m->node || !m->stack)
        return STINT_E_MEMORY;
    for (int64_t o = 0; o < m->outputs; o++) {
        reach(m, m->source->result[o] >> 1);
        m->node[m->source->result[o] >> 1].shares++;
    }
    return STINT_OK;
}

stint_status sti_circuit_map(const sti_circuit_source *source, sti_circuit *circuit_out)
{
    mapping m = {.source = source,
                 .netlist = source->netlist,
                 .outputs = sti_ports_bits(source->output, source->outputs)};
    int64_t cells = 0;
    *circuit_out = (sti_circuit){0};
    stint_status st = source->netlist->status;
    if (st != STINT_OK)
        return st;
    STI_TRY(begin(&m));
    for (int round = 0; round < FLOW_ROUNDS; round++)
        flow_round(&m);
    cells = count_cover(&m);
    if (source->effort > 0 && m.netlist->nodes <= SUMS_MOST_NODES)
        STI_TRY(sti_map_sums_create(m.netlist, m.node, &m.sums));
    for (int round = 0; round < source->effort; round++) {
        m.round = (uint64_t)round;
        m.draws = round >= FIRST_ROUNDS && round < source->effort - LAST_ROUNDS;
        exact_round(&m);
        cells = count_cover(&m);
    }
    st = build(&m, cells, circuit_out);
out:
    sti_map_sums_destroy(m.sums);
    sti_free(m.node);
    sti_free(m.stack);
    sti_matches_fini(&m.matches);
    return st;
}
