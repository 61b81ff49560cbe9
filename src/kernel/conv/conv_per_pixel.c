/* The per-pixel algorithm: rows of the product are the same pixel of all images side by
 * side, so that a register tile meets a tap inside of the tensor or not at all, and
 * then leaves it out: on 4 x 4 pixels 3 x 3 taps keep 0.69 of the products, on 2 x 2
 * 0.44. For one tap these rows lie at a stride in the input and at another in the
 * result: each is copied once a tap, next to the product that reads it first, and sums
 * wait in the result itself. Weights are packed once, some channels of a tap at a time,
 * for all pixels.
 *
 * What is left out is a matter of the shape alone. It is products of finite weights
 * with zeros, so that at most the sign of a zero would tell; hence zeros are stored
 * without one. */
#include <string.h>

#include "kernel/conv/conv_priv.h"

enum {
    LEAST_IMAGES = 6,     /* fewer make low tiles */
    PASS_K = 512,         /* channels of a tap at a time */
    A_FLOATS = 128 << 10, /* of copied pixels at a time, */
    BLOCK_PIXELS = 64,    /* of so many pixels at most */
    PART_IMAGES = 128,    /* of a piece */
    QUAD_ROWS = 14,       /* of a tile that reads quads */
    PART_COLS = 2 * STI_PANEL,
    GROUP_COLS = 192,           /* of weights packed just before they are read, */
    KEEP_FLOATS = 512 << 10,    /* kept for all pixels of a pass */
    PARTIAL_FLOATS = 256 << 10, /* of a later chunk's sums */
    MOST_PIXELS = 8192          /* as those would take too much */
};

/* A direction, of backward data one phase. Pixel (q, r) of the result meets tap (i, j)
 * at pixel (y + q step + i turn, x + r step + j turn) of what is read. */
typedef struct pixel_job {
    const sti_gemm_kernels *kernels;
    int64_t images, rows, cols; /* of results */
    const float *in;
    int64_t h, w, c, y, x, step, turn;
    const float *weights; /* of tap (0, 0); the others so many floats on */
    int64_t taps_y, taps_x, tap_y, tap_x, ld;
    bool transposed;
    float *out; /* of pixel (0, 0), channel 0 of out_c */
    int64_t out_c, out_y, out_x, out_image;
    bool signless;
    const float *bias;
    bool relu;
    const sti_conv_per_pixel_plan *plan;
    char *workers;
} pixel_job;

/* Columns n0 .. of images m0 .. on their way through the taps. */
typedef struct pixel_piece {
    const pixel_job *job;
    int64_t m0, images, n0, cols;
    int64_t first_tap, end_tap; /* of the chunk of k */
    float *a, *b, *partial;
} pixel_piece;

/* Results of one pixel, or what waits to be added to them. */
typedef struct pixel_rows {
    float *c;
    int64_t ld;
} pixel_rows;

bool sti_conv_per_pixel_fits(const sti_conv_shape *s)
{
    return s->groups == 1 && s->n >= LEAST_IMAGES && s->n * s->h * s->w <= MOST_PIXELS;
}

static int64_t pixels_of(const pixel_job *j)
{
    return j->rows * j->cols;
}

/* The pixel of image 0 at which one of the result meets a tap; NULL if outside. */
static const float *pixel_input(const pixel_job *j, int64_t pixel, int64_t tap)
{
    const int64_t y = j->y + pixel / j->cols * j->step + tap / j->taps_x * j->turn;
    const int64_t x = j->x + pixel % j->cols * j->step + tap % j->taps_x * j->turn;
    return y >= 0 && y < j->h && x >= 0 && x < j->w ? j->in + (y * j->w + x) * j->c
                                                    : NULL;
}

static bool meets_any(const pixel_job *j, int64_t pixel, int64_t tap, int64_t end)
{
    while (tap < end && !pixel_input(j, pixel, tap))
        tap++;
    return tap < end;
}

