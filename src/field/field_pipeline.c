#include "field/field_pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/units.h"
#include "exec/exec.h"
#include "exec/stream_run.h"
#include "pass/pass.h"

/* What a core does in a second, for the costs of stages against each other. */
#define RATE_FLOP_PER_S  4e10
#define RATE_BYTES_PER_S 1e10

enum { NAME_BYTES = 64, RINGS = STI_FIELD_STAGES * (STI_FIELD_STAGES - 1) / 2 };

/* A value that a stage makes and a later one reads, in the ring of both. */
typedef struct crossing {
    stint_value value; /* of the network */
    int32_t from, to, ring;
    size_t offset, bytes; /* in a block of the ring */
    int32_t output;       /* of the graph of `from`; -1: the points */
    stint_value input;    /* in the graph of `to`; -1: only columns read it */
} crossing;

typedef struct stage {
    stint_graph *graph;
    sti_plan *plan;
    sti_exec *exec;     /* of a run */
    int32_t first, end; /* nodes of the network */
    double cost_s;
    stint_value points; /* in its graph; -1 */
    stint_value *made;  /* [outputs] values of the network */
    sti_event *event;   /* reads, work, writes */
    int64_t events;
    char name[NAME_BYTES];
} stage;

struct sti_field_pipeline {
    const sti_field_net *net;
    const sti_derivative_list *list;
    int32_t stages, crossings, rings;
    stage stage[STI_FIELD_STAGES];
    crossing *crossing;
    sti_process process[STI_FIELD_STAGES];
    sti_stream_ring ring[RINGS];
    char ring_name[RINGS][NAME_BYTES];
    sti_stream_graph streams;
    sti_stream_timing timing;
    /* What a run has beside the plan. */
    const sti_field_stream *stream;
    const float *factor;
    float *rows, *points; /* [tile, columns], [tile, coordinates] */
};

/* ---- stages ---- */

static double cost_of(const stint_graph *g, const sti_node *node)
{
    const sti_cost c =
        node->op->cost ? node->op->cost(g, node) : (sti_cost){.read_bytes = 64};
    return c.flop / RATE_FLOP_PER_S + (c.read_bytes + c.write_bytes) / RATE_BYTES_PER_S;
}

/* Each stage ends where its share of the whole cost is reached, and has a node. */
static stint_status cut_stages(sti_field_pipeline *p)
{
    const stint_graph *g = p->net->net.graph;
    const int32_t nodes = sti_graph_node_count(g);
    double total = 0, sum = 0;
    if (p->stages > nodes)
        return sti_fail(STINT_E_USAGE,
                        "a pipeline of %d stages, but the graph has %d nodes; ask for "
                        "fewer stages",
                        (int)p->stages, (int)nodes);
    for (int32_t n = 0; n < nodes; n++)
        total += cost_of(g, sti_graph_node(g, n));
    int32_t n = 0;
    for (int32_t s = 0; s < p->stages; s++) {
        stage *t = &p->stage[s];
        const int32_t last = nodes - (p->stages - 1 - s);
        const double before = sum;
        t->first = n;
        while (n < last && (n == t->first || s == p->stages - 1 ||
                            sum < total * (s + 1) / p->stages))
            sum += cost_of(g, sti_graph_node(g, n++));
        t->end = n;
        t->cost_s = sum - before;
        snprintf(t->name, sizeof t->name, "stage %d: nodes %d to %d, %.3g us", (int)s,
                 (int)t->first, (int)t->end - 1, 1e6 * t->cost_s);
    }
    return STINT_OK;
}

static int32_t stage_of_node(const sti_field_pipeline *p, const sti_node *node)
{
    int32_t s = 0;
    while (node->id >= p->stage[s].end)
        s++;
    return s;
}

/* The stage that has a value first; -1: weights, which all have. */
static int32_t maker_of(const sti_field_pipeline *p, stint_value value)
{
    const sti_value_row *row = sti_graph_value(p->net->net.graph, value);
    if (row->role == STI_ROLE_NODE)
        return stage_of_node(p, row->producer);
    return value == p->net->net.input ? 0 : -1;
}

static int32_t find_crossing(const sti_field_pipeline *p, stint_value value, int32_t to)
{
    for (int32_t c = 0; c < p->crossings; c++)
        if (p->crossing[c].value == value && p->crossing[c].to == to)
            return c;
    return -1;
}

