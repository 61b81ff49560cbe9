/* Channels that are zero whatever the image, cut out of a graph whose weights are
 * constants: filters and columns of zeros whose bias, normalisation and ReLU leave them
 * zero, their parameters, and what the layers behind them keep for them. Through
 * normalisation, pooling, ReLU, flattening and residual sums, where a channel goes only
 * if it is zero on every branch.
 *
 * Values that must have the same channels make a group; a channel of it stays if one of
 * them may be other than zero, and all stay where an operator reads it that is not
 * known here. Every node is then built once more on what is left. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

typedef struct thinner {
    stint_graph *graph;
    int32_t values;
    stint_value *group; /* [values]: a value of the same group, itself: the first */
    stint_value *map;   /* [values]: what stands for it in the new graph */
    bool **dead;        /* [values][channels]; NULL: none */
    bool **keep;        /* [values][channels], of the first of a group */
    bool *whole;        /* [values]: of the first of a group: all stay */
    int64_t cut;
} thinner;

static const stint_shape *shape_of(const thinner *t, stint_value value)
{
    return &sti_graph_value(t->graph, value)->shape;
}

static const float *data_of(const thinner *t, stint_value value)
{
    const sti_value_row *row = value < 0 ? NULL : sti_graph_value(t->graph, value);
    return row && row->role == STI_ROLE_CONSTANT ? row->data : NULL;
}

static int64_t last_dim(const thinner *t, stint_value value)
{
    const stint_shape *s = shape_of(t, value);
    return s->rank ? s->dim[s->rank - 1] : 1;
}

static stint_value group_of(const thinner *t, stint_value value)
{
    while (t->group[value] != value)
        value = t->group[value];
    return value;
}

static void tie(thinner *t, stint_value a, stint_value b)
{
    a = group_of(t, a);
    b = group_of(t, b);
    const stint_value first = a < b ? a : b, other = a < b ? b : a;
    t->group[other] = first;
    t->whole[first] |= t->whole[other];
}

/* ---- which operators are known ---- */

static bool named(const sti_node *node, const char *name)
{
    return strcmp(node->op->name, name) == 0;
}

static bool is_product(const thinner *t, const sti_node *node)
{
    if (node->op == &sti_op_conv2d) {
        const sti_conv2d_attr *a = node->attr;
        return a->groups == 1 && data_of(t, node->in[1]) &&
               (!a->has_bias || data_of(t, node->in[2]));
    }
    if (node->op != &sti_op_matmul)
        return false;
    const sti_matmul_attr *a = node->attr;
    return !a->trans_a && !a->trans_b && data_of(t, node->in[1]) &&
           shape_of(t, node->in[0])->rank == 2 && shape_of(t, node->in[1])->rank == 2 &&
           (!a->has_bias || data_of(t, node->in[2]));
}

static bool is_norm(const thinner *t, const sti_node *node)
{
    const sti_batch_norm_attr *a = node->attr;
    return node->op == &sti_op_batch_norm && a->eval && data_of(t, node->in[SCALE]) &&
           data_of(t, node->in[SHIFT]) && data_of(t, node->in[RUN_MEAN]) &&
           data_of(t, node->in[RUN_VARIANCE]);
}

static bool is_flatten(const thinner *t, const sti_node *node)
{
    return named(node, "reshape") && shape_of(t, node->in[0])->rank == 4 &&
           shape_of(t, node->out[0])->rank == 2 &&
           shape_of(t, node->in[0])->dim[0] == shape_of(t, node->out[0])->dim[0];
}

/* Zero stays zero, channel by channel. */
static bool is_same(const thinner *t, const sti_node *node)
{
    return node->op == &sti_op_relu || named(node, "max_pool") ||
           named(node, "avg_pool") || named(node, "global_avg_pool") ||
           is_flatten(t, node);
}

static bool is_sum(const thinner *t, const sti_node *node)
{
    return node->op == &sti_op_add &&
           sti_shape_equal(shape_of(t, node->in[0]), shape_of(t, node->in[1])) &&
           !data_of(t, node->in[0]) && !data_of(t, node->in[1]);
}

