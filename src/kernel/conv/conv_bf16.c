/* Forward and backward-data passes on bfloat16.
 *
 * Both are products along rows (conv_bf16_product.h): results of an image row are tiles
 * of pixels by channels, and the taps of one row of the window lie side by side in
 * zero-padded image rows, which are copied to scratch (or read in place where nothing
 * needs padding). Backward data is the same over dy for each phase of the stride, with
 * the taps in reverse. */
#include "kernel/conv/conv_bf16.h"

#include <string.h>

#include "kernel/conv/conv_bf16_product.h"

enum { LINE_PAIRS = 16 << 10 }; /* padded rows a piece: 64 KiB */

static bool all_set(const uint8_t *flag, int64_t n)
{
    while (n > 0 && flag[n - 1])
        n--;
    return n == 0;
}

/* Rows of results a piece, as equal as can be, so that about LINE_PAIRS of input are
 * copied: step * rows + extra lines. */
static int64_t rows_a_piece(int64_t rows, int64_t step, int64_t extra, int64_t line)
{
    const int64_t lines = LINE_PAIRS / sti_conv_max(line, 1);
    const int64_t most = sti_conv_min(sti_conv_max((lines - extra) / step, 1), rows);
    return most > 0 ? sti_conv_ceil_div(rows, sti_conv_ceil_div(rows, most)) : 1;
}

/* ---- forward ---- */

/* The parts of scratch, once rows and panels are known: `lines` rows of input. */
static void plan_scratch(sti_conv_plan *plan, int64_t lines, int64_t run_k)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_bf16_plan *p = &plan->bf16;
    const int64_t pairs = lines * p->line_cols * p->pairs;
    /* (Tiles read a line of pairs beyond the last.) */
    p->live_at =
        sti_conv_part_bytes(sti_conv_round_up(pairs, STI_BF16_PAIRS) + STI_BF16_PAIRS,
                            sizeof(sti_bf16_pair));
    p->worker_bytes = p->live_at + sti_conv_part_bytes(sti_bf16_blocks(run_k), 1);
    p->run_at = sti_conv_plan_add(plan, (size_t)s->kh * sizeof(int64_t));
    p->panels_at = sti_conv_plan_add(plan, (size_t)p->panel_pairs * sizeof(uint32_t));
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    p->finite_at = sti_conv_plan_add(plan, (size_t)(s->kh * s->kw));
}

typedef struct forward_job {
    const sti_conv_shape *shape;
    const sti_conv_bf16_plan *plan;
    const sti_bf16 *x;
    const float *w;
    sti_bf16 *y;
    uint32_t *panels;
    char *workers;
    uint8_t *mask;  /* of the epilogue, or NULL */
    bool mask_here; /* pieces own whole bytes of it */
    sti_conv_bf16_product product;
    uint8_t *finite; /* [taps] */
} forward_job;

static sti_conv_bf16_product forward_product(const sti_conv_shape *s,
                                             const sti_conv_bf16_plan *p)
{
    return (sti_conv_bf16_product){.runs = s->kh,
                                   .run_k = s->kw * p->pairs,
                                   .taps = s->kw,
                                   .step = s->stride,
                                   .channels = s->co,
                                   .a_row = s->stride * p->pairs,
                                   .a_line = s->stride * p->line_cols * p->pairs,
                                   .c_row = s->co,
                                   .c_line = s->ow * s->co};
}

void sti_conv_plan_bf16_forward(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_bf16_plan *p = &plan->bf16;
    p->pairs = sti_conv_ceil_div(s->ci, 2);
    p->unpadded = s->pad == 0 && s->kw * s->ci % (2 * STI_BF16_PAIRS) == 0;
    p->line_cols = p->unpadded ? s->w : (s->ow - 1) * s->stride + s->kw;
    p->rows = s->oh;
    p->piece_rows =
        rows_a_piece(s->oh, s->stride, s->kh - s->stride, p->line_cols * p->pairs);
    p->pieces_an_image = sti_conv_ceil_div(s->oh, p->piece_rows);
    const sti_conv_bf16_product w = forward_product(s, p);
    p->panel_pairs =
        sti_conv_bf16_panel_pairs(&w) * sti_conv_ceil_div(s->co, STI_BF16_COLS);
    plan_scratch(plan, (p->piece_rows - 1) * s->stride + s->kh, w.run_k);
}

static void forward_pack(void *arg, int64_t tap, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    (void)worker;
    if (tap == 0)
        sti_conv_bf16_pad_panels(&j->product, j->panels);
    j->finite[tap] =
        sti_conv_bf16_pack(&j->product, tap / s->kw, tap % s->kw * j->plan->pairs,
                           s->ci, j->w + tap * s->ci * s->co, s->co, j->panels);
}