/* The ring between two stages, which is made when it is first asked for. */
static int32_t ring_between(sti_field_pipeline *p, int32_t from, int32_t to)
{
    int32_t r = 0;
    while (r < p->rings && (p->ring[r].from != from || p->ring[r].to != to))
        r++;
    if (r == p->rings)
        p->ring[p->rings++] = (sti_stream_ring){p->ring_name[r], from, to, 1, 0};
    return r;
}

static stint_status add_crossing(sti_field_pipeline *p, stint_value value, int32_t to)
{
    const int32_t from = value < 0 ? -1 : maker_of(p, value);
    if (from < 0 || from >= to || find_crossing(p, value, to) >= 0)
        return STINT_OK;
    crossing *more =
        sti_realloc(p->crossing, (size_t)(p->crossings + 1) * sizeof *more, "pipeline");
    if (!more)
        return STINT_E_MEMORY;
    p->crossing = more;
    crossing *c = &more[p->crossings++];
    const stint_shape shape = stint_value_shape(p->net->net.graph, value);
    sti_stream_ring *ring = &p->ring[ring_between(p, from, to)];
    *c = (crossing){.value = value,
                    .from = from,
                    .to = to,
                    .ring = (int32_t)(ring - p->ring),
                    .offset = ring->block_bytes,
                    .bytes = stint_shape_bytes(&shape),
                    .output = -1,
                    .input = -1};
    ring->block_bytes += STI_ALIGN_UP(c->bytes, 64);
    return STINT_OK;
}

static stint_status find_crossings(sti_field_pipeline *p)
{
    const stint_graph *g = p->net->net.graph;
    stint_status st = STINT_OK;
    for (int32_t s = 0; s < p->stages; s++)
        for (int32_t n = p->stage[s].first; n < p->stage[s].end; n++) {
            const sti_node *node = sti_graph_node(g, n);
            for (int32_t i = 0; i < node->n_in && st == STINT_OK; i++)
                st = add_crossing(p, node->in[i], s);
        }
    for (int64_t c = 0; c < p->list->count && st == STINT_OK; c++)
        st = add_crossing(p, p->net->columns[c].value, p->stages - 1);
    return st;
}

/* ---- a stage's graph ---- */

typedef struct stage_builder {
    sti_field_pipeline *p;
    int32_t at;
    stint_value *now; /* [values of the network]: in the stage's graph; -1 */
    const char *params;
} stage_builder;

/* A leaf of the stage for a value that comes from elsewhere. */
static stint_value stage_leaf(stage_builder *b, stint_value value)
{
    sti_field_pipeline *p = b->p;
    stage *t = &p->stage[b->at];
    const sti_value_row *row = sti_graph_value(p->net->net.graph, value);
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "value%d", (int)value);
    if (row->role == STI_ROLE_PARAM) {
        const size_t offset = p->net->net.plan->allocation[value].offset;
        return sti_graph_constant(t->graph, row->name, &row->shape,
                                  (const void *)((uintptr_t)b->params + offset));
    }
    const stint_value leaf = stint_input(t->graph, name, &row->shape);
    const int32_t c = find_crossing(p, value, b->at);
    if (c >= 0)
        p->crossing[c].input = leaf;
    else
        t->points = leaf;
    return leaf;
}

static stint_status copy_node(stage_builder *b, const sti_node *node)
{
    stint_graph *g = b->p->stage[b->at].graph;
    stint_value in[32];
    if (node->n_in > (int)(sizeof in / sizeof *in))
        return sti_fail(STINT_E_UNSUPPORTED, "%s: too many operands for a stage",
                        node->op->name);
    for (int32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i];
        if (in[i] < 0)
            continue;
        if (b->now[in[i]] < 0)
            b->now[in[i]] = stage_leaf(b, in[i]);
        in[i] = b->now[in[i]];
    }
    const stint_value y = sti_graph_add(g, node->op, node->attr, node->n_in, in);
    for (int32_t o = 0; y >= 0 && o < node->n_out; o++)
        b->now[node->out[o]] = y + o;
    return sti_graph_status(g);
}

/* The place of a value among a stage's outputs, where it leaves now at the latest. */
static int32_t leave_stage(stage_builder *b, stint_value value)
{
    stage *t = &b->p->stage[b->at];
    const int32_t count = sti_graph_output_count(t->graph);
    for (int32_t o = 0; o < count; o++)
        if (t->made[o] == value)
            return o;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "output%d", (int)count);
    t->made[count] = value;
    sti_graph_output(t->graph, &(sti_output){.kind = STI_OUTPUT_FETCH,
                                             .value = b->now[value],
                                             .target = -1,
                                             .name = name});
    return count;
}

