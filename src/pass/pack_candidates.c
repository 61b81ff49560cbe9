/* Which saved activations can be held packed, and what it would cost; see pack.c. */
#include <string.h>

#include "base/fail.h"
#include "op/op_bf16.h"
#include "op/op_norm_slots.h"
#include "pass/pack_priv.h"

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
/* One part in so many of a block is its reserve. What grows beyond that makes the run
 * plan anew. */
#define RESERVE 16
/* Seconds of one thread a value. */
#define PACK_S_A_VALUE   3.5e-9
#define UNPACK_S_A_VALUE 3.0e-9

const sti_output *sti_pack_gradient_of(const packer *p, stint_value value)
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
reader_kind sti_pack_kind_of(const packer *p, const sti_node *node, int32_t k)
{
    if (sti_op_is_conv2d_grad_w(node->op) && k == 0 &&
        sti_pack_gradient_of(p, node->out[0]))
        return READER_WEIGHT;
    if (sti_op_is_batch_norm_grad(node->op) && k == GRAD_X)
        return READER_NORM;
    if (sti_op_is_matmul(node->op)) {
        const sti_matmul_attr *attr = node->attr; /* begins with it */
        if (attr->trans_a && !attr->trans_b &&
            row_of(p, node->in[0])->shape.rank == 2 &&
            content_of(p, node->in[0]) != content_of(p, node->in[1]) &&
            sti_pack_gradient_of(p, node->out[0]))
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
    reader_kind kind = sti_pack_kind_of(p, node, k);
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

stint_status sti_packer_init(packer *p)
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

void sti_packer_fini(packer *p)
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
    return p->content[value] == value && forward &&
           (row->shape.dtype == STINT_F32 || row->shape.dtype == STINT_BF16) &&
           !use->leaves && use->last_forward >= 0 && use->first_backward >= 0 &&
           use->other == 0 && stint_shape_count(&row->shape) >= LEAST_ELEMENTS;
}

bool sti_pack_only_weights(const packer *p, stint_value value)
{
    return can_pack(p, value) && p->use[value].norm == 0;
}

/* The batch-norm whose gradient this node is, when x is its input. */
const sti_node *sti_pack_norm_of(const packer *p, const sti_node *grad)
{
    const sti_node *norm = row_of(p, grad->in[GRAD_MEAN])->producer;
    return norm && sti_op_is_batch_norm(norm->op) && norm->in[X] == grad->in[GRAD_X]
               ? norm
               : NULL;
}

bool sti_pack_is_norm_input(const packer *p, stint_value value)
{
    const usage *use = &p->use[value];
    return can_pack(p, value) && use->weight == 0 && use->norm == 1 &&
           sti_pack_norm_of(p, use->norm_grad) && use->norm_grad->in[GRAD_X] == value;
}

bool sti_pack_has_residual(const sti_node *norm)
{
    return ((const sti_batch_norm_attr *)norm->attr)->has_residual;
}

/* May the backward half read what unpacking makes instead? */
static bool can_be_made(const packer *p, stint_value y)
{
    return sti_pack_only_weights(p, y) && !p->use[y].reshaped;
}

/* The ReLU's result that the block of a batch-norm's input can stand for, or -1. */
stint_value sti_pack_also_of(const packer *p, const sti_node *norm)
{
    stint_value y = norm->out[Y];
    return !sti_pack_has_residual(norm) && can_be_made(p, y) ? y : -1;
}

/* The sum that it can be made with: in float32, as its residual is. */
stint_value sti_pack_sum_of(const packer *p, const sti_node *norm)
{
    stint_value y = norm->out[Y];
    return norm->op == &sti_op_batch_norm && sti_pack_has_residual(norm) &&
                   can_be_made(p, y)
               ? y
               : -1;
}

/* Sign bits that are there anyway: of the ReLU in the node that made the value. */
stint_value sti_pack_bits_of(const packer *p, stint_value value)
{
    const sti_node *node = row_of(p, value)->producer;
    int out = -1;
    if (!node)
        return STI_NO_INPUT;
    if (sti_op_is_batch_norm(node->op))
        out = ((const sti_batch_norm_attr *)node->attr)->relu ? BITS : -1;
    else if (sti_op_is_conv2d(node->op))
        out = ((const sti_conv2d_attr *)node->attr)->relu ? 1 : -1;
    else if (sti_op_is_matmul(node->op))
        out = ((const sti_matmul_attr *)node->attr)->relu ? 1 : -1;
    else if (node->op == &sti_op_relu || node->op == &sti_op_relu_bf16)
        out = 1;
    if (out < 0 || p->use[node->out[out]].first_backward < 0)
        return STI_NO_INPUT;
    return node->out[out];
}

/* Zeros pass through dropout; of four values the largest is seldom zero. */
static bool is_sparse(const packer *p, stint_value value)
{
    const sti_node *node = row_of(p, value)->producer;
    return node &&
           (sti_pack_bits_of(p, value) >= 0 || strcmp(node->op->name, "dropout") == 0);
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
    if (sti_pack_is_norm_input(p, value)) {
        const sti_node *grad = p->use[value].norm_grad;
        c->form = STI_PACK_NORM;
        const sti_node *norm = sti_pack_norm_of(p, grad);
        c->also = sti_pack_also_of(p, norm);
        c->sum = sti_pack_sum_of(p, norm);
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
    return node && sti_op_is_batch_norm(node->op) &&
           sti_pack_is_norm_input(p, node->in[X]) && sti_pack_also_of(p, node) == value;
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
    stint_status status = sti_packer_init(&p);
    int count = 0;
    for (stint_value v = 0; status == STINT_OK && !is_packed(graph) && v < p.values;
         v++)
        if (sti_pack_is_norm_input(&p, v) ||
            (sti_pack_only_weights(&p, v) && !is_covered(&p, v)))
            fill_candidate(&p, v, &candidates_out[count++]);
    *count_out = count;
    sti_packer_fini(&p);
    return status;
}

int64_t sti_pack_capacity(size_t bytes)
{
    return (int64_t)STI_ALIGN_UP(bytes + bytes / RESERVE + 128, 64);
}