static void tie_node(thinner *t, const sti_node *node)
{
    if (is_product(t, node))
        return;
    if (is_norm(t, node)) {
        tie(t, node->in[X], node->out[Y]);
        if (node->in[RESIDUAL] >= 0)
            tie(t, node->in[RESIDUAL], node->out[Y]);
    } else if (is_same(t, node)) {
        tie(t, node->in[0], node->out[0]);
    } else if (is_sum(t, node)) {
        tie(t, node->in[0], node->out[0]);
        tie(t, node->in[1], node->out[0]);
    } else {
        for (int32_t i = 0; i < node->n_in; i++)
            if (node->in[i] >= 0)
                t->whole[group_of(t, node->in[i])] = true;
        for (int32_t i = 0; i < node->n_out; i++)
            t->whole[group_of(t, node->out[i])] = true;
    }
}

/* ---- which channels are zero ---- */

static bool is_dead(const thinner *t, stint_value value, int64_t channel)
{
    const bool *dead = value < 0 ? NULL : t->dead[value];
    /* (a flattened value has the channels of every pixel) */
    return dead && dead[channel];
}

static void find_product(thinner *t, const sti_node *node, bool *dead)
{
    const int64_t n = last_dim(t, node->in[1]);
    const int64_t rows = stint_shape_count(shape_of(t, node->in[1])) / n;
    const float *w = data_of(t, node->in[1]);
    const bool conv = node->op == &sti_op_conv2d;
    const bool relu = conv ? ((const sti_conv2d_attr *)node->attr)->relu
                           : ((const sti_matmul_attr *)node->attr)->relu;
    const float *bias = node->n_in > 2 ? data_of(t, node->in[2]) : NULL;
    for (int64_t c = 0; c < n; c++) {
        bool zero = true;
        for (int64_t r = 0; r < rows && zero; r++)
            zero = w[r * n + c] == 0;
        dead[c] = zero && (!bias || bias[c] == 0 || (relu && bias[c] < 0));
    }
}

/* What becomes of a zero: (0 - mean) / deviation scale + shift, which is zero or cut
 * off. */
static void find_norm(thinner *t, const sti_node *node, bool *dead)
{
    const sti_batch_norm_attr *a = node->attr;
    const float *scale = data_of(t, node->in[SCALE]);
    const float *shift = data_of(t, node->in[SHIFT]);
    const float *mean = data_of(t, node->in[RUN_MEAN]);
    for (int64_t c = 0; c < last_dim(t, node->out[Y]); c++) {
        const bool zero = shift[c] == 0 && (mean[c] == 0 || scale[c] == 0);
        const bool below = a->relu && shift[c] <= 0 && mean[c] * scale[c] >= 0;
        dead[c] = (zero || below) && is_dead(t, node->in[X], c) &&
                  (node->in[RESIDUAL] < 0 || is_dead(t, node->in[RESIDUAL], c));
    }
}

static stint_status find_dead(thinner *t, const sti_node *node)
{
    const stint_value y = node->out[0];
    const int64_t n = last_dim(t, y);
    bool *dead = sti_alloc((size_t)n, "thin");
    if (!dead)
        return STINT_E_MEMORY;
    t->dead[y] = dead;
    if (is_product(t, node))
        find_product(t, node, dead);
    else if (is_norm(t, node))
        find_norm(t, node, dead);
    else if (is_same(t, node))
        for (int64_t c = 0; c < n; c++)
            dead[c] = is_dead(t, node->in[0], c % last_dim(t, node->in[0]));
    else if (is_sum(t, node))
        for (int64_t c = 0; c < n; c++)
            dead[c] = is_dead(t, node->in[0], c) && is_dead(t, node->in[1], c);
    return STINT_OK;
}

/* A group's channels are those of its first value: the last axis of images. One stays
 * where all could go. */
