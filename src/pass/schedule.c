/* Order of the nodes, for memory.
 *
 * The order given is kept, except that a node which frees more than it makes is run as
 * soon as it can be. A weight gradient is such a node: it writes to the result block
 * and is the last reader of a saved activation, so it goes before the gradient of the
 * layer's input, which needs new room. The new order is kept only if the most bytes
 * alive at once fall; the order never changes a result. */
#include <string.h>

#include "pass/pass_priv.h"

/* Threads for which scratch is estimated; the plan asks again with the true number. */
#define ESTIMATE_THREADS 2

typedef struct scheduler {
    const stint_graph *graph;
    int32_t nodes, values;
    stint_value *content; /* [values] */
    size_t *bytes;        /* [values] of a content in the arena, 0 elsewhere */
    int32_t *readers;     /* [values]: nodes that still have to read the content */
    int32_t *waiting;     /* [nodes]: inputs whose producers have not run */
    int32_t *first_user;  /* [values]: head of a list of reading nodes, -1: none */
    int32_t *next_user;   /* [reads]: list links; a read is user_base[node] + i */
    int32_t *user_base;   /* [nodes + 1] */
    int32_t *read_node;   /* [reads] */
    uint8_t *done;        /* [nodes] */
    int32_t *ready;       /* [nodes]: early candidates, in no particular order */
    int32_t ready_count;
    int32_t *order; /* [nodes] */
} scheduler;

static bool is_view(const sti_node *node)
{
    return (node->op->flags & STI_OP_VIEW) != 0;
}

/* Does input i of the node repeat an earlier one's content? */
static bool repeats(const scheduler *s, const sti_node *node, int32_t i)
{
    for (int32_t k = 0; k < i; k++)
        if (node->in[k] >= 0 && s->content[node->in[k]] == s->content[node->in[i]])
            return true;
    return false;
}

static void reset_readers(scheduler *s)
{
    memset(s->readers, 0, (size_t)s->values * sizeof *s->readers);
    for (int32_t n = 0; n < s->nodes; n++) {
        const sti_node *node = sti_graph_node(s->graph, n);
        for (int32_t i = 0; i < node->n_in && !is_view(node); i++)
            if (node->in[i] >= 0 && !repeats(s, node, i))
                s->readers[s->content[node->in[i]]]++;
    }
}

/* What each content costs the arena: nothing for params, state and results. */
static void set_bytes(scheduler *s)
{
    for (int32_t v = 0; v < s->values; v++) {
        const sti_value_row *row = sti_graph_value(s->graph, v);
        bool arena = row->role == STI_ROLE_INPUT || row->producer;
        s->bytes[v] = arena && s->content[v] == v
                          ? STI_ALIGN_UP(stint_shape_bytes(&row->shape), 64)
                          : 0;
        if (row->producer && s->readers[v] == 0 && row->producer_out < 32 &&
            (row->producer->op->optional_out >> row->producer_out & 1u))
            s->bytes[v] = 0; /* not made at all, unless it is a result */
    }
    for (int32_t i = 0; i < sti_graph_output_count(s->graph); i++)
        s->bytes[s->content[sti_graph_outputs(s->graph)[i].value]] = 0;
}

/* Bytes that running the node makes and frees, now. */
static void effect(const scheduler *s, const sti_node *node, size_t *made,
                   size_t *freed)
{
    *made = *freed = 0;
    if (is_view(node))
        return;
    for (int32_t i = 0; i < node->n_out; i++) {
        *made += s->bytes[node->out[i]];
        if (s->readers[node->out[i]] == 0)
            *freed += s->bytes[node->out[i]];
    }
    for (int32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] < 0 || repeats(s, node, i))
            continue;
        stint_value content = s->content[node->in[i]];
        if (s->readers[content] == 1)
            *freed += s->bytes[content];
    }
}

/* Bytes that output 0 saves by lying over an operand which dies here. */
static size_t overlaid(const scheduler *s, const sti_node *node)
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

static size_t scratch(const scheduler *s, const sti_node *node)
{
    return node->op->scratch_bytes
               ? node->op->scratch_bytes(s->graph, node, ESTIMATE_THREADS)
               : 0;
}

static void consume(scheduler *s, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_in && !is_view(node); i++)
        if (node->in[i] >= 0 && !repeats(s, node, i))
            s->readers[s->content[node->in[i]]]--;
}

/* The most bytes alive at once when nodes run in `order` (NULL: as they stand). */
static size_t peak_of(scheduler *s, const int32_t *order)
{
    size_t live = 0, peak = 0;
    reset_readers(s);
    for (int32_t v = 0; v < s->values; v++)
        if (sti_graph_value(s->graph, v)->role == STI_ROLE_INPUT)
            live += s->bytes[v];
    for (int32_t i = 0; i < s->nodes; i++) {
        const sti_node *node = sti_graph_node(s->graph, order ? order[i] : i);
        size_t made, freed;
        effect(s, node, &made, &freed);
        size_t here = live + made - overlaid(s, node) + scratch(s, node);
        peak = here > peak ? here : peak;
        live += made;
        live -= freed;
        consume(s, node);
    }
    return peak;
}