/* Output rows of a piece. */
typedef struct forward_rows {
    int64_t image, row, rows;
} forward_rows;

static forward_rows forward_rows_of(const forward_job *j, int64_t piece)
{
    const int64_t row = piece % j->plan->pieces_an_image * j->plan->piece_rows;
    return (forward_rows){piece / j->plan->pieces_an_image, row,
                          sti_conv_min(j->plan->piece_rows, j->shape->oh - row)};
}

static const sti_bf16 *forward_image(const forward_job *j, int64_t image)
{
    const sti_conv_shape *s = j->shape;
    return j->x + image * s->h * s->w * s->ci;
}

static sti_conv_window forward_window(const forward_job *j, const forward_rows *r)
{
    const sti_conv_shape *s = j->shape;
    return (sti_conv_window){.y0 = r->row * s->stride - s->pad,
                             .x0 = -s->pad,
                             .rows = (r->rows - 1) * s->stride + s->kh,
                             .cols = j->plan->line_cols};
}

static sti_conv_bf16_prefetch forward_prefetch(const forward_job *j, int64_t piece)
{
    const sti_conv_shape *s = j->shape;
    sti_conv_bf16_prefetch soon = {{{NULL, NULL}, {NULL, NULL}}, 0};
    if (piece >= s->n * j->plan->pieces_an_image)
        return soon;
    const forward_rows r = forward_rows_of(j, piece);
    const sti_conv_window win = forward_window(j, &r);
    soon.range[0] = sti_conv_bf16_prefetch_rows(forward_image(j, r.image), win.y0,
                                                win.y0 + win.rows, s->h, s->w * s->ci);
    soon.range[1] =
        sti_conv_bf16_prefetch_rows(j->y + r.image * s->oh * j->product.c_line, r.row,
                                    r.row + r.rows, s->oh, j->product.c_line);
    sti_conv_bf16_prefetch_share(
        &soon, sti_conv_bf16_product_blocks(&j->product, r.rows, s->ow));
    return soon;
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const forward_rows r = forward_rows_of(j, piece);
    const int64_t at = (r.image * s->oh + r.row) * j->product.c_line;
    const sti_bf16 *x = forward_image(j, r.image);
    sti_conv_bf16_prefetch soon = forward_prefetch(j, piece + 1);
    const sti_conv_window win = forward_window(j, &r);
    sti_conv_bf16_input in = {.y = win.y0, .x = win.x0, .h = s->h, .w = s->w};
    if (j->product.in_place) {
        in.at =
            (const sti_bf16_pair *)(const void *)(x + r.row * s->stride * s->w * s->ci);
    } else {
        char *own = j->workers + (size_t)worker * j->plan->worker_bytes;
        sti_bf16_pair *lines = (sti_bf16_pair *)(void *)own;
        in.leave_out =
            sti_conv_bf16_copy_window(&j->product, x, s->h, s->w, s->ci, &win, lines) &&
            j->product.finite;
        in.at = lines;
        in.live = (uint8_t *)own + j->plan->live_at;
    }
    sti_conv_bf16_product_run(&j->product, &in, &soon, j->y + at, r.rows, s->ow);
    if (j->mask_here)
        j->product.loops->mask(r.rows * j->product.c_line, j->y + at, j->mask + at / 8);
}

/* Where runs of taps begin, `line` apart. */
static const int64_t *set_runs(int64_t *run, int64_t count, int64_t line)
{
    for (int64_t i = 0; i < count; i++)
        run[i] = i * line;
    return run;
}

void sti_conv_bf16_forward(const sti_team *team, const sti_conv_plan *plan,
                           const sti_bf16 *x, const float *w,
                           const sti_epilogue *epilogue, sti_bf16 *y_out, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_bf16_plan *p = &plan->bf16;
    sti_conv_plan_check(plan, STI_CONV_FORWARD, team);
    if (plan->algorithm == STI_CONV_EMPTY)
        return;
    forward_job j = {.shape = s,
                     .plan = p,
                     .x = x,
                     .w = w,
                     .y = y_out,
                     .panels = sti_conv_part(scratch, p->panels_at),
                     .workers = sti_conv_part(scratch, p->workers_at),
                     .product = forward_product(s, p),
                     .finite = sti_conv_part(scratch, p->finite_at)};
    const int64_t image = s->oh * j.product.c_line;
    sti_conv_bf16_product_init(&j.product, p->pairs);
    j.product.in_place = p->unpadded && !j.product.turned;
    j.product.run =
        set_runs(sti_conv_part(scratch, p->run_at), s->kh, p->line_cols * p->pairs);
    j.product.panels = j.panels;
    if (epilogue) {
        j.product.bias = epilogue->bias;
        j.product.relu = epilogue->relu;
        j.mask = epilogue->relu_mask;
    }
    j.mask_here = j.mask && p->piece_rows * j.product.c_line % 8 == 0 && image % 8 == 0;
    sti_team_run(team, s->kh * s->kw, forward_pack, &j);
    j.product.finite = all_set(j.finite, s->kh * s->kw);
    sti_team_run(team, s->n * p->pieces_an_image, forward_piece, &j);
    if (j.mask && !j.mask_here)
        j.product.loops->mask(s->n * image, y_out, j.mask);
}

