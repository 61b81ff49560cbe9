#include "svm/linear_product.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"

enum { SLABS = 8, CHUNK = 1024, BAND = 256 };

struct sti_linear_product {
    const sti_team *team;
    const sti_gram_rows *rows;
    sti_row_range ranges[2];
    const double *diagonal;
    double *partial; /* [slabs, columns, features] of X^T v; the first gets the sum */
    /* of a call */
    int64_t count;
    const double *const *x;
    double *const *y;
};

size_t sti_linear_product_bytes(const sti_gram_rows *rows, int64_t columns)
{
    return SLABS * (size_t)columns * (size_t)rows->columns * sizeof(double);
}

stint_status sti_linear_product_create(const sti_gram_rows *rows, int64_t columns,
                                       const sti_team *team,
                                       sti_linear_product **product_out)
{
    sti_linear_product *p = sti_alloc(sizeof *p, "svm.product");
    if (!p)
        return STINT_E_MEMORY;
    p->team = team;
    p->rows = rows;
    p->partial = sti_alloc_array(SLABS * columns,
                                 sizeof(double) * (size_t)rows->columns, "svm.partial");
    if (p->partial) {
        *product_out = p;
        return STINT_OK;
    }
    sti_linear_product_destroy(p);
    return STINT_E_MEMORY;
}

void sti_linear_product_destroy(sti_linear_product *p)
{
    if (!p)
        return;
    sti_free(p->partial);
    sti_free(p);
}

void sti_linear_product_select(sti_linear_product *p, const sti_row_range ranges[2],
                               const double *diagonal)
{
    p->ranges[0] = ranges[0];
    p->ranges[1] = ranges[1];
    p->diagonal = diagonal;
}

static int64_t all_rows(const sti_linear_product *p)
{
    return p->ranges[0].count + p->ranges[1].count;
}

static int64_t row_at(const sti_linear_product *p, int64_t place)
{
    const int64_t first = p->ranges[0].count;
    return place < first ? p->ranges[0].begin + place
                         : p->ranges[1].begin + place - first;
}

static double *partial_of(const sti_linear_product *p, int64_t slab, int64_t column)
{
    return p->partial + (slab * p->count + column) * p->rows->columns;
}

/* sum += factor times a row. */
static void add_row(const sti_gram_rows *rows, int64_t row, double factor, double *sum)
{
    const sti_csr *s = &rows->sparse;
    if (rows->dense) {
        sti_gram_axpy(rows->columns, factor, rows->dense + row * rows->columns, sum);
        return;
    }
    for (int64_t e = s->start[row]; e < s->start[row + 1]; e++)
        sum[s->column[e]] = fma(factor, s->value[e], sum[s->column[e]]);
}

static double row_dot(const sti_gram_rows *rows, int64_t row, const double *v)
{
    const sti_csr *s = &rows->sparse;
    double sum = 0;
    if (rows->dense)
        return sti_gram_dot(rows->columns, rows->dense + row * rows->columns, v);
    for (int64_t e = s->start[row]; e < s->start[row + 1]; e++)
        sum = fma(s->value[e], v[s->column[e]], sum);
    return sum;
}

static void gather_piece(void *arg, int64_t slab, int worker)
{
    const sti_linear_product *p = arg;
    const int64_t n = all_rows(p), each = (n + SLABS - 1) / SLABS;
    const int64_t end = (slab + 1) * each < n ? (slab + 1) * each : n;
    (void)worker;
    memset(partial_of(p, slab, 0), 0,
           sizeof(double) * (size_t)(p->count * p->rows->columns));
    for (int64_t i = slab * each; i < end; i++)
        for (int64_t c = 0; c < p->count; c++)
            add_row(p->rows, row_at(p, i), p->x[c][i], partial_of(p, slab, c));
}

static void join_piece(void *arg, int64_t piece, int worker)
{
    const sti_linear_product *p = arg;
    const int64_t values = p->count * p->rows->columns, end = (piece + 1) * CHUNK;
    (void)worker;
    for (int64_t i = piece * CHUNK; i < end && i < values; i++)
        for (int64_t slab = 1; slab < SLABS; slab++)
            p->partial[i] += partial_of(p, slab, 0)[i];
}

static void spread_piece(void *arg, int64_t piece, int worker)
{
    const sti_linear_product *p = arg;
    const int64_t n = all_rows(p), end = (piece + 1) * BAND;
    (void)worker;
    for (int64_t i = piece * BAND; i < end && i < n; i++)
        for (int64_t c = 0; c < p->count; c++)
            p->y[c][i] = fma(p->diagonal[i], p->x[c][i],
                             row_dot(p->rows, row_at(p, i), partial_of(p, 0, c)));
}

stint_status sti_linear_product_run(void *arg, int64_t count, const double *const *x,
                                    double *const *y)
{
    sti_linear_product *p = arg;
    const stint_status st = sti_stop_asked();
    if (st != STINT_OK)
        return sti_fail(st, "stopped before the machine was solved; no model was "
                            "written");
    p->count = count;
    p->x = x;
    p->y = y;
    sti_team_run(p->team, SLABS, gather_piece, p);
    sti_team_run(p->team, (count * p->rows->columns + CHUNK - 1) / CHUNK, join_piece,
                 p);
    sti_team_run(p->team, (all_rows(p) + BAND - 1) / BAND, spread_piece, p);
    return STINT_OK;
}
