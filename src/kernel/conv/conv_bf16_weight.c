/* Gradient of the weights on bfloat16.
 *
 * A product over pixels: for each tap, dw^T [co][ci] += dy^T x. The rows of x that a
 * group of output rows meets are laid side by side, zero-padded, so that output pixels
 * are one run of k and a tap is an address offset (with a stride, one such raster for
 * each row of the stride); every pixel is a pair with the one a stride on. 16 channels
 * of all pixels lie together: the lines that a tile reads would else fall on few sets
 * of a cache. dy is transposed to the same run, zero where the raster is padding. The
 * conv_bf16.h header says what that means for the order of sums.
 *
 * Images of less than 16 channels have no room between pixels: a tile of 16 columns has
 * several taps of a row then.
 *
 * Chunks of groups are the leaves of a tree. At most SLOTS_MAX subtrees of 2^e chunks
 * are pieces of work; a piece keeps a stack of partial sums, one a level. */
#include <string.h>

#include "kernel/conv/conv_bf16_priv.h"

enum {
    RASTER_PAIRS = 24 << 10, /* of a group, 96 KiB: part of the numerics */
    RASTER_CHANNELS = 64,    /* most of a pixel that count there: likewise */
    CHUNK_PIXELS = 4096,     /* likewise */
    SLOTS_MAX = 8,
    SLOTS_FLOATS = 2 << 20, /* all slots together, unless one is larger */
    CHANNELS = 64,          /* in and out, of a piece, at most */
    POINT_CHANNELS = 128,   /* the same of a 1x1 window: loads weigh more */
    JOIN_FLOATS = 16 << 10  /* a piece of the last joins */
};

/* Rows of whole fours of k, unless that makes for more fours: those that are padding
 * alone may be left out. */
int64_t sti_conv_bf16_weight_length(const sti_conv_shape *s)
{
    const int64_t L = sti_conv_ceil_div((s->ow - 1) * s->stride + s->kw, s->stride);
    return L > s->ow && sti_conv_round_up(s->ow, 4) <= L ? sti_conv_round_up(L, 4) : L;
}

typedef sti_conv_bf16_raster raster;

static raster raster_of(const sti_conv_shape *s)
{
    raster r = {.gap = (s->kh - 1) / s->stride,
                .phases = sti_conv_min(s->stride, s->kh)};
    r.length = sti_conv_bf16_weight_length(s);
    r.row_pairs =
        r.phases * r.length * s->stride * sti_conv_min(s->ci, RASTER_CHANNELS);
    return r;
}

sti_conv_bf16_groups sti_conv_bf16_weight_groups(const sti_conv_shape *s)
{
    const raster r = raster_of(s);
    const int64_t rows =
        sti_conv_max(RASTER_PAIRS / sti_conv_max(r.row_pairs, 1) - r.gap, 1);
    sti_conv_bf16_groups g = {.images = 1, .rows = s->oh};
    if (rows < s->oh)
        g.rows = sti_conv_ceil_div(s->oh, sti_conv_ceil_div(s->oh, rows));
    else
        g.images = sti_conv_min((rows + r.gap) / (s->oh + r.gap), s->n);
    g.images = sti_conv_max(g.images, 1);
    g.groups = sti_conv_max(CHUNK_PIXELS / (g.images * g.rows * s->ow), 1);
    return g;
}

typedef sti_conv_bf16_weight_plan weight_plan;

typedef struct weight_job {
    const sti_conv_shape *shape;
    const weight_plan *plan;
    const sti_bf16 *x, *dy;
    float *dw, *slots; /* slot 0 is dw; slots holds the others */
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    char *workers;
} weight_job;

/* Pixels beyond a raster: what the last block and the last tap may read. */
static int64_t slack_of(const sti_conv_shape *s)
{
    return 2 * STI_BF16_PAIRS * s->stride + s->kw + s->stride + 1;
}

/* Bytes of `live` that a row of taps has: one for each block of k. */
static int64_t live_row(const weight_plan *p)
{
    return p->dy_row / STI_BF16_PAIRS;
}

static int64_t weight_count(const sti_conv_shape *s)
{
    return s->kh * s->kw * s->ci * s->co;
}

static void set_slots(weight_plan *p, int64_t weights)
{
    p->slot_chunks = 1;
    p->levels = 1;
    for (;;) {
        p->slot_count = sti_conv_ceil_div(p->chunks, p->slot_chunks);
        if (p->slot_count == 1 ||
            (p->slot_count <= SLOTS_MAX && p->slot_count * weights <= SLOTS_FLOATS))
            return;
        p->slot_chunks *= 2;
        p->levels++;
    }
}

