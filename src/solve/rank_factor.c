#include "solve/rank_factor.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/rank_window.h"

struct sti_rank_factor {
    sti_comm *comm;
    const sti_entry_source *source;
    const sti_rank_facts *facts;
    sti_rank_trsv *plan;
    bool ilu0;
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
    const int64_t n = f->facts->n;
    int32_t *local = sti_alloc_array(n, sizeof *local, "ranks.local");
    stint_status st = STINT_E_MEMORY;
    for (int64_t i = 0; local && i < n; i++)
        local[i] = f->rank_of[i] == f->rank ? f->place_of[i] : -1;
    if (local)
        st = sti_rank_load(f->source, f->facts,
                           &(sti_rank_pick){local, sti_rank_trsv_names(f->plan), f->own,
                                            f->ilu0 ? STI_PART_WHOLE : STI_PART_LOWER},
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

/* Windows for what the rows take, which they are put into. */
static stint_status make_windows(sti_rank_factor *f)
{
    sti_csr rows = {0};
    stint_status st;
    STI_TRY(sti_comm_agree(f->comm, load(f, &rows)));
    const size_t entries = (size_t)rows.start[f->own];
    STI_TRY(sti_window_create(f->comm, sizeof *rows.start * (size_t)(f->own + 1), true,
                              &f->start));
    STI_TRY(
        sti_window_create(f->comm, sizeof *rows.column * entries, true, &f->column));
    STI_TRY(sti_window_create(f->comm, sizeof *rows.value * entries, true, &f->value));
    put(f, &rows, 1);
    st = sti_comm_barrier(f->comm);
out:
    sti_csr_drop(&rows);
    return st;
}

/* ---- the factor ---- */

static stint_status walk(void *user, sti_trsv_row_fn *fn, void *arg)
{
    return sti_rank_trsv_walk(((sti_rank_factor *)user)->plan, fn, arg);
}

static stint_status reset(void *user, double shift)
{
    const sti_rank_factor *f = user;
    sti_csr rows = {0};
    stint_status st = sti_comm_agree(f->comm, load(f, &rows));
    if (st == STINT_OK) {
        put(f, &rows, 1 + shift);
        st = sti_comm_barrier(f->comm);
    }
    sti_csr_drop(&rows);
    return st;
}

/* Also the end of all reading and writing. */
static stint_status lowest(void *user, int64_t *row)
{
    const sti_rank_factor *f = user;
    int64_t negated = -*row;
    const stint_status st = sti_comm_max(f->comm, &negated, 1);
    *row = -negated;
    return st;
}

static stint_status alloc(sti_rank_factor *f)
{
    f->rank_of = sti_alloc_array(f->facts->n, sizeof *f->rank_of, "ranks.factor");
    f->place_of = sti_alloc_array(f->facts->n, sizeof *f->place_of, "ranks.factor");
    if (!f->rank_of || !f->place_of)
        return STINT_E_MEMORY;
    sti_rank_trsv_places(f->plan, f->rank_of, f->place_of);
    return STINT_OK;
}

stint_status sti_rank_factor_create(sti_comm *comm, const sti_entry_source *source,
                                    const sti_rank_facts *facts, bool ilu0,
                                    sti_rank_trsv *plan, const char *name,
                                    double *shift_out, sti_rank_factor **factor_out)
{
    sti_rank_factor *f = sti_alloc(sizeof *f, "ranks.factor");
    stint_status st = sti_comm_agree(comm, f ? STINT_OK : STINT_E_MEMORY);
    if (st != STINT_OK) {
        sti_free(f);
        return st;
    }
    *f = (sti_rank_factor){.comm = comm,
                           .source = source,
                           .facts = facts,
                           .plan = plan,
                           .ilu0 = ilu0,
                           .rank = sti_comm_rank(comm),
                           .own = sti_rank_trsv_info_of(plan)->own_rows};
    const sti_factor_rows rows = {row_of, walk, reset, lowest, f, name};
    STI_TRY(sti_comm_agree(comm, alloc(f)));
    STI_TRY(make_windows(f));
    st = ilu0 ? sti_ilu0_rows(&rows) : sti_ic0_rows(&rows, shift_out);
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

/* ---- rows handed on ---- */

/* An entry of the factor as one of the triangle that is asked for. */
typedef void entry_fn(void *user, int64_t row, int32_t column, double value);

typedef struct handing {
    const int32_t *local;
    sti_csr *to;
    bool count;
} handing;

static void hand_entry(void *user, int64_t row, int32_t column, double value)
{
    const handing *h = user;
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

/* Rows ascend, so those of a transposed triangle come in the order of its columns. */
static void each_lower(const sti_rank_factor *f, bool transpose, entry_fn *fn,
                       handing *h)
{
    for (int64_t i = 0; i < f->facts->n; i++) {
        if (!transpose && h->local[i] < 0)
            continue;
        const sti_factor_row row = row_of(f, i);
        for (int64_t e = 0; e < row.count && row.column[e] <= i; e++)
            if (transpose)
                fn(h, row.column[e], (int32_t)i, row.value[e]);
            else
                fn(h, i, row.column[e], row.value[e]);
    }
}

static void each_upper(const sti_rank_factor *f, entry_fn *fn, handing *h)
{
    for (int64_t i = 0; i < f->facts->n; i++) {
        if (h->local[i] < 0)
            continue;
        const sti_factor_row row = row_of(f, i);
        for (int64_t e = 0; e < row.count; e++)
            if (row.column[e] >= i)
                fn(h, i, row.column[e], row.value[e]);
    }
}

static void each(const sti_rank_factor *f, bool upper, handing *h)
{
    if (upper && f->ilu0)
        each_upper(f, hand_entry, h);
    else
        each_lower(f, upper, hand_entry, h);
}

/* Counted, then put. */
static stint_status hand_rows(const sti_rank_factor *f, bool upper,
                              const int32_t *local, int64_t own, sti_csr *to)
{
    handing h = {local, to, true};
    *to = (sti_csr){.rows = own, .columns = f->facts->n};
    to->start = sti_alloc_array(own + 1, sizeof *to->start, "ranks.rows");
    if (!to->start)
        return STINT_E_MEMORY;
    each(f, upper, &h);
    for (int64_t k = 0; k < own; k++)
        to->start[k + 1] += to->start[k];
    to->column = sti_alloc_array(to->start[own], sizeof *to->column, "ranks.rows");
    to->value = sti_alloc_array(to->start[own], sizeof *to->value, "ranks.rows");
    if (!to->column || !to->value)
        return STINT_E_MEMORY;
    h.count = false;
    each(f, upper, &h);
    memmove(to->start + 1, to->start, sizeof *to->start * (size_t)own);
    to->start[0] = 0;
    return STINT_OK;
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