static stint_status add_outputs(stage_builder *b)
{
    sti_field_pipeline *p = b->p;
    stage *t = &p->stage[b->at];
    t->made =
        sti_alloc_array(p->crossings + p->list->count, sizeof *t->made, "pipeline");
    if (!t->made)
        return STINT_E_MEMORY;
    for (int32_t c = 0; c < p->crossings; c++)
        if (p->crossing[c].from == b->at && p->crossing[c].value != p->net->net.input)
            p->crossing[c].output = leave_stage(b, p->crossing[c].value);
    for (int64_t i = 0; b->at == p->stages - 1 && i < p->list->count; i++)
        if (maker_of(p, p->net->columns[i].value) == b->at)
            (void)leave_stage(b, p->net->columns[i].value);
    return sti_graph_status(t->graph);
}

static stint_status plan_stage(stage_builder *b)
{
    const stint_graph *g = b->p->net->net.graph;
    stage *t = &b->p->stage[b->at];
    stint_status st;
    for (int32_t v = 0; v < sti_graph_value_count(g); v++)
        b->now[v] = -1;
    t->points = -1;
    STI_TRY(stint_graph_create(STINT_EVAL, &t->graph));
    sti_graph_keep_inputs(t->graph); /* points go on to other stages after the run */
    for (int32_t n = t->first; n < t->end; n++)
        STI_TRY(copy_node(b, sti_graph_node(g, n)));
    if (b->at == 0 && t->points < 0)
        t->points = stage_leaf(b, b->p->net->net.input);
    STI_TRY(add_outputs(b));
    STI_TRY(sti_pass_own_outputs(t->graph, NULL));
    STI_TRY(sti_pass_inplace(t->graph, NULL));
    STI_TRY(sti_plan_create(t->graph, 1, &t->plan));
out:
    return st;
}

/* params NULL: to be planned, not run. */
static stint_status plan_stages(sti_field_pipeline *p, const void *params)
{
    stage_builder b = {.p = p, .params = params};
    stint_status st = STINT_OK;
    b.now = sti_alloc_array(sti_graph_value_count(p->net->net.graph), sizeof *b.now,
                            "pipeline");
    if (!b.now)
        return STINT_E_MEMORY;
    for (b.at = 0; b.at < p->stages && st == STINT_OK; b.at++)
        st = plan_stage(&b);
    sti_free(b.now);
    return st;
}

static void forget_stages(sti_field_pipeline *p)
{
    for (int32_t s = 0; s < p->stages; s++) {
        stage *t = &p->stage[s];
        sti_exec_destroy(t->exec);
        sti_plan_destroy(t->plan);
        stint_graph_destroy(t->graph);
        sti_free(t->made);
        t->exec = NULL;
        t->plan = NULL;
        t->graph = NULL;
        t->made = NULL;
    }
}

/* ---- rings ---- */

static void add_event(stage *t, sti_event_kind kind, int32_t stream, double time)
{
    t->event[t->events++] = (sti_event){kind, stream, time};
}

/* A stage takes all that it reads, works, and hands on all that it made. */
static stint_status list_events(sti_field_pipeline *p, int32_t s)
{
    stage *t = &p->stage[s];
    t->event = sti_alloc_array(p->rings + 1, sizeof *t->event, "pipeline");
    if (!t->event)
        return STINT_E_MEMORY;
    for (int32_t r = 0; r < p->rings; r++)
        if (p->ring[r].to == s)
            add_event(t, STI_EVENT_READ, r, 0);
    add_event(t, STI_EVENT_WORK, 0, t->cost_s);
    for (int32_t r = 0; r < p->rings; r++)
        if (p->ring[r].from == s)
            add_event(t, STI_EVENT_WRITE, r, 0);
    p->process[s] = (sti_process){t->name, t->event, t->events, STI_FIELD_TIMED_TILES};
    return STINT_OK;
}

static stint_status plan_rings(sti_field_pipeline *p)
{
    stint_status st = STINT_OK;
    for (int32_t r = 0; r < p->rings; r++) {
        int values = 0;
        for (int32_t c = 0; c < p->crossings; c++)
            values += p->crossing[c].ring == r;
        snprintf(p->ring_name[r], NAME_BYTES, "%d-%d: %d value%s", (int)p->ring[r].from,
                 (int)p->ring[r].to, values, sti_s(values));
    }
    for (int32_t s = 0; s < p->stages && st == STINT_OK; s++)
        st = list_events(p, s);
    p->streams = (sti_stream_graph){.process = p->process,
                                    .processes = p->stages,
                                    .stream = p->ring,
                                    .streams = p->rings};
    return st == STINT_OK ? sti_stream_set_depths(&p->streams, 1, &p->timing) : st;
}

