#include "solve/rank_factor.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/rank_window.h"

struct sti_rank_factor {
    sti_rank_factor_desc d;
    int rank;
    int64_t own;
    uint16_t *rank_of; /* [n] */
    int32_t *place_of; /* [n] among its rank's rows */
    sti_window start, column, value;
};

static int64_t *starts_of(const sti_rank_factor *f, int rank)
{
    return sti_window_part(&f->start, rank);
}

static sti_factor_row row_of(const void *user, int64_t i)
{
    const sti_rank_factor *f = user;
    const int rank = f->rank_of[i];
    const int64_t *start = starts_of(f, rank) + f->place_of[i];
    const int32_t *column = sti_window_part(&f->column, rank);
    double *value = sti_window_part(&f->value, rank);
    return (sti_factor_row){column + start[0], value + start[0], start[1] - start[0]};
}

/* ---- A's rows ---- */

static stint_status load(const sti_rank_factor *f, sti_csr *rows)
{
    const int64_t n = f->d.facts->n;
    int32_t *local = sti_alloc_array(n, sizeof *local, "ranks.local");
    stint_status st = STINT_E_MEMORY;
    for (int64_t i = 0; local && i < n; i++)
        local[i] = f->rank_of[i] == f->rank ? f->place_of[i] : -1;
    if (local)
        st = sti_rank_load(
            f->d.source, f->d.facts,
            &(sti_rank_pick){local, sti_rank_trsv_names(f->d.plan), f->own,
                             f->d.ilu0 ? STI_PART_WHOLE : STI_PART_LOWER},
            rows);
    sti_free(local);
    return st;
}

static void put(const sti_rank_factor *f, const sti_csr *rows, double scale)
{
    const int64_t entries = rows->start[f->own];
    double *value = sti_window_part(&f->value, f->rank);
    memcpy(starts_of(f, f->rank), rows->start,
           sizeof *rows->start * (size_t)(f->own + 1));
    memcpy(sti_window_part(&f->column, f->rank), rows->column,
           sizeof *rows->column * (size_t)entries);
    memcpy(value, rows->value, sizeof *value * (size_t)entries);
    for (int64_t k = 0; scale != 1 && k < f->own; k++)
        value[rows->start[k + 1] - 1] *= scale;
}

/* ---- rows for ranks elsewhere ---- */

static sti_rank_span starts_span(const void *user, int rank, int64_t first, int64_t end)
{
    int64_t *start = starts_of(user, rank);
    return (sti_rank_span){start + first, (size_t)(end + 1 - first) * sizeof *start};
}

static sti_rank_span columns_span(const void *user, int rank, int64_t first,
                                  int64_t end)
{
    const sti_rank_factor *f = user;
    const int64_t *start = starts_of(f, rank);
    int32_t *column = sti_window_part(&f->column, rank);
    return (sti_rank_span){column + start[first],
                           (size_t)(start[end] - start[first]) * sizeof *column};
}

static sti_rank_span values_span(const void *user, int rank, int64_t first, int64_t end)
{
    const sti_rank_factor *f = user;
    const int64_t *start = starts_of(f, rank);
    double *value = sti_window_part(&f->value, rank);
    return (sti_rank_span){value + start[first],
                           (size_t)(start[end] - start[first]) * sizeof *value};
}

/* What rows there are that this rank reads, before there are values. */
static stint_status bring_shapes(const sti_rank_factor *f)
{
    const stint_status st = sti_rank_trsv_walk(f->d.plan, NULL, NULL, starts_span, f);
    return st == STINT_OK ? sti_rank_trsv_walk(f->d.plan, NULL, NULL, columns_span, f)
                          : st;
}

