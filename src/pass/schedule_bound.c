/* What any order of the nodes takes at its height, at least. When a node runs, there is
 * what nodes that it depends on have made and it, or one that depends on it, reads: who
 * depends on whom does not change with the order. On top comes what the node makes. */
#include "pass/schedule_priv.h"

typedef struct ancestry {
    const sti_scheduler *s;
    int64_t words;
    uint64_t *before; /* [nodes, words]: a bit for each node that a node depends on */
    uint64_t *until;  /* [words]: before readers of the content at hand, or these */
    size_t *held;     /* [nodes] */
} ancestry;

static uint64_t *row_of(const ancestry *a, int32_t node)
{
    return a->before + node * a->words;
}

static bool has(const uint64_t *row, int32_t node)
{
    return row[node / 64] >> (node % 64) & 1u;
}

static void add(uint64_t *row, int32_t node)
{
    row[node / 64] |= (uint64_t)1 << (node % 64);
}

static void join(const ancestry *a, uint64_t *row, const uint64_t *other)
{
    for (int64_t w = 0; w < a->words; w++)
        row[w] |= other[w];
}

/* Nodes stand in an order that can be run, so those before are known. */
static void collect(const ancestry *a)
{
    for (int32_t n = 0; n < a->s->nodes; n++) {
        const sti_node *node = sti_graph_node(a->s->graph, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            const sti_node *maker =
                node->in[i] < 0 ? NULL
                                : sti_graph_value(a->s->graph, node->in[i])->producer;
            if (!maker)
                continue;
            join(a, row_of(a, n), row_of(a, maker->id));
            add(row_of(a, n), maker->id);
        }
    }
}

/* Nodes at which a content is there, whatever the order. */
static void hold(const ancestry *a, stint_value content, const int32_t *reader,
                 int32_t readers)
{
    const sti_scheduler *s = a->s;
    const sti_node *maker = sti_graph_value(s->graph, content)->producer;
    for (int64_t w = 0; w < a->words; w++)
        a->until[w] = 0;
    for (int32_t i = 0; i < readers; i++) {
        join(a, a->until, row_of(a, reader[i]));
        add(a->until, reader[i]);
    }
    for (int32_t n = 0; n < s->nodes; n++)
        if (has(a->until, n) && (!maker || has(row_of(a, n), maker->id)))
            a->held[n] += s->bytes[content];
}

/* Readers of every content in turn; list [nodes]. */
static void hold_all(const ancestry *a, int32_t *list)
{
    const sti_scheduler *s = a->s;
    for (stint_value v = 0; v < s->values; v++) {
        int32_t count = 0;
        if (s->content[v] != v || s->bytes[v] == 0)
            continue;
        for (int32_t n = 0; n < s->nodes; n++) {
            const sti_node *node = sti_graph_node(s->graph, n);
            bool reads = false;
            for (int32_t i = 0; i < node->n_in && !sti_schedule_is_view(node); i++)
                reads = reads || (node->in[i] >= 0 && s->content[node->in[i]] == v);
            if (reads)
                list[count++] = n;
        }
        hold(a, v, list, count);
    }
}

/* What a node makes, with scratch, less the operand that its result may lie over. */
static size_t least_room(const sti_scheduler *s, const sti_node *node)
{
    size_t room = sti_schedule_scratch(s, node);
    for (int32_t i = 0; i < node->n_out && !sti_schedule_is_view(node); i++)
        room += s->bytes[node->out[i]];
    for (int k = 0; k < 2 && k < node->n_in; k++)
        if (node->op->flags & (unsigned)(STI_OP_INPLACE_0 << k) && node->in[k] >= 0 &&
            s->bytes[s->content[node->in[k]]] == s->bytes[node->out[0]])
            return room - s->bytes[node->out[0]];
    return room;
}

stint_status sti_schedule_bound(const sti_scheduler *s, size_t *bytes_out)
{
    ancestry a = {.s = s, .words = (s->nodes + 63) / 64};
    int32_t *list = sti_alloc_array(s->nodes, sizeof *list, "pass.bound");
    a.before = sti_alloc_array(s->nodes * a.words, sizeof *a.before, "pass.bound");
    a.until = sti_alloc_array(a.words, sizeof *a.until, "pass.bound");
    a.held = sti_alloc_array(s->nodes, sizeof *a.held, "pass.bound");
    stint_status st = list && a.before && a.until && a.held ? STINT_OK : STINT_E_MEMORY;
    *bytes_out = 0;
    if (st == STINT_OK) {
        collect(&a);
        hold_all(&a, list);
    }
    for (int32_t n = 0; n < s->nodes && st == STINT_OK; n++) {
        const size_t here = a.held[n] + least_room(s, sti_graph_node(s->graph, n));
        *bytes_out = here > *bytes_out ? here : *bytes_out;
    }
    sti_free(list);
    sti_free(a.before);
    sti_free(a.until);
    sti_free(a.held);
    return st;
}
