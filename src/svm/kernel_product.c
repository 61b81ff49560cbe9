#include "svm/kernel_product.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "net/tree_join.h"
#include "solve/low_rank.h"

enum { SHARDS_MOST = 16 };

/* A tile's side: rows of a range, and where they stand in the vectors. */
typedef struct band {
    sti_row_range rows;
    int64_t at;
    int range;
    int64_t index; /* in its range */
} band;

struct sti_kernel_product {
    const sti_team *team;
    sti_kernel_source source;
    const sti_kernel_store *store;
    sti_kernel_product_size size;
    band *bands;
    int64_t band_count, n;
    char *crossing;  /* [size.crossing] values of tiles between the ranges */
    double *made;    /* [threads] tiles, of doubles or of floats */
    double *partial; /* [bands, columns, STI_GRAM_TILE] of the band at work */
    double *blocks;  /* [slots, columns, n] sums of shards */
    sti_kernel_ranges ranges;
    const double *diagonal;
    bool all_kept;
    bool exact; /* tiles are made in double, though those kept are not */
    sti_kernel_columns *columns; /* for pivots whose tiles are not all there */
    sti_kernel_tile_cuda *tiles; /* on size.device, or NULL */
    sti_kernel_tile_band *sides; /* bands as the device wants them */
    double **results;            /* [size.columns] of a shard on the device */
    int64_t pivot_count;
    int64_t pivot[STI_LOW_RANK_BLOCK];
    /* of a call */
    int64_t row_band, count;
    int slot;
    const double *const *x;
    double *const *y;
};

static int64_t bands_most(int64_t n)
{
    return n / (STI_GRAM_TILE / 2) + 2;
}

static int64_t shards_of(int64_t bands)
{
    const int64_t shards = bands / 2;
    return shards < 1 ? 1 : shards > SHARDS_MOST ? SHARDS_MOST : shards;
}

static int slots_of(int64_t bands)
{
    return sti_shard_slots((sti_shard_range){0, shards_of(bands)}, 1);
}

/* Row bands before a shard: as many tiles in each. */
static int64_t shard_begin(int64_t bands, int64_t shard)
{
    const int64_t shards = shards_of(bands), tiles = bands * (bands + 1) / 2;
    int64_t at = 0;
    if (shard == shards)
        return bands;
    while (at * (at + 1) / 2 * shards < tiles * shard)
        at++;
    return at;
}

static sti_shard_range shards_of_rank(int64_t bands, int ranks, int rank)
{
    return sti_shard_part((sti_shard_range){0, shards_of(bands)}, ranks, rank);
}

sti_band_range sti_kernel_product_bands(int64_t n, int ranks, int rank)
{
    const int64_t bands = sti_band_count(n);
    const sti_shard_range own = shards_of_rank(bands, ranks, rank);
    return (sti_band_range){shard_begin(bands, own.first),
                            shard_begin(bands, own.first + own.count)};
}

/* ---- room ---- */

static int64_t block_values(const sti_kernel_product *p)
{
    return p->size.columns * p->size.n;
}

size_t sti_kernel_product_bytes(const sti_kernel_source *source,
                                sti_kernel_product_size size)
{
    const size_t bands = (size_t)bands_most(size.n), columns = (size_t)size.columns;
    const size_t blocks =
        (size_t)slots_of(bands_most(size.n)) * columns * (size_t)size.n;
    return bands * (sizeof(band) + columns * STI_GRAM_TILE * sizeof(double)) +
           (size.device
                ? bands * sizeof(sti_kernel_tile_band) + columns * sizeof(double *)
                : 0) +
           (size_t)size.crossing * sti_kernel_source_value_bytes(source) +
           blocks * sizeof(double) + (size_t)size.threads * STI_GRAM_TILE_BYTES +
           sti_kernel_columns_bytes(source->rows, size.threads);
}

