/* The calls: each runs the algorithm of its plan. */
#include "kernel/conv/conv.h"

#include <string.h>

#include "kernel/conv/conv_depthwise.h"
#include "kernel/conv/conv_squares.h"
#include "kernel/conv/conv_winograd.h"

void sti_conv_forward_f32(const sti_team *team, const sti_conv_plan *p, const float *x,
                          const float *w, const sti_epilogue *epilogue, float *y_out,
                          void *scratch)
{
    sti_conv_plan_check(p, STI_CONV_FORWARD, team);
    switch (p->algorithm) {
    case STI_CONV_EMPTY:
        return;
    case STI_CONV_WINOGRAD:
        sti_conv_winograd_forward(team, p, x, w, epilogue, NULL, y_out, scratch);
        return;
    case STI_CONV_PRODUCT:
        sti_conv_product_forward(team, p, x, w, epilogue, y_out, scratch);
        return;
    case STI_CONV_ROWS:
        sti_conv_rows_forward(team, p, x, w, epilogue, NULL, y_out, scratch);
        return;
    case STI_CONV_DEPTHWISE:
        sti_conv_depthwise_forward(team, p, x, w, epilogue, y_out);
        return;
    case STI_CONV_PER_PIXEL:
        sti_conv_per_pixel_forward(team, p, x, w, epilogue, y_out, scratch);
        return;
    case STI_CONV_GATHER:
        sti_conv_gather_forward(team, p, x, w, epilogue, y_out, scratch);
        return;
    case STI_CONV_BF16:
        assert(!"a plan of float32");
    }
}

bool sti_conv_has_pieces(const sti_conv_plan *p)
{
    return p->direction == STI_CONV_FORWARD &&
           (p->algorithm == STI_CONV_WINOGRAD || p->algorithm == STI_CONV_ROWS);
}

void sti_conv_forward_and_f32(const sti_team *team, const sti_conv_plan *p,
                              const float *x, const float *w,
                              const sti_epilogue *epilogue,
                              const sti_conv_behind *behind, float *y_out,
                              void *scratch)
{
    sti_conv_plan_check(p, STI_CONV_FORWARD, team);
    assert(sti_conv_has_pieces(p) && !epilogue->relu_mask);
    (p->algorithm == STI_CONV_WINOGRAD
         ? sti_conv_winograd_forward
         : sti_conv_rows_forward)(team, p, x, w, epilogue, behind, y_out, scratch);
}

void sti_conv_backward_data_f32(const sti_team *team, const sti_conv_plan *p,
                                const float *dy, const float *w, float *dx_out,
                                void *scratch)
{
    const sti_conv_shape *s = &p->shape;
    sti_conv_plan_check(p, STI_CONV_BACKWARD_DATA, team);
    switch (p->algorithm) {
    case STI_CONV_EMPTY:
        memset(dx_out, 0, (size_t)(s->n * s->h * s->w * s->ci) * sizeof *dx_out);
        return;
    case STI_CONV_WINOGRAD:
        sti_conv_winograd_data(team, p, dy, w, dx_out, scratch);
        return;
    case STI_CONV_PRODUCT:
        sti_conv_product_data(team, p, dy, w, dx_out, scratch);
        return;
    case STI_CONV_ROWS:
        sti_conv_rows_data(team, p, dy, w, dx_out, scratch);
        return;
    case STI_CONV_DEPTHWISE:
        sti_conv_depthwise_data(team, p, dy, w, dx_out);
        return;
    case STI_CONV_PER_PIXEL:
        sti_conv_per_pixel_data(team, p, dy, w, dx_out, scratch);
        return;
    case STI_CONV_GATHER:
        sti_conv_gather_data(team, p, dy, w, dx_out, scratch);
        return;
    case STI_CONV_BF16:
        assert(!"a plan of float32");
    }
}

static void clear_gradient(const sti_conv_shape *s, float *dw, float *squares)
{
    const int64_t weights = s->kh * s->kw * (s->ci / s->groups) * s->co;
    memset(dw, 0, (size_t)weights * sizeof *dw);
    if (squares)
        memset(squares, 0, (size_t)s->co * sizeof *squares);
}

void sti_conv_backward_weight_f32(const sti_team *team, const sti_conv_plan *p,
                                  const float *x, const float *dy, float *dw_out,
                                  float *squares_out, void *scratch)
{
    const sti_conv_shape *s = &p->shape;
    sti_conv_plan_check(p, STI_CONV_BACKWARD_WEIGHT, team);
    if (p->algorithm == STI_CONV_EMPTY) {
        clear_gradient(s, dw_out, squares_out);
        return;
    }
    float *sums = squares_out ? sti_conv_part(scratch, p->squares_at) : NULL;
    const bool hot =
        p->algorithm == STI_CONV_DEPTHWISE || p->algorithm == STI_CONV_ROWS;
    if (p->algorithm == STI_CONV_WINOGRAD)
        sti_conv_winograd_weight(team, p, x, dy, dw_out, scratch);
    else if (p->algorithm == STI_CONV_PRODUCT)
        sti_conv_product_weight(team, p, x, dy, dw_out, scratch);
    else if (p->algorithm == STI_CONV_DEPTHWISE)
        sti_conv_depthwise_weight(team, p, x, dy, dw_out, sums, scratch);
    else
        sti_conv_rows_weight(team, p, x, dy, dw_out, sums, scratch);
    if (sums && !hot)
        sti_conv_squares_chunks(team, s, dy, sums);
    if (sums)
        sti_conv_squares_join(team, s, sums, squares_out);
}