/* Channels of a piece: as equal as can be. */
static int64_t share_of(int64_t channels, int64_t most)
{
    const int64_t pieces = sti_conv_ceil_div(channels, most);
    return sti_conv_round_up(sti_conv_ceil_div(channels, pieces), STI_BF16_COLS);
}

static void set_pieces(weight_plan *p, const sti_conv_shape *s)
{
    const int64_t most = s->kh * s->kw == 1 ? POINT_CHANNELS : CHANNELS;
    const int64_t r16 = STI_BF16_COLS;
    p->dense = s->ci < r16;
    p->inputs = share_of(s->ci, most);
    p->in_pieces = sti_conv_ceil_div(s->ci, p->inputs);
    p->block = share_of(s->co, most);
    if (p->slot_count * p->in_pieces == 1 && p->block >= s->co && p->block > r16)
        p->block = share_of(s->co, sti_conv_round_up(p->block / 2, r16));
    p->blocks = sti_conv_ceil_div(s->co, p->block);
    p->width = sti_conv_min(s->ci, r16);
    p->row_tiles =
        p->dense ? sti_conv_ceil_div(s->kw * s->ci, r16) : s->kw * p->inputs / r16;
}

static void set_groups(weight_plan *p, const sti_conv_shape *s)
{
    p->raster = raster_of(s);
    p->cut = sti_conv_bf16_weight_groups(s);
    p->groups_an_image = p->cut.images > 1 ? 1 : sti_conv_ceil_div(s->oh, p->cut.rows);
    p->groups = sti_conv_ceil_div(s->n, p->cut.images) * p->groups_an_image;
    p->chunks = sti_conv_ceil_div(p->groups, p->cut.groups);
    p->raster_rows =
        (p->cut.images - 1) * (s->oh + p->raster.gap) + p->cut.rows + p->raster.gap;
}

/* The next part of a worker, of so many elements. */
static size_t worker_part(weight_plan *p, int64_t count, size_t element_bytes)
{
    const size_t at = p->worker_bytes;
    p->worker_bytes += sti_conv_part_bytes(count, element_bytes);
    return at;
}

static void set_worker(weight_plan *p, const sti_conv_shape *s)
{
    const int64_t r16 = STI_BF16_COLS;
    const int64_t pixels = p->raster_rows * p->raster.length * s->stride;
    /* (Two strides beyond for pairs that are turned.) */
    const int64_t listed = pixels + slack_of(s) + 2 * s->stride;
    const int64_t k = sti_conv_ceil_div(p->raster_rows * p->raster.length, 2);
    p->block_pairs = sti_conv_round_up((pixels + slack_of(s)) * p->width + r16, r16);
    p->phase_pairs = p->block_pairs * sti_conv_ceil_div(p->inputs, r16);
    p->dy_row = sti_bf16_blocks(k) * STI_BF16_PAIRS +
                STI_BF16_PAIRS; /* so that rows do not meet in one set of a cache */
    p->level_floats = s->kh * p->row_tiles * r16 * p->block;
    p->raster_at = worker_part(p, p->phase_pairs * p->raster.phases, sizeof(uint32_t));
    p->dy_at = worker_part(p, p->dy_row * p->block, sizeof(uint32_t));
    p->sums_at = worker_part(p, p->level_floats * p->levels, sizeof(float));
    p->plain_at = worker_part(p, p->dense ? listed * s->ci + r16 : 0, sizeof(sti_bf16));
    p->live_at = worker_part(p, s->kh * live_row(p), 1);
    p->list_at =
        worker_part(p, sti_conv_max(listed, 2 * p->dy_row), sizeof(sti_bf16 *));
}

void sti_conv_plan_bf16_weight(sti_conv_plan *plan)
{
    const sti_conv_shape *s = &plan->shape;
    weight_plan *p = &plan->bf16_weight;
    set_groups(p, s);
    set_slots(p, weight_count(s));
    set_pieces(p, s);
    set_worker(p, s);
    p->workers_at = sti_conv_plan_add_workers(plan, p->worker_bytes);
    p->slots_at = sti_conv_plan_add(
        plan, (size_t)((p->slot_count - 1) * weight_count(s)) * sizeof(float));
}

