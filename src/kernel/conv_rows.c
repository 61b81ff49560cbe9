/* The rows way, forward and backward data. Weights are packed once a call in panels
 * [k][16 nv]; each piece (an image, or some of its rows) copies the rows that it reads
 * to zero-padded scratch and runs register tiles along the rows of the result, every
 * tap being an offset into that scratch. Backward data is the same walk over dy, one
 * phase of the stride at a time, with weights transposed and no multiplication by
 * stuffed zeros. */
#include <string.h>

#include "kernel/conv_depthwise.h"
#include "kernel/conv_priv.h"

/* A product along rows: out pixel r of a row = sum over runs i of in[a + run[i] + r *
 * a_row
 * + k] * panel[i * run_k + k]. */
typedef struct line_walk {
    const sti_gemm_kernels *kernels;
    int64_t groups, in_group, out_group; /* channels a group */
    int64_t a_row, c_row;                /* floats between pixels */
    int64_t a_line, c_line;              /* floats between rows */
    int64_t runs, run_k, runs_a_block;
    int64_t narrow_taps; /* 3 with the narrow order of conv.h, else 1 */
    int64_t run[STI_CONV_MAX_TAPS];
    const float *panels; /* a group takes panel_group floats */
    int64_t panel_group;
    /* Depthwise: no panels, but the weights themselves; run i meets row weight[i]. */
    const sti_depthwise_kernels *depthwise;
    const float *weights;
    int64_t weight[STI_CONV_MAX_TAPS];
    const float *bias; /* [groups * out_group] or NULL */
    bool relu;
} line_walk;

/* Runs [i0, i0 + count) of columns [j, j + cols) of a group for all rows: one column of
 * tiles after the other, each going down the rows. */
static void walk_block(const line_walk *w, int64_t group, int64_t j, int64_t cols,
                       int nv, int64_t i0, int64_t count, const float *in, float *out,
                       int64_t rows, int64_t pixels)
{
    const int64_t k = w->runs * w->run_k * w->narrow_taps;
    const bool finish = i0 + count >= w->runs;
    const float *panel = w->panels + group * w->panel_group + k * j;
    const float *a = in + group * w->in_group;
    float *c = out + group * w->out_group + j;
    const int most =
        w->narrow_taps > 1 ? w->kernels->max_rows_taps : w->kernels->max_rows[nv];
    sti_gemm_tile t = {
        .b = panel + i0 * w->run_k * w->narrow_taps * nv * STI_PANEL,
        .a_row = w->a_row,
        .a_run = w->run + i0,
        .runs = count,
        .run_k = w->run_k,
        .c_row = w->c_row,
        .lines = rows,
        .a_line = w->a_line,
        .c_line = w->c_line,
        .cols = cols,
        .nv = nv,
        .load = i0 > 0,
        .relu = finish && w->relu,
        .bias = finish && w->bias ? w->bias + group * w->out_group + j : NULL,
    };
    for (int64_t r = 0; r < pixels; r += t.rows) {
        t.rows = sti_gemm_next_rows(pixels - r, most);
        t.a = a + r * w->a_row;
        t.c = c + r * w->c_row;
        if (w->narrow_taps > 1)
            w->kernels->taps(&t);
        else
            w->kernels->nn(&t);
    }
}

static void walk_depthwise(const line_walk *w, const float *in, float *out,
                           int64_t rows, int64_t pixels)
{
    sti_depthwise_line line = {
        .a = in,
        .a_row = w->a_row,
        .a_run = w->run,
        .b = w->weights,
        .b_run = w->weight,
        .runs = w->runs,
        .c = out,
        .c_row = w->c_row,
        .pixels = pixels,
        .channels = w->groups,
        .bias = w->bias,
        .relu = w->relu,
    };
    for (int64_t r = 0; r < rows; r++) {
        w->depthwise->line(&line);
        line.a += w->a_line;
        line.c += w->c_line;
    }
}

static void walk_rows(const line_walk *w, const float *in, float *out, int64_t rows,
                      int64_t pixels)
{
    if (w->depthwise) {
        walk_depthwise(w, in, out, rows, pixels);
        return;
    }
    for (int64_t group = 0; group < w->groups; group++)
        for (int64_t j = 0, cols; j < w->out_group; j += cols) {
            const int nv =
                sti_gemm_panels(w->kernels, STI_BLOCK_ROWS, w->out_group - j);
            cols = sti_conv_min(w->out_group - j, nv * STI_PANEL);
            int64_t i = 0;
            do {
                const int64_t count = sti_conv_min(w->runs_a_block, w->runs - i);
                walk_block(w, group, j, cols, nv, i, count, in, out, rows, pixels);
                i += w->runs_a_block;
            } while (i < w->runs);
        }
}

