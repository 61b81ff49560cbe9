/* Factors and addends of channels, folded into the convolution or matrix product before
 * them:
 *
 *   (x W + b) f + s  ->  x (W f) + (b f + s)
 *
 * where f and s are constants, numbers or a row of channels: batch normalisation by
 * running statistics, bias, addition, product, quotient. Only where nobody else reads
 * what is in between; a reshape that keeps channels may stand there. Products are
 * rounded once where they were twice, so results differ in their last bits: for
 * networks that are imported, whose weights are constants. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/finite.h"
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "op/op_unary_row.h"
#include "pass/pass_priv.h"

typedef struct affine_fold {
    stint_graph *graph;
    sti_uses uses;  /* of the graph at the start of the round */
    int32_t values; /* covered by uses */
    int folded;
} affine_fold;

/* y = factor x + shift for each channel. */
typedef struct channel_map {
    int64_t channels;
    float *factor, *shift;
} channel_map;

static const float *constant_of(const stint_graph *g, stint_value v)
{
    const sti_value_row *row = v >= 0 ? sti_graph_value(g, v) : NULL;
    return row && row->role == STI_ROLE_CONSTANT && row->shape.dtype == STINT_F32
               ? row->data
               : NULL;
}

static int64_t last_dim(const stint_shape *s)
{
    return s->rank > 0 ? s->dim[s->rank - 1] : 1;
}

/* ---- the product before ---- */

static bool takes_factors(const stint_graph *g, const sti_node *head)
{
    if (head->op != &sti_op_conv2d && head->op != &sti_op_matmul)
        return false;
    const bool biased = head->n_in > 2 && head->in[2] >= 0;
    if (!constant_of(g, head->in[1]) || (biased && !constant_of(g, head->in[2])))
        return false;
    if (head->op == &sti_op_conv2d)
        return !((const sti_conv2d_attr *)head->attr)->relu;
    const stint_shape *w = &sti_graph_value(g, head->in[1])->shape;
    return w->rank == 2 && !((const sti_matmul_attr *)head->attr)->relu;
}

/* The node whose result 0 only one node reads. */
static sti_node *sole_producer(const affine_fold *f, stint_value value)
{
    if (value < 0 || value >= f->values || f->uses.count[value] != 1)
        return NULL;
    const sti_value_row *row = sti_graph_value(f->graph, value);
    return row->producer && row->producer_out == 0 && row->producer->id >= 0
               ? row->producer
               : NULL;
}

/* The product that makes `value`, perhaps under another shape with the same channels.
 */
static sti_node *head_of(const affine_fold *f, stint_value value)
{
    sti_node *node = sole_producer(f, value);
    if (node && node->op == &sti_op_reshape) {
        const stint_shape *in = &sti_graph_value(f->graph, node->in[0])->shape;
        const stint_shape *out = &sti_graph_value(f->graph, value)->shape;
        node = last_dim(in) == last_dim(out) ? sole_producer(f, node->in[0]) : NULL;
    }
    return node && takes_factors(f->graph, node) ? node : NULL;
}

/* ---- what comes behind it ---- */

/* A number or a row of channels as a row; false: the value is neither. */
static bool read_row(const stint_graph *g, stint_value v, int64_t channels, float *row)
{
    const float *x = constant_of(g, v);
    if (!x)
        return false;
    const stint_shape *s = &sti_graph_value(g, v)->shape;
    const int64_t count = stint_shape_count(s);
    if (count != 1 && (count != channels || last_dim(s) != channels))
        return false;
    for (int64_t c = 0; c < channels; c++)
        row[c] = x[count == 1 ? 0 : c];
    return true;
}

