/* Order of the nodes, for memory.
 *
 * The order given is kept, except that a node which frees more than it makes is run as
 * soon as it can be. A weight gradient is such a node: it writes to the result block
 * and is the last reader of a saved activation, so it goes before the gradient of the
 * layer's input, which needs new room. The new order is kept only if the most bytes
 * alive at once fall; the order never changes a result. A graph may ask for more: where
 * no node frees, for a few that do so together (schedule_ahead.c). */
#include <stdio.h>
#include <string.h>

#include "pass/schedule_priv.h"

static void reset_readers(sti_scheduler *s)
{
    memset(s->readers, 0, (size_t)s->values * sizeof *s->readers);
    for (int32_t n = 0; n < s->nodes; n++) {
        const sti_node *node = sti_graph_node(s->graph, n);
        for (int32_t i = 0; i < node->n_in && !sti_schedule_is_view(node); i++)
            if (node->in[i] >= 0 && !sti_schedule_repeats(s, node, i))
                s->readers[s->content[node->in[i]]]++;
    }
}

/* What each content costs the arena: nothing for params, state and results. */
static void set_bytes(sti_scheduler *s)
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

static void start(sti_scheduler *s)
{
    reset_readers(s);
    s->live = s->height = 0;
    for (int32_t v = 0; v < s->values; v++)
        if (sti_graph_value(s->graph, v)->role == STI_ROLE_INPUT)
            s->live += s->bytes[v];
}

static void pass_over(sti_scheduler *s, const sti_node *node)
{
    size_t made, freed;
    const size_t here = s->live + sti_schedule_room(s, node);
    s->height = here > s->height ? here : s->height;
    sti_schedule_effect(s, node, &made, &freed);
    s->live += made;
    s->live -= freed;
    sti_schedule_consume(s, node, 1);
}

/* The most bytes alive at once when nodes run in `order` (NULL: as they stand). */
static size_t peak_of(sti_scheduler *s, const int32_t *order)
{
    start(s);
    for (int32_t i = 0; i < s->nodes; i++)
        pass_over(s, sti_graph_node(s->graph, order ? order[i] : i));
    return s->height;
}

static void set_gain(sti_scheduler *s, int32_t n)
{
    size_t made, freed;
    sti_schedule_effect(s, sti_graph_node(s->graph, n), &made, &freed);
    s->gain[n] = freed > made ? freed - made : 0;
}

static void set_ready(sti_scheduler *s, int32_t n)
{
    s->ready[s->ready_count++] = n;
    set_gain(s, n);
}

/* Lists of the nodes that wait for each value, and of those that read each content. */
static void link_users(sti_scheduler *s)
{
    for (int32_t v = 0; v < s->values; v++)
        s->first_user[v] = s->first_reader[v] = -1;
    for (int32_t n = 0; n < s->nodes; n++) {
        const sti_node *node = sti_graph_node(s->graph, n);
        for (int32_t i = 0; i < node->n_in; i++) {
            stint_value in = node->in[i];
            int32_t read = s->user_base[n] + i;
            s->read_node[read] = n;
            if (in < 0)
                continue;
            if (!sti_schedule_is_view(node)) {
                s->next_reader[read] = s->first_reader[s->content[in]];
                s->first_reader[s->content[in]] = read;
            }
            if (!sti_graph_value(s->graph, in)->producer)
                continue;
            s->waiting[n]++;
            s->next_user[read] = s->first_user[in];
            s->first_user[in] = read;
        }
        if (s->waiting[n] == 0)
            set_ready(s, n);
    }
}

/* The ready node that frees most beyond what it makes; the earliest of equals; -1. */
static int32_t best_saver(const sti_scheduler *s)
{
    int32_t best = -1;
    size_t most = 0;
    for (int32_t i = 0; i < s->ready_count; i++) {
        const int32_t n = s->ready[i];
        if (s->gain[n] > most || (s->gain[n] == most && most > 0 && n < best)) {
            most = s->gain[n];
            best = n;
        }
    }
    return best;
}

/* Who alone is left to read what the node has read may free more now. */
static void renew_gains(sti_scheduler *s, const sti_node *node)
{
    for (int32_t i = 0; i < node->n_in && !sti_schedule_is_view(node); i++) {
        const stint_value content = node->in[i] < 0 ? -1 : s->content[node->in[i]];
        if (content < 0 || s->readers[content] != 1)
            continue;
        for (int32_t r = s->first_reader[content]; r >= 0; r = s->next_reader[r])
            if (!s->done[s->read_node[r]])
                set_gain(s, s->read_node[r]);
    }
}

