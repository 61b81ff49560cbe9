/* Depthwise convolution by rows of results. Forward and backward data are one stencil:
 * a result is a chain over the taps that lie inside. The weight gradient goes along
 * rows of dy, a piece owning some channels and a subtree of the chunks of 4096 pixels.
 */
#include "kernel/conv/conv_depthwise.h"

#include <string.h>

#include "kernel/conv/conv_chunks.h"
#include "kernel/conv/conv_squares.h"
#include "kernel/lane/dispatch.h"

static const sti_depthwise_kernels *kernels_now(void)
{
    return STI_KERNELS_NOW(sti_depthwise_kernels);
}

/* Result p meets tap t at coordinate start + p step + t tap of the source, where that
 * is in [0, length). */
typedef struct axis {
    int64_t start, step, tap; /* tap: 1 or -1 */
    int64_t length, taps, results;
} axis;

static void taps_inside(const axis *a, int64_t p, int64_t *first, int64_t *end)
{
    const int64_t at = a->start + p * a->step;
    const int64_t low = a->tap > 0 ? -at : at - a->length + 1;
    const int64_t high = a->tap > 0 ? a->length - at : at + 1;
    *first = sti_conv_min(sti_conv_max(0, low), a->taps);
    *end = sti_conv_max(*first, sti_conv_min(a->taps, high));
}

static bool all_inside(const axis *a, int64_t p)
{
    int64_t first, end;
    taps_inside(a, p, &first, &end);
    return first == 0 && end == a->taps;
}

/* Results [from, to) of an axis meet all taps. */
static void whole_results(const axis *a, int64_t *from, int64_t *to)
{
    for (*from = 0; *from < a->results && !all_inside(a, *from);)
        ++*from;
    for (*to = a->results; *to > *from && !all_inside(a, *to - 1);)
        --*to;
}

/* Rows of results: every one in forward, those of a phase in backward data. */
typedef struct row_set {
    axis y, x;
    int64_t channels;
    int64_t weight, weight_y, weight_x; /* of tap (0, 0); steps of taps */
    int64_t c, c_line, c_row;           /* of the first result; steps of results */
    bool fetches;                       /* the source, for the row after */
} row_set;

typedef struct stencil {
    const sti_depthwise_kernels *kernels;
    const row_set *r;
    const float *in, *weights; /* an image; all */
    float *out;                /* an image */
    const float *bias;
    bool relu;
} stencil;

/* Results [p, p + pixels) of row q, which meet the columns [first, end) of taps. */
static void stencil_pixels(const stencil *w, int64_t q, int64_t p, int64_t pixels,
                           int64_t first, int64_t end,
                           const sti_depthwise_prefetch *prefetch)
{
    const row_set *r = w->r;
    int64_t a_run[STI_CONV_MAX_TAPS], b_run[STI_CONV_MAX_TAPS], top, bottom, runs = 0;
    taps_inside(&r->y, q, &top, &bottom);
    const int64_t y = r->y.start + q * r->y.step, x = r->x.start + p * r->x.step;
    for (int64_t i = top; i < bottom; i++)
        for (int64_t j = first; j < end; j++, runs++) {
            a_run[runs] =
                ((y + i * r->y.tap) * r->x.length + x + j * r->x.tap) * r->channels;
            b_run[runs] = r->weight + i * r->weight_y + j * r->weight_x;
        }
    w->kernels->line(&(sti_depthwise_line){
        .a = w->in,
        .a_row = r->x.step * r->channels,
        .a_run = a_run,
        .b = w->weights,
        .b_run = b_run,
        .runs = runs,
        .c = w->out + r->c + q * r->c_line + p * r->c_row,
        .c_row = r->c_row,
        .pixels = pixels,
        .channels = r->channels,
        .bias = w->bias,
        .relu = w->relu,
        .prefetch = *prefetch,
    });
}

static void stencil_edge(const stencil *w, int64_t q, int64_t p, int64_t end)
{
    for (; p < end; p++) {
        int64_t first, last;
        taps_inside(&w->r->x, p, &first, &last);
        stencil_pixels(w, q, p, 1, first, last, &(sti_depthwise_prefetch){NULL, 0});
    }
}

/* What the rows after q read of the source. */
static sti_depthwise_prefetch rows_after(const stencil *w, int64_t q)
{
    const row_set *r = w->r;
    const int64_t last = r->y.tap > 0 ? r->y.taps - 1 : 0; /* of the taps, below */
    const int64_t line = r->y.start + q * r->y.step + last + 1;
    return (sti_depthwise_prefetch){.at = w->in + line * r->x.length * r->channels,
                                    .each = r->fetches ? r->y.step * r->x.step : 0};
}

