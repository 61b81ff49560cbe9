#include "svm/smo_rows.h"

#include <string.h>

#include "base/memory.h"
#include "kernel/pair/pair.h"
#include "net/shard_tree.h"
#include "svm/svm_rows.h"

enum { TILE = STI_GRAM_TILE };

/* What a thread works in. */
typedef struct bench {
    double *tile;      /* [TILE, TILE] */
    float *floats;     /* [TILE, TILE] */
    char *scratch;     /* of sti_gram_tile */
    sti_svm_rows side; /* columns that are not one run of rows */
} bench;

struct sti_smo_rows {
    const sti_team *team;
    const sti_gram_rows *rows;
    const sti_gram_function *function;
    int64_t most, n; /* points at most; of this problem */
    sti_row_range range[2];
    bench *benches;            /* [threads] */
    sti_svm_rows upper;        /* the rows that are made */
    int32_t *column;           /* [columns] points */
    int64_t columns, from, to; /* of them; those that this rank makes */
    int32_t *place;            /* [n] of a point among the columns, or -1 */
    /* rows that are kept */
    float *store;
    int64_t store_floats, slots, used; /* rows of `columns` floats */
    int32_t *slot_of;                  /* [n] or -1 */
    int32_t *point_of;                 /* [slots] */
    int64_t *stamp;                    /* [slots] of the last use */
    int64_t now, hand, passed; /* calls; the next slot to give up, and those tried */
    /* of a call: a block of at most TILE rows */
    const int32_t *point; /* [count] */
    const double *factor;
    double *out;
    int64_t count, made;        /* rows; of them made here */
    int32_t made_row[TILE];     /* places in point */
    int64_t side_count, stride; /* of sti_smo_rows_block */
    const int32_t *side_point;
    float *block;
    /* ranks that share the sums, or NULL */
    sti_comm *comm;
    double *travelling; /* [most] sums on their way between them */
    stint_status status;
};

/* ---- life ---- */

size_t sti_smo_rows_bytes(const sti_gram_rows *rows, int64_t n, int threads)
{
    const size_t scratch = STI_ALIGN_UP(sti_gram_scratch_bytes(rows), 64);
    return (size_t)n * 24 + sti_svm_rows_gather_bytes(rows, TILE) +
           (size_t)threads * (STI_GRAM_TILE_BYTES + STI_GRAM_TILE_BYTES / 2 + scratch +
                              sti_svm_rows_gather_bytes(rows, TILE));
}

static stint_status make_bench(const sti_gram_rows *rows, bench *b)
{
    b->tile = sti_alloc(STI_GRAM_TILE_BYTES, "svm.tile");
    b->floats = sti_alloc(STI_GRAM_TILE_BYTES / 2, "svm.floats");
    b->scratch =
        sti_alloc(STI_ALIGN_UP(sti_gram_scratch_bytes(rows), 64), "svm.scratch");
    if (!b->tile || !b->floats || !b->scratch)
        return STINT_E_MEMORY;
    return sti_svm_rows_gather_room(rows, TILE, &b->side);
}

stint_status sti_smo_rows_create(const sti_team *team, const sti_gram_rows *rows,
                                 const sti_gram_function *function, int64_t n,
                                 size_t kept_bytes, sti_smo_rows **out)
{
    sti_smo_rows *r = sti_alloc(sizeof *r, "svm.rows");
    if (!r)
        return STINT_E_MEMORY;
    r->team = team;
    r->rows = rows;
    r->function = function;
    r->most = n;
    r->store_floats = (int64_t)(kept_bytes / sizeof(float));
    r->benches = sti_alloc_array(team->threads, sizeof *r->benches, "svm.benches");
    r->column = sti_alloc_array(n, sizeof *r->column, "svm.columns");
    r->place = sti_alloc_array(n, sizeof *r->place, "svm.places");
    r->store = sti_alloc_array(r->store_floats, sizeof(float), "svm.kept");
    r->slot_of = sti_alloc_array(n, sizeof *r->slot_of, "svm.slots");
    r->point_of = sti_alloc_array(n, sizeof *r->point_of, "svm.points");
    r->stamp = sti_alloc_array(n, sizeof *r->stamp, "svm.stamps");
    stint_status st = r->benches && r->column && r->place && r->store && r->slot_of &&
                              r->point_of && r->stamp
                          ? sti_svm_rows_gather_room(rows, TILE, &r->upper)
                          : STINT_E_MEMORY;
    for (int w = 0; w < team->threads && st == STINT_OK; w++)
        st = make_bench(rows, &r->benches[w]);
    if (st == STINT_OK)
        *out = r;
    else
        sti_smo_rows_destroy(r);
    return st;
}

