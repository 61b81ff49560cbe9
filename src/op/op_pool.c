/* Pooling. Each operator's gradient is its adjoint, which is an operator of this file
 * too, so that they can be differentiated any number of times:
 *
 *     max_pool -> max_unpool <-> pool_gather      (through the saved index)
 *     avg_pool <-> avg_unpool       global_avg_pool <-> global_avg_unpool */
#include <inttypes.h>

#include "kernel/conv/conv.h"
#include "kernel/pool/pool.h"
#include "op/op_pool.h"
#include "op/op_priv.h"

typedef struct pool_attr {
    int64_t size, stride, pad;
    int64_t height, width; /* of the images; 0 where the input says it */
} pool_attr;

/* ---- shapes ---- */

static stint_status check_images(const stint_graph *graph, const sti_node *node)
{
    stint_status st = sti_op_check_f32(graph, node, 0);
    if (st != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    if (x->rank != 4)
        return sti_fail(STINT_E_INPUT, "%s: input 0 is %s, wanted [n, h, w, c]",
                        node->op->name, sti_shape_text(x));
    return STINT_OK;
}

/* Shape of the pooling of images [n, height, width, c]. */
static stint_status pooled(const sti_node *node, int64_t n, int64_t height,
                           int64_t width, int64_t c, stint_shape *out)
{
    const pool_attr *attr = node->attr;
    if (attr->size < 1 || attr->size > STI_POOL_MAX_SIZE || attr->stride < 1 ||
        attr->pad < 0 || attr->pad >= attr->size)
        return sti_fail(STINT_E_INPUT,
                        "%s: size %" PRId64 ", stride %" PRId64 ", padding %" PRId64
                        "; wanted size 1 to %d, stride at least 1, padding below size",
                        node->op->name, attr->size, attr->stride, attr->pad,
                        STI_POOL_MAX_SIZE);
    int64_t oh = sti_conv_out_length(height, attr->size, attr->stride, attr->pad);
    int64_t ow = sti_conv_out_length(width, attr->size, attr->stride, attr->pad);
    if (oh < 1 || ow < 1)
        return sti_fail(STINT_E_INPUT,
                        "%s: a window of %" PRId64
                        " does not fit into images of %" PRId64 " x %" PRId64
                        " with padding %" PRId64
                        "; use larger images or fewer layers that shrink them",
                        node->op->name, attr->size, height, width, attr->pad);
    *out = STINT_SHAPE(n, oh, ow, c);
    return STINT_OK;
}

static stint_shape index_shape(const pool_attr *attr, const stint_shape *y)
{
    const sti_pool_shape s = {.size = attr->size, .c = y->dim[3], .ow = y->dim[2]};
    const int64_t dim[3] = {y->dim[0], y->dim[1], sti_pool_row_bytes(&s)};
    return stint_shape_make(STINT_U8, 3, dim);
}

/* From images: max_pool (with the index as output 1), avg_pool, pool_gather. */
static stint_status infer_down(const stint_graph *graph, const sti_node *node, int n_in,
                               stint_shape *y)
{
    stint_status st = sti_op_check_count(node, n_in);
    if (st != STINT_OK || (st = check_images(graph, node)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    return pooled(node, x->dim[0], x->dim[1], x->dim[2], x->dim[3], y);
}

/* Back to images: max_unpool, avg_unpool. */
static stint_status infer_up(const stint_graph *graph, const sti_node *node, int n_in,
                             stint_shape *x)
{
    const pool_attr *attr = node->attr;
    stint_shape y;
    stint_status st = sti_op_check_count(node, n_in);
    if (st != STINT_OK || (st = check_images(graph, node)) != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 0);
    st = pooled(node, dy->dim[0], attr->height, attr->width, dy->dim[3], &y);
    if (st == STINT_OK && !sti_shape_equal(&y, dy))
        st = sti_fail(STINT_E_INPUT, "%s: dy is %s, wanted %s", node->op->name,
                      sti_shape_text(dy), sti_shape_text(&y));
    *x = STINT_SHAPE(dy->dim[0], attr->height, attr->width, dy->dim[3]);
    return st;
}

static sti_pool_shape pool_shape(const pool_attr *attr, const stint_shape *x,
                                 const stint_shape *y)
{
    return (sti_pool_shape){.n = x->dim[0],
                            .h = x->dim[1],
                            .w = x->dim[2],
                            .c = x->dim[3],
                            .size = attr->size,
                            .stride = attr->stride,
                            .pad = attr->pad,
                            .oh = y->dim[1],
                            .ow = y->dim[2]};
}

static sti_pool_shape down_shape(const sti_call *call)
{
    return pool_shape(call->node->attr, sti_op_in_shape(call->graph, call->node, 0),
                      sti_op_out_shape(call->graph, call->node, 0));
}

static sti_pool_shape up_shape(const sti_call *call)
{
    return pool_shape(call->node->attr, sti_op_out_shape(call->graph, call->node, 0),
                      sti_op_in_shape(call->graph, call->node, 0));
}

static void print_pool(const sti_node *node, sti_text *out)
{
    const pool_attr *attr = node->attr;
    sti_text_printf(out, "size %" PRId64 " stride %" PRId64 " pad %" PRId64, attr->size,
                    attr->stride, attr->pad);
}

/* A flop an element of a window. */
static sti_cost cost_pool(const stint_graph *graph, const sti_node *node)
{
    const pool_attr *attr = node->attr;
    return sti_op_cost_bytes(graph, node, (double)(attr->size * attr->size));
}

/* A flop an element of the larger side. */
static sti_cost cost_each(const stint_graph *graph, const sti_node *node)
{
    const double in = (double)stint_shape_count(sti_op_in_shape(graph, node, 0));
    const double out = (double)stint_shape_count(sti_op_out_shape(graph, node, 0));
    sti_cost cost = sti_op_cost_bytes(graph, node, 0.0);
    cost.flop = in > out ? in : out;
    return cost;
}

/* Attributes of the adjoint: the images' size is no longer that of an input. */
static pool_attr with_images(const stint_graph *g, const sti_node *node)
{
    const stint_shape *x = sti_op_in_shape(g, node, 0);
    pool_attr attr = *(const pool_attr *)node->attr;
    attr.height = x->dim[1];
    attr.width = x->dim[2];
    return attr;
}

/* ---- maximum ---- */

static stint_status infer_max_pool(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    stint_status st = infer_down(graph, node, 1, &out[0]);
    if (st == STINT_OK)
        out[1] = index_shape(node->attr, &out[0]);
    return st;
}

static void run_max_pool(const sti_call *call)
{
    const sti_pool_shape s = down_shape(call);
    sti_max_pool_f32(call->team, &s, call->in[0], call->out[0], call->out[1]);
}

static stint_status grad_max_pool(stint_graph *g, const sti_node *node,
                                  const stint_value *dy, const bool *need,
                                  stint_value *dx)
{
    const pool_attr attr = with_images(g, node);
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_max_unpool, &attr, dy[0], node->out[1]);
    return STINT_OK;
}

const sti_op sti_op_max_pool = {
    .name = "max_pool",
    .n_out = 2,
    .attr_bytes = sizeof(pool_attr),
    .optional_out = 1u << 1,
    .infer = infer_max_pool,
    .grad = grad_max_pool,
    .cost = cost_pool,
    .run = {[STI_CPU] = run_max_pool},
    .print = print_pool,
};

bool sti_op_is_max_pool_by_two(const sti_node *node)
{
    const pool_attr *attr = node->attr;
    return node->op == &sti_op_max_pool && attr->size == 2 && attr->stride == 2 &&
           attr->pad == 0;
}

/* in: dy, index. */
static stint_status infer_max_unpool(const stint_graph *graph, const sti_node *node,
                                     stint_shape *out)
{
    stint_status st = infer_up(graph, node, 2, &out[0]);
    if (st != STINT_OK)
        return st;
    const stint_shape index = index_shape(node->attr, sti_op_in_shape(graph, node, 0));
    return sti_op_check_shape(graph, node, 1, &index);
}

static void run_max_unpool(const sti_call *call)
{
    const sti_pool_shape s = up_shape(call);
    sti_max_unpool_f32(call->team, &s, call->in[0], call->in[1], call->out[0]);
}

static stint_status grad_max_unpool(stint_graph *g, const sti_node *node,
                                    const stint_value *dy, const bool *need,
                                    stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_pool_gather, node->attr, dy[0], node->in[1]);
    return STINT_OK;
}

const sti_op sti_op_max_unpool = {
    .name = "max_unpool",
    .n_out = 1,
    .attr_bytes = sizeof(pool_attr),
    .infer = infer_max_unpool,
    .grad = grad_max_unpool,
    .cost = cost_each,
    .run = {[STI_CPU] = run_max_unpool},
    .print = print_pool,
};

/* in: x, index. */
static stint_status infer_gather(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st = infer_down(graph, node, 2, &out[0]);
    if (st != STINT_OK)
        return st;
    const stint_shape index = index_shape(node->attr, &out[0]);
    return sti_op_check_shape(graph, node, 1, &index);
}

static void run_gather(const sti_call *call)
{
    const sti_pool_shape s = down_shape(call);
    sti_pool_gather_f32(call->team, &s, call->in[0], call->in[1], call->out[0]);
}

static stint_status grad_gather(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const pool_attr attr = with_images(g, node);
    if (need[0])
        dx[0] = sti_op_add2(g, &sti_op_max_unpool, &attr, dy[0], node->in[1]);
    return STINT_OK;
}

const sti_op sti_op_pool_gather = {
    .name = "pool_gather",
    .n_out = 1,
    .attr_bytes = sizeof(pool_attr),
    .infer = infer_gather,
    .grad = grad_gather,
    .cost = cost_each,
    .run = {[STI_CPU] = run_gather},
    .print = print_pool,
};

/* ---- average ---- */

static stint_status infer_avg_pool(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    return infer_down(graph, node, 1, &out[0]);
}

static void run_avg_pool(const sti_call *call)
{
    const sti_pool_shape s = down_shape(call);
    sti_avg_pool_f32(call->team, &s, call->in[0], call->out[0]);
}

static stint_status grad_avg_pool(stint_graph *g, const sti_node *node,
                                  const stint_value *dy, const bool *need,
                                  stint_value *dx)
{
    const pool_attr attr = with_images(g, node);
    if (need[0])
        dx[0] = sti_op_add1(g, &sti_op_avg_unpool, &attr, dy[0]);
    return STINT_OK;
}

const sti_op sti_op_avg_pool = {
    .name = "avg_pool",
    .n_out = 1,
    .attr_bytes = sizeof(pool_attr),
    .infer = infer_avg_pool,
    .grad = grad_avg_pool,
    .cost = cost_pool,
    .run = {[STI_CPU] = run_avg_pool},
    .print = print_pool,
};

static stint_status infer_avg_unpool(const stint_graph *graph, const sti_node *node,
                                     stint_shape *out)
{
    return infer_up(graph, node, 1, &out[0]);
}

static void run_avg_unpool(const sti_call *call)
{
    const sti_pool_shape s = up_shape(call);
    sti_avg_unpool_f32(call->team, &s, call->in[0], call->out[0]);
}

static stint_status grad_avg_unpool(stint_graph *g, const sti_node *node,
                                    const stint_value *dy, const bool *need,
                                    stint_value *dx)
{
    if (need[0])
        dx[0] = sti_op_add1(g, &sti_op_avg_pool, node->attr, dy[0]);
    return STINT_OK;
}

const sti_op sti_op_avg_unpool = {
    .name = "avg_unpool",
    .n_out = 1,
    .attr_bytes = sizeof(pool_attr),
    .infer = infer_avg_unpool,
    .grad = grad_avg_unpool,
    .cost = cost_each,
    .run = {[STI_CPU] = run_avg_unpool},
    .print = print_pool,
};

/* ---- whole images ---- */

static stint_status infer_global(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = check_images(graph, node)) != STINT_OK)
        return st;
    const stint_shape *x = sti_op_in_shape(graph, node, 0);
    out[0] = STINT_SHAPE(x->dim[0], x->dim[3]);
    return STINT_OK;
}