/* Narrow order: channel c of tap (i, j) is row (i * count + c) * 3 + j of the only
 * panel. */
static void pack_narrow_tap(const line_walk *w, int64_t group, int64_t first_k,
                            int64_t count, const float *src, int64_t ld,
                            bool transposed, float *panels)
{
    const int64_t tap = first_k / count, i = tap / w->narrow_taps,
                  j = tap % w->narrow_taps;
    float *dst =
        panels + group * w->panel_group + (i * count * w->narrow_taps + j) * STI_PANEL;
    for (int64_t c = 0; c < count; c++, dst += w->narrow_taps * STI_PANEL) {
        if (transposed)
            w->kernels->pack_transposed(src + c, ld, 1, w->out_group, STI_PANEL, dst);
        else
            w->kernels->pack(src + c * ld, ld, 1, w->out_group, STI_PANEL, dst);
    }
}

/* Panels of one tap: k = first_k .. first_k + count of every panel of a group. */
static void pack_tap(const line_walk *w, int64_t group, int64_t first_k, int64_t count,
                     const float *src, int64_t ld, bool transposed, float *panels)
{
    const int64_t k = w->runs * w->run_k;
    if (w->narrow_taps > 1) {
        pack_narrow_tap(w, group, first_k, count, src, ld, transposed, panels);
        return;
    }
    for (int64_t j = 0, cols; j < w->out_group; j += cols) {
        const int nv = sti_gemm_panels(w->kernels, STI_BLOCK_ROWS, w->out_group - j);
        cols = sti_conv_min(w->out_group - j, nv * STI_PANEL);
        float *dst = panels + group * w->panel_group + k * j + first_k * nv * STI_PANEL;
        if (transposed)
            w->kernels->pack_transposed(src + j * ld, ld, count, cols, nv * STI_PANEL,
                                        dst);
        else
            w->kernels->pack(src + j, ld, count, cols, nv * STI_PANEL, dst);
    }
}

static void walk_set_runs(line_walk *w, int64_t runs, int64_t run_k,
                          int64_t narrow_taps)
{
    w->narrow_taps = narrow_taps;
    w->runs = runs;
    w->run_k = run_k;
    w->runs_a_block =
        sti_conv_max(1, STI_CONV_RUN_K / sti_conv_max(run_k * narrow_taps, 1));
    w->panel_group =
        runs * run_k * narrow_taps * sti_conv_round_up(w->out_group, STI_PANEL);
}

/* Forward */

typedef struct forward_job {
    const sti_conv_shape *shape;
    const float *x, *w;
    float *y, *panels, *lines;
    const sti_epilogue *epilogue;
    bool mask_here; /* pieces own whole bytes of the mask */
    line_walk walk;
    int64_t piece_rows, pieces_an_image, line_cols;
    size_t panel_floats, line_floats;
} forward_job;

static forward_job forward_make(const sti_conv_shape *s)
{
    forward_job j = {.shape = s};
    line_walk *w = &j.walk;
    j.line_cols = (s->ow - 1) * s->stride + s->kw;
    const int64_t line = j.line_cols * s->ci;
    w->groups = s->groups;
    w->in_group = s->ci / s->groups;
    w->out_group = s->co / s->groups;
    w->a_row = s->stride * s->ci;
    w->a_line = s->stride * line;
    w->c_row = s->co;
    w->c_line = s->ow * s->co;
    const int64_t whole_k = s->kw * s->ci;
    if (sti_conv_forward_is_narrow(s)) {
        walk_set_runs(w, s->kh, w->in_group, s->kw);
        for (int64_t i = 0; i < s->kh; i++)
            w->run[i] = i * line;
    } else if (s->groups == 1 && whole_k <= STI_CONV_RUN_K) {
        walk_set_runs(w, s->kh, whole_k, 1); /* a row of taps is contiguous */
        for (int64_t i = 0; i < s->kh; i++)
            w->run[i] = i * line;
    } else {
        walk_set_runs(w, s->kh * s->kw, w->in_group, 1);
        for (int64_t i = 0; i < w->runs; i++)
            w->run[i] = i / s->kw * line + i % s->kw * s->ci;
    }
    for (int64_t i = 0; i < w->runs; i++)
        w->weight[i] = i * s->co;
    j.piece_rows = sti_conv_rows_a_piece(s->oh, s->stride, s->kh - s->stride, line);
    j.pieces_an_image = sti_conv_ceil_div(s->oh, j.piece_rows);
    j.panel_floats =
        sti_conv_is_depthwise(s) ? 0 : (size_t)(w->panel_group * s->groups);
    j.line_floats = (size_t)sti_conv_round_up(
        ((j.piece_rows - 1) * s->stride + s->kh) * line, STI_PANEL);
    return j;
}

