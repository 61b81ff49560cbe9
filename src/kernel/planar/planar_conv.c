#include "kernel/planar/planar.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/lane/dispatch.h"
#include "kernel/planar/planar_priv.h"

enum {
    LANES = STI_PLANAR_LANES,
    NEAR_BYTES = 80 << 10, /* of a tile's block, to stay in the first cache */
    TAPS_LEAST = 12,       /* of a filter a block: sums are loaded and stored beside */
    PIECES_LEAST = 16,     /* that threads may share */
    FILTERS_LEAST = 32     /* that share a tile's copies */
};

int64_t sti_planar_lanes(int64_t n)
{
    const int64_t filled = (n + LANES - 1) / LANES * LANES;
    return 4 * filled <= 5 * n || n % LANES >= 12 ? LANES : 1;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- the plan ---- */

/* Columns of vectors in a row of outputs. */
static int64_t row_vectors(const sti_planar_plan *p)
{
    return p->lanes == 1 ? ceil_div(p->shape.ow, LANES) : p->shape.ow;
}

static bool is_tile(const sti_planar_plan *p, int64_t rows, int64_t columns)
{
    if (rows * columns > STI_PLANAR_VECTORS)
        return false;
    if (!p->margins)
        return true;
    const bool powers = (rows == 1 || rows == 2 || rows == 4) &&
                        (columns == 1 || columns == 2 || columns == 4);
    return powers && (!p->shaped || (rows > 1 && columns >= rows));
}

/* The tile that wastes least: what hangs over the edges is computed for nothing, and
 * every tile costs about 1.5 vectors beside. */
static void choose_tile(sti_planar_plan *p)
{
    const int64_t across = row_vectors(p), down = p->shape.oh;
    int64_t least = INT64_MAX;
    for (int64_t r = 1; r <= STI_PLANAR_VECTORS; r++)
        for (int64_t c = 1; c <= STI_PLANAR_VECTORS; c++) {
            const int64_t tiles = ceil_div(down, r) * ceil_div(across, c);
            const int64_t copied = (r + p->shape.kh - 1) * c; /* breaks ties */
            const int64_t cost = tiles * (2 * r * c + 3) * 1024 + tiles * copied;
            if (is_tile(p, r, c) && cost < least) {
                least = cost;
                p->rows = r;
                p->columns = c;
            }
        }
    p->tiles_y = ceil_div(down, p->rows);
    p->tiles_x = ceil_div(across, p->columns);
}

/* Floats of one channel of a tile's block. */
static int64_t channel_floats(const sti_planar_plan *p)
{
    const sti_planar_shape *s = &p->shape;
    if (p->margins)
        return (p->rows + s->kh - 1) * (p->columns + s->kw - 1) * LANES;
    const int64_t rows = s->stride == 1 ? p->rows + s->kh - 1 : p->rows * s->kh;
    return s->kw * rows * p->columns * LANES;
}

static void choose_block(sti_planar_plan *p, int64_t kept)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t each = channel_floats(p);
    int64_t block = NEAR_BYTES / (4 * each);
    const int64_t enough = kept > 0 ? TAPS_LEAST * s->filters * s->channels / kept : 1;
    block = block < enough ? enough : block;
    block = block < 1 ? 1 : block > s->channels ? s->channels : block;
    p->blocks = ceil_div(s->channels, block);
    p->block = ceil_div(s->channels, p->blocks);
    p->input_floats = p->block * each;
}

/* By shape alone: pieces are the same for any team. */
static void choose_pieces(sti_planar_plan *p)
{
    const int64_t filters = p->shape.filters,
                  tiles = p->groups * p->tiles_y * p->tiles_x;
    int64_t pieces = tiles < PIECES_LEAST ? ceil_div(PIECES_LEAST, tiles) : 1;
    const int64_t most = ceil_div(filters, FILTERS_LEAST);
    pieces = pieces > most ? most : pieces;
    p->filters = ceil_div(filters, pieces);
    p->pieces = ceil_div(filters, p->filters);
}

