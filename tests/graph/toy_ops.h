/* Toy operators for tests of the rooms that must not know real ones. */
#ifndef TESTS_TOY_OPS_H
#define TESTS_TOY_OPS_H

#include <string.h>

#include "base/fail.h"
#include "graph/graph.h"

typedef struct toy_attr {
    float factor;
    int32_t scratch;
} toy_attr;

static inline int64_t toy_count(const sti_call *c, stint_value v)
{
    return stint_shape_count(&sti_graph_value(c->graph, v)->shape);
}

static inline stint_status toy_same(const stint_graph *g, const sti_node *n,
                                    stint_shape *out)
{
    const stint_shape *first = &sti_graph_value(g, n->in[0])->shape;
    for (int i = 1; i < n->n_in; i++)
        if (!sti_shape_equal(first, &sti_graph_value(g, n->in[i])->shape))
            return sti_fail(STINT_E_INPUT, "operands %s and %s differ",
                            sti_shape_text(first),
                            sti_shape_text(&sti_graph_value(g, n->in[i])->shape));
    out[0] = *first;
    return STINT_OK;
}

static inline stint_status toy_infer_flat(const stint_graph *g, const sti_node *n,
                                          stint_shape *out)
{
    int64_t count = stint_shape_count(&sti_graph_value(g, n->in[0])->shape);
    out[0] = stint_shape_make(STINT_F32, 1, &count);
    return STINT_OK;
}

static inline stint_status toy_infer_sum(const stint_graph *g, const sti_node *n,
                                         stint_shape *out)
{
    (void)g;
    (void)n;
    out[0] = stint_shape_make(STINT_F32, 0, NULL);
    return STINT_OK;
}

static inline stint_status toy_infer_split(const stint_graph *g, const sti_node *n,
                                           stint_shape *out)
{
    int64_t bytes = (stint_shape_count(&sti_graph_value(g, n->in[0])->shape) + 7) / 8;
    out[0] = sti_graph_value(g, n->in[0])->shape;
    out[1] = stint_shape_make(STINT_U8, 1, &bytes);
    return STINT_OK;
}

/* y = factor * x, in place if told. */
static inline void toy_run_scale(const sti_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0], factor = ((const toy_attr *)c->node->attr)->factor;
    for (int64_t i = 0, n = toy_count(c, c->node->out[0]); i < n; i++)
        y[i] = factor * x[i];
}

static inline void toy_run_add(const sti_call *c)
{
    const float *a = c->in[0], *b = c->in[1];
    float *y = c->out[0];
    for (int64_t i = 0, n = toy_count(c, c->node->out[0]); i < n; i++)
        y[i] = a[i] + b[i];
}

static inline void toy_run_sum(const sti_call *c)
{
    const float *x = c->in[0];
    float sum = 0;
    for (int64_t i = 0, n = toy_count(c, c->node->in[0]); i < n; i++)
        sum += x[i];
    *(float *)c->out[0] = sum;
}

/* y = max(x, 0) and sign bits, if somebody wants them. */
static inline void toy_run_split(const sti_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    uint8_t *bits = c->out[1];
    int64_t n = toy_count(c, c->node->out[0]);
    if (bits)
        memset(bits, 0, (size_t)(n + 7) / 8);
    for (int64_t i = 0; i < n; i++) {
        if (bits && x[i] > 0)
            bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << i % 8);
        y[i] = x[i] > 0 ? x[i] : 0;
    }
}

/* Reverses through scratch: wrong if the scratch overlaps anything. */
static inline void toy_run_reverse(const sti_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0], *t = c->scratch;
    int64_t n = toy_count(c, c->node->out[0]);
    for (int64_t i = 0; i < n; i++)
        t[i] = x[n - 1 - i];
    for (int64_t i = 0; i < n; i++)
        y[i] = t[i];
}

static inline size_t toy_scratch(const stint_graph *g, const sti_node *n, int threads)
{
    (void)threads;
    return stint_shape_bytes(&sti_graph_value(g, n->in[0])->shape);
}

static inline void toy_print(const sti_node *node, sti_text *out)
{
    sti_text_printf(out, "factor=%d", (int)((const toy_attr *)node->attr)->factor);
}

static const sti_op toy_scale = {.name = "toy_scale",
                                 .n_out = 1,
                                 .attr_bytes = sizeof(toy_attr),
                                 .flags = STI_OP_INPLACE_0,
                                 .infer = toy_same,
                                 .run = {toy_run_scale},
                                 .print = toy_print};
static const sti_op toy_add = {.name = "toy_add",
                               .n_out = 1,
                               .flags = STI_OP_INPLACE_0 | STI_OP_INPLACE_1,
                               .infer = toy_same,
                               .run = {toy_run_add}};
static const sti_op toy_flat = {
    .name = "toy_flat", .n_out = 1, .flags = STI_OP_VIEW, .infer = toy_infer_flat};
static const sti_op toy_sum = {
    .name = "toy_sum", .n_out = 1, .infer = toy_infer_sum, .run = {toy_run_sum}};
static const sti_op toy_split = {.name = "toy_split",
                                 .n_out = 2,
                                 .optional_out = 2,
                                 .infer = toy_infer_split,
                                 .run = {toy_run_split}};
static const sti_op toy_reverse = {.name = "toy_reverse",
                                   .n_out = 1,
                                   .infer = toy_same,
                                   .scratch_bytes = toy_scratch,
                                   .run = {toy_run_reverse}};

static inline stint_value toy1(stint_graph *g, const sti_op *op, stint_value x)
{
    return sti_graph_add(g, op, NULL, 1, &x);
}

static inline stint_value toy_scaled(stint_graph *g, stint_value x, float factor)
{
    return sti_graph_add(g, &toy_scale, &(toy_attr){.factor = factor}, 1, &x);
}

static inline stint_value toy2(stint_graph *g, stint_value a, stint_value b)
{
    stint_value in[] = {a, b};
    return sti_graph_add(g, &toy_add, NULL, 2, in);
}

static inline void toy_output(stint_graph *g, sti_output_kind kind, stint_value value,
                              stint_value target, const char *name)
{
    sti_graph_output(g, &(sti_output){.kind = kind,
                                      .value = value,
                                      .target = target,
                                      .name = name,
                                      .momentum = 0.1f});
}

/* Keeps the rows that a test does not use from being "unused". */
static inline const sti_op *toy_any(int i)
{
    static const sti_op *const all[] = {&toy_scale, &toy_add,   &toy_flat,
                                        &toy_sum,   &toy_split, &toy_reverse};
    return all[i];
}

#endif
