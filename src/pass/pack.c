/* Saved activations held packed (COMET, arXiv 2111.09562).
 *
 * A tensor qualifies when all that the backward half does with it is to make weight
 * gradients (its error then stays in that one gradient), or when it is the input of one
 * batch-norm. The second kind is packed normalised, and where no residual is added the
 * ReLU's result, which the next weight gradient reads, is made from the same block.
 *
 * pack stands after the last forward reader, unpack before the first backward one, and
 * every backward reader reads what was unpacked: the raw tensor then dies with the
 * forward half by its lifetime alone. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "op/op.h"
#include "op/op_norm_slots.h"
#include "pass/pass_priv.h"

/* Smaller tensors are not worth a block with its tables. */
#define LEAST_ELEMENTS 4096

/* Bits a value before anything is measured, as the first steps of ResNet-18 and VGG-16
 * want them at an error of 0.01 with USUAL_IMAGES in a shard: of a ReLU's result beside
 * its sign bits or with its zeros, of dense values, of a batch-norm's input with the
 * bits of its own ReLU, of one after a sum, and without. Half a bit more for half the
 * images: errors average out over them. */
#define BITS_SPARSE    2.4
#define BITS_DENSE     4.4
#define BITS_NORM_RELU 2.7
#define BITS_NORM_SUM  3.2
#define BITS_NORM      5.0
#define USUAL_IMAGES   128
/* Of a block, one part in so many. What grows beyond that makes the run plan anew. */
#define RESERVE 16
/* Seconds of one thread a value. */
#define PACK_S_A_VALUE   3.5e-9
#define UNPACK_S_A_VALUE 3.0e-9

typedef enum reader_kind {
    READER_OTHER,
    READER_WEIGHT, /* makes a weight gradient of it */
    READER_NORM    /* batch_norm_grad, as x */
} reader_kind;

/* What is known of each content (sti_pass_contents). */
typedef struct usage {
    int32_t last_forward, first_backward; /* nodes that read it, -1: none */
    int32_t weight, norm, other;          /* backward reads of each kind */
    const sti_node *norm_grad;
    bool leaves;   /* is a result of the graph */
    bool reshaped; /* read backward under another shape */
} usage;

typedef struct packer {
    stint_graph *graph;
    int32_t nodes, values; /* before anything was appended */
    stint_value *content;  /* [values] */
    usage *use;            /* [values], of contents */
    int32_t *key;          /* [capacity]: where a node belongs; appended ones too */
    int32_t key_capacity;
    stint_value bounds;
} packer;

static const sti_value_row *row_of(const packer *p, stint_value value)
{
    return sti_graph_value(p->graph, value);
}

/* Of values that were there before, else the value itself. */
static stint_value content_of(const packer *p, stint_value value)
{
    return value >= 0 && value < p->values ? p->content[value] : value;
}

static const sti_output *gradient_of(const packer *p, stint_value value)
{
    for (int32_t i = 0; i < sti_graph_output_count(p->graph); i++) {
        const sti_output *output = &sti_graph_outputs(p->graph)[i];
        if (output->kind == STI_OUTPUT_GRADIENT &&
            content_of(p, output->value) == content_of(p, value))
            return output;
    }
    return NULL;
}

/* How a node of the backward half uses its input k. */
static reader_kind kind_of(const packer *p, const sti_node *node, int32_t k)
{
    if (node->op == &sti_op_conv2d_grad_w && k == 0 && gradient_of(p, node->out[0]))
        return READER_WEIGHT;
    if (node->op == &sti_op_batch_norm_grad && k == GRAD_X)
        return READER_NORM;
    if (node->op == &sti_op_matmul) {
        const sti_matmul_attr *attr = node->attr;
        if (attr->trans_a && !attr->trans_b &&
            row_of(p, node->in[0])->shape.rank == 2 &&
            content_of(p, node->in[0]) != content_of(p, node->in[1]) &&
            gradient_of(p, node->out[0]))
            return READER_WEIGHT;
    }
    return READER_OTHER;
}

static void note_read(packer *p, const sti_node *node, int32_t k)
{
    usage *use = &p->use[p->content[node->in[k]]];
    if (!node->backward) {
        use->last_forward = node->id;
        return;
    }
    if (use->first_backward < 0)
        use->first_backward = node->id;
    reader_kind kind = kind_of(p, node, k);
    use->weight += kind == READER_WEIGHT;
    use->norm += kind == READER_NORM;
    use->other += kind == READER_OTHER;
    use->reshaped |= node->in[k] != p->content[node->in[k]];
    if (kind == READER_NORM)
        use->norm_grad = node;
}

