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

/* The raster of a shape: lengths in output pixels and rows. */
typedef struct raster {
    int64_t length;    /* L */
    int64_t gap;       /* rows between images */
    int64_t phases;    /* rasters, for rows of the stride that taps meet */
    int64_t row_pairs; /* of one row of all phases */
} raster;

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

typedef struct weight_job {
    const sti_conv_shape *shape;
    const sti_bf16 *x, *dy;
    float *dw, *slots; /* slot 0 is dw; slots holds the others */
    const sti_bf16_tile_kernels *tiles;
    const sti_bf16_kernels *loops;
    raster raster;
    sti_conv_bf16_groups cut;
    int64_t groups_an_image, groups, chunks;
    int64_t slot_chunks, slot_count;
    int levels;
    bool dense;                /* less than 16 input channels */
    int64_t inputs, in_pieces; /* input channels of a piece */
    int64_t block, blocks;     /* output channels of a piece */
    int64_t row_tiles;         /* of a row of taps, most */
    int64_t width;             /* pairs of a pixel in a raster */
    int64_t raster_rows;       /* of a group */
    /* Of a worker, in pairs, each a multiple of 16: */
    int64_t block_pairs; /* 16 channels of one phase */
    int64_t phase_pairs, plain_pairs, dy_row, dy_pairs, sum_floats, live_pairs;
    int64_t list_pixels;
    char *scratch;
    size_t worker_bytes;
} weight_job;

/* Pixels beyond a raster: what the last block and the last tap may read. */
static int64_t slack_of(const sti_conv_shape *s)
{
    return 2 * STI_BF16_PAIRS * s->stride + s->kw + s->stride + 1;
}

static void set_slots(weight_job *j)
{
    const sti_conv_shape *s = j->shape;
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    j->slot_chunks = 1;
    j->levels = 1;
    for (;;) {
        j->slot_count = sti_conv_ceil_div(j->chunks, j->slot_chunks);
        if (j->slot_count == 1 ||
            (j->slot_count <= SLOTS_MAX && j->slot_count * weights <= SLOTS_FLOATS))
            return;
        j->slot_chunks *= 2;
        j->levels++;
    }
}

/* Channels of a piece: as equal as can be. */
static int64_t share_of(int64_t channels, int64_t most)
{
    const int64_t pieces = sti_conv_ceil_div(channels, most);
    return sti_conv_round_up(sti_conv_ceil_div(channels, pieces), STI_BF16_COLS);
}

static void set_pieces(weight_job *j)
{
    const sti_conv_shape *s = j->shape;
    const int64_t most = s->kh * s->kw == 1 ? POINT_CHANNELS : CHANNELS;
    const int64_t r16 = STI_BF16_COLS;
    j->dense = s->ci < r16;
    j->inputs = share_of(s->ci, most);
    j->in_pieces = sti_conv_ceil_div(s->ci, j->inputs);
    j->block = share_of(s->co, most);
    if (j->slot_count * j->in_pieces == 1 && j->block >= s->co && j->block > r16)
        j->block = share_of(s->co, sti_conv_round_up(j->block / 2, r16));
    j->blocks = sti_conv_ceil_div(s->co, j->block);
    j->width = sti_conv_min(s->ci, r16);
    j->row_tiles =
        j->dense ? sti_conv_ceil_div(s->kw * s->ci, r16) : s->kw * j->inputs / r16;
}

