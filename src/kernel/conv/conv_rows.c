/* The rows algorithm, forward and backward data. Weights are packed once a call in
 * panels [k][16 nv]; register tiles go along the rows of the result, every tap being an
 * offset into rows of the input. Rows that need padding are copied to scratch just
 * before they are read, others are read in place; pixels 4 KiB apart are copied too,
 * with a gap, as they would share a set of the first-level cache. A piece is some rows
 * of an image, or some images where weights outgrow the second-level cache. Backward
 * data is the same product over dy, one phase of the stride at a time, with weights
 * transposed and no multiplication by stuffed zeros. */
#include <string.h>

#include "kernel/conv/conv_row_product.h"

enum {
    LARGE_PACK_FLOATS = 256 << 10, /* panels that leave no room for rows in cache */
    MANY_FLOATS = 192 << 10,       /* input of a piece with such panels */
    BLOCK_FLOATS = 8 << 10,        /* rows copied at a time, otherwise */
    FEW_PIECES = 4,
    PIXEL_GAP = 16
};

typedef sti_conv_row_source row_source;

static int64_t source_line(const row_source *s)
{
    return s->cols * s->ld;
}

static int64_t source_lines(const row_source *s, int64_t rows)
{
    return (rows - 1) * s->step + s->reach;
}

/* Whether all pixels of a tile, so far apart, fall on one set of the first-level cache.
 * 2 KiB apart they fall on two, which hold 7 each of the 14. */
static bool aliases_cache_sets(int64_t floats)
{
    return floats % 1024 == 0;
}

/* Padded floats a pixel of a copy, so that neighbours do not share a set at all. */
static int64_t padded_pixel(int64_t c)
{
    return c % 512 == 0 ? c + PIXEL_GAP : c;
}

/* Rows whose lines fit so many floats, at least one. */
static int64_t rows_that_fit(const row_source *s, int64_t floats)
{
    const int64_t lines = floats / sti_conv_max(source_line(s), 1);
    return sti_conv_max((lines - s->reach) / s->step + 1, 1);
}

/* Floats of the lines that a piece copies. */
static int64_t source_cut(row_source *s, int64_t panel_floats)
{
    const bool large = panel_floats > LARGE_PACK_FLOATS;
    const int64_t most = sti_conv_max(
        1, sti_conv_min(rows_that_fit(s, large ? MANY_FLOATS : STI_CONV_ROWS_FLOATS),
                        s->rows));
    s->piece_rows = sti_conv_max(
        1,
        sti_conv_ceil_div(s->rows, sti_conv_max(1, sti_conv_ceil_div(s->rows, most))));
    s->pieces_an_image = sti_conv_ceil_div(s->rows, s->piece_rows);
    const int64_t image =
        sti_conv_max(1, source_lines(s, s->piece_rows) * source_line(s));
    s->piece_images = 1;
    if (large && s->pieces_an_image == 1)
        s->piece_images =
            sti_conv_max(1, sti_conv_min(MANY_FLOATS / image, s->images / FEW_PIECES));
    s->block_rows = large
                        ? s->piece_rows
                        : sti_conv_min(sti_conv_max(rows_that_fit(s, BLOCK_FLOATS), 2),
                                       s->piece_rows);
    return s->in_place ? 0 : image * s->piece_images;
}

static int64_t source_pieces(const row_source *s)
{
    return sti_conv_ceil_div(s->images, s->piece_images) * s->pieces_an_image;
}

static void copy_line(const row_source *s, const float *row, float *dst)
{
    for (int64_t i = 0; i < s->cols; i++, dst += s->ld) {
        const int64_t x = s->x0 + i * s->every;
        if (x >= 0 && x < s->w)
            memcpy(dst, row + x * s->c, (size_t)s->c * sizeof *dst);
        else
            memset(dst, 0, (size_t)s->c * sizeof *dst);
    }
}

