/* Points drawn evenly from a box, from its faces, or from its first face along the last
 * coordinate (where time begins): a function of (seed, step, shard, set, point). */
#include <string.h>

#include "base/rng.h"
#include "op/draw_points.h"
#include "op/op_priv.h"

static stint_status infer_draw(const stint_graph *graph, const sti_node *node,
                               stint_shape *out)
{
    const sti_draw_points_attr *attr = node->attr;
    (void)graph;
    if (attr->count < 1 || attr->coordinates < 1 ||
        attr->coordinates > STI_DRAW_COORDINATES)
        return sti_fail(STINT_E_INPUT, "draw_points: %d points of %d coordinates",
                        (int)attr->count, (int)attr->coordinates);
    *out = STINT_SHAPE(attr->count, attr->coordinates);
    return sti_op_check_count(node, 0);
}

static void draw_point(const sti_draw_points_attr *a, const sti_step *step, int64_t i,
                       float *out)
{
    uint32_t word[8];
    const uint64_t key = (uint64_t)step->step << 20 | (uint64_t)step->shard;
    const uint64_t at = (uint64_t)a->set << 40 | (uint64_t)i << 1;
    sti_random4(step->seed, STI_STREAM_SUBSET, key, at, word);
    sti_random4(step->seed, STI_STREAM_SUBSET, key, at + 1, word + 4);
    for (int c = 0; c < a->coordinates; c++)
        out[c] = a->low[c] + (a->high[c] - a->low[c]) * sti_uniform(word[c]);
    if (a->where == STI_DRAW_BORDER) {
        const int faces = a->timed ? a->coordinates - 1 : a->coordinates;
        const uint32_t face = sti_below(word[4], 2 * (uint32_t)faces);
        out[face / 2] = face % 2 ? a->high[face / 2] : a->low[face / 2];
    } else if (a->where == STI_DRAW_START) {
        out[a->coordinates - 1] = a->low[a->coordinates - 1];
    }
}

static void run_draw(const sti_call *call)
{
    const sti_draw_points_attr *attr = call->node->attr;
    float *out = call->out[0];
    for (int64_t i = 0; i < attr->count; i++)
        draw_point(attr, call->step, i, out + i * attr->coordinates);
}

static void print_draw(const sti_node *node, sti_text *out)
{
    static const char *const where[] = {"inside", "border", "start"};
    const sti_draw_points_attr *attr = node->attr;
    sti_text_printf(out, "set %d %s", (int)attr->set, where[attr->where]);
}

const sti_op sti_op_draw_points = {
    .name = "draw_points",
    .n_out = 1,
    .attr_bytes = sizeof(sti_draw_points_attr),
    .flags = STI_OP_RANDOM | STI_OP_NO_GRAD,
    .infer = infer_draw,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_draw},
    .print = print_draw,
};

stint_value sti_op_add_draw_points(stint_graph *g, const sti_draw_points_attr *attr)
{
    return sti_graph_add(g, &sti_op_draw_points, attr, 0, NULL);
}