/* Windows for what the rows take, which they are put into. */
static stint_status make_windows(sti_rank_factor *f)
{
    sti_csr rows = {0};
    stint_status st;
    STI_TRY(sti_comm_agree(f->d.comm, load(f, &rows)));
    const size_t entries = (size_t)rows.start[f->own];
    STI_TRY(sti_window_create(f->d.comm, sizeof *rows.start * (size_t)(f->own + 1),
                              f->d.share, &f->start));
    STI_TRY(sti_window_create(f->d.comm, sizeof *rows.column * entries, f->d.share,
                              &f->column));
    STI_TRY(sti_window_create(f->d.comm, sizeof *rows.value * entries, f->d.share,
                              &f->value));
    put(f, &rows, 1);
    STI_TRY(sti_comm_barrier(f->d.comm));
    st = bring_shapes(f);
out:
    sti_csr_drop(&rows);
    return st;
}

/* ---- the factor ---- */

static stint_status walk(void *user, sti_trsv_row_fn *fn, void *arg)
{
    const sti_rank_factor *f = user;
    return sti_rank_trsv_walk(f->d.plan, fn, arg, values_span, f);
}

static stint_status reset(void *user, double shift)
{
    const sti_rank_factor *f = user;
    sti_csr rows = {0};
    stint_status st = sti_comm_agree(f->d.comm, load(f, &rows));
    if (st == STINT_OK) {
        put(f, &rows, 1 + shift);
        st = sti_comm_barrier(f->d.comm);
    }
    sti_csr_drop(&rows);
    return st;
}

/* Also the end of all reading and writing. */
static stint_status lowest(void *user, int64_t *row)
{
    const sti_rank_factor *f = user;
    int64_t negated = -*row;
    const stint_status st = sti_comm_max(f->d.comm, &negated, 1);
    *row = -negated;
    return st;
}

static stint_status alloc(sti_rank_factor *f)
{
    f->rank_of = sti_alloc_array(f->d.facts->n, sizeof *f->rank_of, "ranks.factor");
    f->place_of = sti_alloc_array(f->d.facts->n, sizeof *f->place_of, "ranks.factor");
    if (!f->rank_of || !f->place_of)
        return STINT_E_MEMORY;
    sti_rank_trsv_places(f->d.plan, f->rank_of, f->place_of);
    return STINT_OK;
}

stint_status sti_rank_factor_create(const sti_rank_factor_desc *desc, double *shift_out,
                                    sti_rank_factor **factor_out)
{
    sti_comm *comm = desc->comm;
    sti_rank_factor *f = sti_alloc(sizeof *f, "ranks.factor");
    stint_status st = sti_comm_agree(comm, f ? STINT_OK : STINT_E_MEMORY);
    if (st != STINT_OK) {
        sti_free(f);
        return st;
    }
    *f = (sti_rank_factor){.d = *desc,
                           .rank = sti_comm_rank(comm),
                           .own = sti_rank_trsv_info_of(desc->plan)->own_rows};
    const sti_factor_rows rows = {row_of, walk, reset, lowest, f, desc->name};
    STI_TRY(sti_comm_agree(comm, alloc(f)));
    STI_TRY(make_windows(f));
    st = desc->ilu0 ? sti_ilu0_rows(&rows) : sti_ic0_rows(&rows, shift_out);
out:
    if (st != STINT_OK)
        sti_rank_factor_destroy(f);
    else
        *factor_out = f;
    return st;
}

void sti_rank_factor_destroy(sti_rank_factor *factor)
{
    if (!factor)
        return;
    sti_window_destroy(&factor->start);
    sti_window_destroy(&factor->column);
    sti_window_destroy(&factor->value);
    sti_free(factor->rank_of);
    sti_free(factor->place_of);
    sti_free(factor);
}

/* ---- triangles handed on ---- */

enum { TAG_HANDED = 0x3a00000 };

/* An entry of the triangle that is asked for. */
typedef struct handed {
    int32_t row, column;
    double value;
} handed;

typedef struct handing {
    const sti_rank_factor *f;
    bool upper;
    const int32_t *local; /* of the rows that are asked for, here */
    sti_csr *to;
    handed *got; /* from ranks elsewhere */
    int64_t got_count;
    const unsigned char *asked; /* a bit a row, of the rank elsewhere */
    handed *out;                /* for it; NULL: they are counted */
    int64_t out_count;
    bool count; /* entries of `to` are counted, not put */
} handing;

