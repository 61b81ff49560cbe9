#include "store/planar_choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "kernel/planar/planar_cost.h"
#include "op/op.h"

enum { TIMES = 2, COLOURS = 4 };
static const int64_t images[TIMES] = {1, STI_PLANAR_LANES};
#define MICROSECONDS_MOVED 1e-3 /* a number from one layout to the other */

/* A convolution or a dense layer. */
typedef struct candidate {
    sti_compact_tensor *weight;
    sti_planar_shape shape;
    double dense[TIMES], sparse[TIMES];
    int32_t before; /* the candidate whose images it works on, -1: none */
    bool first;     /* of the network */
} candidate;

typedef struct chooser {
    const stint_graph *graph;
    candidate *list; /* [count] */
    int32_t count;
    int32_t *made_by; /* [values]: the candidate that images come of, -1: none */
} chooser;

static const stint_shape *shape_of(const chooser *c, stint_value value)
{
    return &sti_graph_value(c->graph, value)->shape;
}

static sti_compact_tensor *weight_of(const sti_node *node, sti_compact_tensor *tensors,
                                     int64_t count)
{
    char name[512];
    snprintf(name, sizeof name, "%s.weight", node->scope);
    for (int64_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    return NULL;
}

/* ---- what there is ---- */

/* A convolution, perhaps with a normalisation behind it (pass/norm_behind). */
static bool take_convolution(const sti_node *node, sti_conv2d_attr *attr_out)
{
    if (node->op == &sti_op_conv2d_norm) {
        const sti_conv_kept_attr *a = &((const sti_conv_norm_attr *)node->attr)->conv;
        *attr_out =
            (sti_conv2d_attr){.stride = a->stride, .pad = a->pad, .groups = a->groups};
    } else if (node->op == &sti_op_conv2d) {
        *attr_out = *(const sti_conv2d_attr *)node->attr;
    } else {
        return false;
    }
    return attr_out->groups == 1;
}

static bool is_convolution(const sti_node *node)
{
    sti_conv2d_attr attr;
    return take_convolution(node, &attr);
}

static bool is_dense(const chooser *c, const sti_node *node)
{
    const sti_matmul_attr *a = node->attr;
    return node->op == &sti_op_matmul && !a->trans_a && !a->trans_b &&
           shape_of(c, node->in[0])->rank == 2 && shape_of(c, node->in[1])->rank == 2;
}

static sti_planar_shape shape_of_layer(const chooser *c, const sti_node *node)
{
    const stint_shape *w = shape_of(c, node->in[1]), *x = shape_of(c, node->in[0]);
    const stint_shape *y = shape_of(c, node->out[0]);
    sti_planar_shape s = {.h = 1,
                          .w = 1,
                          .channels = w->dim[w->rank - 2],
                          .filters = w->dim[w->rank - 1],
                          .kh = 1,
                          .kw = 1,
                          .stride = 1,
                          .oh = 1,
                          .ow = 1};
    sti_conv2d_attr a;
    if (take_convolution(node, &a)) {
        s.h = x->dim[1];
        s.w = x->dim[2];
        s.kh = w->dim[0];
        s.kw = w->dim[1];
        s.stride = a.stride;
        s.pad = a.pad;
        s.oh = y->dim[1];
        s.ow = y->dim[2];
    }
    return s;
}

/* The share of filters in which anything is left: others are cut out (pass/thin). */
static double live_share(const sti_weight *w)
{
    int64_t live = 0;
    for (int64_t c = 0; c < w->form.columns; c++) {
        bool kept = false;
        for (int64_t r = 0; r < w->form.rows && !kept; r++)
            kept = w->x[r * w->form.columns + c] != 0;
        live += kept;
    }
    return (double)live / (double)w->form.columns;
}

static stint_status estimate(candidate *l)
{
    const double live = live_share(&l->weight->weight);
    for (int i = 0; i < TIMES; i++) {
        sti_planar_zeros zeros;
        l->shape.n = images[i];
        if (!sti_planar_look(&l->shape, l->weight->weight.x, &zeros))
            return STINT_E_MEMORY;
        l->dense[i] = sti_planar_dense_cost(&l->shape) * live;
        l->sparse[i] = sti_planar_cost(&l->shape, &zeros);
    }
    return STINT_OK;
}

static stint_status visit(chooser *c, const sti_node *node, sti_compact_tensor *tensors,
                          int64_t count)
{
    const bool convolution = is_convolution(node);
    const stint_value x = node->n_in > 0 ? node->in[0] : -1;
    const int32_t before = x >= 0 ? c->made_by[x] : -1;
    sti_compact_tensor *weight =
        convolution || is_dense(c, node) ? weight_of(node, tensors, count) : NULL;
    int32_t made_by = before;
    stint_status st = STINT_OK;
    if (weight) {
        c->list[c->count] =
            (candidate){.weight = weight,
                        .shape = shape_of_layer(c, node),
                        .before = convolution ? before : -1,
                        .first = convolution && shape_of(c, x)->dim[3] <= COLOURS};
        st = estimate(&c->list[c->count]);
        made_by = convolution ? c->count : -1;
        c->count++;
    }
    for (int32_t i = 0; i < node->n_out; i++)
        if (node->out[i] >= 0)
            c->made_by[node->out[i]] =
                shape_of(c, node->out[i])->rank == 4 ? made_by : -1;
    return st;
}

/* ---- the choice ---- */

/* What a layer's conversions take: those of its own images, and those of the layers
 * behind it that are not chosen. */
static double moves_of(const chooser *c, int32_t k)
{
    const sti_planar_shape *s = &c->list[k].shape;
    const int32_t before = c->list[k].before;
    double numbers = 0;
    if (before < 0 || !c->list[before].weight->planar)
        numbers += (double)(s->channels * s->h * s->w);
    for (int32_t i = 0; i < c->count; i++)
        if (c->list[i].before == k && !c->list[i].weight->planar)
            numbers += (double)(s->filters * s->oh * s->ow);
    return numbers * MICROSECONDS_MOVED;
}

static bool pays(const chooser *c, int32_t k)
{
    const candidate *l = &c->list[k];
    double product = 1;
    for (int i = 0; i < TIMES; i++)
        product *= l->dense[i] / (l->sparse[i] + moves_of(c, k) * (double)images[i]);
    return product > 1;
}

/* From all of them, those are left out that do not pay, until all do; then first
 * layers follow. */
static void choose(const chooser *c)
{
    bool changed = true;
    for (int32_t k = 0; k < c->count; k++)
        c->list[k].weight->planar = true;
    while (changed) {
        changed = false;
        for (int32_t k = 0; k < c->count; k++)
            if (c->list[k].weight->planar && !c->list[k].first && !pays(c, k)) {
                c->list[k].weight->planar = false;
                changed = true;
            }
    }
    for (int32_t k = 0; k < c->count; k++)
        if (c->list[k].first) {
            bool any = false;
            for (int32_t i = 0; i < c->count; i++)
                any |= c->list[i].before == k && c->list[i].weight->planar;
            c->list[k].weight->planar = any;
        }
}

stint_status sti_planar_choose(const stint_graph *graph, sti_compact_tensor *tensors,
                               int64_t count)
{
    const int32_t values = sti_graph_value_count(graph);
    const int32_t nodes = sti_graph_node_count(graph);
    chooser c = {.graph = graph};
    c.list = sti_alloc_array(nodes, sizeof *c.list, "choice of layers");
    c.made_by = sti_alloc_array(values, sizeof *c.made_by, "choice of layers");
    stint_status st = c.list && c.made_by ? STINT_OK : STINT_E_MEMORY;
    for (int32_t v = 0; st == STINT_OK && v < values; v++)
        c.made_by[v] = -1;
    for (int32_t n = 0; st == STINT_OK && n < nodes; n++)
        if (!sti_graph_node(graph, n)->backward)
            st = visit(&c, sti_graph_node(graph, n), tensors, count);
    if (st == STINT_OK)
        choose(&c);
    sti_free(c.list);
    sti_free(c.made_by);
    return st;
}
