#include "infer/latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "base/stop.h"

typedef struct measurer {
    sti_infer *const *networks;
    int count, rounds;
    double *times;     /* [count, rounds] ms */
    int64_t **node_ns; /* [count] of [rounds, nodes] */
} measurer;

/* What is run: with nodes that were made ready (sti_network_keep). */
static const stint_graph *graph_of(const measurer *m, int i)
{
    return m->networks[i]->lanes.network->plan->graph;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Images of noise like normalised ones; labels of class 0. */
static void fill_input(const sti_infer *infer)
{
    const sti_network *net = infer->lanes.network;
    sti_exec *exec = infer->lanes.lane[0].exec;
    const stint_shape shape = stint_value_shape(net->graph, net->input);
    const stint_shape labels = stint_value_shape(net->graph, net->labels);
    float *x = sti_exec_address(exec, net->input);
    uint32_t word[4];
    for (int64_t i = 0; i < stint_shape_count(&shape); i++) {
        if (i % 4 == 0)
            sti_random4(1, STI_STREAM_TEST, 3, (uint64_t)i, word);
        x[i] = 4 * sti_uniform(word[i % 4]) - 2;
    }
    memset(sti_exec_address(exec, net->labels), 0, stint_shape_bytes(&labels));
}

/* The planner lays activations over an input that nobody reads any more, so it is
 * filled anew; that is not timed. */
static double run_once(const measurer *m, int i, int64_t *node_ns)
{
    const sti_infer_lanes *lanes = &m->networks[i]->lanes;
    const sti_step step = {0};
    fill_input(m->networks[i]);
    const int64_t start = sti_clock_ns();
    sti_exec_run_timed(lanes->lane[0].exec, &lanes->lane_team, &step, node_ns);
    return (double)(sti_clock_ns() - start) * 1e-6;
}

static stint_status run_rounds(const measurer *m)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < m->count; i++)
        run_once(m, i, NULL);
    for (int r = 0; r < m->rounds && (st = sti_stop_asked()) == STINT_OK; r++)
        for (int i = 0; i < m->count; i++)
            m->times[i * m->rounds + r] = run_once(m, i, NULL);
    for (int r = 0; r < m->rounds && st == STINT_OK; r++) {
        for (int i = 0; i < m->count; i++) {
            const int32_t nodes = sti_graph_node_count(graph_of(m, i));
            run_once(m, i, m->node_ns[i] + (int64_t)r * nodes);
        }
        st = sti_stop_asked();
    }
    return st == STINT_OK ? st : sti_fail(st, "stopped before all rounds were over");
}

/* ---- what came out ---- */

static double ratio_of(const measurer *m, double *room)
{
    const double *first = m->times, *last = m->times + (m->count - 1) * m->rounds;
    for (int r = 0; r < m->rounds; r++)
        room[r] = last[r] / first[r];
    return median(room, m->rounds);
}

static stint_status take_layers(const measurer *m, int i, double *room,
                                sti_latency *out)
{
    const stint_graph *g = graph_of(m, i);
    const int32_t nodes = sti_graph_node_count(g);
    out->layers = sti_alloc_array(nodes, sizeof *out->layers, "latency");
    if (!out->layers)
        return STINT_E_MEMORY;
    for (int32_t n = 0; n < nodes; n++) {
        const sti_node *node = sti_graph_node(g, n);
        if (node->op->flags & STI_OP_VIEW || node->once)
            continue;
        for (int r = 0; r < m->rounds; r++)
            room[r] = (double)m->node_ns[i][(int64_t)r * nodes + n] * 1e-6;
        out->layers[out->layer_count++] = (sti_latency_layer){
            .name = node->scope, .form = node->op->name, .ms = median(room, m->rounds)};
    }
    return STINT_OK;
}

/* Ranks within a deviation of the median, times 1.96: the usual interval from the order
 * of a sample. */
static stint_status take(const measurer *m, int i, double *room, sti_latency *out)
{
    const int n = m->rounds, reach = (int)ceil(1.96 * sqrt((double)n) / 2);
    const int low = n / 2 - reach, high = (n - 1) / 2 + reach;
    memcpy(room, m->times + i * n, (size_t)n * sizeof *room);
    out->ms = median(room, n);
    out->low_ms = room[low < 0 ? 0 : low];
    out->high_ms = room[high > n - 1 ? n - 1 : high];
    return take_layers(m, i, room, out);
}

static stint_status make_room(measurer *m)
{
    m->times = sti_alloc_array(m->count, (size_t)m->rounds * sizeof(double), "latency");
    m->node_ns = sti_alloc_array(m->count, sizeof(int64_t *), "latency");
    if (!m->times || !m->node_ns)
        return STINT_E_MEMORY;
    for (int i = 0; i < m->count; i++) {
        const int32_t nodes = sti_graph_node_count(graph_of(m, i));
        m->node_ns[i] =
            sti_alloc_array(nodes, (size_t)m->rounds * sizeof(int64_t), "latency");
        if (!m->node_ns[i])
            return STINT_E_MEMORY;
    }
    return STINT_OK;
}

stint_status sti_latency_measure(sti_infer *const *networks, int count, int rounds,
                                 sti_latency *latency_out, double *ratio_out)
{
    measurer m = {.networks = networks, .count = count, .rounds = rounds};
    memset(latency_out, 0, (size_t)count * sizeof *latency_out);
    double *room = sti_alloc_array(rounds, sizeof *room, "latency");
    stint_status st = room ? make_room(&m) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = run_rounds(&m);
    for (int i = 0; i < count && st == STINT_OK; i++)
        st = take(&m, i, room, &latency_out[i]);
    if (st == STINT_OK)
        *ratio_out = ratio_of(&m, room);
    for (int i = 0; m.node_ns && i < count; i++)
        sti_free(m.node_ns[i]);
    sti_free(m.node_ns);
    sti_free(m.times);
    sti_free(room);
    return st;
}

void sti_latency_fini(sti_latency *latency)
{
    sti_free(latency->layers);
    *latency = (sti_latency){.ms = 0};
}