size_t sti_conv_rows_forward_bytes(const sti_conv_shape *s, int threads)
{
    const forward_job j = forward_make(s);
    return 128 + (j.panel_floats + (size_t)threads * j.line_floats) * sizeof(float);
}

static void forward_pack(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t taps = s->kh * s->kw;
    const int64_t group = piece / taps, tap = piece % taps;
    const line_walk *w = &j->walk;
    (void)worker;
    pack_tap(w, group, tap * w->in_group, w->in_group,
             j->w + tap * w->in_group * s->co + group * w->out_group, s->co, false,
             j->panels);
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t image = piece / j->pieces_an_image;
    const int64_t row = piece % j->pieces_an_image * j->piece_rows;
    const int64_t rows = sti_conv_min(j->piece_rows, s->oh - row);
    float *lines = j->lines + (size_t)worker * j->line_floats;
    const int64_t at = (image * s->oh + row) * j->walk.c_line;
    sti_conv_copy_window(j->x + image * s->h * s->w * s->ci, s->h, s->w, s->ci,
                         row * s->stride - s->pad, -s->pad,
                         (rows - 1) * s->stride + s->kh, j->line_cols, lines);
    walk_rows(&j->walk, lines, j->y + at, rows, s->ow);
    if (j->mask_here)
        j->walk.kernels->mask(j->y + at, rows * j->walk.c_line,
                              j->epilogue->relu_mask + at / 8);
}

void sti_conv_rows_forward(const sti_team *team, const sti_conv_shape *s,
                           const float *x, const float *w, const sti_epilogue *epilogue,
                           float *y_out, void *scratch)
{
    forward_job j = forward_make(s);
    const bool bit = epilogue && epilogue->relu_mask;
    j.walk.kernels = sti_gemm_kernels_now();
    j.x = x;
    j.w = w;
    j.y = y_out;
    j.epilogue = epilogue;
    j.mask_here =
        bit && j.piece_rows * j.walk.c_line % 8 == 0 && s->oh * j.walk.c_line % 8 == 0;
    j.panels = sti_block_align(scratch);
    j.lines = sti_block_align(j.panels + j.panel_floats);
    j.walk.panels = j.panels;
    if (epilogue) {
        j.walk.bias = epilogue->bias;
        j.walk.relu = epilogue->relu;
    }
    if (sti_conv_is_depthwise(s)) {
        j.walk.depthwise = sti_depthwise_kernels_now();
        j.walk.weights = w;
    } else {
        sti_team_run(team, s->groups * s->kh * s->kw, forward_pack, &j);
    }
    sti_team_run(team, s->n * j.pieces_an_image, forward_piece, &j);
    if (bit && !j.mask_here)
        sti_block_mask(team, y_out, s->n * s->oh * j.walk.c_line, epilogue->relu_mask);
}

/* Backward data */

typedef struct data_job {
    const sti_conv_shape *shape;
    const float *dy, *w;
    float *dx, *panels, *lines;
    line_walk walk; /* what all phases share */
    int64_t piece_rows, pieces_an_image, phase_rows;
    size_t panel_floats, line_floats;
} data_job;

static data_job data_make(const sti_conv_shape *s)
{
    data_job j = {.shape = s};
    line_walk *w = &j.walk;
    w->groups = s->groups;
    w->in_group = s->co / s->groups;
    w->out_group = s->ci / s->groups;
    w->a_row = s->co;
    w->c_row = s->stride * s->ci;
    w->c_line = s->stride * s->w * s->ci;
    j.phase_rows = sti_conv_ceil_div(s->h, s->stride);
    j.panel_floats = sti_conv_is_depthwise(s)
                         ? 0
                         : (size_t)(s->kh * s->kw * s->co *
                                    sti_conv_round_up(w->out_group, STI_PANEL));
    const int64_t extra = sti_conv_dy_window(s, 0, 0).rows;
    const int64_t line = sti_conv_dy_window(s, 0, 0).cols * s->co;
    w->a_line = line;
    j.piece_rows = sti_conv_rows_a_piece(j.phase_rows, 1, extra, line);
    j.pieces_an_image = sti_conv_ceil_div(j.phase_rows, j.piece_rows);
    const int64_t lines = sti_conv_dy_window(s, 0, j.piece_rows).rows;
    j.line_floats = (size_t)sti_conv_round_up(lines * line, STI_PANEL);
    return j;
}