/* ---- backward data ---- */

typedef struct data_job {
    const sti_conv_shape *shape;
    const sti_conv_bf16_plan *plan;
    const sti_bf16 *dy;
    const float *w;
    sti_bf16 *dx;
    uint32_t *panels;
    char *workers;
    sti_conv_bf16_product product; /* what all phases share */
    uint8_t *finite;               /* [taps] */
} data_job;

/* Pairs of the panels of one phase. */
static int64_t phase_pairs(const sti_conv_shape *s, const sti_conv_bf16_plan *plan,
                           const sti_conv_phase *p)
{
    return p->taps_y * sti_bf16_blocks(p->taps_x * plan->pairs) * STI_BF16_PAIRS *
           sti_conv_round_up(s->ci, STI_BF16_COLS);
}

void sti_conv_plan_bf16_data(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_bf16_plan *p = &plan->bf16;
    const sti_conv_window none = sti_conv_dy_window(s, 0, 0);
    p->pairs = sti_conv_ceil_div(s->co, 2);
    p->line_cols = none.cols;
    p->rows = sti_conv_ceil_div(s->h, s->stride);
    p->piece_rows = rows_a_piece(p->rows, 1, none.rows, p->line_cols * p->pairs);
    p->pieces_an_image = sti_conv_ceil_div(p->rows, p->piece_rows);
    for (int64_t i = 0; i < s->stride * s->stride; i++) {
        const sti_conv_phase phase = sti_conv_phase_of(s, i);
        p->panel_pairs += phase_pairs(s, p, &phase);
    }
    plan_scratch(plan, sti_conv_dy_window(s, 0, p->piece_rows).rows, s->kw * p->pairs);
}

static sti_conv_bf16_product data_product(const sti_conv_shape *s,
                                          const sti_conv_bf16_plan *p)
{
    return (sti_conv_bf16_product){.step = 1,
                                   .channels = s->ci,
                                   .a_row = p->pairs,
                                   .a_line = p->line_cols * p->pairs,
                                   .c_row = s->stride * s->ci,
                                   .c_line = s->stride * s->w * s->ci};
}

/* The product of one phase and its panels. */
static sti_conv_bf16_product phase_product(const data_job *j, int64_t phase,
                                           const sti_conv_phase *p)
{
    sti_conv_bf16_product w = j->product;
    int64_t before = 0;
    for (int64_t i = 0; i < phase; i++) {
        const sti_conv_phase q = sti_conv_phase_of(j->shape, i);
        before += phase_pairs(j->shape, j->plan, &q);
    }
    w.runs = p->taps_x > 0 ? p->taps_y : 0;
    w.run_k = p->taps_x * j->plan->pairs;
    w.taps = p->taps_x;
    w.panels = j->panels + before;
    return w;
}

static void data_pack(void *arg, int64_t tap, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t y = tap / s->kw, x = tap % s->kw;
    const int64_t phase = y % s->stride * s->stride + x % s->stride;
    const sti_conv_phase p = sti_conv_phase_of(s, phase);
    const sti_conv_bf16_product w = phase_product(j, phase, &p);
    const int64_t t = p.taps_y - 1 - y / s->stride, u = p.taps_x - 1 - x / s->stride;
    (void)worker;
    uint32_t *panels = j->panels + (w.panels - j->panels);
    if (y < s->stride && x < s->stride) /* once a phase */
        sti_conv_bf16_pad_panels(&w, panels);
    j->finite[tap] = sti_conv_bf16_pack_transposed(
        &w, t, u * j->plan->pairs, s->co, j->w + tap * s->ci * s->co, s->co, panels);
}

/* Rows [q0, q1) of a piece, of each phase. */
typedef struct data_rows {
    int64_t image, q0, q1;
} data_rows;

static data_rows data_rows_of(const data_job *j, int64_t piece)
{
    const int64_t q0 = piece % j->plan->pieces_an_image * j->plan->piece_rows;
    return (data_rows){piece / j->plan->pieces_an_image, q0,
                       sti_conv_min(q0 + j->plan->piece_rows, j->plan->rows)};
}