/* A worker at work on one piece, and the group at hand. */
typedef struct weight_piece {
    const weight_job *job;
    const sti_bf16 **list; /* where pixels of a raster lie */
    sti_bf16 *plain;       /* a raster of x, if dense */
    sti_bf16_pair *raster; /* [phases][16 channels][pixel][width]: every pixel with the
                              one a stride on (turned: the one two strides on with every
                              pixel) */
    uint32_t *dy;          /* [block][dy_row]: pairs along k */
    float *sums;           /* [levels][row of taps][tile][block][16] */
    uint8_t *live;         /* [row of taps], a block of k each: fours that count */
    bool finite;           /* all at hand that meets zeros of padding is */
    int64_t c0, inputs;    /* input channels */
    int64_t j0, cols;      /* output channels */
    int64_t tiles;         /* of a row of taps */
    int64_t image, images, row, rows;
} weight_piece;

static void set_group(weight_piece *p, int64_t group)
{
    const weight_job *j = p->job;
    p->image = group / j->plan->groups_an_image * j->plan->cut.images;
    p->images = sti_conv_min(j->plan->cut.images, j->shape->n - p->image);
    p->row = group % j->plan->groups_an_image * j->plan->cut.rows;
    p->rows = sti_conv_min(j->plan->cut.rows, j->shape->oh - p->row);
}

static const sti_bf16 padding[POINT_CHANNELS];

/* A row of n pixels in a list: [from, to) are those of `line`, `ld` apart; the others
 * are padding. */
static const sti_bf16 **list_row(const sti_bf16 **list, int64_t n, int64_t from,
                                 int64_t to, const sti_bf16 *line, int64_t ld)
{
    for (int64_t i = 0; i < from; i++)
        list[i] = padding;
    for (int64_t i = from; i < to; i++)
        list[i] = line + (i - from) * ld;
    for (int64_t i = to; i < n; i++)
        list[i] = padding;
    return list + n;
}

/* Row i of the raster of image m: pixels [*from, *to) of it are those from the returned
 * one on. */
static const sti_bf16 *x_row(const weight_piece *p, int64_t m, int64_t i, int64_t phase,
                             int64_t *from, int64_t *to)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t y = (p->row + i) * s->stride + phase - s->pad;
    const int64_t line = j->plan->raster.length * s->stride;
    *from = *to = 0;
    if (y < 0 || y >= s->h)
        return padding;
    *from = sti_conv_min(s->pad, line);
    *to = sti_conv_max(*from, sti_conv_min(line, s->w + s->pad));
    return j->x + (((p->image + m) * s->h + y) * s->w + *from - s->pad) * s->ci + p->c0;
}

static uint32_t *phase_raster(const weight_piece *p, int64_t phase)
{
    return (uint32_t *)(void *)(p->raster + phase * p->job->plan->phase_pairs);
}

/* Raster of the phase: rows y0, y0 + stride, .. of each image. */
static void load_phase(weight_piece *p, int64_t phase)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t line = j->plan->raster.length * s->stride, slack = slack_of(s);
    const sti_bf16 **end = p->list;
    for (int64_t m = 0; m < p->images; m++)
        for (int64_t i = 0; i < p->rows + j->plan->raster.gap; i++) {
            int64_t from, to;
            const sti_bf16 *row = x_row(p, m, i, phase, &from, &to);
            end = list_row(end, line, from, to, row, s->ci);
        }
    const int64_t n = end - p->list + slack;
    list_row(end, slack + 2 * s->stride, 0, 0, padding, 0);
    if (j->tiles->turn)
        p->finite &=
            j->loops->pair_pixels(n, p->list + 2 * s->stride, p->list, p->inputs,
                                  phase_raster(p, phase), j->plan->block_pairs);
    else
        j->loops->pair_pixels(n, p->list, p->list + s->stride, p->inputs,
                              phase_raster(p, phase), j->plan->block_pairs);
}