static void run_node(sti_scheduler *s, int32_t n)
{
    const sti_node *node = sti_graph_node(s->graph, n);
    pass_over(s, node);
    s->done[n] = 1;
    for (int32_t i = 0; i < s->ready_count; i++)
        if (s->ready[i] == n)
            s->ready[i] = s->ready[--s->ready_count];
    renew_gains(s, node);
    for (int32_t i = 0; i < node->n_out; i++)
        for (int32_t r = s->first_user[node->out[i]]; r >= 0; r = s->next_user[r])
            if (--s->waiting[s->read_node[r]] == 0)
                set_ready(s, s->read_node[r]);
}

/* look_ahead: where no node frees, up to so many together may. */
static void make_order(sti_scheduler *s, int look_ahead)
{
    int32_t next = 0, chain[STI_SCHEDULE_CHAIN];
    memset(s->waiting, 0, (size_t)s->nodes * sizeof *s->waiting);
    memset(s->done, 0, (size_t)s->nodes);
    s->ready_count = 0;
    start(s);
    link_users(s);
    for (int32_t i = 0; i < s->nodes;) {
        int count = 1;
        chain[0] = best_saver(s);
        if (chain[0] < 0 && look_ahead > 1)
            count = sti_schedule_chain(s, look_ahead, chain);
        while ((count == 0 || chain[0] < 0) && s->done[next])
            next++;
        if (count == 0 || chain[0] < 0) {
            chain[0] = next; /* its producers stand before it, so they have run */
            count = 1;
        }
        for (int k = 0; k < count; k++) {
            run_node(s, chain[k]);
            s->order[i++] = chain[k];
        }
    }
}

static stint_status scheduler_init(sti_scheduler *s)
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
    s->first_reader =
        sti_alloc_array(s->values, sizeof *s->first_reader, "pass.schedule");
    s->next_reader = sti_alloc_array(reads, sizeof *s->next_reader, "pass.schedule");
    s->gain = sti_alloc_array(s->nodes, sizeof *s->gain, "pass.schedule");
    s->order = sti_alloc_array(s->nodes, sizeof *s->order, "pass.schedule");
    if (!s->content || !s->bytes || !s->readers || !s->first_user || !s->waiting ||
        !s->user_base || !s->next_user || !s->read_node || !s->done || !s->ready ||
        !s->first_reader || !s->next_reader || !s->gain || !s->order)
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

static void scheduler_fini(sti_scheduler *s)
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
    sti_free(s->first_reader);
    sti_free(s->next_reader);
    sti_free(s->gain);
    sti_free(s->order);
}

/* How much more than any order has to take; "" where that was not looked for. */
static const char *ratio_text(size_t peak, size_t bound, char *text, size_t length)
{
    text[0] = '\0';
    if (bound > 0)
        snprintf(text, length, ", %.3f of the least that any order takes",
                 (double)peak / (double)bound);
    return text;
}

stint_status sti_pass_schedule(stint_graph *graph, sti_pass_note *note)
{
    sti_scheduler s = {.graph = graph,
                       .nodes = sti_graph_node_count(graph),
                       .values = sti_graph_value_count(graph)};
    const int wanted = sti_graph_look_ahead(graph);
    const int look_ahead = wanted < STI_SCHEDULE_CHAIN ? wanted : STI_SCHEDULE_CHAIN;
    int32_t *best = sti_alloc_array(s.nodes, sizeof *best, "pass.schedule");
    stint_status status = best ? scheduler_init(&s) : STINT_E_MEMORY;
    size_t bound = 0;
    char ratio[80];
    bool found = false;

    if (status)
        goto done;
    sti_pass_clear_inplace(graph);
    const size_t before = peak_of(&s, NULL);
    size_t after = before;
    for (int ahead = 0; ahead <= look_ahead && status == STINT_OK; ahead++) {
        if (ahead > 0 && ahead < look_ahead)
            continue;
        make_order(&s, ahead);
        if (s.height < after) {
            after = s.height;
            memcpy(best, s.order, (size_t)s.nodes * sizeof *best);
            found = true;
        }
    }
    if (look_ahead > 0 && note)
        status = sti_schedule_bound(&s, &bound);
    if (status == STINT_OK && found)
        status = sti_graph_reorder(graph, best);
    sti_pass_note_set(note, "peak %zu -> %zu bytes%s", before, after,
                      ratio_text(after, bound, ratio, sizeof ratio));
done:
    scheduler_fini(&s);
    sti_free(best);
    return status;
}
