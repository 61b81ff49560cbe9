/* Events in the order of their dependencies: each process goes on until it needs an
 * event that has not come, and is looked at again when that has. What nobody reaches is
 * on a cycle or behind one. */
#include "plan/stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/memory.h"

/* Where a process stands. */
typedef struct standing {
    int64_t next; /* event, counted through all repeats */
    double now;
    bool queued;
} standing;

typedef struct timer {
    const sti_stream_graph *g;
    standing *at;   /* [processes] */
    int32_t *queue; /* [processes], circular */
    int32_t queued, first;
    int64_t *blocks;         /* [streams] in all */
    int64_t *begin;          /* [streams + 1] of each one's times */
    double *written, *taken; /* times of writes and reads */
    int64_t *writes, *reads; /* [streams] done */
    int64_t events;
} timer;

static stint_status count_events(const sti_stream_graph *g, int64_t *writes,
                                 int64_t *reads)
{
    for (int32_t p = 0; p < g->processes; p++)
        for (int64_t i = 0; i < g->process[p].count; i++) {
            const sti_event *e = &g->process[p].event[i];
            if (e->kind == STI_EVENT_WORK)
                continue;
            const bool write = e->kind == STI_EVENT_WRITE;
            if (e->stream < 0 || e->stream >= g->streams ||
                (write ? g->stream[e->stream].from : g->stream[e->stream].to) != p)
                return sti_fail(STINT_E_INPUT,
                                "process %s: event %" PRId64 " is of ring %" PRId32
                                ", which is another's",
                                g->process[p].name, i, e->stream);
            (write ? writes : reads)[e->stream] += g->process[p].repeat;
        }
    for (int32_t s = 0; s < g->streams; s++)
        if (writes[s] != reads[s])
            return sti_fail(STINT_E_INPUT,
                            "ring %s: %" PRId64 " blocks written, %" PRId64 " read",
                            g->stream[s].name, writes[s], reads[s]);
    return STINT_OK;
}

static void timer_fini(timer *t)
{
    sti_free(t->at);
    sti_free(t->queue);
    sti_free(t->blocks);
    sti_free(t->begin);
    sti_free(t->written);
    sti_free(t->taken);
    sti_free(t->writes);
    sti_free(t->reads);
}

static stint_status timer_init(timer *t, const sti_stream_graph *g)
{
    *t = (timer){.g = g};
    t->at = sti_alloc_array(g->processes, sizeof *t->at, "stream");
    t->queue = sti_alloc_array(g->processes, sizeof *t->queue, "stream");
    t->blocks = sti_alloc_array(g->streams, sizeof *t->blocks, "stream");
    t->begin = sti_alloc_array(g->streams + 1, sizeof *t->begin, "stream");
    t->writes = sti_alloc_array(g->streams, sizeof *t->writes, "stream");
    t->reads = sti_alloc_array(g->streams, sizeof *t->reads, "stream");
    if (!t->at || !t->queue || !t->blocks || !t->begin || !t->writes || !t->reads)
        return STINT_E_MEMORY;
    const stint_status st = count_events(g, t->blocks, t->reads);
    if (st != STINT_OK)
        return st;
    for (int32_t s = 0; s < g->streams; s++)
        t->begin[s + 1] = t->begin[s] + t->blocks[s];
    t->written = sti_alloc_array(t->begin[g->streams], sizeof *t->written, "stream");
    t->taken = sti_alloc_array(t->begin[g->streams], sizeof *t->taken, "stream");
    return t->written && t->taken ? STINT_OK : STINT_E_MEMORY;
}

static void enqueue(timer *t, int32_t process)
{
    if (t->at[process].queued)
        return;
    t->at[process].queued = true;
    t->queue[(t->first + t->queued++) % t->g->processes] = process;
}

/* One event of a process; false: what it waits for has not come. */
static bool pass_event(timer *t, standing *at, const sti_event *e)
{
    const sti_stream_ring *s =
        e->kind == STI_EVENT_WORK ? NULL : &t->g->stream[e->stream];
    if (!s) {
        at->now += e->time;
        return true;
    }
    double *const written = t->written + t->begin[e->stream];
    double *const taken = t->taken + t->begin[e->stream];
    if (e->kind == STI_EVENT_READ) {
        const int64_t k = t->reads[e->stream];
        if (k >= t->writes[e->stream])
            return false;
        at->now =
            fmax(at->now, written[k] + (s->depth <= 2 ? t->g->hop : t->g->deep_hop));
        taken[k] = at->now;
        t->reads[e->stream]++;
        enqueue(t, s->from);
        return true;
    }
    const int64_t k = t->writes[e->stream];
    if (k - s->depth >= t->reads[e->stream])
        return false;
    if (k >= s->depth)
        at->now = fmax(at->now, taken[k - s->depth] + t->g->back_hop);
    written[k] = at->now;
    t->writes[e->stream]++;
    enqueue(t, s->to);
    return true;
}

