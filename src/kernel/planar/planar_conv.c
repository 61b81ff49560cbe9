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

static bool is_tile(const sti_planar_plan *p, int64_t rows, int64_t columns)
{
    if (rows * columns > STI_PLANAR_VECTORS)
        return false;
    if (!p->margins)
        return true;
    return (rows == 1 || rows == 2 || rows == 4) &&
           (columns == 1 || columns == 2 || columns == 4);
}

/* The tile that wastes least: what hangs over the edges is computed for nothing, and
 * every tile costs about 1.5 vectors beside. */
static void choose_tile(sti_planar_plan *p)
{
    const int64_t across = sti_planar_row_vectors(p), down = p->shape.oh;
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

static void choose_block(sti_planar_plan *p, int64_t kept)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t each = sti_planar_channel_floats(p);
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

/* Where a block's filters begin in the list of taps, and the end. */
static int64_t starts(const sti_planar_plan *p)
{
    return p->blocks * p->shape.filters + 1;
}

static size_t starts_bytes(const sti_planar_plan *p)
{
    return STI_ALIGN_UP((size_t)starts(p) * sizeof(int32_t), 8);
}

static size_t worker_bytes(const sti_planar_plan *p)
{
    const int64_t floats = p->input_floats + p->filters * p->sum_floats;
    const int64_t sources = sti_planar_channel_floats(p) / LANES;
    return STI_ALIGN_UP((size_t)floats * sizeof(float) +
                            (size_t)sources * sizeof(sti_planar_source),
                        64);
}

static void plan_chains(sti_planar_plan *p, const sti_planar_zeros *zeros, int threads)
{
    p->margins = p->lanes == LANES && p->shape.stride == 1;
    choose_tile(p);
    p->vectors = p->rows * p->columns;
    p->sum_floats = p->vectors * LANES;
    choose_block(p, zeros->kept);
    choose_pieces(p);
    p->weights_bytes = starts_bytes(p) + (size_t)zeros->kept * sizeof(sti_planar_tap);
    p->scratch_bytes = worker_bytes(p) * (size_t)threads;
}

sti_planar_plan sti_planar_plan_of(const sti_planar_shape *shape,
                                   const sti_planar_zeros *zeros, int threads)
{
    sti_planar_plan p = {.shape = *shape, .lanes = sti_planar_lanes(shape->n)};
    p.groups = ceil_div(shape->n, p.lanes);
    if (sti_planar_outer_fits(shape, zeros))
        sti_planar_outer_plan(&p, zeros, threads);
    else if (sti_planar_flat_fits(&p))
        sti_planar_flat_plan(&p, zeros, threads);
    else
        plan_chains(&p, zeros, threads);
    return p;
}

/* ---- weights ---- */

bool sti_planar_look(const sti_planar_shape *s, const float *w,
                     sti_planar_zeros *zeros_out)
{
    sti_planar_zeros zeros = {.kept = 0};
    const int64_t kernels = s->channels * s->filters;
    for (int64_t k = 0; k < kernels; k++) {
        int64_t count = 0;
        for (int64_t t = 0; t < s->kh * s->kw; t++)
            count += w[t * kernels + k] != 0;
        zeros.kept += count;
        zeros.chunks += ceil_div(count, STI_PLANAR_TAPS);
    }
    if (!sti_planar_flat_steps(w, s->kh * s->kw * s->channels, s->filters, zeros.steps))
        return false;
    if (sti_planar_outer_fits(s, &zeros)) {
        const sti_planar_plan p = sti_planar_plan_of(s, &zeros, 1);
        zeros.words = sti_planar_outer_words(&p, w);
    }
    *zeros_out = zeros;
    return zeros.words >= 0;
}

static void pack_filter(const sti_planar_plan *p, const float *w, int64_t block,
                        int64_t filter, sti_planar_tap *tap, int32_t *count)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t first = block * p->block;
    const int64_t last =
        first + p->block < s->channels ? first + p->block : s->channels;
    for (int64_t c = first; c < last; c++)
        for (int64_t t = 0; t < s->kh * s->kw; t++) {
            const float weight = w[(t * s->channels + c) * s->filters + filter];
            if (weight != 0)
                tap[(*count)++] = (sti_planar_tap){
                    sti_planar_tap_offset(p, c - first, t / s->kw, t % s->kw), weight};
        }
}