/* Lines [from, to) of a piece whose line 0 is line `first` of the image. */
static void copy_lines(const row_source *s, const float *image, int64_t first,
                       int64_t from, int64_t to, float *dst)
{
    const int64_t y0 = s->y0 + (first + from) * s->every, line = source_line(s);
    dst += from * line;
    if (s->ld == s->c && s->every == 1) {
        sti_conv_copy_window(image, s->h, s->w, s->c, y0, s->x0, to - from, s->cols,
                             dst);
        return;
    }
    for (int64_t i = 0; i < to - from; i++, dst += line) {
        const int64_t y = y0 + i * s->every;
        if (y >= 0 && y < s->h)
            copy_line(s, image + y * s->w * s->c, dst);
        else
            memset(dst, 0, (size_t)line * sizeof *dst);
    }
}

/* Results [row, row + rows) of some images, line 0 of `in` being the first they need.
 */
typedef struct row_block {
    int64_t image, images, row, rows;
    const float *in;
    sti_conv_prefetch *prefetch;
} row_block;

/* What the next block reads of the tensor: as much as this one, from where it ended;
 * in place, this one is still to be read itself. */
static void set_prefetch(const row_source *s, const float *tensor, int64_t line,
                         const row_block *b, sti_conv_prefetch *prefetch)
{
    const int64_t width = s->w * s->c, lines = s->images * s->h;
    const int64_t more =
        b->images > 1 ? b->images * s->h : b->rows * s->step * s->every;
    const int64_t end = sti_conv_max(0, sti_conv_min(line + more, lines));
    const char *from = (const char *)(tensor + sti_conv_min(line, lines) * width);
    prefetch->end = (const char *)(tensor + end * width);
    if (s->in_place)
        from = (const char *)(b->in + STI_CONV_TILE_ROWS * s->ld * s->step);
    if (prefetch->at < from || prefetch->at > prefetch->end)
        prefetch->at = from;
}

static void piece_blocks(const row_source *s, const float *tensor, int64_t piece,
                         float *lines, void (*run)(const void *job, const row_block *b),
                         const void *job)
{
    const int64_t image = piece / s->pieces_an_image * s->piece_images;
    const int64_t images = sti_conv_min(s->piece_images, s->images - image);
    const int64_t row = piece % s->pieces_an_image * s->piece_rows;
    const int64_t rows = sti_conv_min(s->piece_rows, s->rows - row);
    const int64_t size = s->h * s->w * s->c;
    const int64_t held = source_lines(s, s->piece_rows) * source_line(s);
    sti_conv_prefetch prefetch = {NULL, NULL};
    for (int64_t r = 0, copied = 0; r < rows; r += s->block_rows) {
        row_block b = {
            .image = image, .images = images, .row = row + r, .prefetch = &prefetch};
        b.rows = sti_conv_min(s->block_rows, rows - r);
        const int64_t to = source_lines(s, r + b.rows);
        for (int64_t i = 0; i < images && !s->in_place; i++)
            copy_lines(s, tensor + (image + i) * size, row * s->step, copied, to,
                       lines + i * held);
        copied = to;
        b.in = s->in_place ? tensor + image * size + s->y0 * s->w * s->c +
                                 b.row * s->step * source_line(s)
                           : lines + r * s->step * source_line(s);
        set_prefetch(s, tensor,
                     (image + images - 1) * s->h + s->y0 +
                         (row * s->step + to) * s->every,
                     &b, &prefetch);
        run(job, &b);
    }
}

/* Floats between the images of a block. */
static int64_t block_image(const row_source *s)
{
    return s->in_place ? s->h * s->w * s->c
                       : source_lines(s, s->piece_rows) * source_line(s);
}

/* Forward */

typedef struct forward_job {
    const sti_conv_shape *shape;
    const sti_conv_rows_plan *plan;
    const float *x, *w;
    float *y, *panels; /* those that are packed here */
    char *lines;
    const sti_epilogue *epilogue;
    bool mask_here; /* blocks own whole bytes of the mask */
    const sti_conv_behind *behind;
    sti_conv_row_product product;
} forward_job;