stint_status sti_field_pipeline_create(const sti_field_net *net,
                                       const sti_derivative_list *list, int stages,
                                       sti_field_pipeline **pipeline_out)
{
    stint_status st;
    sti_field_pipeline *p = sti_alloc(sizeof *p, "pipeline");
    if (!p)
        return STINT_E_MEMORY;
    p->net = net;
    p->list = list;
    p->stages = stages;
    STI_TRY(cut_stages(p));
    STI_TRY(find_crossings(p));
    STI_TRY(plan_stages(p, NULL));
    STI_TRY(plan_rings(p));
    *pipeline_out = p;
    p = NULL;
out:
    sti_field_pipeline_destroy(p);
    return st;
}

void sti_field_pipeline_destroy(sti_field_pipeline *pipeline)
{
    if (!pipeline)
        return;
    forget_stages(pipeline);
    for (int32_t s = 0; s < pipeline->stages; s++)
        sti_free(pipeline->stage[s].event);
    sti_free(pipeline->crossing);
    sti_free(pipeline);
}

static size_t stage_bytes(const stage *t)
{
    return STI_ALIGN_UP(t->plan->region_bytes[STI_REGION_FETCH], 64) +
           STI_ALIGN_UP(t->plan->region_bytes[STI_REGION_ARENA], 64);
}

size_t sti_field_pipeline_arena_bytes(const sti_field_pipeline *pipeline)
{
    size_t bytes = sti_stream_ring_bytes(&pipeline->streams);
    for (int32_t s = 0; s < pipeline->stages; s++)
        bytes += stage_bytes(&pipeline->stage[s]);
    return bytes;
}

const sti_stream_graph *sti_field_pipeline_streams(const sti_field_pipeline *pipeline)
{
    return &pipeline->streams;
}

double sti_field_pipeline_latency_s(const sti_field_pipeline *pipeline)
{
    return pipeline->timing.latency;
}

/* ---- a run ---- */

static int64_t tiles_of(const sti_field_pipeline *p)
{
    const int64_t tile = p->net->net.images;
    return (p->stream->points + tile - 1) / tile;
}

static int64_t count_of(const sti_field_pipeline *p, int64_t k)
{
    const int64_t tile = p->net->net.images, left = p->stream->points - k * tile;
    return left < tile ? left : tile;
}

static stint_status take_points(sti_field_pipeline *p, int64_t k)
{
    const int64_t tile = p->net->net.images, d = p->list->coordinates;
    float *input = sti_exec_address(p->stage[0].exec, p->stage[0].points);
    const stint_status st =
        p->stream->give(p->stream->user, k * tile, count_of(p, k), p->points);
    memset(input, 0, (size_t)(tile * d) * sizeof *input);
    memcpy(input, p->points, (size_t)(count_of(p, k) * d) * sizeof *input);
    return st;
}

/* Columns of a value that lies at `from`. */
static void take_columns(const sti_field_pipeline *p, stint_value value,
                         const float *from, int64_t count)
{
    const int64_t columns = p->list->count;
    for (int64_t c = 0; c < columns; c++) {
        const sti_column *column = &p->net->columns[c];
        for (int64_t i = 0; column->value == value && i < count; i++)
            p->rows[i * columns + c] =
                p->factor[c] * from[column->offset + i * column->step];
    }
}

static void read_block(sti_field_pipeline *p, int32_t s, int32_t ring,
                       const char *block, int64_t count)
{
    for (int32_t c = 0; c < p->crossings; c++) {
        const crossing *x = &p->crossing[c];
        if (x->ring != ring)
            continue;
        if (x->input >= 0)
            memcpy(sti_exec_address(p->stage[s].exec, x->input), block + x->offset,
                   x->bytes);
        if (s == p->stages - 1)
            take_columns(p, x->value, (const float *)(const void *)(block + x->offset),
                         count);
    }
}

