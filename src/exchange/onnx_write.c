/* A graph of ours, channels last, as nodes of ONNX, channels first.
 *
 * A value of four axes is in the file either as it is in the graph or with its channels
 * in front; an operator that does not care takes it as it comes, and a Transpose stands
 * where a reader wants the other form: where pictures become rows. */
#include "exchange/onnx_write.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/shown.h"
#include "exchange/onnx_pieces.h"
#include "kernel/elementwise/round_columns.h"
#include "op/op_norm_slots.h"
#include "op/op_pool.h"
#include "pass/pass.h"

/* ---- operands ---- */

static stint_shape shape_of(const sti_onnx_writer *w, stint_value v)
{
    return stint_value_shape(w->graph, v);
}

static const char *channels_first(sti_onnx_writer *w, stint_value v)
{
    static const int64_t perm[4] = {0, 3, 1, 2};
    return w->first[v] ? w->name[v] : sti_onnx_add_transposed(w, w->name[v], 4, perm);
}

static const char *as_it_is(sti_onnx_writer *w, stint_value v)
{
    static const int64_t perm[4] = {0, 2, 3, 1};
    return w->first[v] ? sti_onnx_add_transposed(w, w->name[v], 4, perm) : w->name[v];
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

static bool is_filter(const sti_onnx_writer *w, stint_value v)
{
    for (int32_t i = 0; i < sti_graph_node_count(w->graph); i++) {
        const sti_node *n = sti_graph_node(w->graph, i);
        if (n->op == &sti_op_conv2d && n->in[1] == v)
            return true;
    }
    return false;
}

/* A weight's numbers in the file's order, dim [rank] their shape; twice the room. */
static stint_status read_weight(sti_onnx_writer *w, const sti_value_row *row,
                                int64_t *dim, float **x_out)
{
    const sti_tensor_row *t = sti_tensor_file_find(w->model->file, row->name);
    const int64_t count = stint_shape_count(&row->shape);
    bool fits = t && t->rank == row->shape.rank;
    for (int i = 0; fits && i < t->rank; i++)
        fits = (dim[i] = t->dim[i]) == row->shape.dim[i];
    if (!fits)
        return sti_fail(STINT_E_INPUT,
                        "%s: the tensor '%.80s' is missing or has another "
                        "shape",
                        sti_shown(sti_tensor_file_path(w->model->file)),
                        sti_shown(row->name));
    float *x = sti_alloc_array(2 * count, sizeof *x, "weights");
    const stint_status st =
        x ? sti_tensor_file_read_f32(w->model->file, t, 0, count, x) : STINT_E_MEMORY;
    if (st == STINT_OK)
        *x_out = x;
    else
        sti_free(x);
    return st;
}

/* Filters as ONNX has them, behind where they lie; dim becomes theirs. */
static float *turned(float *x, int64_t *dim)
{
    const int64_t to[4] = {dim[3], dim[2], dim[0], dim[1]};
    float *y = x + dim[0] * dim[1] * dim[2] * dim[3];
    turn_filters(dim, x, y);
    memcpy(dim, to, sizeof to);
    return y;
}

static stint_status add_weight(sti_onnx_writer *w, stint_value v)
{
    const sti_value_row *row = sti_graph_value(w->graph, v);
    int64_t dim[STINT_MAX_RANK];
    float *x = NULL;
    const stint_status st = read_weight(w, row, dim, &x);
    if (st == STINT_OK)
        sti_onnx_add_tensor(w, row->name, 1, row->shape.rank, dim,
                            is_filter(w, v) ? turned(x, dim) : x,
                            stint_shape_bytes(&row->shape));
    w->name[v] = row->name;
    sti_free(x);
    return st;
}

static bool is_quantise(const sti_node *n)
{
    return strcmp(n->op->name, "quantise") == 0;
}

static bool is_rounded(const sti_onnx_writer *w, stint_value v)
{
    for (int32_t i = 0; i < sti_graph_node_count(w->graph); i++)
        if (is_quantise(sti_graph_node(w->graph, i)) &&
            sti_graph_node(w->graph, i)->in[0] == v)
            return true;
    return false;
}

/* Levels of the channels, the last axis, and their steps: what round_columns.h makes.
 * x becomes the levels. */
static void find_levels(int64_t rows, int64_t channels, int bits, float *x, float *step)
{
    const float levels = (float)((1 << (bits - 1)) - 1);
    memset(step, 0, (size_t)channels * sizeof *step);
    sti_columns_largest_f32(rows, channels, channels, x, step);
    sti_columns_round_f32(rows, channels, channels, bits, step, x, x);
    for (int64_t c = 0; c < channels; c++) {
        step[c] = step[c] / levels;
        for (int64_t r = 0; r < rows; r++)
            if (step[c] > 0)
                x[r * channels + c] = rintf(x[r * channels + c] / step[c]);
    }
}

static const char *name_of(sti_onnx_writer *w, const char *name, const char *what)
{
    const char *made = sti_arena_printf(w->arena, "%s.%s", name, what);
    w->no_memory = w->no_memory || !made;
    return made ? made : "";
}

/* Bytes, and the node that makes of them what the run computes with. */
static const char *add_levels(sti_onnx_writer *w, const sti_value_row *row,
                              int64_t *dim, float *x, bool filter)
{
    const int rank = row->shape.rank;
    const int64_t channels = dim[rank - 1], count = stint_shape_count(&row->shape);
    float *step = sti_arena_alloc(w->arena, (size_t)channels * sizeof *step);
    int8_t *bytes = sti_arena_alloc(w->arena, (size_t)count);
    if (!step || !bytes) {
        w->no_memory = true;
        return "";
    }
    find_levels(count / channels, channels, w->model->network.weight_bits, x, step);
    const float *y = filter ? turned(x, dim) : x;
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (int8_t)y[i];
    const char *const in[2] = {name_of(w, row->name, "int8"),
                               name_of(w, row->name, "step")};
    const sti_onnx_attr axis = sti_onnx_attr_whole("axis", filter ? 0 : rank - 1);
    sti_onnx_add_tensor(w, in[0], 3, rank, dim, bytes, (size_t)count);
    sti_onnx_add_tensor(w, in[1], 1, 1, &channels, step,
                        (size_t)channels * sizeof *step);
    return sti_onnx_add_node(w, "DequantizeLinear", 2, in, 1, &axis);
}

static stint_status write_quantise(sti_onnx_writer *w, const sti_node *n)
{
    const sti_value_row *row = sti_graph_value(w->graph, n->in[0]);
    int64_t dim[STINT_MAX_RANK];
    float *x = NULL;
    const stint_status st = read_weight(w, row, dim, &x);
    if (st == STINT_OK)
        w->name[n->out[0]] = add_levels(w, row, dim, x, is_filter(w, n->out[0]));
    w->first[n->out[0]] = false;
    sti_free(x);
    return st;
}

/* ---- operators ---- */

/* [c] beside channels that are in front. */
static const char *column(sti_onnx_writer *w, stint_value v, bool first)
{
    const int64_t c =
        stint_shape_count(&(stint_shape){1, STINT_F32, {shape_of(w, v).dim[0]}});
    const int64_t dim[3] = {c, 1, 1};
    return first ? sti_onnx_add_node2(w, "Reshape", w->name[v],
                                      sti_onnx_add_integers(w, 3, dim))
                 : w->name[v];
}

static const char *write_conv(sti_onnx_writer *w, const sti_node *n)
{
    const sti_conv2d_attr *a = n->attr;
    const int64_t stride[2] = {a->stride, a->stride},
                  pad[4] = {a->pad, a->pad, a->pad, a->pad};
    const sti_onnx_attr attrs[3] = {sti_onnx_attr_list("strides", 2, stride),
                                    sti_onnx_attr_list("pads", 4, pad),
                                    sti_onnx_attr_whole("group", a->groups)};
    const char *const in[3] = {channels_first(w, n->in[0]), w->name[n->in[1]],
                               a->has_bias ? w->name[n->in[2]] : ""};
    return sti_onnx_add_node(w, "Conv", a->has_bias ? 3 : 2, in, 3, attrs);
}

static const char *write_norm(sti_onnx_writer *w, const sti_node *n)
{
    const sti_batch_norm_attr *a = n->attr;
    const bool pixels = shape_of(w, n->in[X]).rank == 4;
    const sti_onnx_attr epsilon = sti_onnx_attr_real("epsilon", a->epsilon);
    const char *const in[5] = {pixels ? channels_first(w, n->in[X]) : w->name[n->in[X]],
                               w->name[n->in[SCALE]], w->name[n->in[SHIFT]],
                               w->name[n->in[RUN_MEAN]], w->name[n->in[RUN_VARIANCE]]};
    return sti_onnx_add_node(w, "BatchNormalization", 5, in, 1, &epsilon);
}

static const char *write_pool(sti_onnx_writer *w, const sti_node *n, bool average)
{
    int64_t window[3];
    sti_op_pool_window(n, window);
    const int64_t size[2] = {window[0], window[0]}, stride[2] = {window[1], window[1]},
                  pad[4] = {window[2], window[2], window[2], window[2]};
    const sti_onnx_attr attrs[4] = {sti_onnx_attr_list("kernel_shape", 2, size),
                                    sti_onnx_attr_list("strides", 2, stride),
                                    sti_onnx_attr_list("pads", 4, pad),
                                    sti_onnx_attr_whole("count_include_pad", 1)};
    const char *x = channels_first(w, n->in[0]);
    return sti_onnx_add_node(w, average ? "AveragePool" : "MaxPool", 1, &x,
                             average ? 4 : 3, attrs);
}

static const char *write_matmul(sti_onnx_writer *w, const sti_node *n)
{
    const sti_matmul_attr *a = n->attr;
    static const int64_t swap[2] = {1, 0};
    const char *x = as_it_is(w, n->in[0]), *y = as_it_is(w, n->in[1]);
    if (a->trans_a)
        x = sti_onnx_add_transposed(w, x, 2, swap);
    if (a->trans_b)
        y = sti_onnx_add_transposed(w, y, 2, swap);
    return sti_onnx_add_node2(w, "MatMul", x, y);
}

static const char *write_reshape(sti_onnx_writer *w, const sti_node *n)
{
    const stint_shape to = shape_of(w, n->out[0]);
    return sti_onnx_add_reshaped(w, as_it_is(w, n->in[0]), to.rank, to.dim);
}

/* ---- the walk ---- */

static const char *const same_names[][2] = {
    {"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"},         {"exp", "Exp"},
    {"log", "Log"},   {"sqrt", "Sqrt"},       {"softplus", "Softplus"}, {"neg", "Neg"},
    {"add", "Add"},   {"sub", "Sub"},         {"mul", "Mul"},           {"div", "Div"}};

/* Operators of elements: the form of the first operand that has channels is kept. */
static const char *write_same(sti_onnx_writer *w, const sti_node *n, bool *first)
{
    for (size_t i = 0; i < sizeof same_names / sizeof *same_names; i++) {
        if (strcmp(n->op->name, same_names[i][0]) != 0)
            continue;
        *first = w->first[n->in[0]];
        if (n->n_in == 1)
            return sti_onnx_add_node1(w, same_names[i][1], w->name[n->in[0]]);
        if (w->first[n->in[1]] == *first)
            return sti_onnx_add_node2(w, same_names[i][1], w->name[n->in[0]],
                                      w->name[n->in[1]]);
        *first = false;
        return sti_onnx_add_node2(w, same_names[i][1], as_it_is(w, n->in[0]),
                                  as_it_is(w, n->in[1]));
    }
    return NULL;
}

static const char *write_pixels(sti_onnx_writer *w, const sti_node *n, bool *first)
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
        return sti_onnx_add_node2(w, "Add", w->name[n->in[0]],
                                  column(w, n->in[1], *first));
    }
    *first = false;
    if (strcmp(op, "global_avg_pool") == 0) {
        const stint_shape to = shape_of(w, n->out[0]);
        return sti_onnx_add_reshaped(
            w, sti_onnx_add_node1(w, "GlobalAveragePool", channels_first(w, n->in[0])),
            2, to.dim);
    }
    return NULL;
}