/* Lists of the nodes that wait for each value. */
static void link_users(scheduler *s)
{
    for (int32_t v = 0; v < s->values; v++)
        s->first_user[v] = -1;
    for (int32_t n = 0; n < s->nodes; n++) {
        const sti_node *node = sti_graph_node(s->graph, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            stint_value in = node->in[i];
            int32_t read = s->user_base[n] + i;
            s->read_node[read] = n;
            if (in < 0 || !sti_graph_value(s->graph, in)->producer)
                continue;
            s->waiting[n]++;
            s->next_user[read] = s->first_user[in];
            s->first_user[in] = read;
        }
        if (s->waiting[n] == 0)
            s->ready[s->ready_count++] = n;
    }
}

/* The ready node that frees most beyond what it makes; the earliest of equals; -1. */
static int32_t best_saver(const scheduler *s)
{
    int32_t best = -1;
    size_t most = 0;
    for (int32_t i = 0; i < s->ready_count; i++) {
        int32_t n = s->ready[i];
        size_t made, freed;
        effect(s, sti_graph_node(s->graph, n), &made, &freed);
        size_t gain = freed > made ? freed - made : 0;
        if (gain > most || (gain == most && gain > 0 && n < best)) {
            most = gain;
            best = n;
        }
    }
    return best;
}

static void run_node(scheduler *s, int32_t n)
{
    const sti_node *node = sti_graph_node(s->graph, n);
    consume(s, node);
    s->done[n] = 1;
    for (int32_t i = 0; i < s->ready_count; i++)
        if (s->ready[i] == n)
            s->ready[i] = s->ready[--s->ready_count];
    for (int32_t i = 0; i < node->n_out; i++)
        for (int32_t r = s->first_user[node->out[i]]; r >= 0; r = s->next_user[r])
            if (--s->waiting[s->read_node[r]] == 0)
                s->ready[s->ready_count++] = s->read_node[r];
}

static void make_order(scheduler *s)
{
    int32_t next = 0;
    reset_readers(s);
    link_users(s);
    for (int32_t i = 0; i < s->nodes; i++) {
        int32_t n = best_saver(s);
        while (n < 0 && s->done[next])
            next++;
        if (n < 0)
            n = next; /* its producers stand before it, so they have run */
        run_node(s, n);
        s->order[i] = n;
    }
}

static stint_status scheduler_init(scheduler *s)
{
    int64_t reads = 0;
    for (int32_t n = 0; n < s->nodes; n++)
        reads += sti_graph_node(s->graph, n)->n_in;
    s->content = sti_alloc_array(s->values, sizeof *s->content, "pass.schedule");
    s->bytes = sti_alloc_array(s->values, sizeof *s->bytes, "pass.schedule");
    s->readers = sti_alloc_array(s->values, sizeof *s->readers, "pass.schedule");
    s->first_user = sti_alloc_array(s->values, sizeof *s->first_user, "pass.schedule");
    s->waiting = sti_alloc_array(s->nodes, sizeof *s->waiting, "pass.schedule");
    s->user_base = sti_alloc_array(s->nodes, sizeof *s->user_base, "pass.schedule");
    s->next_user = sti_alloc_array(reads, sizeof *s->next_user, "pass.schedule");
    s->read_node = sti_alloc_array(reads, sizeof *s->read_node, "pass.schedule");
    s->done = sti_alloc_array(s->nodes, sizeof *s->done, "pass.schedule");
    s->ready = sti_alloc_array(s->nodes, sizeof *s->ready, "pass.schedule");
    s->order = sti_alloc_array(s->nodes, sizeof *s->order, "pass.schedule");
    if (!s->content || !s->bytes || !s->readers || !s->first_user || !s->waiting ||
        !s->user_base || !s->next_user || !s->read_node || !s->done || !s->ready ||
        !s->order)
        return STINT_E_MEMORY;
    for (int32_t n = 0, base = 0; n < s->nodes; n++) {
        s->user_base[n] = base;
        base += sti_graph_node(s->graph, n)->n_in;
    }
    sti_pass_contents(s->graph, s->content);
    reset_readers(s);
    set_bytes(s);
    return STINT_OK;
}

static void scheduler_fini(scheduler *s)
{
    sti_free(s->content);
    sti_free(s->bytes);
    sti_free(s->readers);
    sti_free(s->first_user);
    sti_free(s->waiting);
    sti_free(s->user_base);
    sti_free(s->next_user);
    sti_free(s->read_node);
    sti_free(s->done);
    sti_free(s->ready);
    sti_free(s->order);
}

stint_status sti_pass_schedule(stint_graph *graph, sti_pass_note *note)
{
    scheduler s = {.graph = graph,
                   .nodes = sti_graph_node_count(graph),
                   .values = sti_graph_value_count(graph)};
    stint_status status = scheduler_init(&s);

    if (status)
        goto done;
    sti_pass_clear_inplace(graph);
    size_t before = peak_of(&s, NULL);
    make_order(&s);
    size_t after = peak_of(&s, s.order);
    if (after < before)
        status = sti_graph_reorder(graph, s.order);
    sti_pass_note_set(note, "peak %zu -> %zu bytes", before,
                      after < before ? after : before);
done:
    scheduler_fini(&s);
    return status;
}