static void find_usage(packer *p)
{
    for (int32_t v = 0; v < p->values; v++)
        p->use[v].last_forward = p->use[v].first_backward = -1;
    for (int32_t n = 0; n < p->nodes; n++) {
        const sti_node *node = sti_graph_node(p->graph, n);
        for (int32_t k = 0; k < node->n_in && !(node->op->flags & STI_OP_VIEW); k++)
            if (node->in[k] >= 0)
                note_read(p, node, k);
    }
    for (int32_t i = 0; i < sti_graph_output_count(p->graph); i++)
        p->use[p->content[sti_graph_outputs(p->graph)[i].value]].leaves = true;
}

static stint_status packer_init(packer *p)
{
    p->nodes = sti_graph_node_count(p->graph);
    p->values = sti_graph_value_count(p->graph);
    p->content = sti_alloc_array(p->values, sizeof *p->content, "pass.pack");
    p->use = sti_alloc_array(p->values, sizeof *p->use, "pass.pack");
    if (!p->content || !p->use)
        return STINT_E_MEMORY;
    sti_pass_contents(p->graph, p->content);
    find_usage(p);
    return STINT_OK;
}

static void packer_fini(packer *p)
{
    sti_free(p->content);
    sti_free(p->use);
    sti_free(p->key);
}

/* ---- candidates ---- */

static bool can_pack(const packer *p, stint_value value)
{
    const sti_value_row *row = row_of(p, value);
    const usage *use = &p->use[value];
    bool forward =
        row->role == STI_ROLE_INPUT || (row->producer && !row->producer->backward);
    return p->content[value] == value && forward && row->shape.dtype == STINT_F32 &&
           !use->leaves && use->last_forward >= 0 && use->first_backward >= 0 &&
           use->other == 0 && stint_shape_count(&row->shape) >= LEAST_ELEMENTS;
}

static bool only_weights(const packer *p, stint_value value)
{
    return can_pack(p, value) && p->use[value].norm == 0;
}

/* The batch-norm whose gradient this node is, when x is its input. */
static const sti_node *norm_of(const packer *p, const sti_node *grad)
{
    const sti_node *norm = row_of(p, grad->in[GRAD_MEAN])->producer;
    return norm && norm->op == &sti_op_batch_norm && norm->in[X] == grad->in[GRAD_X]
               ? norm
               : NULL;
}

static bool is_norm_input(const packer *p, stint_value value)
{
    const usage *use = &p->use[value];
    return can_pack(p, value) && use->weight == 0 && use->norm == 1 &&
           norm_of(p, use->norm_grad) && use->norm_grad->in[GRAD_X] == value;
}

static bool has_residual(const sti_node *norm)
{
    return ((const sti_batch_norm_attr *)norm->attr)->has_residual;
}

/* May the backward half read what unpacking makes instead? */
static bool can_be_made(const packer *p, stint_value y)
{
    return only_weights(p, y) && !p->use[y].reshaped;
}

/* The ReLU's result that the block of a batch-norm's input can stand for, or -1. */
static stint_value also_of(const packer *p, const sti_node *norm)
{
    stint_value y = norm->out[Y];
    return !has_residual(norm) && can_be_made(p, y) ? y : -1;
}

/* The sum that it can be made with. */
static stint_value sum_of(const packer *p, const sti_node *norm)
{
    stint_value y = norm->out[Y];
    return has_residual(norm) && can_be_made(p, y) ? y : -1;
}

/* Sign bits that are there anyway: of the ReLU in the node that made the value. */
static stint_value bits_of(const packer *p, stint_value value)
{
    const sti_node *node = row_of(p, value)->producer;
    int out = -1;
    if (!node)
        return STI_NO_INPUT;
    if (node->op == &sti_op_batch_norm)
        out = ((const sti_batch_norm_attr *)node->attr)->relu ? BITS : -1;
    else if (node->op == &sti_op_conv2d)
        out = ((const sti_conv2d_attr *)node->attr)->relu ? 1 : -1;
    else if (node->op == &sti_op_matmul)
        out = ((const sti_matmul_attr *)node->attr)->relu ? 1 : -1;
    else if (node->op == &sti_op_relu)
        out = 1;
    if (out < 0 || p->use[node->out[out]].first_backward < 0)
        return STI_NO_INPUT;
    return node->out[out];
}