/* The same of few channels. */
static void load_phase_dense(weight_piece *p, int64_t phase)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t line = j->plan->raster.length * s->stride * s->ci, c = s->ci;
    const int64_t step = s->stride * c, slack = slack_of(s) * c + STI_BF16_COLS;
    sti_bf16 *dst = p->plain;
    uint32_t *out = phase_raster(p, phase);
    for (int64_t m = 0; m < p->images; m++)
        for (int64_t i = 0; i < p->rows + j->plan->raster.gap; i++, dst += line) {
            int64_t from, to;
            const sti_bf16 *row = x_row(p, m, i, phase, &from, &to);
            memset(dst, 0, (size_t)(from * c) * sizeof *dst);
            memcpy(dst + from * c, row, (size_t)((to - from) * c) * sizeof *dst);
            memset(dst + to * c, 0, (size_t)(line - to * c) * sizeof *dst);
        }
    const int64_t n = dst - p->plain;
    memset(dst, 0, (size_t)(slack + 2 * step) * sizeof *dst);
    if (!j->tiles->turn) {
        j->loops->interleave(n + slack, p->plain, p->plain + step, out);
        return;
    }
    j->loops->interleave(n + slack, p->plain + 2 * step, p->plain, out);
    p->finite = p->finite && j->tiles->finite(n, p->plain);
}

/* Pairs of k of the group. */
static int64_t group_blocks(const weight_piece *p)
{
    const weight_job *j = p->job;
    const int64_t rows = (p->images - 1) * (p->rows + j->plan->raster.gap) + p->rows;
    const int64_t length = (rows - 1) * j->plan->raster.length + j->shape->ow;
    return sti_bf16_blocks(sti_conv_ceil_div(length, 2));
}

/* Fours that the pixels of output row y meet, which are those from `first` on of k: not
 * with taps that lie above or below of the image. */
static void mark_live(weight_piece *p, int64_t y, int64_t first)
{
    const sti_conv_shape *s = p->job->shape;
    const int64_t top = y * s->stride - s->pad;
    const int64_t from = sti_conv_max(-top, 0), to = sti_conv_min(s->h - top, s->kh);
    const int64_t four = first / 4, end = (first + s->ow + 3) / 4;
    for (int64_t block = four / 8; block < (end + 7) / 8; block++)
        for (int64_t i = from; i < to; i++)
            p->live[i * live_row(p->job->plan) + block] |=
                sti_bf16_live(block, four, end);
}

/* Where the pixels of k lie in dy, and which fours of them are not padding alone. */
static void list_dy(weight_piece *p, int64_t blocks)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t L = j->plan->raster.length, n = blocks * 2 * STI_BF16_PAIRS;
    const sti_bf16 **end = p->list;
    memset(p->live, 0, (size_t)(s->kh * live_row(j->plan)));
    for (int64_t m = 0; m < p->images; m++) {
        for (int64_t i = 0; i < p->rows; i++) {
            const int64_t y = p->row + i, top = y * s->stride - s->pad;
            const sti_bf16 *dy = j->dy + ((p->image + m) * s->oh + y) * s->ow * s->co;
            mark_live(p, y, end - p->list);
            if (p->finite && (top < 0 || top + s->kh > s->h))
                p->finite = j->tiles->finite(s->ow * s->co, dy);
            end = list_row(end, L, 0, s->ow, dy + p->j0, s->co);
        }
        if (m + 1 < p->images)
            end = list_row(end, j->plan->raster.gap * L, 0, 0, padding, 0);
    }
    if (end - p->list < n)
        list_row(end, n - (end - p->list), 0, 0, padding, 0);
}

static void load_dy(weight_piece *p)
{
    const weight_job *j = p->job;
    const int64_t blocks = group_blocks(p);
    list_dy(p, blocks);
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t c = 0; c < p->cols; c += STI_BF16_ROWS)
            j->loops->transpose32(
                p->list + b * 2 * STI_BF16_PAIRS, j->tiles->turn != NULL, c,
                sti_conv_min(p->cols - c, STI_BF16_ROWS),
                (sti_bf16 *)(void *)(p->dy + c * j->plan->dy_row + b * STI_BF16_PAIRS),
                2 * j->plan->dy_row);
}

/* Tile i of the group: where its x lies, and its rows of dw. */
typedef struct weight_tile {
    int64_t at, row, rows;
    int64_t live; /* where that of its row of taps lies */
} weight_tile;

static weight_tile tile_of(const weight_piece *p, int64_t i)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t y = i / p->tiles, t = i % p->tiles, r16 = STI_BF16_COLS;
    /* Taps of a block of channels follow each other: they share lines. */
    const int64_t x = j->plan->dense ? 0 : t % s->kw,
                  block = j->plan->dense ? t : t / s->kw;
    const int64_t columns = j->plan->dense ? s->kw * s->ci : p->inputs;
    return (weight_tile){.at =
                             y % s->stride * j->plan->phase_pairs +
                             (y / s->stride * j->plan->raster.length * s->stride + x) *
                                 j->plan->width +
                             block * (j->plan->dense ? r16 : j->plan->block_pairs),
                         .row = (y * s->kw + x) * s->ci + p->c0 + block * r16,
                         .rows = sti_conv_min(columns - block * r16, r16),
                         .live = y * live_row(j->plan)};
}