static pixel_rows pixel_output(const pixel_piece *p, int64_t pixel)
{
    const pixel_job *j = p->job;
    return (pixel_rows){j->out + pixel / j->cols * j->out_y +
                            pixel % j->cols * j->out_x + p->m0 * j->out_image + p->n0,
                        j->out_image};
}

/* Where the chunk's sums are: those of the first in the result. */
static pixel_rows pixel_sums(const pixel_piece *p, int64_t pixel)
{
    if (p->first_tap == 0)
        return pixel_output(p, pixel);
    return (pixel_rows){p->partial + pixel * p->images * p->job->plan->block_cols,
                        p->job->plan->block_cols};
}

static int panel_at(const pixel_piece *p, int64_t n, int64_t *cols)
{
    const int nv = sti_gemm_many_panels(p->job->kernels, p->cols - n);
    *cols = sti_conv_min(p->cols - n, (int64_t)nv * STI_PANEL);
    return nv;
}

/* What one pass, some channels of a tap, multiplies at a time. */
typedef struct pixel_block {
    int64_t tap, k0, ks;
    int64_t count;
    const float *in[BLOCK_PIXELS];
    pixel_rows sums[BLOCK_PIXELS];
    bool load[BLOCK_PIXELS]; /* sums that earlier taps of the chunk began */
} pixel_block;

/* Those of the pixels from `pixel` on that meet the tap, as many as a block takes.
 * Returns where the next block begins. */
static int64_t block_fill(const pixel_piece *p, int64_t pixel, pixel_block *b)
{
    const pixel_job *j = p->job;
    const int64_t floats = p->images * sti_conv_round_up(b->ks, STI_GEMM_QUAD);
    const int64_t most = sti_conv_max(1, sti_conv_min(A_FLOATS / floats, BLOCK_PIXELS));
    for (b->count = 0; pixel < pixels_of(j) && b->count < most; pixel++) {
        const float *in = pixel_input(j, pixel, b->tap);
        if (!in)
            continue;
        b->in[b->count] = in + p->m0 * j->h * j->w * j->c + b->k0;
        b->sums[b->count] = pixel_sums(p, pixel);
        b->load[b->count++] = b->k0 > 0 || meets_any(j, pixel, p->first_tap, b->tap);
    }
    return pixel;
}

/* Columns from n on that are packed together: panels of one width. */
static int64_t group_cols(const pixel_piece *p, int64_t n)
{
    int64_t cols, next, all;
    const int nv = panel_at(p, n, &cols);
    for (all = cols; n + all < p->cols && all + cols <= GROUP_COLS; all += next)
        if (panel_at(p, n + all, &next) != nv)
            break;
    return all;
}

/* Weights of a pass from column n of the piece on, as they lie. */
static const float *weights_at(const pixel_piece *p, int64_t tap, int64_t k0, int64_t n)
{
    const pixel_job *j = p->job;
    const float *w =
        j->weights + tap / j->taps_x * j->tap_y + tap % j->taps_x * j->tap_x;
    n += p->n0;
    return j->transposed ? w + n * j->ld + k0 : w + k0 * j->ld + n;
}

/* What is read after the tiles under way, which fetch it in equal shares. */
typedef struct pixel_fetch {
    const float *at;
    int64_t ld, rows, cols, tiles;
} pixel_fetch;

/* The weights of a group, to be packed next. */
static pixel_fetch fetch_group(const pixel_piece *p, int64_t tap, int64_t k0, int64_t n)
{
    const pixel_job *j = p->job;
    const int64_t ks = sti_conv_min(j->plan->pass_k, j->c - k0),
                  cols = group_cols(p, n);
    return (pixel_fetch){.at = weights_at(p, tap, k0, n),
                         .ld = j->ld,
                         .rows = j->transposed ? cols : ks,
                         .cols = j->transposed ? ks : cols};
}

/* The group after the one from n to `packed`: of the next pass, where this is the
 * last. */
