#include "solve/factor.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "solve/trsv_walk.h"

enum { SHIFTS_MOST = 10 };

/* ---- copies ---- */

void sti_csr_drop(sti_csr *a)
{
    sti_free(a->start);
    sti_free(a->column);
    sti_free(a->value);
    *a = (sti_csr){0};
}

/* The end of what is copied of a row. */
static int64_t row_end(const sti_csr *a, bool lower, int64_t i)
{
    int64_t e = a->start[i];
    if (!lower)
        return a->start[i + 1];
    while (e < a->start[i + 1] && a->column[e] <= i)
        e++;
    return e;
}

static void copy_values(const sti_csr *a, bool lower, sti_csr *to)
{
    for (int64_t i = 0; i < a->rows; i++)
        memcpy(to->value + to->start[i], a->value + a->start[i],
               sizeof *a->value * (size_t)(row_end(a, lower, i) - a->start[i]));
}

stint_status sti_csr_copy(const sti_csr *a, bool lower, sti_csr *copy_out)
{
    sti_csr *to = copy_out;
    *to = (sti_csr){.rows = a->rows, .columns = a->columns};
    to->start = sti_alloc_array(a->rows + 1, sizeof *to->start, "solve.factor");
    if (!to->start)
        return STINT_E_MEMORY;
    for (int64_t i = 0; i < a->rows; i++)
        to->start[i + 1] = to->start[i] + row_end(a, lower, i) - a->start[i];
    to->column =
        sti_alloc_array(to->start[a->rows], sizeof *to->column, "solve.factor");
    to->value = sti_alloc_array(to->start[a->rows], sizeof *to->value, "solve.factor");
    if (!to->column || !to->value) {
        sti_csr_drop(to);
        return STINT_E_MEMORY;
    }
    for (int64_t i = 0; i < a->rows; i++)
        memcpy(to->column + to->start[i], a->column + a->start[i],
               sizeof *a->column * (size_t)(to->start[i + 1] - to->start[i]));
    copy_values(a, lower, to);
    return STINT_OK;
}

/* ---- rows ---- */

/* A factor at work, and the first row that failed: the lowest, whoever found it. */
typedef struct factoring {
    const sti_factor_rows *rows;
    atomic_llong failed;
} factoring;

static sti_factor_row row_of(const factoring *s, int64_t i)
{
    return s->rows->row(s->rows->user, i);
}

static void note_failure(factoring *s, int64_t row)
{
    long long before = atomic_load(&s->failed);
    while (row < before && !atomic_compare_exchange_weak(&s->failed, &before, row))
        ;
}

static bool is_pivot(double value)
{
    return isfinite(value) && fabs(value) >= DBL_MIN;
}

/* The first entry of a row from column i on. */
static int64_t find_diagonal(const sti_factor_row *row, int64_t i)
{
    int64_t e = 0;
    while (e < row->count && row->column[e] < i)
        e++;
    return e;
}

/* A row minus its entry `at` times another, from beyond that one's diagonal on, where
 * the row has an entry. */
static void eliminate(const sti_factor_row *row, int64_t at,
                      const sti_factor_row *other, int64_t diagonal)
{
    const double factor = row->value[at];
    int64_t e = at + 1, o = diagonal + 1;
    while (e < row->count && o < other->count) {
        const int32_t mine = row->column[e], theirs = other->column[o];
        if (mine == theirs)
            row->value[e] = fma(-factor, other->value[o], row->value[e]);
        e += mine <= theirs;
        o += theirs <= mine;
    }
}

static void ilu0_row(void *arg, int64_t i)
{
    factoring *s = arg;
    const sti_factor_row row = row_of(s, i);
    int64_t at = 0;
    for (; at < row.count && row.column[at] < i; at++) {
        const int64_t k = row.column[at];
        const sti_factor_row other = row_of(s, k);
        const int64_t diagonal = find_diagonal(&other, k);
        if (diagonal == other.count || other.column[diagonal] != k)
            continue; /* told by that row */
        row.value[at] /= other.value[diagonal];
        eliminate(&row, at, &other, diagonal);
    }
    if (at == row.count || row.column[at] != i || !is_pivot(row.value[at]))
        note_failure(s, i);
}

/* The sum of products of two rows up to column `end`, taken from `sum`. */
static double minus_dot(const sti_factor_row *row, const sti_factor_row *other,
                        int32_t end, double sum)
{
    int64_t e = 0, o = 0;
    while (e < row->count && o < other->count) {
        const int32_t mine = row->column[e], theirs = other->column[o];
        if (mine >= end || theirs >= end)
            break;
        if (mine == theirs)
            sum = fma(-row->value[e], other->value[o], sum);
        e += mine <= theirs;
        o += theirs <= mine;
    }
    return sum;
}