static int64_t sum_floats(const sti_planar_plan *p)
{
    return p->rows * p->columns * LANES;
}

/* Where a block's filters begin in the list of taps, and the end. */
static int64_t starts(const sti_planar_plan *p)
{
    return p->blocks * p->shape.filters + 1;
}

static size_t starts_bytes(const sti_planar_plan *p)
{
    return STI_ALIGN_UP((size_t)starts(p) * sizeof(int32_t), 8);
}

/* A block's kernels of one filter as taps, for instruction sets without bodies. */
static int64_t spread_taps(const sti_planar_plan *p)
{
    return p->shaped ? 4 * p->block : 0;
}

static size_t worker_bytes(const sti_planar_plan *p)
{
    const int64_t floats = p->input_floats + p->filters * sum_floats(p);
    return STI_ALIGN_UP((size_t)floats * sizeof(float) +
                            (size_t)spread_taps(p) * sizeof(sti_planar_tap),
                        64);
}

sti_planar_plan sti_planar_plan_of(const sti_planar_shape *shape,
                                   const sti_planar_zeros *zeros, int threads)
{
    sti_planar_plan p = {.shape = *shape, .lanes = sti_planar_lanes(shape->n)};
    p.groups = ceil_div(shape->n, p.lanes);
    if (sti_planar_flat_fits(&p)) {
        sti_planar_flat_plan(&p, zeros, threads);
        return p;
    }
    p.margins = p.lanes == LANES && shape->stride == 1;
    p.shaped = p.margins && zeros->four;
    choose_tile(&p);
    choose_block(&p, zeros->kept);
    choose_pieces(&p);
    p.weights_bytes = starts_bytes(&p) +
                      (p.shaped ? (size_t)zeros->kernels * sizeof(sti_planar_kernel)
                                : (size_t)zeros->kept * sizeof(sti_planar_tap));
    p.scratch_bytes = worker_bytes(&p) * (size_t)threads;
    return p;
}

/* ---- weights ---- */

static int64_t taps_of(const float *w, int64_t taps, int64_t kernels, int64_t kernel)
{
    int64_t count = 0;
    for (int64_t t = 0; t < taps; t++)
        count += w[t * kernels + kernel] != 0;
    return count;
}

bool sti_planar_look(const float *w, int64_t kh, int64_t kw, int64_t channels,
                     int64_t filters, sti_planar_zeros *zeros_out)
{
    sti_planar_zeros zeros = {.four = kh == 3 && kw == 3};
    for (int64_t k = 0; k < channels * filters; k++) {
        const int64_t count = taps_of(w, kh * kw, channels * filters, k);
        zeros.kept += count;
        zeros.kernels += count > 0;
        zeros.four &= count <= 4;
    }
    *zeros_out = zeros;
    return sti_planar_flat_steps(w, kh * kw * channels, filters, zeros_out->steps);
}

/* Where the inputs of tap (i, j) begin, of the channel-th channel of a block. */
static int32_t tap_offset(const sti_planar_plan *p, int64_t channel, int64_t i,
                          int64_t j)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t row = p->columns * LANES;
    if (p->margins)
        return (int32_t)(channel * channel_floats(p) +
                         (i * (p->columns + s->kw - 1) + j) * LANES);
    if (s->stride == 1)
        return (int32_t)(((channel * s->kw + j) * (p->rows + s->kh - 1) + i) * row);
    return (int32_t)(((channel * s->kw + j) * s->kh + i) * p->rows * row);
}

/* The weights of kernel (channel, filter), [kh * kw]. */
typedef struct kernel_view {
    const float *w;
    int64_t step;
} kernel_view;

static void pack_taps(const sti_planar_plan *p, kernel_view w, int64_t channel,
                      sti_planar_tap *tap, int32_t *count)
{
    const sti_planar_shape *s = &p->shape;
    for (int64_t t = 0; t < s->kh * s->kw; t++)
        if (w.w[t * w.step] != 0)
            tap[(*count)++] = (sti_planar_tap){
                tap_offset(p, channel, t / s->kw, t % s->kw), w.w[t * w.step]};
}