/* What the next group reads, where it lies in one piece. */
static void set_soon(const weight_piece *p, int64_t next, sti_bf16_soon *soon)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    weight_piece n = *p;
    if (next >= j->plan->groups)
        return;
    set_group(&n, next);
    if (j->plan->in_pieces == 1) {
        const sti_bf16 *x = j->x + n.image * s->h * s->w * s->ci;
        const int64_t y = sti_conv_max(n.row * s->stride - s->pad, 0);
        const int64_t end = (n.row + n.rows - 1) * s->stride + s->kh - s->pad;
        soon[0].at = (const char *)(x + y * s->w * s->ci);
        soon[0].end = (const char *)(x + ((n.images - 1) * s->h +
                                          sti_conv_max(sti_conv_min(end, s->h), y)) *
                                             s->w * s->ci);
    }
    if (j->plan->blocks == 1) {
        const int64_t y = n.image * s->oh + n.row;
        soon[1].at = (const char *)(j->dy + y * s->ow * s->co);
        soon[1].end = (const char *)(j->dy + (y + (n.images - 1) * s->oh + n.rows) *
                                                 s->ow * s->co);
    }
}

/* All taps and channels over the group. */
static void group_tiles(const weight_piece *p, sti_bf16_soon *soon, float *sum,
                        bool load)
{
    static const int64_t zero_run[1] = {0};
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t tiles = s->kh * p->tiles;
    sti_bf16_tile t = {
        .rows = STI_BF16_ROWS,
        .load = load,
        .runs = 1,
        .blocks = group_blocks(p),
        .b = p->raster,
        .a_row = j->plan->dy_row,
        .a_block = STI_BF16_PAIRS,
        .b_row = 2 * s->stride * j->plan->width,
        .a_run = zero_run,
        .a_turned = j->tiles->turn != NULL,
        .b_turned = j->tiles->turn != NULL,
        .b_odd = s->stride * j->plan->width,
        .live = p->finite ? p->live : NULL,
        .soon = soon,
        .c_row = STI_BF16_COLS,
    };
    int64_t bytes = 0;
    for (int i = 0; i < STI_BF16_SOON; i++)
        bytes += soon[i].end - soon[i].at;
    t.soon_bytes = sti_conv_ceil_div(
        bytes, t.blocks * tiles * sti_conv_ceil_div(p->cols, STI_BF16_ROWS));
    for (int64_t c = 0; c < p->cols; c += STI_BF16_ROWS)
        for (int64_t first = 0; first < tiles; first += STI_BF16_TILES) {
            t.count = (int)sti_conv_min(tiles - first, STI_BF16_TILES);
            t.a = (const sti_bf16_pair *)p->dy + c * j->plan->dy_row;
            t.c = sum + c * STI_BF16_COLS;
            for (int i = 0; i < t.count; i++) {
                const weight_tile tile = tile_of(p, first + i);
                t.b_tile[i] = tile.at;
                t.live_tile[i] = tile.live;
                t.c_tile[i] = (first + i) * j->plan->block * STI_BF16_COLS;
            }
            j->tiles->share_a(&t);
        }
}

static void chunk_run(weight_piece *p, int64_t chunk, float *sum)
{
    const weight_job *j = p->job;
    const int64_t first = chunk * j->plan->cut.groups;
    const int64_t end = sti_conv_min(first + j->plan->cut.groups, j->plan->groups);
    for (int64_t group = first; group < end; group++) {
        set_group(p, group);
        p->finite = j->tiles->finite != NULL;
        for (int64_t phase = 0; phase < j->plan->raster.phases; phase++)
            (j->plan->dense ? load_phase_dense : load_phase)(p, phase);
        load_dy(p);
        sti_bf16_soon soon[STI_BF16_SOON] = {{NULL, NULL}};
        set_soon(p, group + 1, soon);
        group_tiles(p, soon, sum, group > first);
    }
}

static void join(float *left, const float *right, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        left[i] += right[i];
}