/* Zeros pass through dropout; of four values the largest is seldom zero. */
static bool is_sparse(const packer *p, stint_value value)
{
    const sti_node *node = row_of(p, value)->producer;
    return node && (bits_of(p, value) >= 0 || strcmp(node->op->name, "dropout") == 0);
}

static double fewer_images(int64_t images)
{
    double bits = 0;
    for (; images > 0 && images < USUAL_IMAGES; images *= 2)
        bits += 0.5;
    return bits;
}

static void fill_candidate(const packer *p, stint_value value, sti_pack_candidate *c)
{
    const stint_shape *shape = &row_of(p, value)->shape;
    double bits = is_sparse(p, value) ? BITS_SPARSE : BITS_DENSE;
    *c = (sti_pack_candidate){.value = value,
                              .also = -1,
                              .sum = -1,
                              .residual = -1,
                              .form = STI_PACK_VALUE,
                              .count = stint_shape_count(shape),
                              .plain_bytes = stint_shape_bytes(shape)};
    if (is_norm_input(p, value)) {
        const sti_node *grad = p->use[value].norm_grad;
        c->form = STI_PACK_NORM;
        const sti_node *norm = norm_of(p, grad);
        c->also = also_of(p, norm);
        c->sum = sum_of(p, norm);
        if (c->sum >= 0)
            c->residual = content_of(p, norm->in[RESIDUAL]);
        bits = grad->in[GRAD_BITS] < 0 ? BITS_NORM
               : c->also >= 0          ? BITS_NORM_RELU
                                       : BITS_NORM_SUM;
        if (c->also >= 0)
            c->plain_bytes += stint_shape_bytes(&row_of(p, c->also)->shape);
    }
    bits += fewer_images(shape->dim[0]);
    c->expected_bytes = (size_t)((double)c->count * bits / 8.0) + 1024;
    c->pack_s = (double)c->count * PACK_S_A_VALUE;
    c->unpack_s = (double)c->count * UNPACK_S_A_VALUE;
}

/* Does the block of a batch-norm's input stand for it? */
static bool is_covered(const packer *p, stint_value value)
{
    const sti_node *node = row_of(p, value)->producer;
    return node && node->op == &sti_op_batch_norm && is_norm_input(p, node->in[X]) &&
           also_of(p, node) == value;
}

/* A graph is packed once: its table of bounds is an input of fixed size. */
static bool is_packed(const stint_graph *graph)
{
    for (int32_t n = 0; n < sti_graph_node_count(graph); n++)
        if (sti_graph_node(graph, n)->op == &sti_op_pack)
            return true;
    return false;
}

stint_status sti_pack_candidates(const stint_graph *graph,
                                 sti_pack_candidate *candidates_out, int *count_out)
{
    packer p = {.graph = (stint_graph *)(uintptr_t)graph}; /* only read here */
    stint_status status = packer_init(&p);
    int count = 0;
    for (stint_value v = 0; status == STINT_OK && !is_packed(graph) && v < p.values;
         v++)
        if (is_norm_input(&p, v) || (only_weights(&p, v) && !is_covered(&p, v)))
            fill_candidate(&p, v, &candidates_out[count++]);
    *count_out = count;
    packer_fini(&p);
    return status;
}

int64_t sti_pack_capacity(size_t bytes)
{
    return (int64_t)STI_ALIGN_UP(bytes + bytes / RESERVE + 128, 64);
}

/* ---- the order ---- */

/* Appended nodes stand at odd keys: after node n at 2 n + 1, before it at 2 n - 1. */
static stint_status place(packer *p, int32_t first, int32_t key)
{
    int32_t count = sti_graph_node_count(p->graph);
    if (count > p->key_capacity) {
        int32_t capacity = 2 * count + 64;
        int32_t *fresh =
            sti_realloc(p->key, (size_t)capacity * sizeof *fresh, "pass.pack");
        if (!fresh)
            return STINT_E_MEMORY;
        p->key = fresh;
        p->key_capacity = capacity;
    }
    for (int32_t n = first; n < count; n++)
        p->key[n] = key;
    return STINT_OK;
}