/* Fewer than four taps are filled up by the first others, of weight 0. */
static void pack_kernel(const sti_planar_plan *p, kernel_view w, int64_t channel,
                        sti_planar_kernel *kernel, int32_t *count)
{
    int shape = 0, taps = 0;
    for (int t = 0; t < 9; t++)
        shape |= (w.w[t * w.step] != 0) << t;
    if (shape == 0)
        return;
    for (int t = 0; __builtin_popcount((unsigned)shape) < 4; t++)
        shape |= 1 << t;
    sti_planar_kernel *k = &kernel[(*count)++];
    k->offset = tap_offset(p, channel, 0, 0);
    k->shape = shape;
    for (int t = 0; t < 9; t++)
        if (shape >> t & 1)
            k->weight[taps++] = w.w[t * w.step];
}

static void pack_filter(const sti_planar_plan *p, const float *w, int64_t block,
                        int64_t filter, void *list, int32_t *count)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t first = block * p->block;
    const int64_t last =
        first + p->block < s->channels ? first + p->block : s->channels;
    for (int64_t c = first; c < last; c++) {
        const kernel_view view = {w + c * s->filters + filter,
                                  s->channels * s->filters};
        if (p->shaped)
            pack_kernel(p, view, c - first, list, count);
        else
            pack_taps(p, view, c - first, list, count);
    }
}

bool sti_planar_pack(const sti_planar_plan *p, const float *w, void *packed_out)
{
    if (p->flat)
        return sti_planar_flat_pack(p, w, packed_out);
    int32_t *start = packed_out, count = 0;
    void *list = (char *)packed_out + starts_bytes(p);
    for (int64_t b = 0; b < p->blocks; b++)
        for (int64_t f = 0; f < p->shape.filters; f++) {
            *start++ = count;
            pack_filter(p, w, b, f, list, &count);
        }
    *start = count;
    return true;
}

/* ---- a tile's inputs ---- */

/* `width` pixels (with one image: floats) of a row of inputs from `column` on, every
 * stride-th one, zeros outside. row NULL: a row outside. */
static void copy_row(const sti_planar_plan *p, const float *row, int64_t column,
                     int64_t width, float *out)
{
    const sti_planar_shape *s = &p->shape;
    const size_t each = (size_t)p->lanes * sizeof(float);
    int64_t from = 0, to = row ? width : 0; /* pixels that are inside */
    while (from < to && column + from * s->stride < 0)
        from++;
    while (to > from && column + (to - 1) * s->stride >= s->w)
        to--;
    memset(out, 0, (size_t)from * each);
    memset(out + to * p->lanes, 0, (size_t)(width - to) * each);
    if (to == from)
        return;
    if (s->stride == 1)
        memcpy(out + from * p->lanes, row + (column + from) * p->lanes,
               (size_t)(to - from) * each);
    else if (p->lanes == 1)
        for (int64_t i = from; i < to; i++)
            out[i] = row[column + i * s->stride];
    else
        for (int64_t i = from; i < to; i++)
            memcpy(out + i * p->lanes, row + (column + i * s->stride) * p->lanes, each);
}

/* Where a tile's inputs begin. */
typedef struct corner {
    int64_t top, left;
} corner;

/* `rows` rows of one channel, a stride apart. */
static float *copy_rows(const sti_planar_plan *p, const float *x, corner at,
                        int64_t rows, int64_t width, float *out)
{
    const sti_planar_shape *s = &p->shape;
    for (int64_t r = 0; r < rows; r++, out += width * p->lanes) {
        const int64_t y = at.top + r * s->stride;
        const bool inside = y >= 0 && y < s->h;
        copy_row(p, inside ? x + y * s->w * p->lanes : NULL, at.left, width, out);
    }
    return out;
}

/* One channel: with its margins; or columns of taps, rows of taps (but with stride 1,
 * where they share rows), rows of the tile. */