static bool read_norm(const stint_graph *g, const sti_node *n, channel_map *m)
{
    const sti_batch_norm_attr *attr = n->attr;
    const float *scale = constant_of(g, n->in[SCALE]);
    const float *shift = constant_of(g, n->in[SHIFT]);
    const float *mean = n->n_in > RUN_VARIANCE ? constant_of(g, n->in[RUN_MEAN]) : NULL;
    const float *variance =
        n->n_in > RUN_VARIANCE ? constant_of(g, n->in[RUN_VARIANCE]) : NULL;
    if (!attr->eval || attr->has_residual || attr->relu || !scale || !shift || !mean ||
        !variance)
        return false;
    for (int64_t c = 0; c < m->channels; c++) {
        m->factor[c] = scale[c] / sqrtf(variance[c] + attr->epsilon);
        m->shift[c] = shift[c] - mean[c] * m->factor[c];
    }
    return true;
}

static void negate(float *row, int64_t count)
{
    for (int64_t c = 0; c < count; c++)
        row[c] = -row[c];
}

/* A binary operator whose operand `at` is the product's result. */
static bool read_binary(const stint_graph *g, const sti_node *n, int at, channel_map *m)
{
    const stint_value other = n->in[1 - at];
    if (n->op == &sti_op_add || n->op == &sti_op_bias)
        return read_row(g, other, m->channels, m->shift);
    if (n->op == &sti_op_mul)
        return read_row(g, other, m->channels, m->factor);
    if (n->op == &sti_op_sub) {
        if (!read_row(g, other, m->channels, m->shift))
            return false;
        negate(at == 0 ? m->shift : m->factor, m->channels);
        return true;
    }
    if (n->op != &sti_op_div || at != 0 || !read_row(g, other, m->channels, m->factor))
        return false;
    for (int64_t c = 0; c < m->channels; c++)
        m->factor[c] = 1.0f / m->factor[c];
    return true;
}

/* Is operand `at` of the node the result of a product, and all else a map of channels?
 */
static bool read_map(const affine_fold *f, const sti_node *n, int at, channel_map *m)
{
    const sti_unary_attr *unary = n->attr;
    for (int64_t c = 0; c < m->channels; c++) {
        m->factor[c] = 1;
        m->shift[c] = 0;
    }
    if (n->op == &sti_op_batch_norm)
        return at == 0 && read_norm(f->graph, n, m);
    if (n->op == &sti_op_scale || n->op == &sti_op_add_scalar) {
        for (int64_t c = 0; c < m->channels; c++)
            (n->op == &sti_op_scale ? m->factor : m->shift)[c] = unary->parameter;
        return true;
    }
    return n->n_in == 2 && read_binary(f->graph, n, at, m);
}

static bool is_sound(const channel_map *m)
{
    return sti_first_not_finite(m->factor, m->channels) < 0 &&
           sti_first_not_finite(m->shift, m->channels) < 0;
}

/* ---- the product anew ---- */

static stint_value add_constant(stint_graph *g, const stint_shape *shape,
                                const float *data)
{
    char name[48];
    snprintf(name, sizeof name, "constant.%d", (int)sti_graph_value_count(g));
    return sti_graph_constant(g, name, shape, data);
}

static stint_value scaled_weight(stint_graph *g, const sti_node *head,
                                 const channel_map *m)
{
    const stint_shape shape = sti_graph_value(g, head->in[1])->shape;
    const float *from = constant_of(g, head->in[1]);
    const int64_t count = stint_shape_count(&shape);
    const bool turned =
        head->op == &sti_op_matmul && ((const sti_matmul_attr *)head->attr)->trans_b;
    const int64_t each = turned ? shape.dim[1] : 1;
    bool same = true;
    for (int64_t c = 0; c < m->channels; c++)
        same = same && m->factor[c] == 1.0f;
    if (same)
        return head->in[1];
    float *to = sti_graph_room(g, (size_t)count * sizeof *to);
    for (int64_t i = 0; to && i < count; i++)
        to[i] = from[i] * m->factor[i / each % m->channels];
    sti_graph_rest(g, head->in[1]);
    return to ? add_constant(g, &shape, to) : -1;
}

