/* Runs cases of op_cases.h: draws shapes and values, evaluates graphs node by node
 * without planner or executor, differentiates the double reference by central
 * differences, compares. Static functions, for the tests and the dump program alike. */
#ifndef TESTS_OP_OP_HARNESS_H
#define TESTS_OP_OP_HARNESS_H

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "op/op_cases.h"

#define OP_UNUSED __attribute__((unused))

/* ---- drawing */

typedef struct op_draws {
    uint64_t seed, at;
} op_draws;

static uint32_t op_word(op_draws *d)
{
    uint32_t out[4];
    sti_random4(d->seed, STI_STREAM_TEST, d->at++, 0, out);
    return out[0];
}

static double op_uniform(op_draws *d)
{
    return (double)sti_uniform(op_word(d));
}

/* Size of a letter: the same wherever it stands in one (case, seed). */
static int64_t op_letter(const op_case *c, uint64_t seed, char letter)
{
    uint64_t key = seed * 1000003u;
    for (const char *s = c->name; *s; s++)
        key = key * 31 + (unsigned char)*s;
    op_draws d = {.seed = key, .at = (uint64_t)letter << 32};
    uint32_t w = op_word(&d);
    if (letter == 'L')
        return 1 + sti_below(w, 600);
    if (letter == 'H' || letter == 'W')
        return 5 + sti_below(w, 5);
    return 1 + sti_below(w, 6);
}

static stint_shape op_shape_of(const op_case *c, uint64_t seed, int input)
{
    stint_shape shape = {.dtype = STINT_F32};
    if (c->draw[input] == OP_LABELS || c->draw[input] == OP_SOME_LABELS)
        shape.dtype = STINT_I32;
    for (const char *s = c->shape[input]; *s;) {
        int64_t n = 1;
        char *end;
        if (*s >= '0' && *s <= '9') {
            n = strtol(s, &end, 10);
            s = end;
        }
        if (*s >= 'A' && *s <= 'Z')
            n *= op_letter(c, seed, *s++);
        shape.dim[shape.rank++] = n;
        if (*s == ',')
            s++;
    }
    return shape;
}

static void op_fill_distinct(op_draws *d, float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = ((float)i - (float)n / 2 + 0.25f) * 0.01f;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = sti_below(op_word(d), (uint32_t)i + 1);
        float t = x[i];
        x[i] = x[j];
        x[j] = t;
    }
}

static void op_fill(op_draws *d, op_draw how, int64_t classes, void *to, int64_t n)
{
    float *x = to;
    int32_t *label = to;
    if (how == OP_DISTINCT)
        op_fill_distinct(d, x, n);
    for (int64_t i = 0; i < n; i++) {
        double u = op_uniform(d), v = op_uniform(d);
        switch (how) {
        case OP_NORMAL:
            x[i] = (float)(1.4142 * (u + v + op_uniform(d) - 1.5));
            break;
        case OP_POSITIVE:
            x[i] = (float)(0.5 + 2.0 * u);
            break;
        case OP_AWAY:
            x[i] = (float)((0.2 + 1.5 * u) * (v < 0.5 ? -1.0 : 1.0));
            break;
        case OP_LABELS:
        case OP_SOME_LABELS:
            label[i] = (int32_t)(u * (double)classes);
            if (how == OP_SOME_LABELS && v < 0.25)
                label[i] = -1;
            break;
        case OP_DISTINCT:
            break;
        }
    }
}

/* ---- evaluation of a graph */

/* Bytes of every value; leaves are filled by the caller through `data`. */
typedef struct op_values {
    stint_graph *graph;
    void **data;
    int32_t count;
} op_values;

static void op_values_fini(op_values *v)
{
    for (int32_t i = 0; i < v->count; i++)
        sti_free(v->data[i]);
    free(v->data);
    v->data = NULL;
}

static void op_values_init(op_values *v, stint_graph *graph)
{
    v->graph = graph;
    v->count = sti_graph_value_count(graph);
    v->data = calloc((size_t)v->count + 1, sizeof *v->data);
    for (int32_t i = 0; i < v->count; i++)
        v->data[i] = sti_alloc(
            stint_shape_bytes(&sti_graph_value(graph, i)->shape) + 64, "test.value");
}

static bool op_is_read(const stint_graph *graph, stint_value value)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++) {
        const sti_node *node = sti_graph_node(graph, n);
        for (int i = 0; i < node->n_in; i++)
            if (node->in[i] == value)
                return true;
    }
    return false;
}

/* keep: a value that is looked at although nobody reads it, or all of them. */
#define OP_KEEP_ALL (-2)
static void op_run_node(const op_values *v, const sti_node *node, const sti_team *team,
                        stint_value keep)
{
    const void *in[32] = {NULL};
    void *out[8] = {NULL};
    for (int i = 0; i < node->n_in; i++)
        in[i] = node->in[i] >= 0 ? v->data[node->in[i]] : NULL;
    for (int i = 0; i < node->n_out; i++)
        if (!(node->op->optional_out >> i & 1) || node->out[i] == keep ||
            keep == OP_KEEP_ALL || op_is_read(v->graph, node->out[i]))
            out[i] = v->data[node->out[i]];
    size_t bytes = node->op->scratch_bytes
                       ? node->op->scratch_bytes(v->graph, node, team->threads)
                       : 0;
    sti_call call = {.graph = v->graph,
                     .node = node,
                     .team = team,
                     .step = &op_step,
                     .in = in,
                     .out = out,
                     .scratch = sti_alloc(bytes, "test.scratch"),
                     .scratch_bytes = bytes};
    node->op->run[STI_CPU](&call);
    sti_free(call.scratch);
}