static void stencil_row(const stencil *w, int64_t q)
{
    const row_set *r = w->r;
    const sti_depthwise_prefetch prefetch = rows_after(w, q);
    int64_t from, to;
    whole_results(&r->x, &from, &to);
    stencil_edge(w, q, 0, from);
    if (to > from)
        stencil_pixels(w, q, from, to - from, 0, r->x.taps, &prefetch);
    stencil_edge(w, q, to, r->x.results);
}

/* Three taps, of which the first and the last result leave out one at most, on its own
 * side. */
static bool nearly_whole(const axis *a)
{
    int64_t first, end, low, high;
    if (a->taps != 3 || a->step > 2 || a->results == 0)
        return false;
    taps_inside(a, a->tap > 0 ? 0 : a->results - 1, &first, &end);
    taps_inside(a, a->tap > 0 ? a->results - 1 : 0, &low, &high);
    return first <= 1 && high >= 2;
}

/* Whether blocks take the rows. */
static bool in_blocks(const stencil *w)
{
    const axis *x = &w->r->x, *y = &w->r->y;
    return w->kernels->block && nearly_whole(x) && y->taps == 3 && y->step == x->step;
}

/* Results in the order of the taps: from the last one, where those go backward. */
static void stencil_block(const stencil *w, int64_t q, int64_t rows)
{
    const row_set *r = w->r;
    const int64_t tap = r->x.tap, line = r->x.length * r->channels;
    const int64_t q0 = tap > 0 ? q : q + rows - 1;
    const int64_t p0 = tap > 0 ? 0 : r->x.results - 1, p1 = r->x.results - 1 - p0;
    const int64_t y = r->y.start + q0 * r->y.step, x = r->x.start + p0 * r->x.step;
    axis reach = r->y; /* of both rows */
    int64_t left, right, end, low;
    sti_depthwise_block b = {.a = w->in + y * line + x * r->channels,
                             .a_x = tap * r->channels,
                             .a_y = tap * line,
                             .b = w->weights + r->weight,
                             .b_x = r->weight_x,
                             .b_y = r->weight_y,
                             .c = w->out + r->c + q0 * r->c_line + p0 * r->c_row,
                             .c_x = tap * r->c_row,
                             .c_y = tap * r->c_line,
                             .results = r->x.results,
                             .channels = r->channels,
                             .rows = (int)rows,
                             .step = (int)r->x.step,
                             .bias = w->bias,
                             .relu = w->relu,
                             .prefetch = rows_after(w, q + rows - 1).at};
    reach.taps += (rows - 1) * reach.step;
    taps_inside(&reach, q0, &b.first, &b.end);
    taps_inside(&r->x, p0, &left, &end);
    taps_inside(&r->x, p1, &low, &right);
    b.left = left > 0;
    b.right = right < r->x.taps;
    w->kernels->block(&b);
}

static void stencil_rows(const stencil *w, int64_t q, int64_t end)
{
    const bool blocks = in_blocks(w), two = blocks && w->r->x.step == 1;
    for (int64_t rows; q < end; q += rows) {
        rows = two ? sti_conv_min(end - q, 2) : 1;
        if (blocks)
            stencil_block(w, q, rows);
        else
            stencil_row(w, q);
    }
}

/* Images are cut into blocks of rows, a piece each. */
typedef sti_conv_depthwise_plan cut;

static cut cut_rows(int64_t rows, int64_t floats)
{
    const int64_t most = STI_CONV_ROWS_FLOATS / sti_conv_max(floats, 1);
    const int64_t block = sti_conv_max(1, sti_conv_min(most, rows));
    return (cut){block, sti_conv_ceil_div(rows, block), rows};
}

void sti_conv_plan_depthwise(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    const bool forward = plan->direction == STI_CONV_FORWARD;
    plan->depthwise = /* of backward data: rows of the phases */
        cut_rows(forward ? s->oh : sti_conv_ceil_div(s->h, s->stride),
                 s->stride * s->w * s->ci);
}

static int64_t piece_rows(const cut *c, int64_t piece, int64_t *image, int64_t *end)
{
    const int64_t first = piece % c->blocks * c->block_rows;
    *image = piece / c->blocks;
    *end = sti_conv_min(first + c->block_rows, c->rows);
    return first;
}

/* ---- forward ---- */

typedef struct forward_job {
    const sti_conv_shape *shape;
    const sti_depthwise_kernels *kernels;
    const sti_epilogue *epilogue; /* or NULL */
    const float *x, *w;
    float *y;
    row_set rows;
    const cut *cut;
} forward_job;