static row_source forward_source(const sti_conv_shape *s)
{
    row_source r = {.images = s->n,
                    .h = s->h,
                    .w = s->w,
                    .c = s->ci,
                    .y0 = -s->pad,
                    .x0 = -s->pad,
                    .ld = padded_pixel(s->ci),
                    .every = 1,
                    .rows = s->oh,
                    .step = s->stride,
                    .reach = s->kh};
    r.cols = (s->ow - 1) * s->stride + s->kw;
    r.in_place = s->pad == 0 && !aliases_cache_sets(s->stride * s->ci);
    if (r.in_place) {
        r.cols = s->w;
        r.ld = s->ci;
    } else if (s->kh == 1 && s->kw == 1 && s->pad == 0) { /* only what is read */
        r.every = s->stride;
        r.step = 1;
        r.cols = s->ow;
    }
    return r;
}

static void forward_runs(sti_conv_row_product *w, const sti_conv_shape *s,
                         const row_source *r)
{
    const int64_t line = source_line(r), whole_k = s->kw * s->ci;
    const bool narrow = sti_conv_forward_is_narrow(s);
    const bool rows_of_taps =
        s->groups == 1 && r->ld == s->ci &&
        (whole_k <= STI_CONV_RUN_K || (w->tile && s->kh * whole_k <= STI_GEMM_CHUNK));
    if (narrow)
        sti_conv_row_product_set_runs(w, s->kh, w->in_group, s->kw);
    else if (rows_of_taps) /* they are contiguous */
        sti_conv_row_product_set_runs(w, s->kh, whole_k, 1);
    else
        sti_conv_row_product_set_runs(w, s->kh * s->kw, w->in_group, 1);
    for (int64_t i = 0; i < w->runs; i++)
        w->run[i] =
            narrow || rows_of_taps ? i * line : i / s->kw * line + i % s->kw * r->ld;
}

static sti_conv_row_product forward_product(const sti_conv_shape *s,
                                            const row_source *r)
{
    const int64_t pixels = r->every > 1 ? 1 : s->stride;
    sti_conv_row_product w = {.groups = s->groups,
                              .in_group = s->ci / s->groups,
                              .out_group = s->co / s->groups,
                              .a_row = pixels * r->ld,
                              .a_line = pixels * source_line(r),
                              .a_image = block_image(r),
                              .c_row = s->co,
                              .c_line = s->ow * s->co,
                              .c_image = s->oh * s->ow * s->co};
    sti_conv_row_product_init(&w);
    forward_runs(&w, s, r);
    return w;
}

static void forward_pack(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t taps = s->kh * s->kw;
    const int64_t group = piece / taps, tap = piece % taps;
    const sti_conv_row_product *w = &j->product;
    (void)worker;
    sti_conv_row_product_pack(w, group, tap * w->in_group, w->in_group,
                              j->w + tap * w->in_group * s->co + group * w->out_group,
                              s->co, false, j->panels);
}

/* Rows of taps that lie inside the tensor where tap row 0 is at line y. */
static void taps_inside(int64_t y, int64_t h, int64_t taps, int64_t *first,
                        int64_t *end)
{
    *first = sti_conv_min(sti_conv_max(0, -y), taps);
    *end = sti_conv_max(*first, sti_conv_min(taps, h - y));
}

/* How many rows from `row` on meet the same rows of taps, which the product then takes.
 */
static int64_t forward_equal_rows(const sti_conv_shape *s, int64_t row, int64_t end,
                                  sti_conv_row_product *w)
{
    const int64_t a_tap_row = w->runs / s->kh;
    int64_t first, last, f, l, next = row + 1;
    taps_inside(row * s->stride - s->pad, s->h, s->kh, &first, &last);
    for (; next < end; next++) {
        taps_inside(next * s->stride - s->pad, s->h, s->kh, &f, &l);
        if (f != first || l != last)
            break;
    }
    w->first_run = first * a_tap_row;
    w->end_run = last * a_tap_row;
    return next - row;
}