void sti_smo_rows_destroy(sti_smo_rows *r)
{
    if (!r)
        return;
    for (int w = 0; r->benches && w < r->team->threads; w++) {
        sti_free(r->benches[w].tile);
        sti_free(r->benches[w].floats);
        sti_free(r->benches[w].scratch);
        sti_svm_rows_fini(&r->benches[w].side);
    }
    sti_svm_rows_fini(&r->upper);
    sti_free(r->benches);
    sti_free(r->column);
    sti_free(r->place);
    sti_free(r->store);
    sti_free(r->slot_of);
    sti_free(r->point_of);
    sti_free(r->stamp);
    sti_free(r->travelling);
    sti_free(r);
}

stint_status sti_smo_rows_share(sti_smo_rows *r, sti_comm *comm)
{
    r->travelling = sti_alloc_array(r->most, sizeof *r->travelling, "svm.sums");
    if (!r->travelling)
        return STINT_E_MEMORY;
    r->comm = comm;
    return STINT_OK;
}

stint_status sti_smo_rows_status(const sti_smo_rows *r)
{
    return r->status;
}

/* ---- columns ---- */

/* How many rows of the columns there are the store holds. */
static int64_t slots_of(const sti_smo_rows *r)
{
    const int64_t slots = r->columns > 0 ? r->store_floats / r->columns : 0;
    return slots < r->n ? slots : r->n;
}

/* The columns of a rank's part of the points, which it has for good: they ascend, and
 * what shrinking leaves of a row that is kept stays where it is. */
static void columns_of_rank(const sti_smo_rows *r, int rank, int64_t *from_out,
                            int64_t *to_out)
{
    const sti_shard_range all = {0, r->n};
    const sti_shard_range own =
        r->comm ? sti_shard_part(all, sti_comm_size(r->comm), rank) : all;
    int64_t from = 0;
    while (from < r->columns && r->column[from] < own.first)
        from++;
    int64_t to = from;
    while (to < r->columns && r->column[to] < own.first + own.count)
        to++;
    *from_out = from;
    *to_out = to;
}

static void find_own_columns(sti_smo_rows *r)
{
    columns_of_rank(r, r->comm ? sti_comm_rank(r->comm) : 0, &r->from, &r->to);
}

static void forget(sti_smo_rows *r)
{
    for (int64_t i = 0; i < r->n; i++)
        r->slot_of[i] = -1;
    r->used = r->hand = 0;
}

void sti_smo_rows_select(sti_smo_rows *r, const sti_row_range range[2])
{
    r->range[0] = range[0];
    r->range[1] = range[1];
    r->n = r->columns = range[0].count + range[1].count;
    for (int64_t i = 0; i < r->n; i++)
        r->column[i] = r->place[i] = (int32_t)i;
    forget(r);
    r->slots = slots_of(r);
    find_own_columns(r);
}

void sti_smo_rows_columns(sti_smo_rows *r, int64_t count, const int32_t *point)
{
    bool within = true;
    for (int64_t j = 0; j < count; j++)
        within = within && r->place[point[j]] >= 0;
    if (!within)
        forget(r);
    for (int64_t s = 0; s < r->used; s++)
        for (int64_t j = 0; j < count; j++)
            r->store[s * count + j] = r->store[s * r->columns + r->place[point[j]]];
    for (int64_t i = 0; i < r->n; i++)
        r->place[i] = -1;
    for (int64_t j = 0; j < count; j++) {
        r->column[j] = point[j];
        r->place[point[j]] = (int32_t)j;
    }
    r->columns = count;
    r->slots = slots_of(r);
    r->hand = 0;
    find_own_columns(r);
}

