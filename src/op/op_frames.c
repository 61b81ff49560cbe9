/* Stacks of byte frames, by index, as scaled f32: what a network that looks at pictures
 * is fed with. A frame that lies in many stacks is in memory once, as bytes.
 *
 * in: frames [f, height, width] u8, index [n, stack] i32; out: [n, height, width,
 * stack]. An index of -1 is a frame of zeros. Bytes have no gradient. */
#include <string.h>

#include "op/op_priv.h"

typedef struct frames_attr {
    float scale;
} frames_attr;

static stint_status infer_frames(const stint_graph *graph, const sti_node *node,
                                 stint_shape *out)
{
    stint_status st = sti_op_check_count(node, 2);
    if (st != STINT_OK)
        return st;
    const stint_shape *frames = sti_op_in_shape(graph, node, 0);
    const stint_shape *index = sti_op_in_shape(graph, node, 1);
    if (frames->dtype != STINT_U8 || frames->rank != 3)
        return sti_fail(STINT_E_INPUT,
                        "frames: the frames are %s, wanted [f, height, width] u8",
                        sti_shape_text(frames));
    if (index->dtype != STINT_I32 || index->rank != 2)
        return sti_fail(STINT_E_INPUT, "frames: index is %s, wanted [n, stack] i32",
                        sti_shape_text(index));
    out[0] = STINT_SHAPE(index->dim[0], frames->dim[1], frames->dim[2], index->dim[1]);
    return STINT_OK;
}

typedef struct frames_work {
    const uint8_t *frames;
    const int32_t *index;
    float *out;
    int64_t count, pixels, stack; /* frames there are; of a frame; in a stack */
    float scale;
} frames_work;

static void fill_row(const frames_work *w, int64_t row, int64_t k)
{
    const int32_t at = w->index[row * w->stack + k];
    float *out = w->out + row * w->pixels * w->stack + k;
    if (at < 0 || at >= w->count) {
        for (int64_t p = 0; p < w->pixels; p++)
            out[p * w->stack] = 0.0f;
        return;
    }
    const uint8_t *from = w->frames + at * w->pixels;
    for (int64_t p = 0; p < w->pixels; p++)
        out[p * w->stack] = (float)from[p] * w->scale;
}

/* The usual stack at once, so that every line of the result is written once. */
static void fill_four(const frames_work *w, int64_t row)
{
    static const uint8_t zero = 0;
    const uint8_t *from[4];
    int64_t step[4];
    float *out = w->out + row * w->pixels * 4;
    for (int k = 0; k < 4; k++) {
        const int32_t at = w->index[row * 4 + k];
        const bool there = at >= 0 && at < w->count;
        from[k] = there ? w->frames + at * w->pixels : &zero;
        step[k] = there;
    }
    for (int64_t p = 0; p < w->pixels; p++)
        for (int k = 0; k < 4; k++)
            out[4 * p + k] = (float)from[k][p * step[k]] * w->scale;
}

static void run_row(void *arg, int64_t row, int worker)
{
    const frames_work *w = arg;
    (void)worker;
    if (w->stack == 4) {
        fill_four(w, row);
        return;
    }
    for (int64_t k = 0; k < w->stack; k++)
        fill_row(w, row, k);
}

static void run_frames(const sti_call *call)
{
    const frames_attr *attr = call->node->attr;
    const stint_shape *frames = sti_op_in_shape(call->graph, call->node, 0);
    const stint_shape *index = sti_op_in_shape(call->graph, call->node, 1);
    frames_work work = {.frames = call->in[0],
                        .index = call->in[1],
                        .out = call->out[0],
                        .count = frames->dim[0],
                        .pixels = frames->dim[1] * frames->dim[2],
                        .stack = index->dim[1],
                        .scale = attr->scale};
    sti_team_run(call->team, index->dim[0], run_row, &work);
}

static void print_frames(const sti_node *node, sti_text *out)
{
    const frames_attr *attr = node->attr;
    sti_text_printf(out, "scale %.9g", (double)attr->scale);
}

const sti_op sti_op_frames = {
    .name = "frames",
    .n_out = 1,
    .attr_bytes = sizeof(frames_attr),
    .flags = STI_OP_NO_GRAD,
    .infer = infer_frames,
    .cost = sti_op_cost_move,
    .run = {[STI_CPU] = run_frames},
    .print = print_frames,
};

stint_value stint_frames(stint_graph *g, stint_value frames, stint_value index,
                         float scale)
{
    const frames_attr attr = {scale};
    return sti_op_add2(g, &sti_op_frames, &attr, frames, index);
}
