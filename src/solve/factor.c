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
    sti_csr *f;
    atomic_llong failed;
} factoring;

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

/* The first entry of row i from column i on. */
static int64_t find_diagonal(const sti_csr *f, int64_t i)
{
    int64_t e = f->start[i];
    while (e < f->start[i + 1] && f->column[e] < i)
        e++;
    return e;
}

/* Row i minus factor times row k, from column k + 1 on, where row i has an entry. */
static void eliminate(sti_csr *f, int64_t i, int64_t at, int64_t k, int64_t diagonal)
{
    const double factor = f->value[at];
    int64_t e = at + 1, o = diagonal + 1;
    while (e < f->start[i + 1] && o < f->start[k + 1]) {
        const int32_t mine = f->column[e], other = f->column[o];
        if (mine == other)
            f->value[e] = fma(-factor, f->value[o], f->value[e]);
        e += mine <= other;
        o += other <= mine;
    }
}

static void ilu0_row(void *arg, int64_t i)
{
    factoring *s = arg;
    sti_csr *f = s->f;
    int64_t at = f->start[i];
    for (; at < f->start[i + 1] && f->column[at] < i; at++) {
        const int64_t k = f->column[at], diagonal = find_diagonal(f, k);
        if (diagonal == f->start[k + 1] || f->column[diagonal] != k)
            continue; /* told by that row */
        f->value[at] /= f->value[diagonal];
        eliminate(f, i, at, k, diagonal);
    }
    if (at == f->start[i + 1] || f->column[at] != i || !is_pivot(f->value[at]))
        note_failure(s, i);
}

stint_status sti_ilu0_factor(sti_csr *factor, sti_trsv *tasks, const char *name)
{
    factoring s = {.f = factor};
    atomic_init(&s.failed, INT64_MAX);
    sti_trsv_walk(tasks, ilu0_row, &s);
    const long long row = atomic_load(&s.failed);
    if (row == INT64_MAX)
        return STINT_OK;
    return sti_fail(STINT_E_FAILED,
                    "%s: ILU(0) breaks down: the pivot of row %lld is missing, zero or "
                    "not finite; --precond jacobi, gs or none may do",
                    name, row + 1);
}

/* The sum of products of two rows up to column `end`, taken from `sum`. */
static double minus_dot(const sti_csr *f, int64_t i, int64_t j, int32_t end, double sum)
{
    int64_t e = f->start[i], o = f->start[j];
    while (e < f->start[i + 1] && o < f->start[j + 1]) {
        const int32_t mine = f->column[e], other = f->column[o];
        if (mine >= end || other >= end)
            break;
        if (mine == other)
            sum = fma(-f->value[e], f->value[o], sum);
        e += mine <= other;
        o += other <= mine;
    }
    return sum;
}

static void ic0_row(void *arg, int64_t i)
{
    factoring *s = arg;
    sti_csr *f = s->f;
    const int64_t last = f->start[i + 1] - 1;
    for (int64_t e = f->start[i]; e < last; e++) {
        const int32_t j = f->column[e];
        f->value[e] =
            minus_dot(f, i, j, j, f->value[e]) / f->value[f->start[j + 1] - 1];
    }
    double pivot = f->value[last];
    for (int64_t e = f->start[i]; e < last; e++)
        pivot = fma(-f->value[e], f->value[e], pivot);
    if (!(pivot > 0) || !is_pivot(pivot)) {
        note_failure(s, i);
        pivot = 1;
    }
    f->value[last] = sqrt(pivot);
}

stint_status sti_ic0_factor(const sti_csr *a, sti_csr *factor, sti_trsv *tasks,
                            const char *name, double *shift_out)
{
    double shift = 0;
    long long row = 0;
    for (int tries = 0; tries < SHIFTS_MOST; tries++) {
        factoring s = {.f = factor};
        atomic_init(&s.failed, INT64_MAX);
        if (tries > 0)
            copy_values(a, true, factor);
        for (int64_t i = 0; tries > 0 && i < factor->rows; i++)
            factor->value[factor->start[i + 1] - 1] *= 1 + shift;
        sti_trsv_walk(tasks, ic0_row, &s);
        *shift_out = shift;
        row = atomic_load(&s.failed);
        if (row == INT64_MAX)
            return STINT_OK;
        shift = shift > 0 ? 4 * shift : 1e-3;
        sti_log(STINT_LOG_WARNING,
                "%s: IC(0): the pivot of row %lld is not above 0; tried again with "
                "%g of the diagonal added",
                name, row + 1, shift);
    }
    return sti_fail(STINT_E_FAILED,
                    "%s: IC(0) breaks down at row %lld with %g of the diagonal added; "
                    "--precond jacobi, gs or none may do",
                    name, row + 1, *shift_out);
}