static void copy_channel(const sti_planar_plan *p, const float *x, corner at,
                         float *out)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t width = p->lanes == 1 ? p->columns * LANES : p->columns;
    if (p->margins) {
        copy_rows(p, x, at, p->rows + s->kh - 1, width + s->kw - 1, out);
        return;
    }
    for (int64_t j = 0; j < s->kw; j++) {
        const corner column = {at.top, at.left + j};
        if (s->stride == 1)
            out = copy_rows(p, x, column, p->rows + s->kh - 1, width, out);
        for (int64_t i = 0; i < s->kh && s->stride > 1; i++)
            out =
                copy_rows(p, x, (corner){at.top + i, column.left}, p->rows, width, out);
    }
}

/* ---- running ---- */

typedef struct conv_job {
    const sti_planar_plan *plan;
    const sti_planar_kernels *kernels;
    const float *x;
    const int32_t *start;
    const void *list; /* of taps, or of kernels */
    const sti_planar_epilogue *epilogue;
    float *y;
    char *scratch;
} conv_job;

/* Where a piece lies. */
typedef struct conv_piece {
    int64_t group, tile_y, tile_x, first, last; /* filters */
} conv_piece;

static conv_piece piece_of(const sti_planar_plan *p, int64_t piece)
{
    conv_piece at;
    at.first = piece % p->pieces * p->filters;
    at.last = at.first + p->filters < p->shape.filters ? at.first + p->filters
                                                       : p->shape.filters;
    piece /= p->pieces;
    at.tile_x = piece % p->tiles_x;
    piece /= p->tiles_x;
    at.tile_y = piece % p->tiles_y;
    at.group = piece / p->tiles_y;
    return at;
}

static corner corner_of(const sti_planar_plan *p, const conv_piece *at)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t unit = p->lanes == 1 ? LANES : 1;
    return (corner){at->tile_y * p->rows * s->stride - s->pad,
                    at->tile_x * p->columns * unit * s->stride - s->pad};
}

static void copy_block(const conv_job *job, const conv_piece *at, int64_t block,
                       float *input)
{
    const sti_planar_plan *p = job->plan;
    const sti_planar_shape *s = &p->shape;
    const int64_t first = block * p->block, plane = s->h * s->w * p->lanes;
    const corner from = corner_of(p, at);
    for (int64_t c = 0; c < p->block && first + c < s->channels; c++)
        copy_channel(p, job->x + (at->group * s->channels + first + c) * plane, from,
                     input + c * channel_floats(p));
}