static void run_global(const sti_call *call)
{
    const stint_shape *x = sti_op_in_shape(call->graph, call->node, 0);
    sti_global_pool_f32(call->team, x->dim[0], x->dim[1] * x->dim[2], x->dim[3],
                        call->in[0], call->out[0]);
}

static stint_status grad_global(stint_graph *g, const sti_node *node,
                                const stint_value *dy, const bool *need,
                                stint_value *dx)
{
    const stint_shape *x = sti_op_in_shape(g, node, 0);
    const pool_attr attr = {.height = x->dim[1], .width = x->dim[2]};
    if (need[0])
        dx[0] = sti_op_add1(g, &sti_op_global_avg_unpool, &attr, dy[0]);
    return STINT_OK;
}

const sti_op sti_op_global_avg_pool = {
    .name = "global_avg_pool",
    .n_out = 1,
    .infer = infer_global,
    .grad = grad_global,
    .cost = cost_each,
    .run = {[STI_CPU] = run_global},
};

static stint_status infer_global_unpool(const stint_graph *graph, const sti_node *node,
                                        stint_shape *out)
{
    const pool_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 1);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK)
        return st;
    const stint_shape *dy = sti_op_in_shape(graph, node, 0);
    if (dy->rank != 2)
        return sti_fail(STINT_E_INPUT, "%s: dy is %s, wanted [n, c]", node->op->name,
                        sti_shape_text(dy));
    out[0] = STINT_SHAPE(dy->dim[0], attr->height, attr->width, dy->dim[1]);
    return STINT_OK;
}