static void forward_block(const void *job, const row_block *b)
{
    const forward_job *j = job;
    const sti_conv_shape *s = j->shape;
    sti_conv_row_product w = j->product;
    const int64_t at = (b->image * s->oh + b->row) * w.c_line;
    for (int64_t r = 0, rows; r < b->rows; r += rows) {
        rows = forward_equal_rows(s, b->row + r, b->row + b->rows, &w);
        w.lines_an_image = rows;
        sti_conv_row_product_run(&w, b->in + r * w.a_line, j->y + at + r * w.c_line,
                                 b->images * rows, s->ow, b->prefetch);
    }
    if (j->mask_here)
        w.kernels->mask(j->y + at, b->images * b->rows * w.c_line,
                        j->epilogue->relu_mask + at / 8);
    if (j->behind)
        j->behind->run(j->behind->user, (b->image * s->oh + b->row) * s->ow,
                       b->images * b->rows * s->ow);
}

static void forward_piece(void *arg, int64_t piece, int worker)
{
    const forward_job *j = arg;
    void *lines = j->lines + (size_t)worker * j->plan->worker_bytes;
    piece_blocks(&j->plan->source, j->x, piece, lines, forward_block, j);
}

void sti_conv_rows_forward(const sti_team *team, const sti_conv_plan *plan,
                           const float *x, const float *w, const sti_epilogue *epilogue,
                           const sti_conv_behind *behind, float *y_out, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_rows_plan *p = &plan->rows;
    const bool bit = epilogue && epilogue->relu_mask;
    forward_job j = {.shape = s,
                     .plan = p,
                     .x = x,
                     .w = w,
                     .y = y_out,
                     .panels = sti_conv_part(scratch, p->panels_at),
                     .lines = sti_conv_part(scratch, p->workers_at),
                     .epilogue = epilogue,
                     .behind = behind,
                     .product = forward_product(s, &p->source)};
    assert(j.product.panel_group * s->groups == p->panel_floats);
    j.mask_here = bit && j.product.c_line % 8 == 0;
    j.product.panels = j.panels;
    if (epilogue) {
        j.product.bias = epilogue->bias;
        j.product.relu = epilogue->relu;
    }
    if (plan->kept)
        j.product.panels = w;
    else
        sti_team_run(team, s->groups * s->kh * s->kw, forward_pack, &j);
    sti_team_run(team, source_pieces(&p->source), forward_piece, &j);
    if (bit && !j.mask_here)
        sti_block_mask(team, y_out, s->n * s->oh * j.product.c_line,
                       epilogue->relu_mask);
}

/* Backward data */

typedef struct data_job {
    const sti_conv_shape *shape;
    const sti_conv_rows_plan *plan;
    const float *dy, *w;
    float *dx, *panels;  /* those that are packed here */
    const float *packed; /* those that are read */
    char *lines;
    sti_conv_row_product product; /* what all phases share */
} data_job;

static row_source data_source(const sti_conv_shape *s)
{
    const sti_conv_window win = sti_conv_dy_window(s, 0, 0);
    row_source r = {.images = s->n,
                    .h = s->oh,
                    .w = s->ow,
                    .c = s->co,
                    .y0 = win.y0,
                    .x0 = win.x0,
                    .cols = win.cols,
                    .ld = padded_pixel(s->co),
                    .every = 1,
                    .rows = sti_conv_ceil_div(s->h, s->stride),
                    .step = 1,
                    .reach = win.rows + 1};
    r.in_place = s->kh == 1 && s->kw == 1 && s->pad == 0 && !aliases_cache_sets(s->co);
    if (r.in_place) {
        r.ld = s->co;
        r.cols = s->ow;
    }
    return r;
}