/* Row of the table of a point. */
static int64_t row_of(const sti_smo_rows *r, int64_t point)
{
    return point < r->range[0].count ? r->range[0].begin + point
                                     : r->range[1].begin + point - r->range[0].count;
}

/* Rows of some points as a side of a tile: where they lie in a run, there, else picked
 * out. begin_out: the first row. */
static const sti_gram_rows *side_of(const sti_smo_rows *r, int64_t count,
                                    const int32_t *point, sti_svm_rows *pick,
                                    int64_t *begin_out)
{
    int64_t row[TILE];
    bool run = true;
    for (int64_t i = 0; i < count; i++) {
        row[i] = row_of(r, point[i]);
        run = run && row[i] == row[0] + i;
    }
    *begin_out = run ? row[0] : 0;
    if (run)
        return r->rows;
    sti_svm_rows_gather(r->rows, count, row, pick);
    return &pick->rows;
}

void sti_smo_rows_diagonal(sti_smo_rows *r, double *diagonal_out)
{
    for (int i = 0; i < 2; i++) {
        const sti_row_range *range = &r->range[i];
        sti_gram_diagonal(r->function, r->rows, range->begin, range->count,
                          diagonal_out);
        diagonal_out += range->count;
    }
}

/* ---- rows that are kept ---- */

/* A slot for one more row, of those not used in this call, each in its turn; -1: there
 * is none. */
static int64_t take_slot(sti_smo_rows *r)
{
    if (r->used < r->slots)
        return r->used++;
    for (; r->passed < r->slots; r->passed++) {
        const int64_t slot = r->hand;
        r->hand = r->hand + 1 < r->slots ? r->hand + 1 : 0;
        if (r->stamp[slot] < r->now) {
            r->slot_of[r->point_of[slot]] = -1;
            return slot;
        }
    }
    return -1;
}

/* Where row t of a call is kept, or -1. A block wants columns that, among ranks, others
 * may have; it is made anew by all. */
static int32_t kept_slot(const sti_smo_rows *r, int64_t t, bool sum)
{
    return r->comm && !sum ? -1 : r->slot_of[r->point[t]];
}

/* Which rows have to be made, of a sum, whose rows are kept, or of a block. */
static void find_made(sti_smo_rows *r, bool keep)
{
    r->made = 0;
    for (int64_t t = 0; t < r->count; t++)
        if (kept_slot(r, t, keep) < 0)
            r->made_row[r->made++] = (int32_t)t;
    for (int64_t i = 0; keep && i < r->made; i++) {
        const int32_t p = r->point[r->made_row[i]];
        const int64_t slot = take_slot(r);
        if (slot < 0)
            return;
        r->slot_of[p] = (int32_t)slot;
        r->point_of[slot] = p;
        r->stamp[slot] = r->now;
    }
}

/* The rows to be made, as a side of tiles. */
static const sti_gram_rows *upper_of(sti_smo_rows *r, int64_t *begin_out)
{
    int32_t point[TILE];
    for (int64_t i = 0; i < r->made; i++)
        point[i] = r->point[r->made_row[i]];
    return side_of(r, r->made, point, &r->upper, begin_out);
}

typedef struct block_call {
    sti_smo_rows *r;
    const sti_gram_rows *upper;
    int64_t upper_begin;
} block_call;

/* A tile of the rows to be made against `width` points. */
static void make_tile(const block_call *c, bench *b, int64_t width,
                      const int32_t *point)
{
    sti_smo_rows *r = c->r;
    int64_t begin;
    if (r->made == 0)
        return;
    const sti_gram_rows *side = side_of(r, width, point, &b->side, &begin);
    sti_gram_tile(r->function, c->upper, c->upper_begin, r->made, side, begin, width,
                  b->tile, TILE, b->scratch);
}

static void round_row(const double *from, int64_t count, float *to)
{
    for (int64_t j = 0; j < count; j++)
        to[j] = (float)from[j];
}

/* ---- sums ---- */