bool sti_planar_pack(const sti_planar_plan *p, const float *w, void *packed_out)
{
    if (p->outer)
        return sti_planar_outer_pack(p, w, packed_out);
    if (p->flat)
        return sti_planar_flat_pack(p, w, packed_out);
    int32_t *start = packed_out, count = 0;
    sti_planar_tap *list = (void *)((char *)packed_out + starts_bytes(p));
    for (int64_t b = 0; b < p->blocks; b++)
        for (int64_t f = 0; f < p->shape.filters; f++) {
            *start++ = count;
            pack_filter(p, w, b, f, list, &count);
        }
    *start = count;
    return true;
}

/* ---- running ---- */

typedef struct conv_job {
    const sti_planar_plan *plan;
    const sti_planar_kernels *kernels;
    const float *x;
    const int32_t *start;
    const sti_planar_tap *list;
    const sti_planar_epilogue *epilogue;
    float *y;
    char *scratch;
} conv_job;

/* Where a piece lies. */
typedef struct conv_piece {
    sti_planar_place place;
    int64_t first, last; /* filters */
} conv_piece;

static conv_piece piece_of(const sti_planar_plan *p, int64_t piece)
{
    conv_piece at;
    at.first = piece % p->pieces * p->filters;
    at.last = at.first + p->filters < p->shape.filters ? at.first + p->filters
                                                       : p->shape.filters;
    piece /= p->pieces;
    at.place.tile_x = piece % p->tiles_x;
    piece /= p->tiles_x;
    at.place.tile_y = piece % p->tiles_y;
    at.place.group = piece / p->tiles_y;
    return at;
}

static void copy_block(const conv_job *job, const conv_piece *at, int64_t block,
                       const sti_planar_source *source, float *input)
{
    const sti_planar_plan *p = job->plan;
    const sti_planar_shape *s = &p->shape;
    const int64_t first = block * p->block, left = s->channels - first;
    sti_planar_copy copy = {.plane = s->h * s->w * p->lanes,
                            .channels = left < p->block ? left : p->block,
                            .source = source,
                            .vectors = sti_planar_channel_floats(p) / LANES,
                            .step = p->lanes == 1 ? s->stride : 1};
    copy.ahead = copy.channels * copy.plane;
    copy.x = job->x + (at->place.group * s->channels + first) * copy.plane;
    job->kernels->copy(&copy, input);
}

static void add_block(const conv_job *job, const conv_piece *at, int64_t block,
                      const float *input, float *sum)
{
    const sti_planar_plan *p = job->plan;
    sti_planar_tile tile = {.rows = p->margins ? p->rows : 1,
                            .columns = p->margins ? p->columns : p->vectors,
                            .row_floats = (p->columns + p->shape.kw - 1) * LANES,
                            .x = input,
                            .first = block == 0,
                            .sum = sum};
    for (int64_t f = at->first; f < at->last; f++, tile.sum += p->sum_floats) {
        const int32_t *start = job->start + block * p->shape.filters + f;
        const int64_t count = start[1] - start[0];
        if (count > 0 || block == 0)
            job->kernels->taps(&tile, job->list + start[0], count);
    }
}

static void run_piece(void *arg, int64_t piece, int worker)
{
    const conv_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const conv_piece at = piece_of(p, piece);
    float *sum = (void *)(job->scratch + (size_t)worker * worker_bytes(p));
    float *input = sum + p->filters * p->sum_floats;
    sti_planar_source *source = (void *)(input + p->input_floats);
    sti_planar_sources(p, &at.place, source);
    for (int64_t b = 0; b < p->blocks; b++) {
        copy_block(job, &at, b, source, input);
        add_block(job, &at, b, input, sum);
    }
    sti_planar_finish(job->kernels, p, job->epilogue, &at.place, at.first,
                      at.last - at.first, sum, job->y);
}

void sti_planar_conv_f32(const sti_team *team, const sti_planar_plan *plan,
                         const float *x, const void *packed,
                         const sti_planar_epilogue *epilogue, float *y_out,
                         void *scratch)
{
    if (plan->outer) {
        sti_planar_outer_run(team, plan, x, packed, epilogue, y_out, scratch);
        return;
    }
    if (plan->flat) {
        sti_planar_flat_run(team, plan, x, packed, epilogue, y_out, scratch);
        return;
    }
    conv_job job = {.plan = plan,
                    .kernels = STI_KERNELS_NOW(sti_planar_kernels),
                    .x = x,
                    .start = packed,
                    .list = (const void *)((const char *)packed + starts_bytes(plan)),
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
