/* A graph of ours, channels last, as nodes of ONNX, channels first.
 *
 * A value of four axes is in the file either as it is in the graph or with its channels
 * in front; an operator that does not care takes it as it comes, and a Transpose stands
 * where a reader wants the other form: where pictures become rows. */
#include "exchange/onnx_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "exchange/wire_writer.h"
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "op/op_pool.h"
#include "stint/version.h"

enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12 };

typedef struct onnx_writer {
    const stint_model_file *model;
    const sti_onnx_write_options *options;
    sti_arena *arena;
    stint_graph *graph;
    sti_text body;       /* of the GraphProto */
    const char **name;   /* of a value in the file, [values] */
    bool *first;         /* its channels are in front */
    int64_t temporaries; /* names that were made up */
    const char *failed;  /* an operator that there is no form for */
    bool no_memory;
} onnx_writer;

static const char *fresh(onnx_writer *w, const char *what)
{
    const char *name =
        sti_arena_printf(w->arena, "%s.%" PRId64, what, w->temporaries++);
    w->no_memory = w->no_memory || !name;
    return name ? name : "";
}

/* ---- pieces of the file ---- */

static void add_tensor(onnx_writer *w, const char *name, int type, int rank,
                       const int64_t *dim, const void *data, size_t n_bytes)
{
    sti_text t = {0};
    for (int i = 0; i < rank; i++)
        sti_proto_add_int(&t, 1, dim[i]);
    sti_proto_add_int(&t, 2, type);
    sti_proto_add_text(&t, 8, name);
    sti_proto_add_bytes(&t, 9, data, n_bytes);
    sti_proto_add_message(&w->body, INITIALIZER, &t);
}

static const char *floats(onnx_writer *w, int rank, const int64_t *dim, const float *x)
{
    int64_t count = 1;
    const char *name = fresh(w, "constant");
    for (int i = 0; i < rank; i++)
        count *= dim[i];
    add_tensor(w, name, 1, rank, dim, x, (size_t)count * sizeof *x);
    return name;
}

static const char *number(onnx_writer *w, float x)
{
    return floats(w, 0, NULL, &x);
}

static const char *integers(onnx_writer *w, int64_t count, const int64_t *x)
{
    const char *name = fresh(w, "constant");
    add_tensor(w, name, 7, 1, &count, x, (size_t)count * sizeof *x);
    return name;
}

/* An attribute: one whole number, several (count >= 0), or a number with a point. */
typedef struct attr {
    const char *name;
    int64_t i;
    int count;
    int64_t ints[6];
    float f;
    enum { IS_INT, IS_INTS, IS_FLOAT } kind;
} attr;

static attr whole(const char *name, int64_t i)
{
    return (attr){.name = name, .i = i, .kind = IS_INT};
}

static attr real(const char *name, float f)
{
    return (attr){.name = name, .f = f, .kind = IS_FLOAT};
}

static attr list(const char *name, int count, const int64_t *values)
{
    attr a = {.name = name, .count = count, .kind = IS_INTS};
    memcpy(a.ints, values, (size_t)count * sizeof *values);
    return a;
}

static void add_attr(sti_text *node, const attr *a)
{
    static const int types[] = {2, 7, 1};
    sti_text m = {0};
    sti_proto_add_text(&m, 1, a->name);
    if (a->kind == IS_INT)
        sti_proto_add_int(&m, 3, a->i);
    else if (a->kind == IS_FLOAT)
        sti_proto_add_float(&m, 2, a->f);
    for (int i = 0; a->kind == IS_INTS && i < a->count; i++)
        sti_proto_add_int(&m, 8, a->ints[i]);
    sti_proto_add_int(&m, 20, types[a->kind]);
    sti_proto_add_message(node, 5, &m);
}

static const char *node(onnx_writer *w, const char *op, int n_in, const char *const *in,
                        int n_attr, const attr *attrs)
{
    sti_text m = {0};
    const char *out = fresh(w, op);
    for (int i = 0; i < n_in; i++)
        sti_proto_add_text(&m, 1, in[i]);
    sti_proto_add_text(&m, 2, out);
    sti_proto_add_text(&m, 3, out);
    sti_proto_add_text(&m, 4, op);
    for (int i = 0; i < n_attr; i++)
        add_attr(&m, &attrs[i]);
    sti_proto_add_message(&w->body, NODE, &m);
    return out;
}