static weight_job weight_make(const sti_conv_shape *s)
{
    weight_job j = {.shape = s, .raster = raster_of(s)};
    const int64_t r16 = STI_BF16_COLS;
    j.cut = sti_conv_bf16_weight_groups(s);
    j.groups_an_image = j.cut.images > 1 ? 1 : sti_conv_ceil_div(s->oh, j.cut.rows);
    j.groups = sti_conv_ceil_div(s->n, j.cut.images) * j.groups_an_image;
    j.chunks = sti_conv_ceil_div(j.groups, j.cut.groups);
    set_slots(&j);
    set_pieces(&j);
    j.raster_rows =
        (j.cut.images - 1) * (s->oh + j.raster.gap) + j.cut.rows + j.raster.gap;
    const int64_t pixels = j.raster_rows * j.raster.length * s->stride;
    /* (Two strides beyond for pairs that are turned.) */
    j.list_pixels = pixels + slack_of(s) + 2 * s->stride;
    j.block_pairs = sti_conv_round_up((pixels + slack_of(s)) * j.width + r16, r16);
    j.phase_pairs = j.block_pairs * sti_conv_ceil_div(j.inputs, r16);
    if (j.dense)
        j.plain_pairs = sti_conv_round_up(j.list_pixels * s->ci + r16, 2 * r16) / 2;
    j.dy_row = sti_bf16_blocks(sti_conv_ceil_div(j.raster_rows * j.raster.length, 2)) *
                   STI_BF16_PAIRS +
               STI_BF16_PAIRS; /* so that rows do not meet in one set of a cache */
    j.dy_pairs = j.dy_row * j.block;
    j.sum_floats = s->kh * j.row_tiles * r16 * j.block * j.levels;
    j.live_pairs = sti_conv_round_up(s->kh * j.dy_row, 1024) / 64; /* a byte a block */
    j.list_pixels = sti_conv_max(j.list_pixels, 2 * j.dy_row);
    j.worker_bytes = (size_t)(j.phase_pairs * j.raster.phases + j.plain_pairs +
                              j.dy_pairs + j.sum_floats + j.live_pairs) *
                         sizeof(float) +
                     (size_t)sti_conv_round_up(j.list_pixels, r16) * sizeof(void *);
    return j;
}

size_t sti_conv_bf16_weight_scratch_bytes(const sti_conv_shape *s, int threads)
{
    if (sti_conv_is_empty(s))
        return 0;
    const weight_job j = weight_make(s);
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    return 128 + (size_t)threads * j.worker_bytes +
           (size_t)((j.slot_count - 1) * weights) * sizeof(float);
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
    p->image = group / j->groups_an_image * j->cut.images;
    p->images = sti_conv_min(j->cut.images, j->shape->n - p->image);
    p->row = group % j->groups_an_image * j->cut.rows;
    p->rows = sti_conv_min(j->cut.rows, j->shape->oh - p->row);
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
    const int64_t line = j->raster.length * s->stride;
    *from = *to = 0;
    if (y < 0 || y >= s->h)
        return padding;
    *from = sti_conv_min(s->pad, line);
    *to = sti_conv_max(*from, sti_conv_min(line, s->w + s->pad));
    return j->x + (((p->image + m) * s->h + y) * s->w + *from - s->pad) * s->ci + p->c0;
}

static uint32_t *phase_raster(const weight_piece *p, int64_t phase)
{
    return (uint32_t *)(void *)(p->raster + phase * p->job->phase_pairs);
}

/* Raster of the phase: rows y0, y0 + stride, .. of each image. */
static void load_phase(weight_piece *p, int64_t phase)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t line = j->raster.length * s->stride, slack = slack_of(s);
    const sti_bf16 **end = p->list;
    for (int64_t m = 0; m < p->images; m++)
        for (int64_t i = 0; i < p->rows + j->raster.gap; i++) {
            int64_t from, to;
            const sti_bf16 *row = x_row(p, m, i, phase, &from, &to);
            end = list_row(end, line, from, to, row, s->ci);
        }
    const int64_t n = end - p->list + slack;
    list_row(end, slack + 2 * s->stride, 0, 0, padding, 0);
    if (j->tiles->turn)
        p->finite &=
            j->loops->pair_pixels(n, p->list + 2 * s->stride, p->list, p->inputs,
                                  phase_raster(p, phase), j->block_pairs);
    else
        j->loops->pair_pixels(n, p->list, p->list + s->stride, p->inputs,
                              phase_raster(p, phase), j->block_pairs);
}