static axis forward_axis(const sti_conv_shape *s, int64_t length, int64_t taps,
                         int64_t results)
{
    return (axis){-s->pad, s->stride, 1, length, taps, results};
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    int64_t image, end, q = piece_rows(j->cut, piece, &image, &end);
    const stencil w = {.kernels = j->kernels,
                       .r = &j->rows,
                       .in = j->x + image * s->h * s->w * s->ci,
                       .weights = j->w,
                       .out = j->y + image * s->oh * s->ow * s->co,
                       .bias = j->epilogue ? j->epilogue->bias : NULL,
                       .relu = j->epilogue && j->epilogue->relu};
    (void)worker;
    stencil_rows(&w, q, end);
}

void sti_conv_depthwise_forward(const sti_team *team, const sti_conv_plan *plan,
                                const float *x, const float *w,
                                const sti_epilogue *epilogue, float *y_out)
{
    const sti_conv_shape *s = &plan->shape;
    forward_job j = {.shape = s,
                     .kernels = kernels_now(),
                     .epilogue = epilogue,
                     .x = x,
                     .w = w,
                     .y = y_out,
                     .rows = {.y = forward_axis(s, s->h, s->kh, s->oh),
                              .x = forward_axis(s, s->w, s->kw, s->ow),
                              .channels = s->co,
                              .weight_y = s->kw * s->co,
                              .weight_x = s->co,
                              .c_line = s->ow * s->co,
                              .c_row = s->co,
                              .fetches = true},
                     .cut = &plan->depthwise};
    sti_team_run(team, s->n * j.cut->blocks, forward_piece, &j);
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, y_out, s->n * s->oh * s->ow * s->co, epilogue->relu_mask);
}

/* ---- backward data ---- */

typedef struct data_job {
    const sti_conv_shape *shape;
    const sti_depthwise_kernels *kernels;
    const float *dy, *w;
    float *dx;
    const cut *cut;
} data_job;

static row_set phase_rows(const sti_conv_shape *s, int64_t phase)
{
    const sti_conv_phase p = sti_conv_phase_of(s, phase);
    const int64_t taps = s->kw * s->ci;
    return (row_set){.y = {p.out_y, 1, -1, s->oh, p.taps_y, p.rows},
                     .x = {p.out_x, 1, -1, s->ow, p.taps_x, p.cols},
                     .channels = s->ci,
                     .weight = p.first_y * taps + p.first_x * s->ci,
                     .weight_y = s->stride * taps,
                     .weight_x = s->stride * s->ci,
                     .c = (p.y0 * s->w + p.x0) * s->ci,
                     .c_line = s->stride * s->w * s->ci,
                     .c_row = s->stride * s->ci,
                     .fetches = phase == 0};
}

static void data_piece(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    int64_t image, end, first = piece_rows(j->cut, piece, &image, &end);
    (void)worker;
    const int64_t step = s->stride > 1 ? 1 : end - first; /* phases share lines */
    for (int64_t q = first; q < end; q += step)
        for (int64_t phase = 0; phase < s->stride * s->stride; phase++) {
            const row_set r = phase_rows(s, phase);
            const stencil w = {.kernels = j->kernels,
                               .r = &r,
                               .in = j->dy + image * s->oh * s->ow * s->co,
                               .weights = j->w,
                               .out = j->dx + image * s->h * s->w * s->ci};
            stencil_rows(&w, q, sti_conv_min(q + step, r.y.results));
        }
}

void sti_conv_depthwise_data(const sti_team *team, const sti_conv_plan *plan,
                             const float *dy, const float *w, float *dx_out)
{
    data_job j = {.shape = &plan->shape,
                  .kernels = kernels_now(),
                  .dy = dy,
                  .w = w,
                  .dx = dx_out,
                  .cut = &plan->depthwise};
    sti_team_run(team, plan->shape.n * j.cut->blocks, data_piece, &j);
}

/* ---- the weight gradient ---- */

enum {
    PIECES = 8,  /* wanted, for teams */
    SLICE = 192, /* channels at least: shorter stretches cost more than teams gain */
    STEP = 48    /* of channels a slice: three vectors */
};

typedef sti_conv_depthwise_weight_plan weight_plan;

typedef struct weight_job {
    const sti_conv_shape *shape;
    const weight_plan *plan;
    const sti_depthwise_kernels *kernels;
    const float *x, *dy;
    float *dw, *results, *squares;
    char *workers;
    axis y, col;
    int64_t whole, whole_end; /* columns of dy that meet all taps */
} weight_job;