/* Room on the device for selections of that size. */
static stint_status bring_device(sti_kernel_product *p)
{
    const sti_kernel_tile_cuda_desc desc = {.function = *p->source.function,
                                            .rows = p->source.rows,
                                            .places = p->size.n,
                                            .bands = bands_most(p->size.n),
                                            .vectors = p->size.columns};
    if (!p->size.device)
        return STINT_OK;
    p->sides = sti_alloc_array(desc.bands, sizeof *p->sides, "svm.sides");
    p->results = sti_alloc_array(desc.vectors, sizeof *p->results, "svm.results");
    return p->sides && p->results
               ? sti_svm_device_check(p->size.device->create(&desc, &p->tiles))
               : STINT_E_MEMORY;
}

stint_status sti_kernel_product_create(const sti_kernel_source *source,
                                       const sti_kernel_store *store,
                                       sti_kernel_product_size size,
                                       const sti_team *team,
                                       sti_kernel_product **product_out)
{
    const int64_t bands = bands_most(size.n);
    sti_kernel_product *p = sti_alloc(sizeof *p, "svm.product");
    if (!p)
        return STINT_E_MEMORY;
    p->team = team;
    p->source = *source;
    p->store = store;
    p->size = size;
    p->bands = sti_alloc_array(bands, sizeof *p->bands, "svm.bands");
    p->crossing = sti_alloc_array(size.crossing, sti_kernel_source_value_bytes(source),
                                  "svm.crossing");
    p->made = sti_alloc_array(size.threads, STI_GRAM_TILE_BYTES, "svm.tile");
    p->partial = sti_alloc_array(bands * size.columns, STI_GRAM_TILE * sizeof(double),
                                 "svm.partial");
    p->blocks = sti_alloc_array(slots_of(bands_most(size.n)),
                                (size_t)block_values(p) * sizeof(double), "svm.sums");
    stint_status st = STINT_E_MEMORY;
    if (p->bands && p->crossing && p->made && p->partial && p->blocks)
        st = sti_kernel_columns_create(source, size.threads, &p->columns);
    if (st == STINT_OK)
        st = bring_device(p);
    if (st == STINT_OK)
        *product_out = p;
    else
        sti_kernel_product_destroy(p);
    return st;
}

void sti_kernel_product_destroy(sti_kernel_product *p)
{
    if (!p)
        return;
    sti_free(p->bands);
    sti_free(p->crossing);
    sti_free(p->made);
    sti_free(p->partial);
    sti_free(p->blocks);
    sti_kernel_columns_destroy(p->columns);
    if (p->tiles)
        p->size.device->destroy(p->tiles);
    sti_free(p->sides);
    sti_free(p->results);
    sti_free(p);
}

/* ---- tiles ---- */

static stint_status look_for_stop(void)
{
    const stint_status st = sti_stop_asked();
    return st == STINT_OK ? st
                          : sti_fail(st, "stopped before the machine was solved; no "
                                         "model was written");
}

/* A tile between the ranges that is kept, or NULL. */
static void *crossing_tile(const sti_kernel_product *p, const band *u, const band *v)
{
    const int64_t at = sti_rectangle_values(
        p->ranges.rows[1].count, p->ranges.rows[0].count, u->index, v->index);
    const int64_t end = at + u->rows.count * sti_band_stride(v->rows);
    return end <= p->size.crossing
               ? p->crossing + (size_t)at * sti_kernel_source_value_bytes(&p->source)
               : NULL;
}

static const void *kept_tile(const sti_kernel_product *p, const band *u, const band *v)
{
    return u->range == v->range
               ? sti_kernel_store_tile(p->store, p->ranges.index[u->range], u->index,
                                       v->index)
               : crossing_tile(p, u, v);
}