/* The sums of a piece into their place in dw. */
static void store_sums(const weight_piece *p, float *dw)
{
    const weight_job *j = p->job;
    const int64_t co = j->shape->co;
    for (int64_t i = 0; i < j->shape->kh * p->tiles; i++) {
        const weight_tile t = tile_of(p, i);
        for (int64_t f = 0; f < p->cols; f += STI_BF16_ROWS)
            j->loops->transpose_f32(sti_conv_min(p->cols - f, STI_BF16_ROWS), t.rows,
                                    p->sums + (i * j->plan->block + f) * STI_BF16_COLS,
                                    dw + t.row * co + p->j0 + f, co);
    }
}

static weight_piece piece_make(const weight_job *j, int64_t piece, int worker)
{
    const sti_conv_shape *s = j->shape;
    const weight_plan *plan = j->plan;
    char *own = j->workers + (size_t)worker * plan->worker_bytes;
    weight_piece p = {.job = j,
                      .list = (const sti_bf16 **)(void *)(own + plan->list_at),
                      .plain = (sti_bf16 *)(void *)(own + plan->plain_at),
                      .raster = (sti_bf16_pair *)(void *)(own + plan->raster_at),
                      .dy = (uint32_t *)(void *)(own + plan->dy_at),
                      .sums = (float *)(void *)(own + plan->sums_at),
                      .live = (uint8_t *)own + plan->live_at,
                      .c0 = piece / plan->blocks % plan->in_pieces * plan->inputs,
                      .j0 = piece % plan->blocks * plan->block};
    p.inputs = sti_conv_min(plan->inputs, s->ci - p.c0);
    p.cols = sti_conv_min(plan->block, s->co - p.j0);
    p.tiles = plan->dense ? plan->row_tiles
                          : s->kw * sti_conv_ceil_div(p.inputs, STI_BF16_COLS);
    return p;
}

static void weight_piece_run(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const weight_plan *plan = j->plan;
    const int64_t slot = piece / (plan->blocks * plan->in_pieces);
    const int64_t first = slot * plan->slot_chunks;
    const int64_t last = sti_conv_min(first + plan->slot_chunks, plan->chunks);
    const int64_t level = plan->level_floats;
    weight_piece p = piece_make(j, piece, worker);
    int top = 0;
    j->tiles->begin(STI_BF16_ROWS);
    for (int64_t chunk = first; chunk < last; chunk++) {
        chunk_run(&p, chunk, p.sums + top++ * level);
        for (int64_t count = chunk - first + 1; count % 2 == 0; count /= 2, top--)
            join(p.sums + (top - 2) * level, p.sums + (top - 1) * level, level);
    }
    j->tiles->end();
    for (; top > 1; top--)
        join(p.sums + (top - 2) * level, p.sums + (top - 1) * level, level);
    store_sums(&p, slot == 0 ? j->dw : j->slots + (slot - 1) * weight_count(j->shape));
}

static void join_slots(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const int64_t weights = weight_count(j->shape), at = piece * JOIN_FLOATS;
    const int64_t n = sti_conv_min(JOIN_FLOATS, weights - at);
    const int64_t count = j->plan->slot_count;
    (void)worker;
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t i = 0; i + step < count; i += 2 * step)
            join((i ? j->slots + (i - 1) * weights : j->dw) + at,
                 j->slots + (i + step - 1) * weights + at, n);
}

void sti_conv_bf16_weight(const sti_team *team, const sti_conv_plan *plan,
                          const sti_bf16 *x, const sti_bf16 *dy, float *dw_out,
                          void *scratch)
{
    const weight_plan *p = &plan->bf16_weight;
    const int64_t weights = weight_count(&plan->shape);
    sti_conv_plan_check(plan, STI_CONV_BACKWARD_WEIGHT, team);
    if (plan->algorithm == STI_CONV_EMPTY) {
        memset(dw_out, 0, (size_t)weights * sizeof *dw_out);
        return;
    }
    weight_job j = {.shape = &plan->shape,
                    .plan = p,
                    .x = x,
                    .dy = dy,
                    .dw = dw_out,
                    .slots = sti_conv_part(scratch, p->slots_at),
                    .tiles = sti_bf16_tiles_now(),
                    .loops = sti_bf16_kernels_now(),
                    .workers = sti_conv_part(scratch, p->workers_at)};
    sti_team_run(team, p->slot_count * p->blocks * p->in_pieces, weight_piece_run, &j);
    if (p->slot_count > 1)
        sti_team_run(team, sti_conv_ceil_div(weights, JOIN_FLOATS), join_slots, &j);
}