static const char *write_rows(sti_onnx_writer *w, const sti_node *n)
{
    const char *op = n->op->name;
    if (strcmp(op, "reshape") == 0)
        return write_reshape(w, n);
    if (n->op == &sti_op_matmul)
        return write_matmul(w, n);
    if (strcmp(op, "gelu") == 0)
        return sti_onnx_write_gelu(w, w->name[n->in[0]]);
    if (strcmp(op, "silu") == 0)
        return sti_onnx_add_node2(w, "Mul", w->name[n->in[0]],
                                  sti_onnx_add_node1(w, "Sigmoid", w->name[n->in[0]]));
    if (n->op == &sti_op_layer_norm)
        return sti_onnx_write_layer_norm(w, n);
    if (n->op == &sti_op_rms_norm)
        return sti_onnx_write_rms(w, n);
    if (strcmp(op, "embedding") == 0)
        return sti_onnx_add_node2(w, "Gather", w->name[n->in[1]], w->name[n->in[0]]);
    if (strcmp(op, "rotary") == 0)
        return sti_onnx_write_rotary(w, n);
    if (strcmp(op, "attention") == 0)
        return sti_onnx_write_attention(w, n);
    if (strcmp(op, "linear_cross_entropy") == 0)
        return sti_onnx_write_logits(w, n);
    return NULL;
}

