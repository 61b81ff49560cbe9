#include "kernel/conv/conv_kept.h"

#include <string.h>

#include "kernel/conv/conv_winograd.h"

/* Panels serve at most so many results each in a call where keeping them is felt. (A
 * filter of minimal filtering takes four times as long to transform as to pack.) */
enum { FEW_RESULTS = 4096, TURN_ROWS = 16 };

static bool is_felt(const sti_conv_shape *s)
{
    return s->n * s->oh * s->ow <= FEW_RESULTS;
}

int64_t sti_conv_kept_floats(const sti_conv_shape *shape, sti_conv_direction direction)
{
    const sti_conv_plan plan = sti_conv_plan_f32(shape, direction, 1);
    switch (plan.algorithm) {
    case STI_CONV_WINOGRAD:
        return sti_conv_winograd_kept_floats(&plan);
    case STI_CONV_ROWS:
        return is_felt(shape) ? plan.rows.panel_floats : 0;
    case STI_CONV_PRODUCT:
        return direction == STI_CONV_BACKWARD_DATA && is_felt(shape)
                   ? shape->ci * shape->co
                   : 0;
    case STI_CONV_EMPTY:
    case STI_CONV_DEPTHWISE:
    case STI_CONV_PER_PIXEL:
    case STI_CONV_GATHER:
    case STI_CONV_BF16:
        return 0;
    }
    return 0;
}

typedef struct turning {
    const float *w;
    float *out;
    int64_t rows, cols; /* of w */
} turning;

static void turn_rows(void *arg, int64_t piece, int worker)
{
    const turning *t = arg;
    const int64_t first = piece * TURN_ROWS;
    const int64_t end = sti_conv_min(t->rows, first + TURN_ROWS);
    (void)worker;
    for (int64_t j = 0; j < t->cols; j++)
        for (int64_t i = first; i < end; i++)
            t->out[j * t->rows + i] = t->w[i * t->cols + j];
}

void sti_conv_keep(const sti_team *team, const sti_conv_plan *plan, const float *w,
                   float *kept_out, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    assert(!plan->kept);
    /* (Packing leaves gaps.) */
    memset(kept_out, 0,
           (size_t)sti_conv_kept_floats(s, plan->direction) * sizeof *kept_out);
    if (plan->algorithm == STI_CONV_WINOGRAD) {
        sti_conv_winograd_keep(team, plan, w, kept_out, scratch);
    } else if (plan->algorithm == STI_CONV_ROWS) {
        sti_conv_rows_keep(team, plan, w, kept_out);
    } else {
        turning t = {w, kept_out, s->ci, s->co};
        sti_team_run(team, sti_conv_ceil_div(t.rows, TURN_ROWS), turn_rows, &t);
    }
}
