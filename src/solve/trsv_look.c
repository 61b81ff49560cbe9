/* The triangle of a matrix: what of it is there, and its transpose. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/pages.h"
#include "solve/trsv_priv.h"

static const char *name_of(const sti_trsv_desc *d)
{
    return d->name ? d->name : "the matrix";
}

enum { SHORT_ROW = 48 }; /* counting needs no guess of the processor's */

/* The first entry of row i from `column` on. */
static inline int64_t find(const sti_csr *a, int64_t i, int64_t column)
{
    int64_t low = a->start[i], high = a->start[i + 1];
    if (high - low <= SHORT_ROW) {
        int64_t before = 0;
        for (int64_t e = low; e < high; e++)
            before += a->column[e] < column;
        return low + before;
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a->column[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static stint_status check_side(const sti_trsv_desc *d, bool upper, const sti_csr *a,
                               int64_t i)
{
    const int64_t e = upper ? a->start[i] : a->start[i + 1] - 1;
    const int32_t column = a->column[e];
    if (d->part || (upper ? column >= i : column <= i))
        return STINT_OK;
    return sti_fail(STINT_E_INPUT,
                    "%s: row %" PRId64 " has an entry in column %d, beside the %s "
                    "triangle that was wanted",
                    name_of(d), i + 1, column + 1, upper ? "upper" : "lower");
}

static stint_status check_diagonal(const sti_trsv_desc *d, const sti_csr *a, int64_t i,
                                   int64_t e, bool there)
{
    const double least = d->single ? (double)FLT_MIN : DBL_MIN;
    if (d->unit)
        return STINT_OK;
    if (!there)
        return sti_fail(STINT_E_INPUT,
                        "%s: row %" PRId64 " has no diagonal entry; one that is not "
                        "zero was wanted",
                        name_of(d), i + 1);
    if (!(fabs(a->value[e]) >= least))
        return sti_fail(STINT_E_INPUT,
                        "%s: the diagonal entry of row %" PRId64 " is %g; one that is "
                        "not zero (or denormal) was wanted",
                        name_of(d), i + 1, a->value[e]);
    return STINT_OK;
}

/* A row in full: its entries of the triangle, and what is wrong with it. */
static stint_status look_at_row(const sti_trsv_desc *d, bool upper, const sti_csr *a,
                                int64_t i, int32_t *count)
{
    const int64_t from = a->start[i], end = a->start[i + 1];
    int64_t e = upper ? from : end - 1;
    stint_status st = from < end ? check_side(d, upper, a, i) : STINT_OK;
    if (st == STINT_OK && d->part)
        e = find(a, i, i);
    const bool there = e >= from && e < end && a->column[e] == i;
    if (st == STINT_OK)
        st = check_diagonal(d, a, i, e, there);
    if (d->part)
        *count = (int32_t)(upper ? end - e - there : e - from);
    else
        *count = (int32_t)(end - from - there);
    return st;
}

/* A unit triangle may store its diagonal or not. Rows are most often like the one
 * before: a diagonal entry that stands where that one's did is found at once. */
stint_status sti_trsv_look(const sti_trsv_desc *d, bool upper, const sti_csr *a,
                           int32_t *count)
{
    const double least = d->single ? (double)FLT_MIN : DBL_MIN;
    const int64_t *restrict start = a->start;
    const int32_t *restrict column = a->column;
    const double *restrict value = a->value;
    const int64_t rows = a->rows;
    const bool part = d->part, unit = d->unit;
    int64_t before = 0; /* entries left of the diagonal, in the row before */
    for (int64_t i = 0, from = 0, end; i < rows; i++, from = end) {
        end = start[i + 1];
        const int64_t edge = upper ? from : end - 1;
        int64_t e = part ? from + before : edge;
        if (part && (e < from || e >= end || column[e] != i))
            e = from < end && column[edge] == i ? edge : find(a, i, i);
        if (e >= from && e < end && column[e] == i &&
            (unit || fabs(value[e]) >= least)) { /* not so of NaN */
            count[i] = (int32_t)(upper ? end - e - 1 : e - from);
            before = e - from;
            continue;
        }
        const stint_status st = look_at_row(d, upper, a, i, &count[i]);
        if (st != STINT_OK)
            return st;
    }
    return STINT_OK;
}

stint_status sti_trsv_turn(const sti_sparse_natural *t, const sti_csr *a,
                           sti_csr *turned_out)
{
    const int64_t n = t->n;
    sti_csr *to = turned_out;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += t->count[i] + 1;
    *to = (sti_csr){.rows = n, .columns = n};
    to->start = sti_pages_array(n + 2, sizeof *to->start, "trsv.turned");
    to->column = sti_pages_array(total, sizeof *to->column, "trsv.turned");
    to->value = sti_pages_array(total, sizeof *to->value, "trsv.turned");
    if (!to->start || !to->column || !to->value)
        return STINT_E_MEMORY;
    int64_t *next = to->start + 1; /* after the loop: the ends, one place on */
    for (int64_t i = 0; i < n; i++) {
        next[i + 1]++;
        for (int64_t k = 0; k < t->count[i]; k++)
            next[a->column[sti_trsv_entry(t, i, k)] + 1]++;
    }
    for (int64_t i = 0; i < n; i++)
        next[i + 1] += next[i];
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = t->upper ? t->start[i + 1] - t->count[i] : t->start[i];
        const int64_t own = next[i]++;
        to->column[own] = (int32_t)i;
        to->value[own] = t->unit ? 1 : a->value[sti_trsv_diagonal(t, i)];
        for (int64_t e = from; e < from + t->count[i]; e++) {
            const int64_t at = next[a->column[e]]++;
            to->column[at] = (int32_t)i;
            to->value[at] = a->value[e];
        }
    }
    return STINT_OK;
}

stint_status sti_trsv_look_natural(sti_trsv *plan)
{
    const sti_csr *a = plan->d.a;
    sti_sparse_natural *t = &plan->natural;
    const int64_t entries = a->start[a->rows];
    plan->count = sti_pages_array(a->rows, sizeof *plan->count, "trsv.counts");
    if (!plan->count)
        return STINT_E_MEMORY;
    const stint_status st = sti_trsv_look(&plan->d, plan->d.upper, a, plan->count);
    if (st != STINT_OK)
        return st;
    *t = (sti_sparse_natural){.n = a->rows,
                              .start = a->start,
                              .column = a->column,
                              .count = plan->count,
                              .value = a->value,
                              .upper = plan->d.upper,
                              .unit = plan->d.unit};
    if (plan->d.single) {
        /* Turned, a unit triangle has its diagonal, too. */
        plan->single = sti_pages_array(entries + a->rows, sizeof(float), "trsv.floats");
        if (!plan->single)
            return STINT_E_MEMORY;
        for (int64_t e = 0; e < entries; e++)
            plan->single[e] = (float)a->value[e];
        t->value = plan->single;
    }
    return STINT_OK;
}

stint_status sti_trsv_turn_natural(sti_trsv *plan)
{
    sti_sparse_natural *t = &plan->natural;
    stint_status st = sti_trsv_turn(t, plan->d.a, &plan->turned);
    if (st != STINT_OK)
        return st;
    const sti_csr *a = &plan->turned;
    t->start = a->start;
    t->column = a->column;
    t->value = a->value;
    t->upper = !t->upper;
    for (int64_t i = 0; i < a->rows; i++)
        plan->count[i] = (int32_t)(a->start[i + 1] - a->start[i] - 1);
    if (plan->d.single) {
        for (int64_t e = 0; e < a->start[a->rows]; e++)
            plan->single[e] = (float)a->value[e];
        t->value = plan->single;
    }
    return STINT_OK;
}