typedef void entry_fn(handing *h, int32_t row, int32_t column, double value);

/* The entries of row i of the factor that are of the triangle. */
static void each_of_row(handing *h, int64_t i, entry_fn *fn)
{
    const bool transposed = h->upper && !h->f->d.ilu0;
    const bool right = h->upper && h->f->d.ilu0;
    const sti_factor_row row = row_of(h->f, i);
    for (int64_t e = 0; e < row.count; e++) {
        const int32_t column = row.column[e];
        if (right ? column < i : column > i)
            continue;
        if (transposed)
            fn(h, column, (int32_t)i, row.value[e]);
        else
            fn(h, (int32_t)i, column, row.value[e]);
    }
}

static bool is_near(const sti_rank_factor *f, int rank)
{
    return sti_window_is_shared(&f->value, rank) &&
           sti_window_is_shared(&f->start, rank) &&
           sti_window_is_shared(&f->column, rank);
}

static void hand_entry(handing *h, int32_t row, int32_t column, double value)
{
    const int32_t k = h->local[row];
    if (k < 0)
        return;
    if (h->count) {
        h->to->start[k + 1]++;
        return;
    }
    const int64_t at = h->to->start[k]++;
    h->to->column[at] = column;
    h->to->value[at] = value;
}

/* Rows ascend, so those of a transposed triangle come in the order of its columns, but
 * for entries from elsewhere. */
static void each_entry(handing *h)
{
    const sti_rank_factor *f = h->f;
    const bool transposed = h->upper && !f->d.ilu0;
    for (int64_t i = 0; i < f->d.facts->n; i++)
        if (is_near(f, f->rank_of[i]) && (transposed || h->local[i] >= 0))
            each_of_row(h, i, hand_entry);
    for (int64_t k = 0; k < h->got_count; k++)
        hand_entry(h, h->got[k].row, h->got[k].column, h->got[k].value);
}

/* ---- with ranks elsewhere ---- */

static void pick_entry(handing *h, int32_t row, int32_t column, double value)
{
    if (!(h->asked[row / 8] >> row % 8 & 1))
        return;
    if (h->out)
        h->out[h->out_count] = (handed){row, column, value};
    h->out_count++;
}

static void pick_own(handing *h)
{
    h->out_count = 0;
    for (int64_t i = 0; i < h->f->d.facts->n; i++)
        if (h->f->rank_of[i] == h->f->rank)
            each_of_row(h, i, pick_entry);
}

/* What is sent to one rank and what comes from another, of fixed sizes. */
static stint_status trade(sti_comm *comm, int to, const void *out, size_t out_bytes,
                          int from, void *in, size_t in_bytes)
{
    sti_comm_request both[2] = {0};
    if (to >= 0)
        sti_comm_send(comm, to, TAG_HANDED, out, out_bytes, &both[0]);
    if (from >= 0)
        sti_comm_receive(comm, from, TAG_HANDED, in, in_bytes, &both[1]);
    return sti_comm_wait_all(comm, both, 2);
}

/* Entries for `to` and of `from`; -1: nobody. */
static stint_status trade_entries(handing *h, int to, int from)
{
    sti_comm *comm = h->f->d.comm;
    int64_t in_count = 0;
    stint_status st;
    h->out = NULL;
    h->out_count = 0;
    if (to >= 0)
        pick_own(h);
    STI_TRY(trade(comm, to, &h->out_count, sizeof h->out_count, from, &in_count,
                  sizeof in_count));
    handed *more = sti_realloc(
        h->got, sizeof *more * (size_t)(h->got_count + in_count + 1), "ranks.handed");
    h->got = more ? more : h->got;
    h->out = sti_alloc_array(h->out_count, sizeof *h->out, "ranks.handed");
    STI_TRY(more && h->out ? STINT_OK : sti_comm_give_up(comm, STINT_E_MEMORY));
    if (to >= 0)
        pick_own(h);
    st = trade(comm, to, h->out, sizeof *h->out * (size_t)h->out_count, from,
               h->got + h->got_count, sizeof *h->got * (size_t)in_count);
    h->got_count += in_count;
out:
    sti_free(h->out);
    return st;
}