static const char *node1(onnx_writer *w, const char *op, const char *a)
{
    return node(w, op, 1, &a, 0, NULL);
}

static const char *node2(onnx_writer *w, const char *op, const char *a, const char *b)
{
    const char *const in[2] = {a, b};
    return node(w, op, 2, in, 0, NULL);
}

static const char *transposed(onnx_writer *w, const char *x, int rank,
                              const int64_t *perm)
{
    const attr a = list("perm", rank, perm);
    return node(w, "Transpose", 1, &x, 1, &a);
}

/* The first length is left open: it has the batch in it. */
static const char *reshaped(onnx_writer *w, const char *x, int rank, const int64_t *dim)
{
    int64_t to[STINT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        to[i] = i == 0 ? -1 : dim[i];
    return node2(w, "Reshape", x, integers(w, rank, to));
}

static void add_port(onnx_writer *w, uint32_t field, const char *name, int type,
                     int rank, const int64_t *dim)
{
    sti_text shape = {0}, tensor = {0}, kind = {0}, port = {0};
    for (int i = 0; i < rank; i++) {
        sti_text d = {0};
        if (i == 0 && w->options->batch == 0)
            sti_proto_add_text(&d, 2, "n");
        else
            sti_proto_add_int(&d, 1, dim[i]);
        sti_proto_add_message(&shape, 1, &d);
    }
    sti_proto_add_int(&tensor, 1, type);
    sti_proto_add_message(&tensor, 2, &shape);
    sti_proto_add_message(&kind, 1, &tensor);
    sti_proto_add_text(&port, 1, name);
    sti_proto_add_message(&port, 2, &kind);
    sti_proto_add_message(&w->body, field, &port);
}

/* ---- operands ---- */

static stint_shape shape_of(const onnx_writer *w, stint_value v)
{
    return stint_value_shape(w->graph, v);
}

static const char *channels_first(onnx_writer *w, stint_value v)
{
    static const int64_t perm[4] = {0, 3, 1, 2};
    return w->first[v] ? w->name[v] : transposed(w, w->name[v], 4, perm);
}

static const char *as_it_is(onnx_writer *w, stint_value v)
{
    static const int64_t perm[4] = {0, 2, 3, 1};
    return w->first[v] ? transposed(w, w->name[v], 4, perm) : w->name[v];
}

/* [kh, kw, ci, co] as [co, ci, kh, kw]. */
static void turn_filters(const int64_t *dim, const float *x, float *y)
{
    const int64_t kernel = dim[0] * dim[1], ci = dim[2], co = dim[3];
    for (int64_t k = 0; k < kernel; k++)
        for (int64_t i = 0; i < ci; i++)
            for (int64_t o = 0; o < co; o++)
                y[(o * ci + i) * kernel + k] = x[(k * ci + i) * co + o];
}

static bool is_filter(const onnx_writer *w, stint_value v)
{
    for (int32_t i = 0; i < sti_graph_node_count(w->graph); i++) {
        const sti_node *n = sti_graph_node(w->graph, i);
        if (n->op == &sti_op_conv2d && n->in[1] == v)
            return true;
    }
    return false;
}

static stint_status add_weight(onnx_writer *w, stint_value v)
{
    const sti_value_row *row = sti_graph_value(w->graph, v);
    const sti_tensor_row *t = sti_tensor_file_find(w->model->file, row->name);
    const int64_t count = stint_shape_count(&row->shape);
    int64_t dim[STINT_MAX_RANK];
    bool fits = t && t->rank == row->shape.rank;
    for (int i = 0; fits && i < t->rank; i++)
        fits = (dim[i] = t->dim[i]) == row->shape.dim[i];
    if (!fits)
        return sti_fail(STINT_E_INPUT,
                        "%s: the tensor '%.80s' is missing or has another "
                        "shape",
                        sti_shown(sti_tensor_file_path(w->model->file)),
                        sti_shown(row->name));
    float *x = sti_alloc_array(2 * count, sizeof *x, "weights"), *y = x;
    stint_status st =
        x ? sti_tensor_file_read_f32(w->model->file, t, 0, count, x) : STINT_E_MEMORY;
    if (st == STINT_OK && is_filter(w, v)) {
        y = x + count;
        turn_filters(t->dim, x, y);
        const int64_t turned[4] = {t->dim[3], t->dim[2], t->dim[0], t->dim[1]};
        memcpy(dim, turned, sizeof turned);
    }
    if (st == STINT_OK)
        add_tensor(w, row->name, 1, t->rank, dim, y, (size_t)count * sizeof *y);
    w->name[v] = row->name;
    sti_free(x);
    return st;
}

/* ---- operators ---- */

/* [c] beside channels that are in front. */
static const char *column(onnx_writer *w, stint_value v, bool first)
{
    const int64_t c =
        stint_shape_count(&(stint_shape){1, STINT_F32, {shape_of(w, v).dim[0]}});
    const int64_t dim[3] = {c, 1, 1};
    return first ? node2(w, "Reshape", w->name[v], integers(w, 3, dim)) : w->name[v];
}

static const char *write_conv(onnx_writer *w, const sti_node *n)
{
    const sti_conv2d_attr *a = n->attr;
    const int64_t stride[2] = {a->stride, a->stride},
                  pad[4] = {a->pad, a->pad, a->pad, a->pad};
    const attr attrs[3] = {list("strides", 2, stride), list("pads", 4, pad),
                           whole("group", a->groups)};
    const char *const in[3] = {channels_first(w, n->in[0]), w->name[n->in[1]],
                               a->has_bias ? w->name[n->in[2]] : ""};
    return node(w, "Conv", a->has_bias ? 3 : 2, in, 3, attrs);
}

static const char *write_norm(onnx_writer *w, const sti_node *n)
{
    const sti_batch_norm_attr *a = n->attr;
    const bool pixels = shape_of(w, n->in[X]).rank == 4;
    const attr epsilon = real("epsilon", a->epsilon);
    const char *const in[5] = {pixels ? channels_first(w, n->in[X]) : w->name[n->in[X]],
                               w->name[n->in[SCALE]], w->name[n->in[SHIFT]],
                               w->name[n->in[RUN_MEAN]], w->name[n->in[RUN_VARIANCE]]};
    return node(w, "BatchNormalization", 5, in, 1, &epsilon);
}

static const char *write_pool(onnx_writer *w, const sti_node *n, bool average)
{
    int64_t window[3];
    sti_op_pool_window(n, window);
    const int64_t size[2] = {window[0], window[0]}, stride[2] = {window[1], window[1]},
                  pad[4] = {window[2], window[2], window[2], window[2]};
    const attr attrs[4] = {list("kernel_shape", 2, size), list("strides", 2, stride),
                           list("pads", 4, pad), whole("count_include_pad", 1)};
    const char *x = channels_first(w, n->in[0]);
    return node(w, average ? "AveragePool" : "MaxPool", 1, &x, average ? 4 : 3, attrs);
}

static const char *write_matmul(onnx_writer *w, const sti_node *n)
{
    const sti_matmul_attr *a = n->attr;
    static const int64_t swap[2] = {1, 0};
    const char *x = as_it_is(w, n->in[0]), *y = as_it_is(w, n->in[1]);
    if (a->trans_a)
        x = transposed(w, x, 2, swap);
    if (a->trans_b)
        y = transposed(w, y, 2, swap);
    return node2(w, "MatMul", x, y);
}

/* x sigmoid(x (c + k x^2)), the tanh form as its kernel computes it. */
static const char *write_gelu(onnx_writer *w, const char *x)
{
    const char *q = node2(w, "Mul", node2(w, "Mul", x, x), number(w, 0x1.2444f2p-4f));
    const char *v = node2(w, "Mul", x, node2(w, "Add", q, number(w, 0x1.988454p+0f)));
    return node2(w, "Mul", x, node1(w, "Sigmoid", v));
}

static const char *write_rms(onnx_writer *w, const sti_node *n)
{
    static const int64_t last[1] = {-1};
    const sti_row_norm_attr *a = n->attr;
    const char *x = w->name[n->in[0]], *q = node2(w, "Mul", x, x);
    const attr axes = list("axes", 1, last);
    const char *const in[2] = {q, w->options->opset > 17 ? integers(w, 1, last) : ""};
    const bool new_form = w->options->opset > 17;
    const char *m =
        node(w, "ReduceMean", new_form ? 2 : 1, in, new_form ? 0 : 1, &axes);
    m = node1(w, "Sqrt", node2(w, "Add", m, number(w, a->epsilon)));
    return node2(w, "Mul", node2(w, "Div", x, m), w->name[n->in[1]]);
}

static const char *write_layer_norm(onnx_writer *w, const sti_node *n)
{
    const sti_row_norm_attr *a = n->attr;
    const attr attrs[2] = {whole("axis", -1), real("epsilon", a->epsilon)};
    const char *const in[3] = {w->name[n->in[0]], w->name[n->in[1]], w->name[n->in[2]]};
    return node(w, "LayerNormalization", 3, in, 2, attrs);
}

static const char *write_reshape(onnx_writer *w, const sti_node *n)
{
    const stint_shape to = shape_of(w, n->out[0]);
    return reshaped(w, as_it_is(w, n->in[0]), to.rank, to.dim);
}

/* ---- attention, made of products ---- */

static const char *sliced(onnx_writer *w, const char *x, int64_t axis, int64_t begin,
                          int64_t end)
{
    const char *const in[4] = {x, integers(w, 1, &begin), integers(w, 1, &end),
                               integers(w, 1, &axis)};
    return node(w, "Slice", 4, in, 0, NULL);
}

/* Heads of one part of packed rows as [n, heads, length, size]; keys and values that
 * several queries share are repeated. */
static const char *heads_of(onnx_writer *w, const char *x, int64_t length,
                            int64_t heads, int64_t size, int64_t shared)
{
    static const int64_t swap[4] = {0, 2, 1, 3};
    const int64_t split[4] = {0, length, heads, size};
    x = transposed(w, reshaped(w, x, 4, split), 4, swap);
    if (shared == 1)
        return x;
    const int64_t one[5] = {0, heads, 1, length, size}, many[5] = {1, 1, shared, 1, 1},
                  all[4] = {0, heads * shared, length, size};
    x = node2(w, "Tile", reshaped(w, x, 5, one), integers(w, 5, many));
    return reshaped(w, x, 4, all);
}

static const char *causal_mask(onnx_writer *w, int64_t length)
{
    const int64_t dim[2] = {length, length};
    float *mask = sti_arena_alloc(w->arena, (size_t)(length * length) * sizeof *mask);
    if (!mask) {
        w->no_memory = true;
        return "";
    }
    for (int64_t i = 0; i < length * length; i++)
        mask[i] = i % length <= i / length ? 0.0f : -INFINITY;
    return floats(w, 2, dim, mask);
}

static const char *write_attention(onnx_writer *w, const sti_node *n)
{
    static const int64_t keys[4] = {0, 1, 3, 2}, back[4] = {0, 2, 1, 3};
    const sti_attention_heads a = sti_op_attention_heads(n);
    const stint_shape x = shape_of(w, n->in[0]);
    const int64_t length = x.dim[1], size = x.dim[2] / (a.heads + 2 * a.kv_heads),
                  q_end = a.heads * size, k_end = q_end + a.kv_heads * size,
                  rows[3] = {0, length, q_end}, shared = a.heads / a.kv_heads;
    const char *qkv = w->name[n->in[0]];
    const char *q = heads_of(w, sliced(w, qkv, 2, 0, q_end), length, a.heads, size, 1);
    const char *k =
        heads_of(w, sliced(w, qkv, 2, q_end, k_end), length, a.kv_heads, size, shared);
    const char *v = heads_of(w, sliced(w, qkv, 2, k_end, x.dim[2]), length, a.kv_heads,
                             size, shared);
    const attr last = whole("axis", -1);
    const char *s = node2(w, "MatMul", q, transposed(w, k, 4, keys));
    s = node2(w, "Mul", s, number(w, (float)(1.0 / sqrt((double)size))));
    if (a.causal)
        s = node2(w, "Add", s, causal_mask(w, length));
    s = node(w, "Softmax", 1, &s, 1, &last);
    return reshaped(w, transposed(w, node2(w, "MatMul", s, v), 4, back), 3, rows);
}

/* The logits, which the loss never makes whole: x table^T as [n, length, words]. */
static const char *write_logits(onnx_writer *w, const sti_node *n)
{
    static const int64_t swap[2] = {1, 0};
    const stint_shape table = shape_of(w, n->in[1]);
    const int64_t dim[3] = {0, w->model->network.context, table.dim[0]};
    const char *y = node2(w, "MatMul", w->name[n->in[0]],
                          transposed(w, w->name[n->in[1]], 2, swap));
    return reshaped(w, y, 3, dim);
}

/* ---- the walk ---- */

static const char *const same_names[][2] = {
    {"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"},         {"exp", "Exp"},
    {"log", "Log"},   {"sqrt", "Sqrt"},       {"softplus", "Softplus"}, {"neg", "Neg"},
    {"add", "Add"},   {"sub", "Sub"},         {"mul", "Mul"},           {"div", "Div"}};

/* Operators of elements: the form of the first operand that has channels is kept. */
static const char *write_same(onnx_writer *w, const sti_node *n, bool *first)
{
    for (size_t i = 0; i < sizeof same_names / sizeof *same_names; i++) {
        if (strcmp(n->op->name, same_names[i][0]) != 0)
            continue;
        *first = w->first[n->in[0]];
        if (n->n_in == 1)
            return node1(w, same_names[i][1], w->name[n->in[0]]);
        if (w->first[n->in[1]] == *first)
            return node2(w, same_names[i][1], w->name[n->in[0]], w->name[n->in[1]]);
        *first = false;
        return node2(w, same_names[i][1], as_it_is(w, n->in[0]), as_it_is(w, n->in[1]));
    }
    return NULL;
}

static const char *write_pixels(onnx_writer *w, const sti_node *n, bool *first)
{
    const char *op = n->op->name;
    *first = true;
    if (n->op == &sti_op_conv2d)
        return write_conv(w, n);
    if (strcmp(op, "max_pool") == 0 || strcmp(op, "avg_pool") == 0)
        return write_pool(w, n, op[0] == 'a');
    if (n->op == &sti_op_batch_norm) {
        *first = shape_of(w, n->in[X]).rank == 4;
        return write_norm(w, n);
    }
    if (n->op == &sti_op_bias) {
        *first = w->first[n->in[0]];
        return node2(w, "Add", w->name[n->in[0]], column(w, n->in[1], *first));
    }
    *first = false;
    if (strcmp(op, "global_avg_pool") == 0) {
        const stint_shape to = shape_of(w, n->out[0]);
        return reshaped(w, node1(w, "GlobalAveragePool", channels_first(w, n->in[0])),
                        2, to.dim);
    }
    return NULL;
}

static const char *write_rows(onnx_writer *w, const sti_node *n)
{
    const char *op = n->op->name;
    if (strcmp(op, "reshape") == 0)
        return write_reshape(w, n);
    if (n->op == &sti_op_matmul)
        return write_matmul(w, n);
    if (strcmp(op, "gelu") == 0)
        return write_gelu(w, w->name[n->in[0]]);
    if (strcmp(op, "silu") == 0)
        return node2(w, "Mul", w->name[n->in[0]],
                     node1(w, "Sigmoid", w->name[n->in[0]]));
    if (n->op == &sti_op_layer_norm)
        return write_layer_norm(w, n);
    if (n->op == &sti_op_rms_norm)
        return write_rms(w, n);
    if (strcmp(op, "embedding") == 0)
        return node2(w, "Gather", w->name[n->in[1]], w->name[n->in[0]]);
    if (strcmp(op, "attention") == 0)
        return write_attention(w, n);
    if (strcmp(op, "linear_cross_entropy") == 0)
        return write_logits(w, n);
    return NULL;
}

static void write_node(onnx_writer *w, const sti_node *n)
{
    bool first = false;
    const char *y = write_same(w, n, &first);
    if (!y)
        y = write_pixels(w, n, &first);
    if (!y) {
        first = false;
        y = write_rows(w, n);
    }
    if (!y) {
        w->failed = n->op->name;
        y = "";
    }
    w->name[n->out[0]] = y;
    w->first[n->out[0]] = first;
}

static stint_status write_inputs(onnx_writer *w)
{
    stint_status st = STINT_OK;
    for (stint_value v = 0; v < sti_graph_value_count(w->graph) && st == STINT_OK;
         v++) {
        const sti_value_row *row = sti_graph_value(w->graph, v);
        if (row->role == STI_ROLE_PARAM || row->role == STI_ROLE_STATE)
            st = add_weight(w, v);
        if (row->role != STI_ROLE_INPUT || strcmp(row->name, "labels") == 0)
            continue;
        const stint_shape s = row->shape;
        const int64_t turned[4] = {s.dim[0], s.dim[3], s.dim[1], s.dim[2]};
        w->name[v] = row->name;
        w->first[v] = s.rank == 4;
        add_port(w, INPUT, row->name, s.dtype == STINT_I32 ? 7 : 1, s.rank,
                 s.rank == 4 ? turned : s.dim);
    }
    return st;
}

static void write_output(onnx_writer *w, const char *value, int rank,
                         const int64_t *dim)
{
    sti_text m = {0};
    sti_proto_add_text(&m, 1, value);
    sti_proto_add_text(&m, 2, "logits");
    sti_proto_add_text(&m, 3, "logits");
    sti_proto_add_text(&m, 4, "Identity");
    sti_proto_add_message(&w->body, NODE, &m);
    add_port(w, OUTPUT, "logits", 1, rank, dim);
}

/* The forward graph of a network in use; *result: the value of its logits, or loss. */
static stint_status build(onnx_writer *w, stint_value *result)
{
    const sti_network_desc *d = &w->model->network;
    const int64_t n = w->options->batch ? w->options->batch : 1;
    stint_status st = stint_graph_create(STINT_EVAL, &w->graph);
    if (st != STINT_OK)
        return st;
    if (d->context) {
        const stint_shape shape =
            stint_shape_make(STINT_I32, 2, (int64_t[]){n, d->context});
        const stint_value tokens = stint_input(w->graph, "tokens", &shape);
        const stint_value labels = stint_input(w->graph, "labels", &shape);
        *result = stint_text_model_build(w->graph, d->name, &d->text, tokens, labels);
    } else {
        const stint_shape shape = STINT_SHAPE(n, d->height, d->width, d->channels);
        const stint_value x = stint_input(w->graph, "images", &shape);
        *result = stint_model_build(w->graph, d->name, &d->model, x);
    }
    return stint_graph_check(w->graph);
}

static stint_status write_graph(onnx_writer *w)
{
    stint_value result = -1;
    stint_status st = build(w, &result);
    if (st != STINT_OK)
        return st;
    const size_t values = (size_t)sti_graph_value_count(w->graph);
    w->name = sti_arena_alloc(w->arena, values * sizeof *w->name);
    w->first = sti_arena_alloc(w->arena, values * sizeof *w->first);
    if (!w->name || !w->first)
        return STINT_E_MEMORY;
    if ((st = write_inputs(w)) != STINT_OK)
        return st;
    for (int32_t i = 0; i < sti_graph_node_count(w->graph) && !w->failed; i++) {
        const sti_node *n = sti_graph_node(w->graph, i);
        /* What prepares labels for the loss has no part in the logits. */
        if (n->n_in > 0 && n->in[0] >= 0 && !w->name[n->in[0]])
            continue;
        write_node(w, n);
    }
    if (w->failed)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: its operator '%s' has no form in ONNX here",
                        sti_shown(sti_tensor_file_path(w->model->file)), w->failed);
    const stint_shape s = shape_of(w, result);
    const int64_t text[3] = {w->options->batch, w->model->network.context,
                             w->model->network.text.vocabulary};
    const bool is_text = w->model->network.context > 0;
    write_output(w, w->name[result], is_text ? 3 : s.rank, is_text ? text : s.dim);
    return w->no_memory || w->body.failed ? STINT_E_MEMORY : STINT_OK;
}