static void sum_piece(void *arg, int64_t piece, int worker)
{
    const block_call *c = arg;
    sti_smo_rows *r = c->r;
    bench *b = &r->benches[worker];
    const int64_t at = r->from + piece * TILE;
    const int64_t width = r->to - at < TILE ? r->to - at : TILE;
    const int32_t *column = r->column + at;
    const float *row[TILE];
    double sum[TILE];
    make_tile(c, b, width, column);
    for (int64_t t = 0; t < r->count; t++) {
        const int32_t slot = r->slot_of[r->point[t]];
        row[t] = slot >= 0 ? r->store + slot * r->columns + at : NULL;
    }
    for (int64_t i = 0; i < r->made; i++) {
        const int32_t t = r->made_row[i], slot = r->slot_of[r->point[t]];
        float *to =
            slot >= 0 ? r->store + slot * r->columns + at : b->floats + i * TILE;
        round_row(b->tile + i * TILE, width, to);
        row[t] = to;
    }
    for (int64_t j = 0; j < width; j++)
        sum[j] = r->out[column[j]];
    sti_pair_add(r->count, row, r->factor, width, sum);
    for (int64_t j = 0; j < width; j++)
        r->out[column[j]] = sum[j];
}

/* Every rank's sums to all. */
static stint_status pass_sums(sti_smo_rows *r)
{
    for (int rank = 0; rank < sti_comm_size(r->comm); rank++) {
        int64_t from, to;
        columns_of_rank(r, rank, &from, &to);
        for (int64_t j = from; j < to; j++)
            r->travelling[j - from] = r->out[r->column[j]];
        const stint_status st = sti_comm_broadcast(
            r->comm, rank, r->travelling, sizeof(double) * (size_t)(to - from));
        if (st != STINT_OK)
            return st;
        for (int64_t j = from; j < to; j++)
            r->out[r->column[j]] = r->travelling[j - from];
    }
    return STINT_OK;
}

void sti_smo_rows_sum(sti_smo_rows *r, int64_t count, const int32_t *point,
                      const double *factor, double *out)
{
    block_call c = {.r = r};
    r->now++;
    r->passed = 0;
    for (int64_t t = 0; t < count; t++)
        if (r->slot_of[point[t]] >= 0)
            r->stamp[r->slot_of[point[t]]] = r->now;
    for (int64_t j = 0; j < r->columns; j++)
        out[r->column[j]] = 0;
    r->out = out;
    for (int64_t t = 0; t < count; t += TILE) {
        r->point = point + t;
        r->factor = factor + t;
        r->count = count - t < TILE ? count - t : TILE;
        find_made(r, true);
        c.upper = r->made > 0 ? upper_of(r, &c.upper_begin) : NULL;
        sti_team_take(r->team, (r->to - r->from + TILE - 1) / TILE, sum_piece, &c);
    }
    if (r->comm && r->status == STINT_OK)
        r->status = pass_sums(r);
}

/* ---- blocks ---- */

static void block_piece(void *arg, int64_t piece, int worker)
{
    const block_call *c = arg;
    sti_smo_rows *r = c->r;
    bench *b = &r->benches[worker];
    const int64_t at = piece * TILE;
    const int64_t width = r->side_count - at < TILE ? r->side_count - at : TILE;
    const int32_t *side = r->side_point + at;
    make_tile(c, b, width, side);
    for (int64_t i = 0; i < r->made; i++)
        round_row(b->tile + i * TILE, width,
                  r->block + r->made_row[i] * r->stride + at);
    for (int64_t t = 0; t < r->count; t++) {
        const int32_t slot = kept_slot(r, t, false);
        float *to = r->block + t * r->stride + at;
        for (int64_t j = 0; slot >= 0 && j < width; j++)
            to[j] = r->store[slot * r->columns + r->place[side[j]]];
    }
}

void sti_smo_rows_block(sti_smo_rows *r, int64_t count, const int32_t *point,
                        int64_t stride, float *k_out)
{
    block_call c = {.r = r};
    r->side_count = count;
    r->side_point = point;
    r->stride = stride;
    for (int64_t t = 0; t < count; t += TILE) {
        r->point = point + t;
        r->count = count - t < TILE ? count - t : TILE;
        r->block = k_out + t * stride;
        find_made(r, false);
        c.upper = r->made > 0 ? upper_of(r, &c.upper_begin) : NULL;
        sti_team_take(r->team, (count + TILE - 1) / TILE, block_piece, &c);
    }
}