static const void *find_tile(const sti_kernel_product *p, const band *u, const band *v,
                             int worker)
{
    sti_kernel_source source = p->source;
    const void *kept = p->exact ? NULL : kept_tile(p, u, v);
    if (kept)
        return kept;
    double *tile = p->made + (int64_t)worker * STI_GRAM_TILE * STI_GRAM_TILE;
    source.single = source.single && !p->exact;
    sti_kernel_source_tile(&source, u->rows, v->rows, tile,
                           sti_kernel_columns_scratch(p->columns, worker));
    return tile;
}

static void crossing_piece(void *arg, int64_t piece, int worker)
{
    const sti_kernel_product *p = arg;
    const band *u = &p->bands[p->row_band], *v = &p->bands[piece];
    void *tile = crossing_tile(p, u, v);
    if (tile)
        sti_kernel_source_tile(&p->source, u->rows, v->rows, tile,
                               sti_kernel_columns_scratch(p->columns, worker));
}

static stint_status select_on_device(sti_kernel_product *p)
{
    for (int64_t i = 0; i < p->band_count; i++)
        p->sides[i] = (sti_kernel_tile_band){p->bands[i].rows.begin,
                                             p->bands[i].rows.count, p->bands[i].at};
    return sti_svm_device_check(
        p->size.device->select(p->tiles, p->band_count, p->sides));
}

stint_status sti_kernel_product_select(sti_kernel_product *p,
                                       const sti_kernel_ranges *ranges,
                                       const double *diagonal)
{
    stint_status st = STINT_OK;
    p->ranges = *ranges;
    sti_kernel_columns_select(p->columns, ranges->rows);
    p->diagonal = diagonal;
    p->band_count = p->n = 0;
    for (int r = 0; r < 2; r++)
        for (int64_t i = 0; i < sti_band_count(ranges->rows[r].count); i++) {
            const sti_row_range rows = sti_band_of(ranges->rows[r], i);
            p->bands[p->band_count++] = (band){rows, p->n, r, i};
            p->n += rows.count;
        }
    if (p->tiles) {
        p->all_kept = false;
        return select_on_device(p);
    }
    const int64_t first = sti_band_count(ranges->rows[0].count);
    for (p->row_band = first; p->row_band < p->band_count && st == STINT_OK;
         p->row_band++) {
        sti_team_take(p->team, first, crossing_piece, p);
        st = look_for_stop();
    }
    p->all_kept = true;
    for (int64_t i = 0; i < p->band_count && p->all_kept; i++)
        for (int64_t j = 0; j <= i && p->all_kept; j++)
            p->all_kept = kept_tile(p, &p->bands[i], &p->bands[j]) != NULL;
    return st;
}

/* ---- products ---- */

static double *partial_of(const sti_kernel_product *p, int64_t j, int64_t column)
{
    return p->partial + (j * p->count + column) * STI_GRAM_TILE;
}

static double *block_of(const sti_kernel_product *p, int slot, int64_t column)
{
    return p->blocks + slot * block_values(p) + column * p->n;
}

/* Vectors of a call side by side, from a row of theirs on. */
enum { TOGETHER = 8 };

/* Tile (row band, piece), times all vectors; below the diagonal its transpose, too. */
static void tile_piece(void *arg, int64_t piece, int worker)
{
    const sti_kernel_product *p = arg;
    const band *u = &p->bands[p->row_band], *v = &p->bands[piece];
    const void *tile = find_tile(p, u, v, worker);
    const bool single = p->source.single && !p->exact;
    for (int64_t c = 0; c < p->count; c += TOGETHER) {
        const int64_t count = p->count - c < TOGETHER ? p->count - c : TOGETHER;
        const double *x[TOGETHER], *across[TOGETHER];
        double *y[TOGETHER], *down[TOGETHER];
        for (int64_t i = 0; i < count; i++) {
            x[i] = p->x[c + i] + v->at;
            across[i] = p->x[c + i] + u->at;
            y[i] = partial_of(p, piece, c + i);
            down[i] = block_of(p, p->slot, c + i) + v->at;
        }
        double *const *below = piece < p->row_band ? down : NULL;
        if (single)
            sti_gram_apply_f32(tile, sti_band_stride(v->rows), u->rows.count,
                               v->rows.count, count, x, y, across, below);
        else
            sti_gram_apply(tile, sti_band_stride(v->rows), u->rows.count, v->rows.count,
                           count, x, y, across, below);
    }
}