static void op_run(const op_values *v, const sti_team *team, stint_value keep)
{
    for (int32_t n = 0; n < sti_graph_node_count(v->graph); n++)
        op_run_node(v, sti_graph_node(v->graph, n), team, keep);
}

/* ---- one case at one seed */

typedef struct op_run_case {
    const op_case *c;
    uint64_t seed;
    stint_graph *graph;
    stint_value x[OP_MAX_IN], y;
    stint_value r, loss; /* loss = sum(y r), when asked for */
    op_values values;
    op_tensor in[OP_MAX_IN], out; /* the double side */
    double *weight;               /* r in double */
} op_run_case;

static void op_tensor_init(op_tensor *t, const stint_shape *shape)
{
    t->shape = *shape;
    t->count = stint_shape_count(shape);
    t->data = calloc((size_t)t->count + 1, sizeof *t->data);
}

/* Builds the graph; with_loss appends the weighted sum. NULL graph output on failure is
 * the caller's to report: check stint_graph_check. */
static OP_UNUSED stint_status op_case_build(op_run_case *run, const op_case *c,
                                            uint64_t seed, bool with_loss)
{
    *run = (op_run_case){.c = c, .seed = seed};
    stint_status st = stint_graph_create(STINT_TRAIN, &run->graph);
    if (st != STINT_OK)
        return st;
    for (int i = 0; i < c->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        stint_shape shape = op_shape_of(c, seed, i);
        run->x[i] = stint_input(run->graph, name, &shape);
        op_tensor_init(&run->in[i], &shape);
    }
    run->y = c->build(run->graph, run->x, c);
    if (run->y >= 0 && with_loss) {
        stint_shape shape = stint_value_shape(run->graph, run->y);
        run->r = stint_input(run->graph, "r", &shape);
        run->loss = stint_mul(run->graph, run->y, run->r);
        run->loss = stint_sum(run->graph, run->loss, (1u << shape.rank) - 1, false);
    }
    st = stint_graph_check(run->graph);
    if (st == STINT_OK) {
        stint_shape shape = stint_value_shape(run->graph, run->y);
        op_tensor_init(&run->out, &shape);
        run->weight = calloc((size_t)run->out.count + 1, sizeof *run->weight);
    }
    return st;
}

/* After all passes: memory for every value, and the inputs drawn. */
static OP_UNUSED void op_case_fill(op_run_case *run, bool with_loss)
{
    const op_case *c = run->c;
    op_draws d = {.seed = run->seed + 77};
    op_values_init(&run->values, run->graph);
    for (int i = 0; i < c->n_in; i++) {
        op_tensor *t = &run->in[i];
        void *data = run->values.data[run->x[i]];
        const stint_shape *first = &run->in[0].shape;
        int64_t classes = first->rank ? first->dim[first->rank - 1] : 1;
        op_fill(&d, c->draw[i], classes, data, t->count);
        for (int64_t k = 0; k < t->count; k++)
            t->data[k] = t->shape.dtype == STINT_I32 ? (double)((int32_t *)data)[k]
                                                     : (double)((float *)data)[k];
    }
    if (!with_loss)
        return;
    float *r = run->values.data[run->r];
    op_fill(&d, OP_NORMAL, 0, r, run->out.count);
    for (int64_t k = 0; k < run->out.count; k++)
        run->weight[k] = (double)r[k];
}

static OP_UNUSED void op_case_fini(op_run_case *run)
{
    op_values_fini(&run->values);
    for (int i = 0; i < OP_MAX_IN; i++)
        free(run->in[i].data);
    free(run->out.data);
    free(run->weight);
    stint_graph_destroy(run->graph);
}

/* ---- the double side */

static void op_reference(op_run_case *run)
{
    memset(run->out.data, 0, (size_t)run->out.count * sizeof *run->out.data);
    run->c->reference(run->c, run->in, &run->out);
}

OP_UNUSED static double op_loss(op_run_case *run)
{
    double loss = 0;
    op_reference(run);
    for (int64_t k = 0; k < run->out.count; k++)
        loss += run->weight[k] * run->out.data[k];
    return loss;
}

/* ---- comparison */

/* |got - want| <= tolerance (|want| + rms of want) + noise: prints norms, the worst
 * index and both values, and returns false, when not. NaN never passes. */
OP_UNUSED static bool op_close(const char *name, const char *what, uint64_t seed,
                               int64_t n, const double *got, const double *want,
                               double tolerance, double noise)
{
    double worst = 0, rms = 0, rms_got = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < n; i++) {
        rms += want[i] * want[i];
        rms_got += got[i] * got[i];
    }
    rms = n > 0 ? sqrt(rms / (double)n) : 0;
    rms_got = n > 0 ? sqrt(rms_got / (double)n) : 0;
    for (int64_t i = 0; i < n; i++) {
        double error =
            fabs(got[i] - want[i]) / (fabs(want[i]) + rms + noise / tolerance);
        if (!(error <= worst)) {
            worst = error;
            at = i;
            if (error != error)
                break;
        }
    }
    if (worst <= tolerance)
        return true;
    printf("%s, seed %" PRIu64 ": %s of %" PRId64 " elements\n"
           "  rms %.9g, wanted %.9g; worst at %" PRId64 ": %.9g, wanted %.9g "
           "(error %.3g, allowed %.3g)\n",
           name, seed, what, n, rms_got, rms, at, got[at], want[at], worst, tolerance);
    return false;
}

#endif