static void run_global_unpool(const sti_call *call)
{
    const stint_shape *x = sti_op_out_shape(call->graph, call->node, 0);
    sti_global_unpool_f32(call->team, x->dim[0], x->dim[1] * x->dim[2], x->dim[3],
                          call->in[0], call->out[0]);
}

static stint_status grad_global_unpool(stint_graph *g, const sti_node *node,
                                       const stint_value *dy, const bool *need,
                                       stint_value *dx)
{
    (void)node;
    if (need[0])
        dx[0] = stint_global_avg_pool(g, dy[0]);
    return STINT_OK;
}

static void print_global_unpool(const sti_node *node, sti_text *out)
{
    const pool_attr *attr = node->attr;
    sti_text_printf(out, "to %" PRId64 " x %" PRId64, attr->height, attr->width);
}

const sti_op sti_op_global_avg_unpool = {
    .name = "global_avg_unpool",
    .n_out = 1,
    .attr_bytes = sizeof(pool_attr),
    .infer = infer_global_unpool,
    .grad = grad_global_unpool,
    .cost = cost_each,
    .run = {[STI_CPU] = run_global_unpool},
    .print = print_global_unpool,
};

/* ---- builders ---- */

static stint_value pool(stint_graph *g, const sti_op *op, stint_value x,
                        const stint_pool_desc *desc)
{
    const pool_attr attr = {.size = desc->size,
                            .stride = desc->stride ? desc->stride : desc->size,
                            .pad = desc->pad};
    return sti_op_add1(g, op, &attr, x);
}

stint_value stint_max_pool(stint_graph *g, stint_value x, const stint_pool_desc *desc)
{
    return pool(g, &sti_op_max_pool, x, desc);
}

stint_value stint_avg_pool(stint_graph *g, stint_value x, const stint_pool_desc *desc)
{
    return pool(g, &sti_op_avg_pool, x, desc);
}

stint_value stint_global_avg_pool(stint_graph *g, stint_value x)
{
    return sti_op_add1(g, &sti_op_global_avg_pool, NULL, x);
}

void sti_op_pool_window(const sti_node *node, int64_t window[3])
{
    const pool_attr *attr = node->attr;
    window[0] = attr->size;
    window[1] = attr->stride;
    window[2] = attr->pad;
}