void sti_conv_plan_depthwise_weight(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    weight_plan *p = &plan->depthwise_weight;
    const int64_t pixels = s->n * s->oh * s->ow;
    p->tree = sti_conv_chunks_cut(sti_conv_ceil_div(pixels, STI_GEMM_CHUNK),
                                  STI_CONV_MAX_TREES);
    const int64_t slices = sti_conv_ceil_div(PIECES, p->tree.trees);
    p->slice =
        sti_conv_round_up(sti_conv_max(sti_conv_ceil_div(s->co, slices), SLICE), STEP);
    p->slices = sti_conv_ceil_div(s->co, p->slice);
    p->grad_floats = (size_t)(s->kh * s->kw * s->co);
    p->level_floats = (size_t)(s->kh * s->kw * sti_conv_min(p->slice, s->co));
    p->worker_bytes =
        sti_conv_part_bytes((int64_t)(p->tree.levels * p->level_floats), sizeof(float));
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    p->results_at = sti_conv_plan_add(plan, (size_t)(p->tree.trees - 1) *
                                                p->grad_floats * sizeof(float));
}

/* Part of a row of dy against a row of taps. */
typedef struct stretch {
    const weight_job *j;
    int64_t row, tap;        /* of all images; row of taps */
    int64_t first, channels; /* of the slice */
    float *sums;             /* [kh, kw, channels] */
} stretch;

/* Columns [from, to) of dy, which meet the columns [tap, end) of taps, but for the
 * first of the first and the last of the last. */
static void add_columns(const stretch *r, int64_t from, int64_t to, int64_t tap,
                        int64_t end, int left, int right)
{
    const weight_job *j = r->j;
    const sti_conv_shape *s = j->shape;
    const int64_t y = r->row % s->oh * s->stride - s->pad + r->tap;
    const int64_t line = r->row / s->oh * s->h + y;
    const int64_t column = from * s->stride - s->pad + tap;
    const sti_depthwise_grad g = {.a = j->x + (line * s->w + column) * s->ci + r->first,
                                  .a_step = s->stride * s->ci,
                                  .a_tap = s->ci,
                                  .dy = j->dy + (r->row * s->ow + from) * s->co +
                                        r->first,
                                  .pixels = to - from,
                                  .taps = end - tap,
                                  .channels = r->channels,
                                  .left = left,
                                  .right = right,
                                  .c = r->sums + (r->tap * s->kw + tap) * r->channels,
                                  .c_tap = r->channels};
    if (to > from && end > tap)
        j->kernels->grad(&g);
}

static void add_edge(const stretch *r, int64_t from, int64_t to)
{
    for (int64_t p = from; p < to; p++) {
        int64_t first, end;
        taps_inside(&r->j->col, p, &first, &end);
        add_columns(r, p, p + 1, first, end, 0, 0);
    }
}

/* One column at an edge that lacks one column of taps goes with the others. */
static bool lacks_one(const axis *a, int64_t p, int64_t first, int64_t end)
{
    int64_t f, e;
    if (p < 0 || p >= a->results)
        return false;
    taps_inside(a, p, &f, &e);
    return f == first && e == end;
}

static void add_stretch(const stretch *r, int64_t from, int64_t to)
{
    const weight_job *j = r->j;
    const axis *a = &j->col;
    const int64_t low = sti_conv_min(sti_conv_max(from, j->whole), to);
    const int64_t high = sti_conv_max(sti_conv_min(to, j->whole_end), low);
    const int left = low > from && lacks_one(a, low - 1, 1, a->taps);
    const int right = high < to && lacks_one(a, high, 0, a->taps - 1);
    const bool some = high > low;
    add_edge(r, from, some ? low - left : low);
    if (some)
        add_columns(r, low - left, high + right, 0, a->taps, left, right);
    add_edge(r, some ? high + right : high, to);
}

enum { NINE_PIXELS = 112 }; /* that share the loads and stores of their sums */

/* Rows of dy from pixel `pixel` on, with all taps: the rest of one, or some whole ones
 * that meet all rows of taps. Returns how many pixels that were. */