/* In turn with every rank elsewhere: it learns which rows are wanted here. */
static stint_status bring_entries(handing *h)
{
    const sti_rank_factor *f = h->f;
    const int64_t n = f->d.facts->n;
    const int size = sti_comm_size(f->d.comm);
    const size_t bytes = (size_t)n / 8 + 1;
    unsigned char *wanted = sti_alloc(bytes, "ranks.wanted");
    unsigned char *asked = sti_alloc(bytes, "ranks.wanted");
    stint_status st;
    STI_TRY(sti_comm_agree(f->d.comm, wanted && asked ? STINT_OK : STINT_E_MEMORY));
    h->asked = asked;
    for (int64_t i = 0; i < n; i++)
        if (h->local[i] >= 0)
            wanted[i / 8] |= (unsigned char)(1U << i % 8);
    for (int step = 1; step < size; step++) {
        int to = (f->rank + step) % size, from = (f->rank + size - step) % size;
        to = is_near(f, to) ? -1 : to;
        from = is_near(f, from) ? -1 : from;
        STI_TRY(trade(f->d.comm, from, wanted, bytes, to, asked, bytes));
        STI_TRY(trade_entries(h, to, from));
    }
out:
    sti_free(wanted);
    sti_free(asked);
    return st;
}

/* ---- rows ---- */

/* Entries from elsewhere stand behind the others of a row. */
static void sort_rows(sti_csr *rows)
{
    for (int64_t k = 0; k < rows->rows; k++)
        for (int64_t e = rows->start[k] + 1; e < rows->start[k + 1]; e++) {
            const int32_t column = rows->column[e];
            const double value = rows->value[e];
            int64_t at = e;
            for (; at > rows->start[k] && rows->column[at - 1] > column; at--) {
                rows->column[at] = rows->column[at - 1];
                rows->value[at] = rows->value[at - 1];
            }
            rows->column[at] = column;
            rows->value[at] = value;
        }
}

/* Counted, then put. */
static stint_status put_rows(handing *h, int64_t own)
{
    sti_csr *to = h->to;
    to->start = sti_alloc_array(own + 1, sizeof *to->start, "ranks.rows");
    if (!to->start)
        return STINT_E_MEMORY;
    h->count = true;
    each_entry(h);
    for (int64_t k = 0; k < own; k++)
        to->start[k + 1] += to->start[k];
    to->column = sti_alloc_array(to->start[own], sizeof *to->column, "ranks.rows");
    to->value = sti_alloc_array(to->start[own], sizeof *to->value, "ranks.rows");
    if (!to->column || !to->value)
        return STINT_E_MEMORY;
    h->count = false;
    each_entry(h);
    memmove(to->start + 1, to->start, sizeof *to->start * (size_t)own);
    to->start[0] = 0;
    if (h->got_count > 0)
        sort_rows(to);
    return STINT_OK;
}

static stint_status hand_rows(const sti_rank_factor *f, bool upper,
                              const int32_t *local, int64_t own, sti_csr *to)
{
    handing h = {.f = f, .upper = upper, .local = local, .to = to};
    *to = (sti_csr){.rows = own, .columns = f->d.facts->n};
    stint_status st = bring_entries(&h);
    if (st == STINT_OK)
        st = put_rows(&h, own);
    sti_free(h.got);
    return st;
}

stint_status sti_rank_factor_lower(void *user, const int32_t *local,
                                   const int32_t *names, int64_t own, sti_csr *rows_out)
{
    (void)names;
    return hand_rows(user, false, local, own, rows_out);
}

stint_status sti_rank_factor_upper(void *user, const int32_t *local,
                                   const int32_t *names, int64_t own, sti_csr *rows_out)
{
    (void)names;
    return hand_rows(user, true, local, own, rows_out);
}
