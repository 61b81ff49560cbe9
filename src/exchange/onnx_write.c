/* A graph of ours, channels last, as nodes of ONNX, channels first.
 *
 * A value of four axes is in the file either as it is in the graph or with its channels
 * in front; an operator that does not care takes it as it comes, and a Transpose stands
 * where a reader wants the other form: where pictures become rows. */
#include "exchange/onnx_write.h"

#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/shown.h"
#include "exchange/onnx_pieces.h"
#include "op/op_norm_slots.h"
#include "op/op_pool.h"
#include "stint/version.h"

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

static stint_status add_weight(sti_onnx_writer *w, stint_value v)
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
        sti_onnx_add_tensor(w, row->name, 1, t->rank, dim, y,
                            (size_t)count * sizeof *y);
    w->name[v] = row->name;
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
        if (row->role == STI_ROLE_PARAM || row->role == STI_ROLE_STATE)
            st = add_weight(w, v);
        if (row->role != STI_ROLE_INPUT || strcmp(row->name, "labels") == 0)
            continue;
        const stint_shape s = row->shape;
        const int64_t turned[4] = {s.dim[0], s.dim[3], s.dim[1], s.dim[2]};
        w->name[v] = row->name;
        w->first[v] = s.rank == 4;
        sti_onnx_add_port(w, STI_ONNX_INPUT, row->name, s.dtype == STINT_I32 ? 7 : 1,
                          s.rank, s.rank == 4 ? turned : s.dim);
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
    return stint_graph_check(w->graph);
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

static stint_status write_file(sti_onnx_writer *w, const char *path)
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
    sti_onnx_writer w = {.model = model, .options = options};
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