/* By ascending key, appended nodes of one key as they were appended. */
static stint_status reorder(packer *p)
{
    int32_t count = sti_graph_node_count(p->graph), keys = 2 * p->nodes + 2, at = 0;
    int32_t *begin = sti_alloc_array(keys + 1, sizeof *begin, "pass.pack");
    int32_t *order = sti_alloc_array(count, sizeof *order, "pass.pack");
    stint_status status = begin && order ? STINT_OK : STINT_E_MEMORY;
    for (int32_t n = 0; n < count && !status; n++)
        begin[p->key[n]]++;
    for (int32_t k = 0; k < keys && !status; k++) {
        int32_t here = begin[k];
        begin[k] = at;
        at += here;
    }
    for (int32_t n = 0; n < count && !status; n++)
        order[begin[p->key[n]]++] = n;
    if (!status)
        status = sti_graph_reorder(p->graph, order);
    sti_free(begin);
    sti_free(order);
    return status;
}

/* ---- rewriting ---- */

/* Of one choice. */
typedef struct block {
    int row;
    bool check;
    stint_value value, also;
    const sti_node *norm, *grad; /* batch-norm and its gradient, for the form NORM */
    const sti_node *pack;        /* appended */
    sti_node *unpack;
    stint_value x, y; /* unpacked: value, also (or what a sum takes as its residual) */
} block;

/* All of them, in the order of the choices. */
typedef struct block_list {
    block *block;
    int count;
} block_list;

static void add_metric(packer *p, const block *b, const char *what, stint_value value,
                       stint_value target)
{
    char name[64];
    snprintf(name, sizeof name, "pack.%d.%s", b->row, what);
    sti_graph_output(p->graph, &(sti_output){.kind = STI_OUTPUT_METRIC,
                                             .value = value,
                                             .target = target,
                                             .name = name});
}

static stint_status append_pack(packer *p, block *b, const sti_pack_choice *choice)
{
    stint_graph *g = p->graph;
    const sti_value_row *row = row_of(p, b->value);
    const bool norm = choice->form != STI_PACK_VALUE;
    const sti_pack_attr attr = {choice->capacity, b->row, norm,
                                choice->form == STI_PACK_SUM};
    int32_t first = sti_graph_node_count(g);
    stint_value v = sti_op_add_pack(
        g, &attr, b->value, p->bounds, norm ? b->grad->in[GRAD_MEAN] : STI_NO_INPUT,
        norm ? b->grad->in[GRAD_INVERSE] : STI_NO_INPUT,
        norm ? b->grad->in[GRAD_BITS] : bits_of(p, b->value));
    if (v < 0)
        return sti_graph_status(g);
    sti_node *pack = sti_graph_node(g, first);
    pack->scope = row->producer ? row->producer->scope : "";
    b->pack = pack;
    add_metric(p, b, "stats", pack->out[1], -1);
    return place(p, first, 2 * p->use[b->value].last_forward + 1);
}

static bool is_sum(const block *b)
{
    return ((const sti_pack_attr *)b->pack->attr)->sum != 0;
}

static int32_t first_of(int32_t a, int32_t b)
{
    return b >= 0 && b < a ? b : a;
}

static stint_status append_unpack(packer *p, block *b)
{
    stint_graph *g = p->graph;
    int32_t at = p->use[b->value].first_backward, first = sti_graph_node_count(g);
    stint_value scale = STI_NO_INPUT, shift = STI_NO_INPUT, residual = STI_NO_INPUT;
    if (b->also >= 0)
        at = first_of(at, p->use[b->also].first_backward);
    if (b->grad) {
        scale = b->norm->in[SCALE];
        shift = b->norm->in[SHIFT];
    }
    if (is_sum(b))
        residual = b->norm->in[RESIDUAL];
    sti_graph_set_backward(g, sti_graph_node(g, at));
    b->x = sti_op_add_unpack(g, b->pack, scale, shift, residual);
    b->y = b->x < 0 ? -1 : b->x + 1;
    sti_graph_set_backward(g, NULL);
    if (b->x < 0)
        return sti_graph_status(g);
    b->unpack = sti_graph_node(g, first);
    return place(p, first, 2 * at - 1);
}

