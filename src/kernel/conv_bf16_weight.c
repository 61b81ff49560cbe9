/* Gradient of the weights on bfloat16.
 *
 * A product over pixels: for each tap, dw^T [co][ci] += dy^T x. The rows of x that a
 * group of output rows meets are laid side by side, zero-padded, so that output pixels
 * are one run of k and a tap is an address offset (with a stride, one such raster for
 * each row of the stride); every pixel is a pair with the one a stride on. dy is
 * transposed to the same run, zero where the raster is padding. The conv_bf16.h header
 * says what that means for the order of sums.
 *
 * Chunks of groups are the leaves of a tree. At most SLOTS_MAX subtrees of 2^e chunks
 * are pieces of work; a piece keeps a stack of partial sums, one a level. */
#include <string.h>

#include "kernel/conv_bf16_priv.h"

enum {
    RASTER_PAIRS = 24 << 10, /* of a group, 96 KiB: part of the numerics */
    CHUNK_PIXELS = 4096,     /* likewise */
    SLOTS_MAX = 8,
    SLOTS_FLOATS = 2 << 20, /* all slots together, unless one is larger */
    OUTPUTS = 64,           /* output channels of a piece, at most */
    JOIN_FLOATS = 16 << 10  /* a piece of the last joins */
};

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
    r.length = sti_conv_ceil_div((s->ow - 1) * s->stride + s->kw, s->stride);
    r.row_pairs = r.phases * r.length * s->stride * s->ci;
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
    int64_t block, blocks; /* output channels of a piece */
    int64_t in_blocks;     /* 16 input channels each */
    int64_t raster_rows;   /* of a group */
    /* Of a worker, in pairs, each a multiple of 16: */
    int64_t plain_pairs, raster_pairs, dy_row, dy_pairs, sum_floats, live_pairs;
    char *scratch;
    size_t worker_bytes;
} weight_job;