/* The same of few channels. */
static void load_phase_dense(weight_piece *p, int64_t phase)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t line = j->raster.length * s->stride * s->ci, c = s->ci;
    const int64_t step = s->stride * c, slack = slack_of(s) * c + STI_BF16_COLS;
    sti_bf16 *dst = p->plain;
    uint32_t *out = phase_raster(p, phase);
    for (int64_t m = 0; m < p->images; m++)
        for (int64_t i = 0; i < p->rows + j->raster.gap; i++, dst += line) {
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
    const int64_t rows = (p->images - 1) * (p->rows + j->raster.gap) + p->rows;
    const int64_t length = (rows - 1) * j->raster.length + j->shape->ow;
    return sti_bf16_blocks(sti_conv_ceil_div(length, 2));
}

/* Bytes of p->live that a row of taps has. */
static int64_t live_row(const weight_job *j)
{
    return j->dy_row / STI_BF16_PAIRS;
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
            p->live[i * live_row(p->job) + block] |= sti_bf16_live(block, four, end);
}

/* Where the pixels of k lie in dy, and which fours of them are not padding alone. */
static void list_dy(weight_piece *p, int64_t blocks)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t L = j->raster.length, n = blocks * 2 * STI_BF16_PAIRS;
    const sti_bf16 **end = p->list;
    memset(p->live, 0, (size_t)(s->kh * live_row(j)));
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
            end = list_row(end, j->raster.gap * L, 0, 0, padding, 0);
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
                (sti_bf16 *)(void *)(p->dy + c * j->dy_row + b * STI_BF16_PAIRS),
                2 * j->dy_row);
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
    const int64_t x = j->dense ? 0 : t % s->kw, block = j->dense ? t : t / s->kw;
    const int64_t columns = j->dense ? s->kw * s->ci : p->inputs;
    return (weight_tile){.at = y % s->stride * j->phase_pairs +
                               (y / s->stride * j->raster.length * s->stride + x) *
                                   j->width +
                               block * (j->dense ? r16 : j->block_pairs),
                         .row = (y * s->kw + x) * s->ci + p->c0 + block * r16,
                         .rows = sti_conv_min(columns - block * r16, r16),
                         .live = y * live_row(j)};
}

/* What the next group reads, where it lies in one piece. */
static void set_soon(const weight_piece *p, int64_t next, sti_bf16_soon *soon)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    weight_piece n = *p;
    if (next >= j->groups)
        return;
    set_group(&n, next);
    if (j->in_pieces == 1) {
        const sti_bf16 *x = j->x + n.image * s->h * s->w * s->ci;
        const int64_t y = sti_conv_max(n.row * s->stride - s->pad, 0);
        const int64_t end = (n.row + n.rows - 1) * s->stride + s->kh - s->pad;
        soon[0].at = (const char *)(x + y * s->w * s->ci);
        soon[0].end = (const char *)(x + ((n.images - 1) * s->h +
                                          sti_conv_max(sti_conv_min(end, s->h), y)) *
                                             s->w * s->ci);
    }
    if (j->blocks == 1) {
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
        .a_row = j->dy_row,
        .a_block = STI_BF16_PAIRS,
        .b_row = 2 * s->stride * j->width,
        .a_run = zero_run,
        .a_turned = j->tiles->turn != NULL,
        .b_turned = j->tiles->turn != NULL,
        .b_odd = s->stride * j->width,
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
            t.a = (const sti_bf16_pair *)p->dy + c * j->dy_row;
            t.c = sum + c * STI_BF16_COLS;
            for (int i = 0; i < t.count; i++) {
                const weight_tile tile = tile_of(p, first + i);
                t.b_tile[i] = tile.at;
                t.live_tile[i] = tile.live;
                t.c_tile[i] = (first + i) * j->block * STI_BF16_COLS;
            }
            j->tiles->share_a(&t);
        }
}