static const sti_bf16 *data_image(const data_job *j, int64_t image)
{
    const sti_conv_shape *s = j->shape;
    return j->dy + image * s->oh * s->ow * s->co;
}

static sti_conv_bf16_prefetch data_prefetch(const data_job *j, int64_t piece)
{
    const sti_conv_shape *s = j->shape;
    sti_conv_bf16_prefetch soon = {{{NULL, NULL}, {NULL, NULL}}, 0};
    int64_t blocks = 0;
    if (piece >= s->n * j->plan->pieces_an_image)
        return soon;
    const data_rows r = data_rows_of(j, piece);
    const sti_conv_window win = sti_conv_dy_window(s, r.q0, r.q1);
    const int64_t line = s->w * s->ci;
    soon.range[0] = sti_conv_bf16_prefetch_rows(
        data_image(j, r.image), win.y0, win.y0 + win.rows, s->oh, s->ow * s->co);
    soon.range[1] = sti_conv_bf16_prefetch_rows(
        j->dx + r.image * s->h * line, r.q0 * s->stride, r.q1 * s->stride, s->h, line);
    for (int64_t phase = 0; phase < s->stride * s->stride; phase++) {
        const sti_conv_phase p = sti_conv_phase_of(s, phase);
        const sti_conv_bf16_product w = phase_product(j, phase, &p);
        if (p.cols > 0)
            blocks += sti_conv_bf16_product_blocks(&w, r.q1 - r.q0, p.cols);
    }
    sti_conv_bf16_prefetch_share(&soon, blocks);
    return soon;
}

static void data_piece(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const data_rows r = data_rows_of(j, piece);
    const sti_conv_window win = sti_conv_dy_window(s, r.q0, r.q1);
    char *own = j->workers + (size_t)worker * j->plan->worker_bytes;
    sti_bf16_pair *lines = (sti_bf16_pair *)(void *)own;
    sti_conv_bf16_prefetch soon = data_prefetch(j, piece + 1);
    sti_conv_bf16_input in = {
        .h = s->oh, .w = s->ow, .live = (uint8_t *)own + j->plan->live_at};
    in.leave_out = sti_conv_bf16_copy_window(&j->product, data_image(j, r.image), s->oh,
                                             s->ow, s->co, &win, lines) &&
                   j->product.finite;
    for (int64_t phase = 0; phase < s->stride * s->stride; phase++) {
        const sti_conv_phase p = sti_conv_phase_of(s, phase);
        const int64_t rows = sti_conv_min(r.q1, p.rows) - r.q0;
        if (rows <= 0 || p.cols == 0)
            continue;
        const sti_conv_bf16_product w = phase_product(j, phase, &p);
        in.y = p.out_y - (p.taps_y - 1) + r.q0;
        in.x = p.out_x - (p.taps_x - 1);
        in.at = lines;
        if (w.runs)
            in.at += ((in.y - win.y0) * win.cols + in.x - win.x0) * j->plan->pairs;
        sti_conv_bf16_product_run(
            &w, &in, &soon,
            j->dx + ((r.image * s->h + p.y0 + s->stride * r.q0) * s->w + p.x0) * s->ci,
            rows, p.cols);
    }
}

void sti_conv_bf16_data(const sti_team *team, const sti_conv_plan *plan,
                        const sti_bf16 *dy, const float *w, sti_bf16 *dx_out,
                        void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_bf16_plan *p = &plan->bf16;
    sti_conv_plan_check(plan, STI_CONV_BACKWARD_DATA, team);
    if (plan->algorithm == STI_CONV_EMPTY) {
        memset(dx_out, 0, (size_t)(s->n * s->h * s->w * s->ci) * sizeof *dx_out);
        return;
    }
    data_job j = {.shape = s,
                  .plan = p,
                  .dy = dy,
                  .w = w,
                  .dx = dx_out,
                  .panels = sti_conv_part(scratch, p->panels_at),
                  .workers = sti_conv_part(scratch, p->workers_at),
                  .product = data_product(s, p),
                  .finite = sti_conv_part(scratch, p->finite_at)};
    sti_conv_bf16_product_init(&j.product, p->pairs);
    j.product.run =
        set_runs(sti_conv_part(scratch, p->run_at), s->kh, j.product.a_line);
    sti_team_run(team, s->kh * s->kw, data_pack, &j);
    j.product.finite = all_set(j.finite, s->kh * s->kw);
    sti_team_run(team, s->n * p->pieces_an_image, data_piece, &j);
}