static stint_value shifted_bias(stint_graph *g, const sti_node *head,
                                const channel_map *m)
{
    const float *from = head->n_in > 2 ? constant_of(g, head->in[2]) : NULL;
    const stint_shape shape = stint_shape_make(STINT_F32, 1, &m->channels);
    float *to = sti_graph_room(g, (size_t)m->channels * sizeof *to);
    for (int64_t c = 0; to && c < m->channels; c++)
        to[c] = (from ? from[c] * m->factor[c] : 0) + m->shift[c];
    return to ? add_constant(g, &shape, to) : -1;
}

static void rewrite(affine_fold *f, sti_node *head, sti_node *tail, int at,
                    const channel_map *m)
{
    stint_graph *g = f->graph;
    const stint_value in[3] = {head->in[0], scaled_weight(g, head, m),
                               shifted_bias(g, head, m)};
    sti_conv2d_attr conv = {0};
    sti_matmul_attr product = {0};
    const void *attr = &conv;
    if (head->op == &sti_op_conv2d) {
        conv = *(const sti_conv2d_attr *)head->attr;
        conv.has_bias = 1;
    } else {
        product = *(const sti_matmul_attr *)head->attr;
        product.has_bias = 1;
        attr = &product;
    }
    const stint_value y = sti_graph_add(g, head->op, attr, 3, in);
    if (y < 0)
        return;
    sti_graph_value(g, y)->producer->scope = head->scope;
    sti_graph_replace(g, head->out[0], y);
    sti_graph_replace(g, tail->out[0], tail->in[at]);
    sti_graph_kill(g, head);
    sti_graph_kill(g, tail);
    f->folded++;
}

/* ---- rounds ---- */

static stint_status look_at(affine_fold *f, sti_node *tail)
{
    const bool norm = tail->op == &sti_op_batch_norm;
    stint_status st = STINT_OK;
    for (int at = 0; at < (norm || tail->n_in < 2 ? 1 : 2); at++) {
        sti_node *head = head_of(f, tail->in[at]);
        if (!head || !sti_shape_equal(&sti_graph_value(f->graph, tail->in[at])->shape,
                                      &sti_graph_value(f->graph, tail->out[0])->shape))
            continue;
        channel_map m = {.channels =
                             last_dim(&sti_graph_value(f->graph, head->out[0])->shape)};
        m.factor = sti_alloc_array(2 * m.channels, sizeof *m.factor, "pass.affine");
        if (!m.factor)
            return STINT_E_MEMORY;
        m.shift = m.factor + m.channels;
        const bool folds = read_map(f, tail, at, &m) && is_sound(&m);
        if (folds)
            rewrite(f, head, tail, at, &m);
        sti_free(m.factor);
        st = sti_graph_status(f->graph);
        if (folds || st != STINT_OK)
            break;
    }
    return st;
}

static bool is_tail(const sti_node *n)
{
    return n->op == &sti_op_batch_norm || n->op == &sti_op_add ||
           n->op == &sti_op_bias || n->op == &sti_op_mul || n->op == &sti_op_sub ||
           n->op == &sti_op_div || n->op == &sti_op_scale ||
           n->op == &sti_op_add_scalar;
}

static stint_status affine_round(affine_fold *f)
{
    const int32_t nodes = sti_graph_node_count(f->graph);
    stint_status st = sti_uses_create(f->graph, &f->uses);
    f->values = sti_graph_value_count(f->graph);
    for (int32_t i = 0; i < nodes && st == STINT_OK; i++) {
        sti_node *node = sti_graph_node(f->graph, i);
        if (node->id >= 0 && is_tail(node))
            st = look_at(f, node);
    }
    sti_uses_destroy(&f->uses);
    if (st == STINT_OK)
        st = sti_graph_sweep(f->graph);
    return st == STINT_OK ? sti_graph_sort(f->graph) : st;
}

stint_status sti_pass_affine(stint_graph *graph, sti_pass_note *note)
{
    affine_fold f = {.graph = graph};
    stint_status st = STINT_OK;
    int before;
    sti_pass_clear_inplace(graph);
    do {
        before = f.folded;
        st = affine_round(&f);
    } while (st == STINT_OK && f.folded > before);
    sti_pass_note_set(note, "%d maps of channels folded into products", f.folded);
    return st;
}