static void write_node(sti_onnx_writer *w, const sti_node *n)
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

static stint_status write_inputs(sti_onnx_writer *w)
{
    stint_status st = STINT_OK;
    for (stint_value v = 0; v < sti_graph_value_count(w->graph) && st == STINT_OK;
         v++) {
        const sti_value_row *row = sti_graph_value(w->graph, v);
        if ((row->role == STI_ROLE_PARAM || row->role == STI_ROLE_STATE) &&
            !is_rounded(w, v))
            st = add_weight(w, v);
        if (row->role != STI_ROLE_INPUT || strcmp(row->name, "labels") == 0)
            continue;
        const stint_shape s = row->shape;
        const int64_t first[4] = {s.dim[0], s.dim[3], s.dim[1], s.dim[2]};
        w->name[v] = row->name;
        w->first[v] = s.rank == 4;
        sti_onnx_add_port(w, STI_ONNX_INPUT, row->name, s.dtype == STINT_I32 ? 7 : 1,
                          s.rank, s.rank == 4 ? first : s.dim);
        if (s.rank == 4 && w->options->normalise)
            w->name[v] =
                sti_onnx_add_normalised(w, row->name, &w->model->norm, s.dim[3]);
    }
    return st;
}

static void write_output(sti_onnx_writer *w, const char *value, int rank,
                         const int64_t *dim)
{
    sti_text m = {0};
    sti_proto_add_text(&m, 1, value);
    sti_proto_add_text(&m, 2, "logits");
    sti_proto_add_text(&m, 3, "logits");
    sti_proto_add_text(&m, 4, "Identity");
    sti_proto_add_message(&w->body, STI_ONNX_NODE, &m);
    sti_onnx_add_port(w, STI_ONNX_OUTPUT, "logits", 1, rank, dim);
}