size_t sti_conv_rows_data_bytes(const sti_conv_shape *s, int threads)
{
    const data_job j = data_make(s);
    return 128 + (j.panel_floats + (size_t)threads * j.line_floats) * sizeof(float);
}

/* Taps of the phases before this one. */
static int64_t taps_before(const sti_conv_shape *s, int64_t phase)
{
    int64_t taps = 0;
    for (int64_t i = 0; i < phase; i++) {
        const sti_conv_phase p = sti_conv_phase_of(s, i);
        taps += p.taps_y * p.taps_x;
    }
    return taps;
}

static void phase_walk(const data_job *j, int64_t phase, const sti_conv_phase *p,
                       line_walk *w)
{
    const sti_conv_shape *s = j->shape;
    *w = j->walk;
    const int64_t taps = sti_conv_data_is_narrow(s) ? s->kw : 1;
    walk_set_runs(w, p->taps_y * p->taps_x / taps, w->in_group, taps);
    w->panels = j->panels + taps_before(s, phase) * s->co *
                                sti_conv_round_up(w->out_group, STI_PANEL);
    for (int64_t i = 0; i < w->runs; i++)
        w->run[i] = taps > 1 ? -i * w->a_line
                             : -(i / p->taps_x) * w->a_line - i % p->taps_x * s->co;
    for (int64_t i = 0; i < w->runs * taps; i++)
        w->weight[i] = ((p->first_y + i / p->taps_x * s->stride) * s->kw + p->first_x +
                        i % p->taps_x * s->stride) *
                       s->co;
}

static void data_pack(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t phase = piece / s->groups, group = piece % s->groups;
    const sti_conv_phase p = sti_conv_phase_of(s, phase);
    line_walk w;
    (void)worker;
    phase_walk(j, phase, &p, &w);
    for (int64_t t = 0; t < w.runs * w.narrow_taps; t++) {
        const float *tap = j->w + w.weight[t] * w.out_group;
        pack_tap(&w, group, t * w.in_group, w.in_group, tap + group * w.in_group, s->co,
                 true, j->panels + (w.panels - j->panels));
    }
}

static void data_piece(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t image = piece / j->pieces_an_image;
    const int64_t q0 = piece % j->pieces_an_image * j->piece_rows;
    const int64_t q1 = sti_conv_min(q0 + j->piece_rows, j->phase_rows);
    const sti_conv_window win = sti_conv_dy_window(s, q0, q1);
    float *lines = j->lines + (size_t)worker * j->line_floats;
    sti_conv_copy_window(j->dy + image * s->oh * s->ow * s->co, s->oh, s->ow, s->co,
                         win.y0, win.x0, win.rows, win.cols, lines);
    for (int64_t phase = 0; phase < s->stride * s->stride; phase++) {
        const sti_conv_phase p = sti_conv_phase_of(s, phase);
        const int64_t rows = sti_conv_min(q1, p.rows) - q0;
        line_walk w;
        phase_walk(j, phase, &p, &w);
        if (rows <= 0 || p.cols == 0)
            continue;
        const int64_t y = p.y0 + s->stride * q0;
        const float *in =
            lines + ((p.out_y + q0 - win.y0) * win.cols + p.out_x - win.x0) * s->co;
        float *out = j->dx + ((image * s->h + y) * s->w + p.x0) * s->ci;
        if (w.narrow_taps > 1) { /* from right to left, as taps go */
            in += (p.cols - 1) * w.a_row;
            out += (p.cols - 1) * w.c_row;
            w.a_row = -w.a_row;
            w.c_row = -w.c_row;
        }
        walk_rows(&w, in, out, rows, p.cols);
    }
}

void sti_conv_rows_data(const sti_team *team, const sti_conv_shape *s, const float *dy,
                        const float *w, float *dx_out, void *scratch)
{
    data_job j = data_make(s);
    j.walk.kernels = sti_gemm_kernels_now();
    j.dy = dy;
    j.w = w;
    j.dx = dx_out;
    j.panels = sti_block_align(scratch);
    j.lines = sti_block_align(j.panels + j.panel_floats);
    if (sti_conv_is_depthwise(s)) {
        j.walk.depthwise = sti_depthwise_kernels_now();
        j.walk.weights = w;
    } else {
        sti_team_run(team, s->stride * s->stride * s->groups, data_pack, &j);
    }
    sti_team_run(team, s->n * j.pieces_an_image, data_piece, &j);
}