/* What the tiles of a row band gave, in ascending order, a column a piece. */
static void join_piece(void *arg, int64_t column, int worker)
{
    const sti_kernel_product *p = arg;
    const band *u = &p->bands[p->row_band];
    double *y = block_of(p, p->slot, column) + u->at;
    (void)worker;
    for (int64_t j = 0; j <= p->row_band; j++) {
        const double *part = partial_of(p, j, column);
        for (int64_t i = 0; i < u->rows.count; i++)
            y[i] += part[i];
    }
}

static void add_block(void *user, int into, int from)
{
    const sti_kernel_product *p = user;
    double *a = block_of(p, into, 0);
    const double *b = block_of(p, from, 0);
    for (int64_t i = 0; i < p->count * p->n; i++)
        a[i] += b[i];
}

/* A shard's bands on the device. */
static stint_status run_shard_on_device(const sti_kernel_product *p, int64_t shard,
                                        int slot)
{
    const bool single = p->source.single && !p->exact;
    const stint_status st = look_for_stop();
    if (st != STINT_OK)
        return st;
    for (int64_t c = 0; c < p->count; c++)
        p->results[c] = block_of(p, slot, c);
    return sti_svm_device_check(p->size.device->product(
        p->tiles, single, shard_begin(p->band_count, shard),
        shard_begin(p->band_count, shard + 1), p->count, p->x, p->results));
}

static stint_status run_shard(sti_kernel_product *p, int64_t shard, int slot)
{
    const int64_t end = shard_begin(p->band_count, shard + 1);
    if (p->tiles)
        return run_shard_on_device(p, shard, slot);
    p->slot = slot;
    memset(block_of(p, slot, 0), 0, sizeof(double) * (size_t)(p->count * p->n));
    for (p->row_band = shard_begin(p->band_count, shard); p->row_band < end;
         p->row_band++) {
        const stint_status st = look_for_stop();
        if (st != STINT_OK)
            return st;
        sti_team_take(p->team, p->row_band + 1, tile_piece, p);
        sti_team_run(p->team, p->count, join_piece, p);
    }
    return STINT_OK;
}

static void finish_piece(void *arg, int64_t column, int worker)
{
    const sti_kernel_product *p = arg;
    const double *sum = block_of(p, p->slot, column);
    (void)worker;
    memcpy(p->y[column], sum, sizeof *sum * (size_t)p->n);
    sti_gram_add_products(p->n, p->diagonal, p->x[column], p->y[column]);
}

static stint_status run_shards(sti_kernel_product *p, sti_shard_range shards,
                               sti_shard_stack *stack)
{
    for (int64_t i = 0; i < shards.count; i++) {
        const int slot = stack->depth;
        const stint_status st = run_shard(p, shards.first + i, slot);
        if (st != STINT_OK)
            return st;
        sti_shard_push(stack, shards.first + i, 1, slot, add_block, p);
    }
    return STINT_OK;
}

static stint_status run_alone(sti_kernel_product *p)
{
    sti_shard_stack stack = {.depth = 0};
    const stint_status st = run_shards(p, shards_of_rank(p->band_count, 1, 0), &stack);
    if (st == STINT_OK)
        p->slot = sti_shard_finish(&stack, add_block, p);
    return st;
}