/* Kernels as taps. */
static void add_kernels(const conv_job *job, const sti_planar_tile *tile,
                        const sti_planar_kernel *kernel, int64_t count,
                        sti_planar_tap *tap)
{
    int64_t taps = 0;
    if (job->kernels->kernels) {
        job->kernels->kernels(tile, kernel, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (int t = 0, k = 0; t < 9; t++)
            if (kernel[i].shape >> t & 1)
                tap[taps++] = (sti_planar_tap){
                    kernel[i].offset + tap_offset(job->plan, 0, t / 3, t % 3),
                    kernel[i].weight[k++]};
    job->kernels->taps(tile, tap, taps);
}

static void add_block(const conv_job *job, const conv_piece *at, int64_t block,
                      float *input, float *sum, sti_planar_tap *spread)
{
    const sti_planar_plan *p = job->plan;
    const int64_t floats = sum_floats(p), width = p->columns + p->shape.kw - 1;
    sti_planar_tile tile = {.rows = p->margins ? p->rows : 1,
                            .columns = p->margins ? p->columns : p->rows * p->columns,
                            .row_floats = width * LANES,
                            .x = input,
                            .first = block == 0,
                            .sum = sum};
    copy_block(job, at, block, input);
    for (int64_t f = at->first; f < at->last; f++, tile.sum += floats) {
        const int32_t *start = job->start + block * p->shape.filters + f;
        const int64_t count = start[1] - start[0];
        if (count == 0 && block > 0)
            continue;
        if (p->shaped)
            add_kernels(job, &tile, (const sti_planar_kernel *)job->list + start[0],
                        count, spread);
        else
            job->kernels->taps(&tile, (const sti_planar_tap *)job->list + start[0],
                               count);
    }
}

static void finish_filter(const conv_job *job, const conv_piece *at, int64_t f,
                          const float *sum)
{
    const sti_planar_plan *p = job->plan;
    const sti_planar_shape *s = &p->shape;
    const sti_planar_epilogue *e = job->epilogue;
    const int64_t unit = p->lanes == 1 ? LANES : 1;
    const int64_t x0 = at->tile_x * p->columns * unit;
    const int64_t width =
        s->ow - x0 < p->columns * unit ? s->ow - x0 : p->columns * unit;
    for (int64_t r = 0; r < p->rows && at->tile_y * p->rows + r < s->oh; r++) {
        const int64_t row = (at->group * s->filters + f) * s->oh + at->tile_y * p->rows;
        const int64_t to = ((row + r) * s->ow + x0) * p->lanes;
        job->kernels->finish(
            width * p->lanes, sum + r * p->columns * LANES,
            e->scale ? e->scale + f : NULL, e->shift ? e->shift + f : NULL,
            e->residual ? e->residual + to : NULL, e->relu, job->y + to);
    }
}

static void run_piece(void *arg, int64_t piece, int worker)
{
    const conv_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const conv_piece at = piece_of(p, piece);
    float *sum = (void *)(job->scratch + (size_t)worker * worker_bytes(p));
    float *input = sum + p->filters * sum_floats(p);
    sti_planar_tap *spread = (void *)(input + p->input_floats);
    for (int64_t b = 0; b < p->blocks; b++)
        add_block(job, &at, b, input, sum, spread);
    for (int64_t f = at.first; f < at.last; f++)
        finish_filter(job, &at, f, sum + (f - at.first) * sum_floats(p));
}

void sti_planar_conv_f32(const sti_team *team, const sti_planar_plan *plan,
                         const float *x, const void *packed,
                         const sti_planar_epilogue *epilogue, float *y_out,
                         void *scratch)
{
    if (plan->flat) {
        sti_planar_flat_run(team, plan, x, packed, epilogue, y_out, scratch);
        return;
    }
    conv_job job = {.plan = plan,
                    .kernels = STI_KERNELS_NOW(sti_planar_kernels),
                    .x = x,
                    .start = packed,
                    .list = (const char *)packed + starts_bytes(plan),
                    .epilogue = epilogue,
                    .y = y_out,
                    .scratch = scratch};
    sti_team_take(team, plan->groups * plan->tiles_y * plan->tiles_x * plan->pieces,
                  run_piece, &job);
}

/* ---- between the layouts ---- */

typedef struct layout_job {
    int64_t n, area, c, lanes;
    const float *from;
    float *to;
    bool back;
} layout_job;

/* One group: pixel (image, p, channel) of the one and of the other layout. */
static void layout_piece(void *arg, int64_t group, int worker)
{
    const layout_job *j = arg;
    (void)worker;
    for (int64_t c = 0; c < j->c; c++)
        for (int64_t p = 0; p < j->area; p++)
            for (int64_t l = 0; l < j->lanes; l++) {
                const int64_t image = group * j->lanes + l;
                const int64_t last = (image * j->area + p) * j->c + c;
                const int64_t planar =
                    ((group * j->c + c) * j->area + p) * j->lanes + l;
                if (!j->back)
                    j->to[planar] = image < j->n ? j->from[last] : 0;
                else if (image < j->n)
                    j->to[last] = j->from[planar];
            }
}

void sti_planar_from_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                         int64_t lanes, const float *x, float *planar_out)
{
    layout_job job = {n, area, c, lanes, x, planar_out, false};
    sti_team_take(team, ceil_div(n, lanes), layout_piece, &job);
}

void sti_planar_to_f32(const sti_team *team, int64_t n, int64_t area, int64_t c,
                       int64_t lanes, const float *planar, float *x_out)
{
    layout_job job = {n, area, c, lanes, planar, x_out, true};
    sti_team_take(team, ceil_div(n, lanes), layout_piece, &job);
}