/* Zeros beyond a raster: what the last block and the last tap may read. */
static int64_t slack_of(const sti_conv_shape *s)
{
    return (2 * STI_BF16_PAIRS * s->stride + s->kw + s->stride + 1) * s->ci +
           STI_BF16_COLS;
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

static weight_job weight_make(const sti_conv_shape *s)
{
    weight_job j = {.shape = s, .raster = raster_of(s)};
    const int64_t r16 = STI_BF16_COLS;
    j.cut = sti_conv_bf16_weight_groups(s);
    j.groups_an_image = j.cut.images > 1 ? 1 : sti_conv_ceil_div(s->oh, j.cut.rows);
    j.groups = sti_conv_ceil_div(s->n, j.cut.images) * j.groups_an_image;
    j.chunks = sti_conv_ceil_div(j.groups, j.cut.groups);
    set_slots(&j);
    j.block = j.slot_count * sti_conv_ceil_div(s->co, OUTPUTS) < 2 ? 32 : OUTPUTS;
    j.block = sti_conv_min(j.block, sti_conv_round_up(s->co, r16));
    j.blocks = sti_conv_ceil_div(s->co, j.block);
    j.in_blocks = sti_conv_ceil_div(s->ci, r16);
    j.raster_rows =
        (j.cut.images - 1) * (s->oh + j.raster.gap) + j.cut.rows + j.raster.gap;
    const int64_t phase = j.raster_rows * j.raster.length * s->stride * s->ci;
    j.raster_pairs = sti_conv_round_up(phase + slack_of(s), r16) * j.raster.phases;
    /* (Two strides beyond for pairs that are turned.) */
    j.plain_pairs =
        sti_conv_round_up(phase + slack_of(s) + 2 * s->stride * s->ci, 32) / 2;
    j.dy_row = sti_bf16_blocks(sti_conv_ceil_div(j.raster_rows * j.raster.length, 2)) *
                   STI_BF16_PAIRS +
               STI_BF16_PAIRS; /* so that rows do not meet in one set of a cache */
    j.dy_pairs = j.dy_row * j.block;
    j.sum_floats = s->kh * s->kw * j.in_blocks * r16 * j.block * j.levels;
    j.live_pairs = sti_conv_round_up(j.dy_row, 1024) / 64; /* a byte a block */
    j.worker_bytes = (size_t)(j.plain_pairs + j.raster_pairs + j.dy_pairs +
                              j.sum_floats + j.live_pairs) *
                     sizeof(float);
    return j;
}

size_t sti_conv_bf16_weight_scratch_bytes(const sti_conv_shape *s, int threads)
{
    const weight_job j = weight_make(s);
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    return 128 + (size_t)threads * j.worker_bytes +
           (size_t)((j.slot_count - 1) * weights) * sizeof(float);
}

/* A worker at work on one piece, and the group at hand. */
typedef struct weight_piece {
    const weight_job *job;
    sti_bf16 *plain;       /* a raster of x */
    sti_bf16_pair *raster; /* [phases]: the same, every pixel with the one a stride on
                              (turned: the one two strides on with every pixel) */
    uint32_t *dy;          /* [block][dy_row]: pairs along k */
    float *sums;           /* [levels][tap][input block][block][16] */
    uint8_t *live;         /* a block of k each: fours that have a pixel */
    bool finite;           /* all of x at hand is */
    int64_t j0, cols;
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

/* Raster of the phase: rows y0, y0 + stride, .. of each image. */
static void load_phase(weight_piece *p, int64_t phase)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t line = j->raster.length * s->stride * s->ci, c = s->ci;
    const int64_t from = sti_conv_min(s->pad * c, line);
    const int64_t to = sti_conv_max(from, sti_conv_min(line, (s->w + s->pad) * c));
    sti_bf16 *dst = p->plain;
    for (int64_t m = 0; m < p->images; m++)
        for (int64_t i = 0; i < p->rows + j->raster.gap; i++, dst += line) {
            const int64_t y = (p->row + i) * s->stride + phase - s->pad;
            if (y < 0 || y >= s->h) {
                memset(dst, 0, (size_t)line * sizeof *dst);
                continue;
            }
            memset(dst, 0, (size_t)from * sizeof *dst);
            memcpy(dst + from,
                   j->x + ((p->image + m) * s->h + y) * s->w * c + from - s->pad * c,
                   (size_t)(to - from) * sizeof *dst);
            memset(dst + to, 0, (size_t)(line - to) * sizeof *dst);
        }
    const int64_t n = dst - p->plain, slack = slack_of(s);
    const int64_t step = s->stride * c;
    uint32_t *out =
        (uint32_t *)(void *)(p->raster + phase * (j->raster_pairs / j->raster.phases));
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

/* A row of the raster of dy. */
static const sti_bf16 *dy_row(const weight_piece *p, int64_t row)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t H = p->rows + j->raster.gap, image = row / H, y = row % H;
    if (y >= p->rows || image >= p->images)
        return NULL;
    return j->dy + ((p->image + image) * s->oh + p->row + y) * s->ow * s->co + p->j0;
}

/* Where the 32 pixels of k from first on lie in dy; NULL: padding. */
static void find_pixels(const weight_piece *p, int64_t first, const sti_bf16 **src)
{
    const sti_conv_shape *s = p->job->shape;
    const int64_t L = p->job->raster.length;
    int64_t row = first / L, x = first % L;
    const sti_bf16 *line = dy_row(p, row);
    for (int i = 0; i < 2 * STI_BF16_PAIRS; i++) {
        src[i] = line && x < s->ow ? line + x * s->co : NULL;
        if (++x == L) {
            x = 0;
            line = dy_row(p, ++row);
        }
    }
}

/* Which fours of them are not padding alone. */
static uint8_t fours_there(const sti_bf16 *const *pixel)
{
    unsigned there = 0;
    for (int i = 0; i < 2 * STI_BF16_PAIRS; i++)
        there |= (unsigned)(pixel[i] != NULL) << i / 4;
    return (uint8_t)there;
}

static void load_dy(const weight_piece *p)
{
    const weight_job *j = p->job;
    const int64_t blocks = group_blocks(p);
    for (int64_t b = 0; b < blocks; b++) {
        const sti_bf16 *pixel[2 * STI_BF16_PAIRS], *src[2 * STI_BF16_PAIRS];
        find_pixels(p, b * 2 * STI_BF16_PAIRS, pixel);
        p->live[b] = fours_there(pixel);
        for (int i = 0; i < 2 * STI_BF16_PAIRS; i++)
            src[i] = pixel[sti_bf16_turned(j->tiles->turn != NULL, i)];
        for (int64_t c = 0; c < p->cols; c += STI_BF16_ROWS) {
            sti_bf16 *dst =
                (sti_bf16 *)(void *)(p->dy + c * j->dy_row + b * STI_BF16_PAIRS);
            j->loops->transpose32(src, sti_conv_min(p->cols - c, STI_BF16_ROWS), dst,
                                  2 * j->dy_row);
            for (int i = 0; i < 2 * STI_BF16_PAIRS; i++)
                src[i] = src[i] ? src[i] + STI_BF16_ROWS : NULL;
        }
    }
}

/* Tile i of all (tap, input block) of the group: where its x lies. */
static int64_t tile_offset(const weight_job *j, int64_t i)
{
    const sti_conv_shape *s = j->shape;
    const int64_t tap = i / j->in_blocks, y = tap / s->kw, x = tap % s->kw;
    return y % s->stride * (j->raster_pairs / j->raster.phases) +
           (y / s->stride * j->raster.length * s->stride + x) * s->ci +
           i % j->in_blocks * STI_BF16_COLS;
}

/* All taps and channels over the group. */
static void group_tiles(const weight_piece *p, float *sum, bool load)
{
    static const int64_t zero_run[1] = {0};
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    const int64_t tiles = s->kh * s->kw * j->in_blocks;
    sti_bf16_tile t = {
        .rows = STI_BF16_ROWS,
        .load = load,
        .runs = 1,
        .blocks = group_blocks(p),
        .b = p->raster,
        .a_row = j->dy_row,
        .a_block = STI_BF16_PAIRS,
        .b_row = 2 * s->stride * s->ci,
        .a_run = zero_run,
        .a_turned = j->tiles->turn != NULL,
        .b_turned = j->tiles->turn != NULL,
        .b_odd = s->stride * s->ci,
        .live = p->finite ? p->live : NULL,
        .c_row = STI_BF16_COLS,
    };
    for (int64_t c = 0; c < p->cols; c += STI_BF16_ROWS)
        for (int64_t first = 0; first < tiles; first += STI_BF16_TILES) {
            t.count = (int)sti_conv_min(tiles - first, STI_BF16_TILES);
            t.a = (const sti_bf16_pair *)p->dy + c * j->dy_row;
            t.c = sum + c * STI_BF16_COLS;
            for (int i = 0; i < t.count; i++) {
                t.b_tile[i] = tile_offset(j, first + i);
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
            load_phase(p, phase);
        load_dy(p);
        group_tiles(p, sum, group > first);
    }
}

static void join(float *left, const float *right, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        left[i] += right[i];
}

/* The sums of a piece, [tap][input block][block][16], into their place in dw. */
static void store_sums(const weight_piece *p, float *dw)
{
    const weight_job *j = p->job;
    const sti_conv_shape *s = j->shape;
    for (int64_t i = 0; i < s->kh * s->kw * j->in_blocks; i++) {
        const int64_t tap = i / j->in_blocks, c = i % j->in_blocks * STI_BF16_COLS;
        for (int64_t f = 0; f < p->cols; f += STI_BF16_ROWS)
            j->loops->transpose_f32(sti_conv_min(p->cols - f, STI_BF16_ROWS),
                                    sti_conv_min(s->ci - c, STI_BF16_COLS),
                                    p->sums + (i * j->block + f) * STI_BF16_COLS,
                                    dw + (tap * s->ci + c) * s->co + p->j0 + f, s->co);
    }
}

static weight_piece piece_make(const weight_job *j, int64_t block, int worker)
{
    weight_piece p = {.job = j, .j0 = block * j->block};
    uint32_t *at = (uint32_t *)(void *)(j->scratch + (size_t)worker * j->worker_bytes);
    p.cols = sti_conv_min(j->block, j->shape->co - p.j0);
    p.raster = at;
    p.dy = at + j->raster_pairs;
    p.sums = (float *)(void *)(p.dy + j->dy_pairs);
    p.plain = (sti_bf16 *)(void *)(p.sums + j->sum_floats);
    p.live = (uint8_t *)(p.plain + 2 * j->plain_pairs);
    return p;
}

static void weight_piece_run(void *arg, int64_t piece, int worker)
{
    const weight_job *j = arg;
    const sti_conv_shape *s = j->shape;
    const int64_t slot = piece / j->blocks, first = slot * j->slot_chunks;
    const int64_t last = sti_conv_min(first + j->slot_chunks, j->chunks);
    const int64_t level = j->sum_floats / j->levels;
    weight_piece p = piece_make(j, piece % j->blocks, worker);
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
    weight_job j = weight_make(s);
    const int64_t weights = s->kh * s->kw * s->ci * s->co;
    j.x = x;
    j.dy = dy;
    j.dw = dw_out;
    j.tiles = sti_bf16_tiles_now();
    j.loops = sti_bf16_kernels_now();
    j.scratch = sti_conv_bf16_align(scratch);
    j.slots = (float *)(void *)(j.scratch + (size_t)team->threads * j.worker_bytes);
    sti_team_run(team, j.slot_count * j.blocks, weight_piece_run, &j);
    if (j.slot_count > 1)
        sti_team_run(team, sti_conv_ceil_div(weights, JOIN_FLOATS), join_slots, &j);
}