static stint_status run_over_ranks(sti_kernel_product *p)
{
    sti_comm *comm = p->size.comm;
    sti_shard_stack stack = {.depth = 0};
    const sti_shard_range own =
        shards_of_rank(p->band_count, sti_comm_size(comm), sti_comm_rank(comm));
    const stint_status st = run_shards(p, own, &stack);
    if (st != STINT_OK)
        return sti_comm_give_up(comm, st);
    p->slot = 0;
    return sti_tree_join_f64(comm, shards_of(p->band_count), p->count * p->n, p->blocks,
                             block_values(p), &stack, add_block, p);
}

stint_status sti_kernel_product_run(void *arg, int64_t count, const double *const *x,
                                    double *const *y)
{
    sti_kernel_product *p = arg;
    p->count = count;
    p->x = x;
    p->y = y;
    const stint_status st = p->size.comm ? run_over_ranks(p) : run_alone(p);
    if (st != STINT_OK)
        return st;
    sti_team_run(p->team, count, finish_piece, p);
    return STINT_OK;
}

stint_status sti_kernel_product_run_exact(void *arg, int64_t count,
                                          const double *const *x, double *const *y)
{
    sti_kernel_product *p = arg;
    p->exact = true;
    const stint_status st = sti_kernel_product_run(p, count, x, y);
    p->exact = false;
    return st;
}

/* ---- columns of K ---- */

static const band *band_at(const sti_kernel_product *p, int64_t place)
{
    int64_t low = 0, high = p->band_count - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        if (p->bands[middle].at <= place)
            low = middle;
        else
            high = middle - 1;
    }
    return &p->bands[low];
}

void sti_kernel_product_diagonal(const sti_kernel_product *p, double *out)
{
    sti_kernel_columns_diagonal(p->columns, out);
}

/* Are all tiles there, of doubles, and have (u, v) and (v, u) the same bits? */
static bool can_read_columns(const sti_kernel_product *p)
{
    const sti_kernel_source *s = &p->source;
    const sti_gram_kind kind = s->function->kind;
    const bool apart = kind == STI_GRAM_LAPLACIAN || kind == STI_GRAM_CHI_SQUARED;
    return p->all_kept && !s->single && kind != STI_GRAM_PRECOMPUTED &&
           (s->rows->dense || !apart);
}

stint_status sti_kernel_product_pivots(void *arg, int64_t count, const int64_t *pivot)
{
    sti_kernel_product *p = arg;
    memcpy(p->pivot, pivot, sizeof *pivot * (size_t)count);
    p->pivot_count = count;
    return can_read_columns(p) ? look_for_stop()
                               : sti_kernel_columns_pivots(p->columns, count, pivot);
}

/* Rows of one band at the pivots, from the tiles that are there. */
static void read_columns(const sti_kernel_product *p, const band *u, int64_t begin,
                         int64_t rows, double *out, int64_t ld)
{
    for (int64_t k = 0; k < p->pivot_count; k++) {
        const band *v = band_at(p, p->pivot[k]);
        const bool below = u >= v; /* bands stand in order */
        const double *tile = below ? kept_tile(p, u, v) : kept_tile(p, v, u);
        const int64_t stride = sti_band_stride(below ? v->rows : u->rows);
        const int64_t i = begin - u->at, j = p->pivot[k] - v->at;
        for (int64_t r = 0; r < rows; r++)
            out[r * ld + k] =
                below ? tile[(i + r) * stride + j] : tile[j * stride + i + r];
    }
}

void sti_kernel_product_columns(void *arg, int64_t begin, int64_t rows, double *out,
                                int64_t ld, int worker)
{
    const sti_kernel_product *p = arg;
    if (!can_read_columns(p)) {
        sti_kernel_columns_get(p->columns, begin, rows, out, ld, worker);
        return;
    }
    for (int64_t done = 0, count; done < rows; done += count) {
        const band *u = band_at(p, begin + done);
        count = u->at + u->rows.count - (begin + done);
        count = count < rows - done ? count : rows - done;
        read_columns(p, u, begin + done, count, out + done * ld, ld);
    }
}
