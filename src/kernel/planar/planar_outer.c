/* Going over a tile by inputs: the sums of all filters of a piece lie in the first
 * cache, and every vector of inputs goes to the sums that want it. A chunk is up to
 * four kept taps of a kernel in their order; the chunks of a channel that keep the same
 * taps stand together in the list, so that their inputs are loaded once. First chunks
 * of kernels come before second ones, and channels one after another: a filter's chain
 * is by channel, then by tap.
 *
 * Packed weights: where the list of each block of each piece begins, in words, then the
 * lists (planar_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/lane/dispatch.h"
#include "kernel/planar/planar_priv.h"

enum {
    LANES = STI_PLANAR_LANES,
    SUMS_BYTES = 32 << 10, /* of a piece's sums, about the first cache */
    INPUT_BYTES = 8 << 10, /* of a tile's copied block */
    PIECES_LEAST = 4,      /* that threads may share */
    FILTERS_LEAST = 64,    /* that share the loads of inputs */
    TAP_BITS = 7,          /* of a tap's number in a key */
    NO_TAP = (1 << TAP_BITS) - 1,
    FILTER_BITS = 28
};

/* Where kernels keep fewer taps, sums are loaded and stored more often than is worth
 * it. */
bool sti_planar_outer_fits(const sti_planar_shape *s, const sti_planar_zeros *zeros)
{
    return s->kh * s->kw < NO_TAP && s->filters < 1 << FILTER_BITS &&
           zeros->kept >= 2 * zeros->chunks && zeros->chunks > 0;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- the plan ---- */

/* Windows of pooling do not go over the edge of a tile. */
static bool pools(const sti_planar_plan *p, int64_t rows, int64_t columns)
{
    return !p->shape.pool || (rows % 2 == 0 && (p->lanes == 1 || columns % 2 == 0));
}

/* Of one to four vectors, what hangs over the edges is computed for nothing, and the
 * fewer vectors the more is loaded beside. */
static void choose_tile(sti_planar_plan *p)
{
    const int64_t across = sti_planar_row_vectors(p), down = p->shape.oh;
    int64_t least = INT64_MAX;
    p->margins = p->lanes == LANES && p->shape.stride == 1;
    for (int64_t r = 1; r <= 4; r++)
        for (int64_t c = 1; r * c <= 4; c++) {
            const int64_t tiles = ceil_div(down, r) * ceil_div(across, c);
            const int64_t copied = (r + p->shape.kh - 1) * (c + p->shape.kw - 1);
            const int64_t cost = tiles * ((4 * r * c + 3) * 64 + copied);
            if (pools(p, r, c) && cost < least) {
                least = cost;
                p->rows = r;
                p->columns = c;
            }
        }
    p->tiles_y = ceil_div(down, p->rows);
    p->tiles_x = ceil_div(across, p->columns);
    p->vectors = p->rows * p->columns;
    p->sum_floats = p->vectors * LANES;
}

/* Sums of four where there are no more. */
static void choose_flat(sti_planar_plan *p)
{
    sti_planar_flat_shape(p);
    if (p->shape.oh * p->shape.ow * p->lanes <= 4)
        p->sum_floats = 4;
}

static void choose_block(sti_planar_plan *p)
{
    const sti_planar_shape *s = &p->shape;
    const int64_t each =
        p->flat ? s->kh * s->kw * p->sum_floats : sti_planar_channel_floats(p);
    int64_t block = INPUT_BYTES / (4 * each);
    block = p->flat || block > s->channels ? s->channels : block < 1 ? 1 : block;
    p->blocks = ceil_div(s->channels, block);
    p->block = ceil_div(s->channels, p->blocks);
    p->input_floats = p->block * each;
}

static int64_t tiles_of(const sti_planar_plan *p)
{
    return p->flat ? 1 : p->groups * p->tiles_y * p->tiles_x;
}

static void choose_pieces(sti_planar_plan *p)
{
    const int64_t filters = p->shape.filters;
    const int64_t most = SUMS_BYTES / (4 * p->sum_floats);
    int64_t pieces = ceil_div(PIECES_LEAST, tiles_of(p));
    pieces = pieces > filters / FILTERS_LEAST ? filters / FILTERS_LEAST : pieces;
    pieces = pieces < ceil_div(filters, most) ? ceil_div(filters, most) : pieces;
    p->filters = ceil_div(filters, pieces < 1 ? 1 : pieces);
    p->pieces = ceil_div(filters, p->filters);
}

static size_t starts_bytes(const sti_planar_plan *p)
{
    return (size_t)(p->pieces * p->blocks + 1) * sizeof(int32_t);
}

/* Of one thread: sums, a block of inputs, sources. */
static size_t worker_bytes(const sti_planar_plan *p)
{
    const int64_t input = p->flat ? 0 : p->input_floats;
    const int64_t sources = p->flat ? 0 : sti_planar_channel_floats(p) / LANES;
    return STI_ALIGN_UP((size_t)(p->filters * p->sum_floats + input) * sizeof(float) +
                            (size_t)sources * sizeof(sti_planar_source),
                        64);
}

static size_t shared_bytes(const sti_planar_plan *p)
{
    return p->flat ? STI_ALIGN_UP((size_t)p->input_floats * sizeof(float), 64) : 0;
}

void sti_planar_outer_plan(sti_planar_plan *p, const sti_planar_zeros *zeros,
                           int threads)
{
    p->outer = true;
    if (sti_planar_flat_fits(p))
        choose_flat(p);
    else
        choose_tile(p);
    choose_block(p);
    choose_pieces(p);
    p->weights_bytes = starts_bytes(p) + (size_t)zeros->words * sizeof(int32_t);
    p->scratch_bytes = shared_bytes(p) + worker_bytes(p) * (size_t)threads;
}

/* ---- weights ---- */

/* The list as it grows; only counted where `word` is NULL. */
typedef struct packer {
    const sti_planar_plan *plan;
    const float *w;
    uint64_t *chunk; /* of a channel: taps of its key, filter */
    int32_t *word;
    int64_t words;
} packer;

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int tap_of(uint64_t chunk, int k)
{
    return (int)(chunk >> (FILTER_BITS + TAP_BITS * (STI_PLANAR_TAPS - 1 - k))) &
           NO_TAP;
}

static int taps_of(uint64_t chunk)
{
    int taps = 0;
    while (taps < STI_PLANAR_TAPS && tap_of(chunk, taps) != NO_TAP)
        taps++;
    return taps;
}

/* The first chunk of a kernel after tap `from`; where it ends, or -1: there is none. */
static int64_t next_chunk(const packer *k, int64_t channel, int64_t filter,
                          int64_t from, uint64_t *chunk_out)
{
    const sti_planar_shape *s = &k->plan->shape;
    uint64_t chunk = 0;
    int taps = 0;
    int64_t t = from;
    for (; t < s->kh * s->kw && taps < STI_PLANAR_TAPS; t++)
        if (k->w[(t * s->channels + channel) * s->filters + filter] != 0) {
            chunk = chunk << TAP_BITS | (uint64_t)t;
            taps++;
        }
    if (taps == 0)
        return -1;
    for (; taps < STI_PLANAR_TAPS; taps++)
        chunk = chunk << TAP_BITS | NO_TAP;
    *chunk_out = chunk << FILTER_BITS | (uint64_t)filter;
    return t;
}

static int32_t offset_of(const sti_planar_plan *p, int64_t channel, int tap)
{
    const sti_planar_shape *s = &p->shape;
    if (p->flat)
        return (int32_t)((channel * s->kh * s->kw + tap) * p->sum_floats);
    return sti_planar_tap_offset(p, channel % p->block, tap / s->kw, tap % s->kw);
}

static void put(packer *k, int32_t word)
{
    if (k->word)
        k->word[k->words] = word;
    k->words++;
}

static void put_weights(packer *k, int64_t channel, uint64_t chunk)
{
    const sti_planar_shape *s = &k->plan->shape;
    const int64_t filter = (int64_t)(chunk & ((1u << FILTER_BITS) - 1));
    put(k, (int32_t)(filter % k->plan->filters));
    for (int t = 0; t < taps_of(chunk); t++) {
        const int64_t row = tap_of(chunk, t) * s->channels + channel;
        int32_t word;
        memcpy(&word, &k->w[row * s->filters + filter], sizeof word);
        put(k, word);
    }
}

/* Entries of the list, of sorted chunks. */
static void put_chunks(packer *k, int64_t channel, int64_t count)
{
    for (int64_t i = 0, end; i < count; i = end) {
        const int taps = taps_of(k->chunk[i]);
        end = i;
        while (end < count &&
               k->chunk[end] >> FILTER_BITS == k->chunk[i] >> FILTER_BITS)
            end++;
        put(k, taps);
        put(k, (int32_t)(end - i));
        for (int t = 0; t < taps; t++)
            put(k, offset_of(k->plan, channel, tap_of(k->chunk[i], t)));
        for (int64_t f = i; f < end; f++)
            put_weights(k, channel, k->chunk[f]);
    }
}

/* First the first chunks of kernels, then the second ones, and so on; `from` [filters]
 * is where each kernel's next one begins. */
static void put_channel(packer *k, int64_t piece, int64_t channel, int64_t *from)
{
    const sti_planar_plan *p = k->plan;
    const int64_t first = piece * p->filters, left = p->shape.filters - first;
    const int64_t filters = left < p->filters ? left : p->filters;
    int64_t count = 1;
    memset(from, 0, (size_t)filters * sizeof *from);
    while (count > 0) {
        count = 0;
        for (int64_t f = 0; f < filters; f++) {
            if (from[f] >= 0)
                from[f] = next_chunk(k, channel, first + f, from[f], &k->chunk[count]);
            count += from[f] >= 0;
        }
        qsort(k->chunk, (size_t)count, sizeof *k->chunk, by_value);
        put_chunks(k, channel, count);
    }
}

/* start NULL: only count. False: out of memory. */
static bool put_all(packer *k, int32_t *start)
{
    const sti_planar_plan *p = k->plan;
    int64_t *from = sti_alloc_array(p->filters, sizeof *from, "planar weights");
    k->chunk = sti_alloc_array(p->filters, sizeof *k->chunk, "planar weights");
    for (int64_t piece = 0; from && k->chunk && piece < p->pieces; piece++)
        for (int64_t c = 0; c < p->shape.channels; c++) {
            if (start && c % p->block == 0)
                start[piece * p->blocks + c / p->block] = (int32_t)k->words;
            put_channel(k, piece, c, from);
        }
    if (start)
        start[p->pieces * p->blocks] = (int32_t)k->words;
    const bool ok = from && k->chunk;
    sti_free(from);
    sti_free(k->chunk);
    return ok;
}

int64_t sti_planar_outer_words(const sti_planar_plan *p, const float *w)
{
    packer k = {.plan = p, .w = w};
    return put_all(&k, NULL) ? k.words : -1;
}

bool sti_planar_outer_pack(const sti_planar_plan *p, const float *w, void *packed_out)
{
    packer k = {
        .plan = p, .w = w, .word = (void *)((char *)packed_out + starts_bytes(p))};
    return put_all(&k, packed_out);
}

/* ---- running ---- */

typedef struct outer_job {
    const sti_planar_plan *plan;
    const sti_planar_kernels *kernels;
    const sti_planar_epilogue *epilogue;
    const float *x;
    const int32_t *start, *list;
    int64_t group; /* of a flat plan */
    float *input;  /* of a flat plan */
    float *y;
    char *scratch; /* of the workers */
} outer_job;

/* Tiles follow each other, so that the weights of a piece of filters stay near. */
static sti_planar_place place_of(const outer_job *job, int64_t tile)
{
    const sti_planar_plan *p = job->plan;
    if (p->flat)
        return (sti_planar_place){job->group, 0, 0};
    return (sti_planar_place){tile / p->tiles_x / p->tiles_y,
                              tile / p->tiles_x % p->tiles_y, tile % p->tiles_x};
}

static void copy_block(const outer_job *job, const sti_planar_place *place,
                       int64_t block, const sti_planar_source *source, float *input)
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
    copy.x = job->x + (place->group * s->channels + first) * copy.plane;
    job->kernels->copy(&copy, input);
}

