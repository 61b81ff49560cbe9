#include "op/op_suppress.h"

#include <inttypes.h>

#include "op/op_priv.h"

static sti_suppress_desc desc_of(const stint_graph *graph, const sti_node *node)
{
    const sti_suppress_attr *attr = node->attr;
    const stint_shape *scores = sti_op_in_shape(graph, node, 1);
    const int64_t boxes = scores->dim[2];
    return (sti_suppress_desc){.images = scores->dim[0],
                               .classes = scores->dim[1],
                               .boxes = boxes,
                               .most = attr->most < boxes ? attr->most : boxes,
                               .overlap = attr->overlap,
                               .score = attr->score,
                               .any_score = attr->any_score != 0,
                               .centre = attr->centre != 0};
}

static stint_status infer_suppress(const stint_graph *graph, const sti_node *node,
                                   stint_shape *out)
{
    const sti_suppress_attr *attr = node->attr;
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK || (st = sti_op_check_f32(graph, node, 0)) != STINT_OK ||
        (st = sti_op_check_f32(graph, node, 1)) != STINT_OK)
        return st;
    const stint_shape *b = sti_op_in_shape(graph, node, 0),
                      *s = sti_op_in_shape(graph, node, 1);
    if (b->rank != 3 || s->rank != 3 || b->dim[2] != 4 || b->dim[0] != s->dim[0] ||
        b->dim[1] != s->dim[2] || attr->most < 1)
        return sti_fail(STINT_E_INPUT,
                        "suppress: boxes %s with scores %s, %" PRId64 " of each class; "
                        "wanted [n, count, 4] with [n, classes, count], and 1 or more",
                        sti_shape_text(b), sti_shape_text(s), attr->most);
    const sti_suppress_desc d = desc_of(graph, node);
    const int64_t dim[2] = {d.images * d.classes * d.most, 3};
    if (dim[0] > INT32_MAX / 4)
        return sti_fail(STINT_E_INPUT, "suppress: %" PRId64 " rows are too many",
                        dim[0]);
    *out = stint_shape_make(STINT_I32, 2, dim);
    return STINT_OK;
}

static size_t scratch_suppress(const stint_graph *graph, const sti_node *node,
                               int threads)
{
    const sti_suppress_desc d = desc_of(graph, node);
    return sti_suppress_scratch_bytes(&d, threads);
}

static void run_suppress(const sti_call *call)
{
    const sti_suppress_desc d = desc_of(call->graph, call->node);
    sti_suppress_f32(call->team, &d, call->in[0], call->in[1], call->out[0],
                     call->scratch);
}

static void print_suppress(const sti_node *node, sti_text *out)
{
    const sti_suppress_attr *attr = node->attr;
    sti_text_printf(out, "%" PRId64 " of each, overlap %g%s", attr->most,
                    (double)attr->overlap, attr->centre ? ", by centre" : "");
    if (!attr->any_score)
        sti_text_printf(out, ", above %g", (double)attr->score);
}

const sti_op sti_op_suppress = {
    .name = "suppress",
    .n_out = 1,
    .attr_bytes = sizeof(sti_suppress_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_suppress,
    .cost = sti_op_cost_move,
    .scratch_bytes = scratch_suppress,
    .run = {[STI_CPU] = run_suppress},
    .print = print_suppress,
};

stint_value sti_op_suppress_boxes(stint_graph *g, stint_value boxes, stint_value scores,
                                  const sti_suppress_attr *attr)
{
    return sti_op_add2(g, &sti_op_suppress, attr, boxes, scores);
}