/* What was unpacked, under the shape that the reader wants. */
static stint_status reshaped(packer *p, stint_value unpacked, const sti_node *reader,
                             stint_value wanted, stint_value *out)
{
    stint_graph *g = p->graph;
    const stint_shape have = stint_value_shape(g, unpacked);
    const stint_shape want = stint_value_shape(g, wanted);
    *out = unpacked;
    if (sti_shape_equal(&have, &want))
        return STINT_OK;
    int32_t first = sti_graph_node_count(g);
    sti_graph_set_backward(g, reader);
    *out = stint_reshape(g, unpacked, &want);
    sti_graph_set_backward(g, NULL);
    return *out < 0 ? sti_graph_status(g) : place(p, first, 2 * reader->id - 1);
}

/* The same gradient from the raw tensor, and the mean square of the difference. */
static stint_status append_check(packer *p, const block *b, const sti_node *reader,
                                 const stint_value *raw, int out, stint_value target)
{
    stint_graph *g = p->graph;
    int32_t first = sti_graph_node_count(g);
    stint_shape shape = stint_value_shape(g, reader->out[out]);
    sti_graph_set_backward(g, reader);
    stint_value exact = sti_graph_add(g, reader->op, reader->attr, reader->n_in, raw);
    stint_value difference =
        exact < 0 ? -1 : stint_sub(g, reader->out[out], exact + out);
    stint_value error =
        stint_mean(g, stint_square(g, difference), (1u << shape.rank) - 1u, false);
    sti_graph_set_backward(g, NULL);
    if (error < 0)
        return sti_graph_status(g);
    add_metric(p, b, "error", error, target);
    return place(p, first, 2 * reader->id + 1);
}

static stint_status append_gain(packer *p, const block *b, const sti_node *reader,
                                int operand, int out, stint_value factor)
{
    stint_graph *g = p->graph;
    const sti_output *gradient = gradient_of(p, reader->out[out]);
    int32_t first = sti_graph_node_count(g);
    if (!gradient)
        return STINT_OK; /* the parameter is not trained */
    stint_value target = gradient->target;
    sti_graph_set_backward(g, reader);
    stint_value gain = sti_op_add_error_gain(g, reader, operand, b->pack, factor);
    sti_graph_set_backward(g, NULL);
    if (gain < 0)
        return sti_graph_status(g);
    add_metric(p, b, "gain", gain, target);
    return place(p, first, 2 * reader->id + 1);
}

/* The block that a residual is made again from, or NULL; *made_out: what unpacking
 * makes of it. */
static const block *block_behind(const packer *p, const block_list *blocks,
                                 stint_value residual, stint_value *made_out)
{
    const stint_value content = content_of(p, residual);
    for (int i = 0; i < blocks->count; i++) {
        const block *b = &blocks->block[i];
        *made_out = b->norm ? b->y : b->x;
        if (b->norm ? b->norm->out[Y] == content && is_sum(b) == has_residual(b->norm)
                    : b->value == content)
            return b;
    }
    return NULL;
}

/* Errors in a sum: that of its block, and those of the blocks its residual comes from.
 */
static stint_status append_gains(packer *p, const block_list *blocks, const block *b,
                                 const sti_node *reader, int operand, int out,
                                 bool of_norm)
{
    stint_status st = STINT_OK;
    while (b && st == STINT_OK) {
        stint_value made;
        st = append_gain(p, b, reader, operand, out,
                         of_norm ? b->norm->in[SCALE] : STI_NO_INPUT);
        b = of_norm && is_sum(b) ? block_behind(p, blocks, b->norm->in[RESIDUAL], &made)
                                 : NULL;
        of_norm = b && b->norm;
    }
    return st;
}

/* One read of what was packed becomes a read of what was unpacked. */
static stint_status redirect(packer *p, const block_list *blocks, const block *b,
                             sti_node *reader, int32_t k, stint_value unpacked)
{
    reader_kind kind = kind_of(p, reader, k);
    const bool of_norm = unpacked == b->y;
    const int out = kind == READER_NORM ? SCALE : 0;
    stint_value raw[8], instead, wanted = reader->in[k];
    stint_status st = reshaped(p, unpacked, reader, wanted, &instead);
    if (st != STINT_OK)
        return st;
    memcpy(raw, reader->in, (size_t)reader->n_in * sizeof *raw);
    reader->in[k] = instead;
    if (kind == READER_OTHER)
        return STINT_OK;
    st = append_gains(p, blocks, b, reader, k, out, of_norm);
    const sti_output *gradient = gradient_of(p, reader->out[out]);
    if (st == STINT_OK && b->check && gradient)
        st = append_check(p, b, reader, raw, out, gradient->target);
    return st;
}