static pixel_fetch fetch_after(const pixel_piece *p, const pixel_block *b,
                               int64_t packed)
{
    const pixel_job *j = p->job;
    if (packed < p->cols)
        return fetch_group(p, b->tap, b->k0, packed);
    const bool same = b->k0 + b->ks < j->c;
    if (j->plan->keep || (!same && b->tap + 1 == j->taps_y * j->taps_x))
        return (pixel_fetch){.rows = 0};
    return fetch_group(p, b->tap + !same, same ? b->k0 + b->ks : 0, 0);
}

static void fetch_share(pixel_fetch *f, sti_gemm_tile *t)
{
    const int64_t share = f->rows > 0 ? sti_conv_ceil_div(f->rows, f->tiles) : 0;
    t->next = f->at;
    t->next_row = f->ld;
    t->next_cols = f->cols;
    t->next_rows = share;
    if (share > 0)
        t->lines = sti_conv_min(t->lines, sti_conv_ceil_div(f->rows, share));
    f->at += t->lines * share * f->ld;
    f->rows = sti_conv_max(0, f->rows - t->lines * share);
    f->tiles -= t->lines;
}

/* The rows that the next tile copies. */
static void fetch_copied(const pixel_piece *p, const pixel_block *b, int64_t i,
                         int64_t r, sti_gemm_tile *t)
{
    const pixel_job *j = p->job;
    const bool on = r + t->rows < p->images;
    t->next_row = j->h * j->w * j->c;
    t->next_cols = b->ks;
    t->next_rows = on || i + 1 < b->count ? t->rows : 0;
    if (t->next_rows > 0)
        t->next = on ? b->in[i] + (r + t->rows) * t->next_row : b->in[i + 1];
}

/* All pixels of a block times a panel of columns. The first panel's tiles copy what
 * they read. */
static void block_panel(const pixel_piece *p, const pixel_block *b, int64_t n, int nv,
                        int64_t cols, const float *panel, pixel_fetch *fetch, int most)
{
    static const int64_t zero_run[1] = {0};
    const pixel_job *j = p->job;
    const int64_t k = sti_conv_round_up(b->ks, STI_GEMM_QUAD);
    const int64_t image = j->h * j->w * j->c;
    sti_gemm_tile t = {.b = panel,
                       .b_step = (int64_t)nv * STI_PANEL,
                       .a_run = zero_run,
                       .runs = 1,
                       .run_k = b->ks,
                       .cols = cols,
                       .nv = nv};
    for (int64_t i = 0; i < b->count; i++) {
        float *a = p->a + i * p->images * k;
        const pixel_rows sums = b->sums[i];
        t.load = b->load[i];
        t.c_row = sums.ld;
        for (int64_t r = 0; r < p->images; r += t.lines * t.rows) {
            t.rows = sti_gemm_next_rows(p->images - r, most);
            t.lines = n == 0 ? 1 : sti_gemm_equal_tiles(p->images - r, most);
            if (n == 0)
                fetch_copied(p, b, i, r, &t);
            else
                fetch_share(fetch, &t);
            t.a = a + r * k;
            t.a_line = t.rows * k;
            t.c = sums.c + r * sums.ld + n;
            t.c_line = t.rows * sums.ld;
            t.c_next = r + t.lines * t.rows < p->images ? t.c + t.lines * t.c_line
                       : i + 1 < b->count               ? b->sums[i + 1].c + n
                                                        : NULL;
            if (n == 0)
                j->kernels->pack_quads(b->in[i] + r * image, image, b->ks, t.rows,
                                       a + r * k);
            j->kernels->quads(&t);
        }
    }
}

static void pack_group(const pixel_piece *p, const pixel_block *b, int64_t n,
                       int64_t cols, int64_t width, float *dst)
{
    const pixel_job *j = p->job;
    const float *w = weights_at(p, b->tap, b->k0, n);
    (j->transposed ? j->kernels->pack_transposed : j->kernels->pack)(w, j->ld, b->ks,
                                                                     cols, width, dst);
}