static int64_t add_rows(const weight_job *j, int64_t pixel, int64_t end, int64_t first,
                        int64_t channels, float *sums)
{
    const sti_conv_shape *s = j->shape;
    const int64_t row = pixel / s->ow, column = pixel % s->ow, y = row % s->oh;
    const int64_t pixels = sti_conv_min(s->ow - column, end - pixel);
    const int64_t line = row / s->oh * s->h + y * s->stride - s->pad;
    int64_t low, high, left, right, none, rows = 1;
    taps_inside(&j->y, y, &low, &high);
    taps_inside(&j->col, column, &left, &none);
    taps_inside(&j->col, column + pixels - 1, &none, &right);
    if (pixels == s->ow && all_inside(&j->y, y))
        while ((rows + 1) * pixels <= NINE_PIXELS && y + rows < s->oh &&
               all_inside(&j->y, y + rows) && pixel + (rows + 1) * s->ow <= end)
            rows++;
    const sti_depthwise_nine g = {
        .a = j->x + (line * s->w + column * s->stride - s->pad) * s->ci + first,
        .dy = j->dy + pixel * s->co + first,
        .a_x = s->ci,
        .a_y = s->w * s->ci,
        .dy_y = s->ow * s->co,
        .rows = rows,
        .pixels = pixels,
        .channels = channels,
        .step = s->stride,
        .top = low > 0,
        .bottom = high<3, .left = left> 0,
        .right = right < 3,
        .c = sums};
    j->kernels->nine(&g);
    return rows * pixels;
}

static void chunk_sums(const weight_job *j, int64_t chunk, int64_t first,
                       int64_t channels, float *sums)
{
    const sti_conv_shape *s = j->shape;
    const int64_t total = s->n * s->oh * s->ow;
    const int64_t end = sti_conv_min(total, (chunk + 1) * STI_GEMM_CHUNK);
    memset(sums, 0, (size_t)(s->kh * s->kw * channels) * sizeof *sums);
    if (j->kernels->nine && nearly_whole(&j->y) && nearly_whole(&j->col)) {
        for (int64_t pixel = chunk * STI_GEMM_CHUNK; pixel < end;)
            pixel += add_rows(j, pixel, end, first, channels, sums);
        return;
    }
    for (int64_t pixel = chunk * STI_GEMM_CHUNK, count; pixel < end; pixel += count) {
        const int64_t row = pixel / s->ow, column = pixel % s->ow;
        stretch r = {
            .j = j, .row = row, .first = first, .channels = channels, .sums = sums};
        int64_t last;
        count = sti_conv_min(s->ow - column, end - pixel);
        taps_inside(&j->y, row % s->oh, &r.tap, &last);
        for (; r.tap < last; r.tap++)
            add_stretch(&r, column, column + count);
    }
}

/* What a piece owns. */
typedef struct weight_slice {
    const weight_job *j;
    int64_t first, channels;
} weight_slice;

static void slice_chunk(void *arg, int64_t chunk, float *sums)
{
    const weight_slice *w = arg;
    const weight_job *j = w->j;
    chunk_sums(j, chunk, w->first, w->channels, sums);
    if (j->squares && w->first == 0)
        sti_conv_squares_chunk(j->shape, j->dy, chunk, j->squares);
}

static void weight_piece(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const weight_plan *p = j->plan;
    const int64_t tree = piece / p->slices, at = piece % p->slices * p->slice;
    const int64_t channels = sti_conv_min(p->slice, s->co - at), taps = s->kh * s->kw;
    float *stack = (float *)(void *)(j->workers + (size_t)worker * p->worker_bytes);
    float *to = tree == 0 ? j->dw : j->results + (size_t)(tree - 1) * p->grad_floats;
    sti_conv_chunks_sum(&p->tree, tree, (size_t)(taps * channels), stack, slice_chunk,
                        &(weight_slice){j, at, channels});
    for (int64_t tap = 0; tap < taps; tap++)
        memcpy(to + tap * s->co + at, stack + tap * channels,
               (size_t)channels * sizeof *to);
}

void sti_conv_depthwise_weight(const sti_team *team, const sti_conv_plan *plan,
                               const float *x, const float *dy, float *dw_out,
                               float *squares, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const weight_plan *p = &plan->depthwise_weight;
    weight_job j = {.shape = s,
                    .plan = p,
                    .kernels = kernels_now(),
                    .x = x,
                    .dy = dy,
                    .dw = dw_out,
                    .results = sti_conv_part(scratch, p->results_at),
                    .squares = squares,
                    .workers = sti_conv_part(scratch, p->workers_at),
                    .y = forward_axis(s, s->h, s->kh, s->oh),
                    .col = forward_axis(s, s->w, s->kw, s->ow)};
    whole_results(&j.col, &j.whole, &j.whole_end);
    sti_team_run(team, p->tree.trees * p->slices, weight_piece, &j);
    sti_conv_chunks_join_all(team, &p->tree, dw_out, j.results, p->grad_floats);
}