/* All backward reads of one packed content. */
static stint_status redirect_all(packer *p, const block_list *blocks, const block *b,
                                 stint_value content, stint_value unpacked)
{
    stint_status st = STINT_OK;
    for (int32_t n = 0; n < p->nodes && st == STINT_OK; n++) {
        sti_node *node = sti_graph_node(p->graph, n);
        if (!node->backward || (node->op->flags & STI_OP_VIEW))
            continue;
        for (int32_t k = 0; k < node->n_in && st == STINT_OK; k++)
            if (content_of(p, node->in[k]) == content)
                st = redirect(p, blocks, b, node, k, unpacked);
    }
    return st;
}

static bool is_possible(const packer *p, const sti_pack_choice *choice)
{
    if (choice->value < 0 || choice->value >= p->values)
        return false;
    if (choice->form == STI_PACK_VALUE)
        return only_weights(p, choice->value);
    return is_norm_input(p, choice->value) &&
           (choice->form == STI_PACK_NORM ||
            sum_of(p, norm_of(p, p->use[choice->value].norm_grad)) >= 0);
}

/* The nodes of one choice; *b knows them afterwards. */
static stint_status append_block(packer *p, const sti_pack_choice *choice, block *b)
{
    if (!is_possible(p, choice))
        return sti_fail(STINT_E_BUG, "pack: value %d (%s) is no candidate",
                        (int)choice->value, stint_value_name(p->graph, choice->value));
    b->value = choice->value;
    b->also = -1;
    if (choice->form != STI_PACK_VALUE) {
        b->grad = p->use[choice->value].norm_grad;
        b->norm = norm_of(p, b->grad);
        b->also =
            choice->form == STI_PACK_SUM ? sum_of(p, b->norm) : also_of(p, b->norm);
    }
    stint_status st = append_pack(p, b, choice);
    return st == STINT_OK ? append_unpack(p, b) : st;
}

/* Residuals that are made again are read as such. */
static void link_residuals(packer *p, const block_list *blocks)
{
    enum { UNPACK_RESIDUAL = 6 };
    for (int i = 0; i < blocks->count; i++) {
        const block *b = &blocks->block[i];
        stint_value made;
        if (is_sum(b) && block_behind(p, blocks, b->norm->in[RESIDUAL], &made))
            b->unpack->in[UNPACK_RESIDUAL] = made;
    }
}

static stint_status pack_choices(packer *p, const sti_pack_choice *choices,
                                 block_list *blocks, bool check)
{
    stint_status st = STINT_OK;
    for (int i = 0; i < blocks->count && st == STINT_OK; i++) {
        blocks->block[i] = (block){.row = i, .check = check};
        st = append_block(p, &choices[i], &blocks->block[i]);
    }
    if (st == STINT_OK)
        link_residuals(p, blocks);
    for (int i = 0; i < blocks->count && st == STINT_OK; i++) {
        const block *b = &blocks->block[i];
        st = redirect_all(p, blocks, b, b->value, b->x);
        if (st == STINT_OK && b->also >= 0)
            st = redirect_all(p, blocks, b, b->also, b->y);
    }
    return st;
}

stint_status sti_pass_pack(stint_graph *graph, const sti_pack_choice *choices,
                           int count, bool check, sti_account *account)
{
    packer p = {.graph = graph};
    if (count == 0)
        return STINT_OK;
    block_list blocks = {sti_alloc_array(count, sizeof(block), "pass.pack"), count};
    stint_status status = blocks.block ? STINT_OK : STINT_E_MEMORY;
    sti_pass_clear_inplace(graph);
    const stint_shape table = STINT_SHAPE(count, STI_BOUND_FIELDS);
    if (!status) {
        p.bounds = stint_input(graph, "bounds", &table);
        status = p.bounds < 0 ? sti_graph_status(graph) : packer_init(&p);
    }
    if (!status)
        status = place(&p, 0, 0);
    for (int32_t n = 0; n < p.nodes && !status; n++)
        p.key[n] = 2 * n;
    if (!status)
        status = pack_choices(&p, choices, &blocks, check);
    if (!status)
        status = reorder(&p);
    if (!status)
        status = sti_graph_sort(graph); /* residuals before their sums */
    if (!status)
        status = sti_graph_status(graph);
    sti_account_set(account, "%d tensors held packed", count);
    packer_fini(&p);
    sti_free(blocks.block);
    return status;
}