/* Channels [k0, k0 + ks) of a tap. */
static void run_pass(const pixel_piece *p, int64_t tap, int64_t k0, int64_t ks)
{
    const pixel_job *j = p->job;
    pixel_block b = {.tap = tap, .k0 = k0, .ks = ks};
    pixel_fetch fetch = {.rows = 0};
    int64_t packed = 0, from = 0, cols;
    const int high = j->kernels->max_rows[panel_at(p, 0, &cols)];
    const int most = high < QUAD_ROWS ? high : QUAD_ROWS;
    for (int64_t pixel = 0; pixel < pixels_of(j);) {
        const bool first = packed == 0;
        pixel = block_fill(p, pixel, &b);
        const int64_t tiles = b.count * sti_conv_ceil_div(p->images, most);
        for (int64_t n = 0; b.count > 0 && n < p->cols; n += cols) {
            const int nv = panel_at(p, n, &cols);
            if (n >= packed) {
                from = j->plan->keep ? 0 : n;
                packed = n + group_cols(p, n);
                pack_group(p, &b, n, packed - n, (int64_t)nv * STI_PANEL,
                           p->b + (n - from) * ks);
                fetch = fetch_after(p, &b, packed);
                fetch.tiles = sti_conv_ceil_div(packed - n, cols) * tiles;
                if (n == 0)
                    fetch.tiles -= tiles;
            }
            const float *panel = p->b + (n - from) * ks;
            if (!first)
                fetch = (pixel_fetch){.at = panel + cols * ks,
                                      .ld = cols,
                                      .rows = n + cols < packed ? ks : 0,
                                      .cols = cols,
                                      .tiles = tiles};
            block_panel(p, &b, n, nv, cols, panel, &fetch, most);
        }
        packed = j->plan->keep ? packed : 0;
    }
}

/* Results that the chunk adds to, its own or an earlier one's. */
static void join_chunk(const pixel_piece *p)
{
    const pixel_job *j = p->job;
    for (int64_t pixel = 0; pixel < pixels_of(j); pixel++) {
        const bool any = meets_any(j, pixel, p->first_tap, p->end_tap);
        const pixel_rows to = pixel_output(p, pixel), sums = pixel_sums(p, pixel);
        for (int64_t i = 0; i < p->images; i++) {
            float *y = to.c + i * to.ld;
            if (p->first_tap == 0 && !any)
                memset(y, 0, (size_t)p->cols * sizeof *y);
            for (int64_t n = 0; p->first_tap > 0 && any && n < p->cols; n++)
                y[n] += sums.c[i * sums.ld + n];
        }
    }
}

static void finish_row(const pixel_job *j, const float *bias, int64_t cols, float *y)
{
    for (int64_t n = 0; bias && n < cols; n++)
        y[n] += bias[n];
    for (int64_t n = 0; j->relu && n < cols; n++)
        y[n] = 0.0F > y[n] ? 0.0F : y[n];
    for (int64_t n = 0; j->signless && n < cols; n++)
        y[n] += 0.0F;
}

static void finish(const pixel_piece *p)
{
    const pixel_job *j = p->job;
    const float *bias = j->bias ? j->bias + p->n0 : NULL;
    for (int64_t pixel = 0; pixel < pixels_of(j); pixel++) {
        const pixel_rows rows = pixel_output(p, pixel);
        for (int64_t i = 0; i < p->images; i++)
            finish_row(j, bias, p->cols, rows.c + i * rows.ld);
    }
}

/* Chunks of 4096 k, which end with a tap. */
static void run_columns(pixel_piece *p)
{
    const pixel_job *j = p->job;
    const int64_t taps = j->taps_y * j->taps_x;
    const int64_t chunk = sti_conv_max(1, STI_GEMM_CHUNK / j->c);
    p->first_tap = 0;
    do {
        p->end_tap = sti_conv_min(p->first_tap + chunk, taps);
        for (int64_t tap = p->first_tap; tap < p->end_tap; tap++)
            for (int64_t k = 0; k < j->c; k += j->plan->pass_k)
                run_pass(p, tap, k, sti_conv_min(j->plan->pass_k, j->c - k));
        join_chunk(p);
        p->first_tap = p->end_tap;
    } while (p->first_tap < taps);
    finish(p);
}