/* STINT_OK and *over: the run is over. */
static stint_status read_rings(sti_field_pipeline *p, int32_t s, sti_rings *rings,
                               int64_t k, bool *over)
{
    for (int32_t r = 0; r < p->rings; r++) {
        if (p->ring[r].to != s)
            continue;
        const void *block = sti_rings_begin_read(rings, r);
        if ((*over = block == NULL))
            return STINT_OK;
        read_block(p, s, r, block, count_of(p, k));
        sti_rings_end_read(rings, r);
    }
    return s == 0 ? take_points(p, k) : STINT_OK;
}

static void write_block(const sti_field_pipeline *p, int32_t s, int32_t ring,
                        char *block)
{
    const stage *t = &p->stage[s];
    for (int32_t c = 0; c < p->crossings; c++) {
        const crossing *x = &p->crossing[c];
        if (x->ring != ring)
            continue;
        const stint_value value =
            x->output < 0 ? t->points : sti_graph_outputs(t->graph)[x->output].value;
        memcpy(block + x->offset, sti_exec_address(t->exec, value), x->bytes);
    }
}

static void write_rings(sti_field_pipeline *p, int32_t s, sti_rings *rings, bool *over)
{
    for (int32_t r = 0; r < p->rings; r++) {
        if (p->ring[r].from != s)
            continue;
        void *block = sti_rings_begin_write(rings, r);
        if ((*over = block == NULL))
            return;
        write_block(p, s, r, block);
        sti_rings_end_write(rings, r);
    }
}

/* The last stage's own columns, and rows to whoever takes them. */
static stint_status hand_rows(sti_field_pipeline *p, int64_t k)
{
    const stage *t = &p->stage[p->stages - 1];
    for (int32_t o = 0; o < sti_graph_output_count(t->graph); o++)
        take_columns(p, t->made[o],
                     sti_exec_address(t->exec, sti_graph_outputs(t->graph)[o].value),
                     count_of(p, k));
    if (sti_stop_asked() != STINT_OK)
        return sti_fail(sti_stop_asked(), "stopped while asking the field");
    return p->stream->take(p->stream->user, p->rows, count_of(p, k));
}

static stint_status run_stage(void *user, int32_t s, sti_rings *rings)
{
    sti_field_pipeline *p = user;
    bool over = false;
    stint_status st = STINT_OK;
    for (int64_t k = 0; k < tiles_of(p) && st == STINT_OK; k++) {
        st = read_rings(p, s, rings, k, &over);
        if (st != STINT_OK || over)
            break;
        sti_exec_run(p->stage[s].exec, &sti_team_serial, &(sti_step){.step = 0});
        write_rings(p, s, rings, &over);
        if (over)
            break;
        if (s == p->stages - 1)
            st = hand_rows(p, k);
    }
    return st;
}

static stint_status create_execs(sti_field_pipeline *p, char *memory)
{
    stint_status st = STINT_OK;
    for (int32_t s = 0; s < p->stages && st == STINT_OK; s++) {
        stage *t = &p->stage[s];
        sti_exec_memory regions = {.region = {NULL}};
        regions.region[STI_REGION_FETCH] = memory;
        regions.region[STI_REGION_ARENA] =
            memory + STI_ALIGN_UP(t->plan->region_bytes[STI_REGION_FETCH], 64);
        memory += stage_bytes(t);
        st = sti_exec_create(t->plan, &regions, &t->exec);
    }
    return st;
}

stint_status sti_field_pipeline_run(sti_field_pipeline *pipeline,
                                    const sti_field_stream *stream, const void *params,
                                    const float *factor)
{
    sti_field_pipeline *p = pipeline;
    const int64_t tile = p->net->net.images;
    sti_rings *rings = NULL;
    stint_status st = STINT_OK;
    p->stream = stream;
    p->factor = factor;
    forget_stages(p);
    p->rows = sti_alloc_array(tile * p->list->count, sizeof *p->rows, "field.rows");
    p->points =
        sti_alloc_array(tile * p->list->coordinates, sizeof *p->points, "points");
    char *memory = NULL;
    STI_TRY(p->rows && p->points ? plan_stages(p, params) : STINT_E_MEMORY);
    memory = sti_alloc(sti_field_pipeline_arena_bytes(p), "arena");
    STI_TRY(memory ? sti_rings_create(&p->streams, memory, &rings) : STINT_E_MEMORY);
    STI_TRY(create_execs(p, memory + sti_stream_ring_bytes(&p->streams)));
    st = sti_rings_run(rings, run_stage, p);
out:
    sti_rings_destroy(rings);
    forget_stages(p);
    sti_free(memory);
    sti_free(p->rows);
    sti_free(p->points);
    p->rows = p->points = NULL;
    return st;
}