static stint_status keep_channels(thinner *t)
{
    for (stint_value v = 0; v < t->values; v++) {
        const stint_value first = group_of(t, v);
        const int64_t n = last_dim(t, first);
        if (!t->keep[first] && !(t->keep[first] = sti_alloc((size_t)n, "thin")))
            return STINT_E_MEMORY;
        for (int64_t c = 0; c < last_dim(t, v); c++)
            t->keep[first][c % n] |= t->whole[first] || !is_dead(t, v, c);
    }
    for (stint_value v = 0; v < t->values; v++) {
        int64_t kept = 0;
        for (int64_t c = 0; t->keep[v] && c < last_dim(t, v); c++)
            kept += t->keep[v][c];
        if (!t->keep[v])
            continue;
        if (kept == 0) {
            t->keep[v][0] = true;
            kept = 1;
        }
        t->cut += last_dim(t, v) - kept;
    }
    return STINT_OK;
}

/* ---- the graph of what is left ---- */

/* Does column c of a tensor whose last axis lies along `value` stay? NULL: all do. */
typedef struct axis {
    const bool *keep;
    int64_t n, all; /* channels of the group; of the axis, a multiple */
} axis;

static axis axis_of(const thinner *t, stint_value value)
{
    const stint_value first = group_of(t, value);
    return (axis){t->keep[first], last_dim(t, first), last_dim(t, value)};
}

static int64_t kept_of(const axis *a)
{
    int64_t kept = 0;
    for (int64_t c = 0; c < a->all; c++)
        kept += a->keep[c % a->n];
    return kept;
}

/* A constant [..., rows, columns] with what stays of both; rows NULL: of columns alone.
 */
static stint_value gather(thinner *t, stint_value from, const axis *rows,
                          const axis *columns)
{
    stint_shape shape = *shape_of(t, from);
    const int64_t n = columns->all, each = rows ? rows->all : 1;
    const int64_t outer = stint_shape_count(&shape) / (n * each);
    const float *x = data_of(t, from);
    shape.dim[shape.rank - 1] = kept_of(columns);
    if (rows)
        shape.dim[shape.rank - 2] = kept_of(rows);
    float *out = sti_graph_room(t->graph, stint_shape_bytes(&shape)), *to = out;
    if (!out)
        return sti_graph_fail(t->graph, STINT_E_MEMORY);
    for (int64_t i = 0; i < outer * each; i++)
        for (int64_t c = 0; c < n && (!rows || rows->keep[i % each % rows->n]); c++)
            if (columns->keep[c % columns->n])
                *to++ = x[i * n + c];
    char name[512];
    snprintf(name, sizeof name, "%s.thin", sti_graph_value(t->graph, from)->name);
    return sti_graph_constant(t->graph, name, &shape, out);
}

static void gather_product(thinner *t, const sti_node *node, stint_value *in)
{
    const axis rows = axis_of(t, node->in[0]), columns = axis_of(t, node->out[0]);
    if (kept_of(&rows) < rows.all || kept_of(&columns) < columns.all)
        in[1] = gather(t, node->in[1], &rows, &columns);
    if (node->n_in > 2 && node->in[2] >= 0 && kept_of(&columns) < columns.all)
        in[2] = gather(t, node->in[2], NULL, &columns);
}

static void gather_norm(thinner *t, const sti_node *node, stint_value *in)
{
    static const int rows[] = {SCALE, SHIFT, RUN_MEAN, RUN_VARIANCE};
    const axis columns = axis_of(t, node->out[Y]);
    for (int i = 0; i < 4 && kept_of(&columns) < columns.all; i++)
        in[rows[i]] = gather(t, node->in[rows[i]], NULL, &columns);
}

/* Minimal filtering is decided anew. */
static stint_value build_again(thinner *t, const sti_node *node, const stint_value *in)
{
    if (is_flatten(t, node))
        return stint_flatten(t->graph, in[0]);
    if (node->op != &sti_op_conv2d)
        return sti_graph_add(t->graph, node->op, node->attr, node->n_in, in);
    sti_conv2d_attr attr = *(const sti_conv2d_attr *)node->attr;
    attr.winograd = 0;
    return sti_graph_add(t->graph, node->op, &attr, node->n_in, in);
}