static stint_status write_file(onnx_writer *w, const char *path)
{
    sti_text model = {0}, opset = {0};
    sti_proto_add_text(&w->body, 2, w->model->network.name);
    sti_proto_add_int(&model, 1, 8);
    sti_proto_add_text(&model, 2, "stint");
    sti_proto_add_text(&model, 3, STINT_VERSION);
    sti_proto_add_message(&model, 7, &w->body);
    sti_proto_add_text(&opset, 1, "");
    sti_proto_add_int(&opset, 2, w->options->opset);
    sti_proto_add_message(&model, 8, &opset);
    stint_status st = STINT_E_MEMORY;
    if (model.length > (size_t)INT32_MAX)
        st = sti_fail(STINT_E_UNSUPPORTED,
                      "%s: an ONNX file of 2 GiB and more is not "
                      "written here",
                      sti_shown(path));
    else if (!model.failed)
        st = sti_file_write(path, model.data, model.length);
    sti_text_fini(&model);
    return st;
}

stint_status sti_onnx_write(const stint_model_file *model, const char *path,
                            const sti_onnx_write_options *options)
{
    onnx_writer w = {.model = model, .options = options};
    if (model->network.weight_bits)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: a network that rounds its weights as it runs",
                        sti_shown(sti_tensor_file_path(model->file)));
    w.arena = sti_arena_create("onnx");
    stint_status st = w.arena ? write_graph(&w) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = write_file(&w, path);
    sti_text_fini(&w.body);
    stint_graph_destroy(w.graph);
    sti_arena_destroy(w.arena);
    return st;
}