/* The forward graph of a network in use; *result: the value of its logits, or loss. */
static stint_status build(sti_onnx_writer *w, stint_value *result)
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
    if ((st = stint_graph_check(w->graph)) == STINT_OK)
        st = sti_pass_quantise(w->graph, STI_ROLE_PARAM, d->weight_bits);
    return st;
}

static stint_status write_graph(sti_onnx_writer *w)
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
        if (is_quantise(n)) {
            if ((st = write_quantise(w, n)) != STINT_OK)
                return st;
            continue;
        }
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

stint_status sti_onnx_write(const stint_model_file *model, const char *path,
                            const sti_onnx_write_options *options)
{
    sti_onnx_writer w = {.model = model, .options = options};
    if (options->normalise && model->network.context)
        return sti_fail(STINT_E_UNSUPPORTED,
                        "%s: is a text model; there are no images to normalise",
                        sti_shown(sti_tensor_file_path(model->file)));
    w.arena = sti_arena_create("onnx");
    stint_status st = w.arena ? write_graph(&w) : STINT_E_MEMORY;
    if (st == STINT_OK)
        st = sti_onnx_write_file(&w, model->network.name, options->opset, path);
    sti_text_fini(&w.body);
    stint_graph_destroy(w.graph);
    sti_arena_destroy(w.arena);
    return st;
}