static void pass_process(timer *t, int32_t process)
{
    const sti_process *p = &t->g->process[process];
    standing *at = &t->at[process];
    at->queued = false;
    while (at->next < p->count * p->repeat &&
           pass_event(t, at, &p->event[at->next % p->count])) {
        at->next++;
        t->events++;
    }
}

/* Depths may have changed since; nothing else. */
static void run_timer(timer *t, sti_stream_timing *timing)
{
    const sti_stream_graph *g = t->g;
    *timing = (sti_stream_timing){.blocks = false};
    t->events = 0;
    t->queued = 0;
    for (int32_t s = 0; s < g->streams; s++)
        t->writes[s] = t->reads[s] = 0;
    for (int32_t p = 0; p < g->processes; p++) {
        t->at[p] = (standing){.next = 0};
        enqueue(t, p);
    }
    while (t->queued > 0) {
        const int32_t process = t->queue[t->first];
        t->first = (t->first + 1) % g->processes;
        t->queued--;
        pass_process(t, process);
    }
    for (int32_t p = 0; p < g->processes; p++) {
        timing->latency = fmax(timing->latency, t->at[p].now);
        timing->blocks = timing->blocks ||
                         t->at[p].next < g->process[p].count * g->process[p].repeat;
    }
    timing->events = t->events;
}

stint_status sti_stream_time(const sti_stream_graph *graph,
                             sti_stream_timing *timing_out)
{
    timer t;
    const stint_status st = timer_init(&t, graph);
    if (st == STINT_OK)
        run_timer(&t, timing_out);
    timer_fini(&t);
    return st;
}

/* ---- depths ---- */

typedef struct saving {
    int32_t stream;
    double bytes; /* of all but one block */
} saving;

static int larger_first(const void *a, const void *b)
{
    const saving *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->stream > y->stream) - (x->stream < y->stream);
}

static bool is_good(timer *t, double bound)
{
    sti_stream_timing timing;
    run_timer(t, &timing);
    return !timing.blocks && timing.latency <= bound;
}

static void lower_depth(timer *t, sti_stream_ring *s, double bound)
{
    int64_t low = 0, high = s->depth; /* low is not enough, high is */
    while (high - low > 1) {
        s->depth = low + (high - low) / 2;
        if (is_good(t, bound))
            high = s->depth;
        else
            low = s->depth;
    }
    s->depth = high;
}

static stint_status lower_depths(timer *t, sti_stream_graph *g, double bound)
{
    saving *order = sti_alloc_array(g->streams, sizeof *order, "stream");
    if (!order)
        return STINT_E_MEMORY;
    for (int32_t s = 0; s < g->streams; s++)
        order[s] = (saving){s, (double)(g->stream[s].depth - 1) *
                                   (double)g->stream[s].block_bytes};
    qsort(order, (size_t)g->streams, sizeof *order, larger_first);
    for (int32_t i = 0; i < g->streams; i++)
        lower_depth(t, &g->stream[order[i].stream], bound);
    sti_free(order);
    return STINT_OK;
}

stint_status sti_stream_set_depths(sti_stream_graph *graph, double slack,
                                   sti_stream_timing *timing_out)
{
    timer t;
    stint_status st;
    STI_TRY(timer_init(&t, graph));
    for (int32_t s = 0; s < graph->streams; s++)
        graph->stream[s].depth = t.blocks[s] > 1 ? t.blocks[s] : 1;
    run_timer(&t, timing_out);
    if (timing_out->blocks)
        STI_TRY(sti_fail(STINT_E_INPUT,
                         "the processes wait for each other whatever the depths of "
                         "their rings: %" PRId64 " events are reached",
                         timing_out->events));
    /* (A product of times is rounded; the slack of a bound must not be lost to it.) */
    STI_TRY(lower_depths(&t, graph, timing_out->latency * slack * (1 + 1e-12)));
    run_timer(&t, timing_out);
out:
    timer_fini(&t);
    return st;
}

size_t sti_stream_ring_bytes(const sti_stream_graph *graph)
{
    size_t bytes = 0;
    for (int32_t s = 0; s < graph->streams; s++)
        bytes += (size_t)graph->stream[s].depth *
                 STI_ALIGN_UP(graph->stream[s].block_bytes, 64);
    return bytes;
}

void sti_stream_print_dot(const sti_stream_graph *graph, sti_text *out)
{
    sti_text_printf(out, "digraph streams {\n  rankdir=LR;\n  node [shape=box];\n");
    for (int32_t p = 0; p < graph->processes; p++)
        sti_text_printf(out, "  p%" PRId32 " [label=\"%s\"];\n", p,
                        graph->process[p].name);
    for (int32_t s = 0; s < graph->streams; s++) {
        const sti_stream_ring *r = &graph->stream[s];
        sti_text_printf(out,
                        "  p%" PRId32 " -> p%" PRId32 " [label=\"%s: %" PRId64
                        " x %zu bytes\"];\n",
                        r->from, r->to, r->name, r->depth, r->block_bytes);
    }
    sti_text_printf(out, "}\n");
}