static void add_blocks(const outer_job *job, const sti_planar_place *place,
                       const int32_t *start, float *sum)
{
    const sti_planar_plan *p = job->plan;
    float *input = sum + p->filters * p->sum_floats;
    sti_planar_source *source = (void *)(input + p->input_floats);
    sti_planar_inputs in = {p->flat ? job->input : input, p->sum_floats, {0}};
    const int64_t row =
        p->margins ? p->columns + p->shape.kw - 1 : p->columns; /* of vectors */
    for (int v = 0; v < p->vectors; v++)
        in.place[v] =
            (p->flat ? v : v / p->columns * row + v % p->columns) * (int64_t)LANES;
    if (!p->flat)
        sti_planar_sources(p, place, source);
    for (int64_t b = 0; b < p->blocks; b++) {
        if (!p->flat)
            copy_block(job, place, b, source, input);
        job->kernels->outer(&in, job->list + start[b], job->list + start[b + 1], sum);
    }
}

static void run_piece(void *arg, int64_t number, int worker)
{
    const outer_job *job = arg;
    const sti_planar_plan *p = job->plan;
    const int64_t piece = number / tiles_of(p), first = piece * p->filters;
    const int64_t left = p->shape.filters - first;
    const int64_t filters = left < p->filters ? left : p->filters;
    const sti_planar_place place = place_of(job, number % tiles_of(p));
    float *sum = (void *)(job->scratch + (size_t)worker * worker_bytes(p));
    memset(sum, 0, (size_t)(filters * p->sum_floats) * sizeof *sum);
    add_blocks(job, &place, job->start + piece * p->blocks, sum);
    sti_planar_finish(job->kernels, p, job->epilogue, &place, first, filters, sum,
                      job->y);
}

void sti_planar_outer_run(const sti_team *team, const sti_planar_plan *p,
                          const float *x, const void *packed,
                          const sti_planar_epilogue *epilogue, float *y_out,
                          void *scratch)
{
    const sti_planar_shape *s = &p->shape;
    outer_job job = {.plan = p,
                     .kernels = STI_KERNELS_NOW(sti_planar_kernels),
                     .epilogue = epilogue,
                     .x = x,
                     .start = packed,
                     .list = (const void *)((const char *)packed + starts_bytes(p)),
                     .input = scratch,
                     .y = y_out,
                     .scratch = (char *)scratch + shared_bytes(p)};
    for (int64_t g = 0; g < (p->flat ? p->groups : 1); g++) {
        job.group = g;
        if (p->flat)
            sti_planar_flat_lay(team, p, x + g * s->channels * s->h * s->w * p->lanes,
                                job.input);
        sti_team_take(team, p->pieces * tiles_of(p), run_piece, &job);
    }
}