static stint_status build_node(thinner *t, const sti_node *node)
{
    enum { INPUTS_MOST = 16 };
    stint_value in[INPUTS_MOST];
    if (node->n_in > INPUTS_MOST)
        return sti_fail(STINT_E_UNSUPPORTED, "thin: %s has %d inputs", node->op->name,
                        (int)node->n_in);
    for (int32_t i = 0; i < node->n_in; i++)
        in[i] = node->in[i] < 0 ? node->in[i] : t->map[node->in[i]];
    if (is_product(t, node))
        gather_product(t, node, in);
    else if (is_norm(t, node))
        gather_norm(t, node, in);
    const stint_value y = build_again(t, node, in);
    if (y < 0)
        return sti_graph_status(t->graph);
    sti_graph_value(t->graph, y)->producer->scope = node->scope;
    for (int32_t i = 0; i < node->n_out; i++)
        t->map[node->out[i]] = y + i;
    return STINT_OK;
}

static stint_status build_all(thinner *t, int32_t nodes)
{
    stint_status st = STINT_OK;
    for (int32_t n = 0; n < nodes && st == STINT_OK; n++)
        st = build_node(t, sti_graph_node(t->graph, n));
    sti_output *outputs = sti_graph_outputs(t->graph);
    for (int32_t i = 0; i < sti_graph_output_count(t->graph) && st == STINT_OK; i++)
        outputs[i].value = t->map[outputs[i].value];
    if (st == STINT_OK)
        st = sti_graph_sort(t->graph);
    return st == STINT_OK ? sti_pass_dead_code(t->graph, NULL) : st;
}

static stint_status make_room(thinner *t)
{
    t->values = sti_graph_value_count(t->graph);
    t->group = sti_alloc_array(t->values, sizeof *t->group, "thin");
    t->map = sti_alloc_array(t->values, sizeof *t->map, "thin");
    t->dead = sti_alloc_array(t->values, sizeof(bool *), "thin");
    t->keep = sti_alloc_array(t->values, sizeof(bool *), "thin");
    t->whole = sti_alloc_array(t->values, sizeof *t->whole, "thin");
    if (!t->group || !t->map || !t->dead || !t->keep || !t->whole)
        return STINT_E_MEMORY;
    for (stint_value v = 0; v < t->values; v++)
        t->group[v] = t->map[v] = v;
    return STINT_OK;
}

static void free_room(thinner *t)
{
    for (stint_value v = 0; v < t->values; v++) {
        if (t->dead)
            sti_free(t->dead[v]);
        if (t->keep)
            sti_free(t->keep[v]);
    }
    sti_free(t->group);
    sti_free(t->map);
    sti_free(t->dead);
    sti_free(t->keep);
    sti_free(t->whole);
}

stint_status sti_pass_thin(stint_graph *graph, sti_pass_note *note)
{
    thinner t = {.graph = graph};
    const int32_t nodes = sti_graph_node_count(graph);
    stint_status st;
    sti_pass_clear_inplace(graph);
    STI_TRY(make_room(&t));
    for (int32_t n = 0; n < nodes; n++)
        tie_node(&t, sti_graph_node(graph, n));
    for (int32_t i = 0; i < sti_graph_output_count(graph); i++)
        t.whole[group_of(&t, sti_graph_outputs(graph)[i].value)] = true;
    for (int32_t n = 0; n < nodes; n++)
        STI_TRY(find_dead(&t, sti_graph_node(graph, n)));
    STI_TRY(keep_channels(&t));
    if (t.cut > 0)
        STI_TRY(build_all(&t, nodes));
    sti_pass_note_set(note, "%d channels cut out", (int)t.cut);
out:
    free_room(&t);
    return st;
}