static void piece_run(void *arg, int64_t piece, int worker)
{
    const pixel_job *j = arg;
    pixel_piece p = {.job = j};
    const int64_t n0 = piece % j->plan->col_parts * j->plan->part_cols;
    const int64_t n1 = sti_conv_min(j->out_c, n0 + j->plan->part_cols);
    p.m0 = piece / j->plan->col_parts * j->plan->part_images;
    p.images = sti_conv_min(j->plan->part_images, j->images - p.m0);
    p.a = (float *)(void *)(j->workers + (size_t)worker * j->plan->worker_bytes);
    p.b = p.a + j->plan->a_floats;
    p.partial = p.b + j->plan->b_floats;
    for (p.n0 = n0; p.n0 < n1; p.n0 += j->plan->block_cols) {
        p.cols = sti_conv_min(j->plan->block_cols, n1 - p.n0);
        run_columns(&p);
    }
}

/* Equal parts of at most `most`, in multiples of `unit`. */
static int64_t part_of(int64_t length, int64_t most, int64_t unit)
{
    const int64_t parts = sti_conv_ceil_div(length, sti_conv_max(most, unit));
    return sti_conv_round_up(sti_conv_ceil_div(length, sti_conv_max(parts, 1)), unit);
}

static void job_run(const sti_team *team, pixel_job *j)
{
    if (pixels_of(j) * j->images * j->out_c > 0)
        sti_team_run(team, j->plan->image_parts * j->plan->col_parts, piece_run, j);
}

static pixel_job forward_make(const sti_conv_shape *s)
{
    return (pixel_job){.kernels = sti_gemm_kernels_now(),
                       .images = s->n,
                       .rows = s->oh,
                       .cols = s->ow,
                       .h = s->h,
                       .w = s->w,
                       .c = s->ci,
                       .y = -s->pad,
                       .x = -s->pad,
                       .step = s->stride,
                       .turn = 1,
                       .taps_y = s->kh,
                       .taps_x = s->kw,
                       .tap_y = s->kw * s->ci * s->co,
                       .tap_x = s->ci * s->co,
                       .ld = s->co,
                       .out_c = s->co,
                       .out_y = s->ow * s->co,
                       .out_x = s->co,
                       .out_image = s->oh * s->ow * s->co,
                       .signless = s->pad > 0};
}

void sti_conv_per_pixel_forward(const sti_team *team, const sti_conv_plan *plan,
                                const float *x, const float *w,
                                const sti_epilogue *epilogue, float *y_out,
                                void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    pixel_job j = forward_make(s);
    j.plan = &plan->per_pixel;
    j.workers = sti_conv_part(scratch, plan->per_pixel.workers_at);
    j.in = x;
    j.weights = w;
    j.out = y_out;
    if (epilogue) {
        j.bias = epilogue->bias;
        j.relu = epilogue->relu;
    }
    job_run(team, &j);
    if (epilogue && epilogue->relu_mask)
        sti_block_mask(team, y_out, s->n * s->oh * s->ow * s->co, epilogue->relu_mask);
}

/* Backward data: one phase of the stride; taps go backward through dy. */
static pixel_job data_make(const sti_conv_shape *s, const sti_conv_phase *p)
{
    return (pixel_job){.kernels = sti_gemm_kernels_now(),
                       .images = s->n,
                       .rows = p->rows,
                       .cols = p->cols,
                       .h = s->oh,
                       .w = s->ow,
                       .c = s->co,
                       .y = p->out_y,
                       .x = p->out_x,
                       .step = 1,
                       .turn = -1,
                       .taps_y = p->taps_y,
                       .taps_x = p->taps_x,
                       .tap_y = s->stride * s->kw * s->ci * s->co,
                       .tap_x = s->stride * s->ci * s->co,
                       .ld = s->co,
                       .transposed = true,
                       .out_c = s->ci,
                       .out_y = s->stride * s->w * s->ci,
                       .out_x = s->stride * s->ci,
                       .out_image = s->h * s->w * s->ci,
                       .signless = p->taps_y * p->taps_x > 1};
}