static void ic0_row(void *arg, int64_t i)
{
    factoring *s = arg;
    const sti_factor_row row = row_of(s, i);
    const int64_t last = row.count - 1;
    for (int64_t e = 0; e < last; e++) {
        const int32_t j = row.column[e];
        const sti_factor_row other = row_of(s, j);
        row.value[e] =
            minus_dot(&row, &other, j, row.value[e]) / other.value[other.count - 1];
    }
    double pivot = row.value[last];
    for (int64_t e = 0; e < last; e++)
        pivot = fma(-row.value[e], row.value[e], pivot);
    if (!(pivot > 0) || !is_pivot(pivot)) {
        note_failure(s, i);
        pivot = 1;
    }
    row.value[last] = sqrt(pivot);
}

/* *failed_out: the lowest row that failed, or INT64_MAX. */
static stint_status walk(const sti_factor_rows *rows, sti_trsv_row_fn *fn,
                         int64_t *failed_out)
{
    factoring s = {.rows = rows};
    atomic_init(&s.failed, INT64_MAX);
    const stint_status st = rows->walk(rows->user, fn, &s);
    *failed_out = atomic_load(&s.failed);
    return st == STINT_OK ? rows->lowest(rows->user, failed_out) : st;
}

stint_status sti_ilu0_rows(const sti_factor_rows *rows)
{
    int64_t row;
    const stint_status st = walk(rows, ilu0_row, &row);
    if (st != STINT_OK || row == INT64_MAX)
        return st;
    return sti_fail(STINT_E_FAILED,
                    "%s: ILU(0) breaks down: the pivot of row %" PRId64
                    " is missing, zero or not finite; --precond jacobi, gs or none may "
                    "do",
                    rows->name, row + 1);
}

stint_status sti_ic0_rows(const sti_factor_rows *rows, double *shift_out)
{
    double shift = 0;
    int64_t row = 0;
    for (int tries = 0; tries < SHIFTS_MOST; tries++) {
        stint_status st = STINT_OK;
        if (tries > 0)
            st = rows->reset(rows->user, shift);
        if (st == STINT_OK)
            st = walk(rows, ic0_row, &row);
        *shift_out = shift;
        if (st != STINT_OK || row == INT64_MAX)
            return st;
        shift = shift > 0 ? 4 * shift : 1e-3;
        sti_log(STINT_LOG_WARNING,
                "%s: IC(0): the pivot of row %" PRId64
                " is not above 0; tried again with %g of the diagonal added",
                rows->name, row + 1, shift);
    }
    return sti_fail(STINT_E_FAILED,
                    "%s: IC(0) breaks down at row %" PRId64
                    " with %g of the diagonal added; --precond jacobi, gs or none may "
                    "do",
                    rows->name, row + 1, *shift_out);
}

/* ---- one process ---- */

typedef struct whole {
    const sti_csr *a;
    sti_csr *f;
    sti_trsv *tasks;
} whole;

static sti_factor_row whole_row(const void *user, int64_t i)
{
    const sti_csr *f = ((const whole *)user)->f;
    const int64_t at = f->start[i];
    return (sti_factor_row){f->column + at, f->value + at, f->start[i + 1] - at};
}

static stint_status whole_walk(void *user, sti_trsv_row_fn *fn, void *arg)
{
    sti_trsv_walk(((whole *)user)->tasks, fn, arg);
    return STINT_OK;
}

static stint_status whole_reset(void *user, double shift)
{
    const whole *w = user;
    copy_values(w->a, true, w->f);
    for (int64_t i = 0; i < w->f->rows; i++)
        w->f->value[w->f->start[i + 1] - 1] *= 1 + shift;
    return STINT_OK;
}

static stint_status whole_lowest(void *user, int64_t *row)
{
    (void)user;
    (void)row;
    return STINT_OK;
}

static sti_factor_rows rows_of(whole *w, const char *name)
{
    return (sti_factor_rows){.row = whole_row,
                             .walk = whole_walk,
                             .reset = whole_reset,
                             .lowest = whole_lowest,
                             .user = w,
                             .name = name};
}

stint_status sti_ilu0_factor(sti_csr *factor, sti_trsv *tasks, const char *name)
{
    whole w = {NULL, factor, tasks};
    const sti_factor_rows rows = rows_of(&w, name);
    return sti_ilu0_rows(&rows);
}

stint_status sti_ic0_factor(const sti_csr *a, sti_csr *factor, sti_trsv *tasks,
                            const char *name, double *shift_out)
{
    whole w = {a, factor, tasks};
    const sti_factor_rows rows = rows_of(&w, name);
    return sti_ic0_rows(&rows, shift_out);
}