static sti_conv_row_product data_product(const sti_conv_shape *s, const row_source *r)
{
    sti_conv_row_product w = {.groups = s->groups,
                              .in_group = s->co / s->groups,
                              .out_group = s->ci / s->groups,
                              .a_row = r->ld,
                              .a_line = source_line(r),
                              .a_image = block_image(r),
                              .c_row = s->stride * s->ci,
                              .c_line = s->stride * s->w * s->ci,
                              .c_image = s->h * s->w * s->ci};
    sti_conv_row_product_init(&w);
    return w;
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

static void phase_product(const data_job *j, int64_t phase, const sti_conv_phase *p,
                          sti_conv_row_product *w)
{
    const sti_conv_shape *s = j->shape;
    *w = j->product;
    const int64_t taps = sti_conv_data_is_narrow(s) ? s->kw : 1;
    sti_conv_row_product_set_runs(w, p->taps_y * p->taps_x / taps, w->in_group, taps);
    w->panels = j->packed + taps_before(s, phase) * s->co *
                                sti_conv_round_up(w->out_group, STI_PANEL);
    for (int64_t i = 0; i < w->runs; i++)
        w->run[i] = taps > 1 ? -i * w->a_line
                             : -(i / p->taps_x) * w->a_line - i % p->taps_x * w->a_row;
}

/* The number of tap t of a phase among all taps. */
static int64_t tap_of_phase(const sti_conv_shape *s, const sti_conv_phase *p, int64_t t)
{
    return (p->first_y + t / p->taps_x * s->stride) * s->kw + p->first_x +
           t % p->taps_x * s->stride;
}

static void data_pack(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t phase = piece / s->groups, group = piece % s->groups;
    const sti_conv_phase p = sti_conv_phase_of(s, phase);
    sti_conv_row_product w;
    (void)worker;
    phase_product(j, phase, &p, &w);
    for (int64_t t = 0; t < w.runs * w.narrow_taps; t++) {
        const float *tap = j->w + tap_of_phase(s, &p, t) * w.out_group * s->co;
        sti_conv_row_product_pack(&w, group, t * w.in_group, w.in_group,
                                  tap + group * w.in_group, s->co, true,
                                  j->panels + (w.panels - j->packed));
    }
}

/* The same for rows of one phase; taps go upwards in dy. */
static int64_t data_equal_rows(const sti_conv_shape *s, const sti_conv_phase *p,
                               int64_t row, int64_t end, sti_conv_row_product *w)
{
    const int64_t taps = sti_conv_max(p->taps_y, 1), a_tap_row = w->runs / taps;
    int64_t first, last, f, l, next = row + 1;
    taps_inside(s->oh - 1 - (p->out_y + row), s->oh, taps, &first, &last);
    for (; next < end; next++) {
        taps_inside(s->oh - 1 - (p->out_y + next), s->oh, taps, &f, &l);
        if (f != first || l != last)
            break;
    }
    w->first_run = first * a_tap_row;
    w->end_run = last * a_tap_row;
    return next - row;
}

/* Pixels that no tap reaches, in the order of memory. */
static void zero_phase(const data_job *j, const row_block *b, const sti_conv_phase *p,
                       int64_t end)
{
    const sti_conv_shape *s = j->shape;
    for (int64_t i = b->image; i < b->image + b->images; i++)
        for (int64_t q = b->row; q < end; q++) {
            float *line =
                j->dx + ((i * s->h + p->y0 + s->stride * q) * s->w + p->x0) * s->ci;
            for (int64_t x = 0; x < p->cols; x++)
                memset(line + x * j->product.c_row, 0, (size_t)s->ci * sizeof *line);
        }
}

static void data_phase(const data_job *j, const row_block *b, int64_t phase)
{
    const sti_conv_shape *s = j->shape;
    const row_source *r = &j->plan->source;
    const sti_conv_phase p = sti_conv_phase_of(s, phase);
    const int64_t end = sti_conv_min(b->row + b->rows, p.rows);
    sti_conv_row_product w;
    if (p.taps_y * p.taps_x == 0) {
        zero_phase(j, b, &p, end);
        return;
    }
    phase_product(j, phase, &p, &w);
    const int64_t y = p.y0 + s->stride * b->row;
    const float *in =
        b->in + (p.out_y - r->y0) * w.a_line + (p.out_x - r->x0) * w.a_row;
    float *out = j->dx + ((b->image * s->h + y) * s->w + p.x0) * s->ci;
    if (w.narrow_taps > 1) { /* from right to left, as taps go */
        in += (p.cols - 1) * w.a_row;
        out += (p.cols - 1) * w.c_row;
        w.a_row = -w.a_row;
        w.c_row = -w.c_row;
    }
    for (int64_t q = b->row, rows; q < end && p.cols > 0; q += rows) {
        rows = data_equal_rows(s, &p, q, end, &w);
        w.lines_an_image = rows;
        sti_conv_row_product_run(&w, in + (q - b->row) * w.a_line,
                                 out + (q - b->row) * w.c_line, rows * b->images,
                                 p.cols, b->prefetch);
    }
}

static void data_block(const void *job, const row_block *b)
{
    const data_job *j = job;
    for (int64_t phase = 0; phase < j->shape->stride * j->shape->stride; phase++)
        data_phase(j, b, phase);
}

static void data_piece(void *arg, int64_t piece, int worker)
{
    const data_job *j = arg;
    void *lines = j->lines + (size_t)worker * j->plan->worker_bytes;
    piece_blocks(&j->plan->source, j->dy, piece, lines, data_block, j);
}

void sti_conv_rows_data(const sti_team *team, const sti_conv_plan *plan,
                        const float *dy, const float *w, float *dx_out, void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_rows_plan *p = &plan->rows;
    float *panels = sti_conv_part(scratch, p->panels_at);
    data_job j = {.shape = s,
                  .plan = p,
                  .dy = dy,
                  .w = w,
                  .dx = dx_out,
                  .panels = panels,
                  .packed = plan->kept ? w : panels,
                  .lines = sti_conv_part(scratch, p->workers_at),
                  .product = data_product(s, &p->source)};
    if (!plan->kept)
        sti_team_run(team, s->stride * s->stride * s->groups, data_pack, &j);
    sti_team_run(team, source_pieces(&p->source), data_piece, &j);
}

/* Panels that are kept */

void sti_conv_rows_keep(const sti_team *team, const sti_conv_plan *plan, const float *w,
                        float *kept_out)
{
    const sti_conv_shape *s = &plan->shape;
    const sti_conv_rows_plan *p = &plan->rows;
    if (plan->direction == STI_CONV_FORWARD) {
        forward_job j = {.shape = s,
                         .plan = p,
                         .w = w,
                         .panels = kept_out,
                         .product = forward_product(s, &p->source)};
        sti_team_run(team, s->groups * s->kh * s->kw, forward_pack, &j);
        return;
    }
    data_job j = {.shape = s,
                  .plan = p,
                  .w = w,
                  .panels = kept_out,
                  .packed = kept_out,
                  .product = data_product(s, &p->source)};
    sti_team_run(team, s->stride * s->stride * s->groups, data_pack, &j);
}

/* The plan */

/* Weights as the panels of a product hold them: all taps, of all phases. */
static int64_t panel_floats(const sti_conv_shape *s, bool forward)
{
    const int64_t in = forward ? s->ci : s->co, out = forward ? s->co : s->ci;
    return s->kh * s->kw * in * sti_conv_round_up(out / s->groups, STI_PANEL);
}

void sti_conv_plan_rows(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    sti_conv_rows_plan *p = &plan->rows;
    const bool forward = plan->direction == STI_CONV_FORWARD;
    p->source = forward ? forward_source(s) : data_source(s);
    p->panel_floats = panel_floats(s, forward);
    const int64_t line_floats = source_cut(&p->source, p->panel_floats);
    p->panels_at = sti_conv_plan_add(
        plan, plan->kept ? 0 : sti_conv_part_bytes(p->panel_floats, sizeof(float)));
    p->worker_bytes = sti_conv_part_bytes(line_floats, sizeof(float));
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
}