void sti_conv_per_pixel_data(const sti_team *team, const sti_conv_plan *plan,
                             const float *dy, const float *w, float *dx_out,
                             void *scratch)
{
    const sti_conv_shape *s = &plan->shape;
    for (int64_t i = 0; i < s->stride * s->stride; i++) {
        const sti_conv_phase phase = sti_conv_phase_of(s, i);
        pixel_job j = data_make(s, &phase);
        j.plan = &plan->per_pixel;
        j.workers = sti_conv_part(scratch, plan->per_pixel.workers_at);
        j.in = dy;
        j.weights = w + (phase.first_y * s->kw + phase.first_x) * s->ci * s->co;
        j.out = dx_out + (phase.y0 * s->w + phase.x0) * s->ci;
        job_run(team, &j);
    }
}

/* What a plan is made for: the largest of a direction's phases. */
typedef struct pixel_extent {
    int64_t images, pixels, taps, c, out_c;
} pixel_extent;

static pixel_extent extent_of(const sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    if (plan->direction == STI_CONV_FORWARD)
        return (pixel_extent){s->n, s->oh * s->ow, s->kh * s->kw, s->ci, s->co};
    pixel_extent e = {.images = s->n, .c = s->co, .out_c = s->ci};
    for (int64_t i = 0; i < s->stride * s->stride; i++) {
        const sti_conv_phase p = sti_conv_phase_of(s, i);
        e.pixels = sti_conv_max(e.pixels, p.rows * p.cols);
        e.taps = sti_conv_max(e.taps, p.taps_y * p.taps_x);
    }
    return e;
}

/* How pieces are cut for so many threads. */
static sti_conv_per_pixel_plan pixel_cut(const pixel_extent *e, int threads)
{
    sti_conv_per_pixel_plan p = {.pass_k = part_of(e->c, PASS_K, STI_PANEL),
                                 .part_images = part_of(e->images, PART_IMAGES, 1)};
    const bool partial = e->taps * e->c > STI_GEMM_CHUNK; /* several chunks of k */
    p.image_parts = sti_conv_ceil_div(e->images, p.part_images);
    p.part_cols = part_of(e->out_c, sti_conv_ceil_div(e->out_c, threads), PART_COLS);
    p.col_parts = sti_conv_ceil_div(e->out_c, p.part_cols);
    int64_t cols = KEEP_FLOATS / p.pass_k;
    if (partial)
        cols = sti_conv_min(cols, PARTIAL_FLOATS / (e->pixels * p.part_images));
    p.block_cols = part_of(p.part_cols, cols, PART_COLS);
    const int64_t a_floats = e->pixels * p.part_images * p.pass_k;
    p.keep = a_floats > A_FLOATS || e->pixels > BLOCK_PIXELS;
    p.a_floats =
        sti_conv_max(sti_conv_min(a_floats, A_FLOATS), p.part_images * p.pass_k);
    p.b_floats = p.pass_k * ((p.keep ? p.block_cols : GROUP_COLS) + PART_COLS);
    p.partial_floats = partial ? e->pixels * p.part_images * p.block_cols : 0;
    p.worker_bytes =
        sti_conv_part_bytes(p.a_floats + p.b_floats + p.partial_floats, sizeof(float));
    return p;
}

/* Smaller teams, whose pieces are larger, may take more scratch a thread. */
void sti_conv_plan_per_pixel(sti_conv_plan *plan)
{
    const pixel_extent e = extent_of(plan);
    size_t most = 0;
    for (int t = 1; t <= plan->threads; t++) {
        const size_t bytes = (size_t)t * pixel_cut(&e, t).worker_bytes;
        most = bytes > most ? bytes : most;
    }
    plan->per_pixel = pixel_cut(&e, plan->threads);
    plan->per_pixel.workers_at = sti_conv_plan_add(plan, most);
}