static void chunk_run(weight_piece *p, int64_t chunk, float *sum)
{
    const weight_job *j = p->job;
    const int64_t first = chunk * j->cut.groups;
    const int64_t end = sti_conv_min(first + j->cut.groups, j->groups);
    for (int64_t group = first; group < end; group++) {
        set_group(p, group);
        p->finite = j->tiles->finite != NULL;
        for (int64_t phase = 0; phase < j->raster.phases; phase++)
            (j->dense ? load_phase_dense : load_phase)(p, phase);
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
                                    p->sums + (i * j->block + f) * STI_BF16_COLS,
                                    dw + t.row * co + p->j0 + f, co);
    }
}

static weight_piece piece_make(const weight_job *j, int64_t piece, int worker)
{
    const sti_conv_shape *s = j->shape;
    weight_piece p = {.job = j, .j0 = piece % j->blocks * j->block};
    uint32_t *at = (uint32_t *)(void *)(j->scratch + (size_t)worker * j->worker_bytes);
    p.c0 = piece / j->blocks % j->in_pieces * j->inputs;
    p.inputs = sti_conv_min(j->inputs, s->ci - p.c0);
    p.cols = sti_conv_min(j->block, s->co - p.j0);
    p.tiles =
        j->dense ? j->row_tiles : s->kw * sti_conv_ceil_div(p.inputs, STI_BF16_COLS);
    p.raster = at;
    p.dy = at + j->phase_pairs * j->raster.phases;
    p.sums = (float *)(void *)(p.dy + j->dy_pairs);
    p.plain = (sti_bf16 *)(void *)(p.sums + j->sum_floats);
    p.live = (uint8_t *)(p.plain + 2 * j->plain_pairs);
    p.list = (const sti_bf16 **)(void *)(p.live + 4 * j->live_pairs);
    return p;
}

static void weight_piece_run(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t slot = piece / (j->blocks * j->in_pieces);
    const int64_t first = slot * j->slot_chunks;
    const int64_t last = sti_conv_min(first + j->slot_chunks, j->chunks);
    const int64_t level = j->sum_floats / j->levels;
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
    store_sums(&p, slot == 0 ? j->dw
                             : j->slots + (slot - 1) * s->kh * s->kw * s->ci * s->co);
}

static void join_slots(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t weights = s->kh * s->kw * s->ci * s->co, at = piece * JOIN_FLOATS;
    const int64_t n = sti_conv_min(JOIN_FLOATS, weights - at);
    (void)worker;
    for (int64_t step = 1; step < j->slot_count; step *= 2)
        for (int64_t i = 0; i + step < j->slot_count; i += 2 * step)
            join((i ? j->slots + (i - 1) * weights : j->dw) + at,
                 j->slots + (i + step - 1) * weights + at, n);
}

void sti_conv_bf16_weight(const sti_team *team, const sti_conv_shape *s,
                          const sti_bf16 *x, const sti_bf16 *dy, float *dw_out,
                          void *scratch)
{
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    if (sti_conv_is_empty(s)) {
        memset(dw_out, 0, (size_t)weights * sizeof *dw_out);
        return;
    }
    weight_job j = weight_make(s);
    j.x = x;
    j.dy = dy;
    j.dw = dw_out;
    j.tiles = sti_bf16_tiles_now();
    j.loops = sti_bf16_kernels_now();
    j.scratch = sti_conv_bf16_align(scratch);
    j.slots = (float *)(void *)(j.scratch + (size_t)team->threads * j.worker_bytes);
    sti_team_run(team, j.slot_count * j.blocks * j.in_pieces, weight_piece_run, &j);
    if (j.slot_count > 1)
        sti_team_run(team, sti_conv_ceil_div(weights, JOIN_FLOATS), join_slots, &j);
}
