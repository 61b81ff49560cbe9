#include "kernel/gram/gram.h"

#include <math.h>
#include <string.h>

#include "kernel/gemm/gemm_f64.h"
#include "kernel/gram/gram_priv.h"
#include "kernel/lane/dispatch.h"

size_t sti_gram_scratch_bytes(const sti_gram_rows *rows)
{
    const int64_t spread = STI_GRAM_SPREAD * (rows->columns + STI_GRAM_TILE);
    return rows->dense ? STI_GEMM_F64_SCRATCH_BYTES : sizeof(double) * (size_t)spread;
}

static bool is_apart(sti_gram_kind kind)
{
    return kind == STI_GRAM_LAPLACIAN || kind == STI_GRAM_CHI_SQUARED;
}

/* ---- dense rows ---- */

/* Rows of v, columns [k, k + depth): panels of 16 rows, each [depth, 16], short ones
 * filled with zeros. */
static void pack_panels(const double *v, int64_t count, int64_t columns, int64_t depth,
                        double *packed)
{
    for (int64_t j = 0; j < count; j += STI_GRAM_PANEL) {
        const int64_t width = count - j < STI_GRAM_PANEL ? count - j : STI_GRAM_PANEL;
        double *panel = packed + j * depth;
        if (width < STI_GRAM_PANEL)
            memset(panel, 0, sizeof(double) * (size_t)(depth * STI_GRAM_PANEL));
        for (int64_t i = 0; i < width; i++)
            for (int64_t k = 0; k < depth; k++)
                panel[k * STI_GRAM_PANEL + i] = v[(j + i) * columns + k];
    }
}

/* One panel against all rows of u, by way of rows of a panel's length. */
static void apart_panel(const sti_gram_kernels *kernels, sti_gram_kind kind,
                        const double *u, int64_t u_count, int64_t columns,
                        int64_t depth, const double *panel, int64_t width, bool first,
                        double *tile, int64_t ld)
{
    double rows[STI_GRAM_SPREAD * STI_GRAM_PANEL] = {0};
    const size_t bytes = sizeof(double) * (size_t)width;
    for (int64_t i = 0; i < u_count; i += STI_GRAM_SPREAD) {
        const int64_t left = u_count - i;
        const int64_t count = left < STI_GRAM_SPREAD ? left : STI_GRAM_SPREAD;
        for (int64_t r = 0; !first && r < count; r++)
            memcpy(rows + r * STI_GRAM_PANEL, tile + (i + r) * ld, bytes);
        kernels->apart(kind, count, depth, u + i * columns, columns, panel, first, rows,
                       STI_GRAM_PANEL);
        for (int64_t r = 0; r < count; r++)
            memcpy(tile + (i + r) * ld, rows + r * STI_GRAM_PANEL, bytes);
    }
}

static void dense_apart(const sti_gram_kernels *kernels, sti_gram_kind kind,
                        const double *u, int64_t u_count, const double *v,
                        int64_t v_count, int64_t columns, double *tile, int64_t ld,
                        double *packed)
{
    int64_t k = 0;
    do { /* once also for no columns at all, which leave all rows together */
        const int64_t left = columns - k;
        const int64_t depth = left < STI_GRAM_DEPTH ? left : STI_GRAM_DEPTH;
        pack_panels(v + k, v_count, columns, depth, packed);
        for (int64_t j = 0; j < v_count; j += STI_GRAM_PANEL)
            apart_panel(kernels, kind, u + k, u_count, columns, depth,
                        packed + j * depth,
                        v_count - j < STI_GRAM_PANEL ? v_count - j : STI_GRAM_PANEL,
                        k == 0, tile + j, ld);
        k += depth;
    } while (k < columns);
}

static void dense_tile(const sti_gram_kernels *kernels, sti_gram_kind kind,
                       const sti_gram_rows *u, int64_t u_begin, int64_t u_count,
                       const sti_gram_rows *v, int64_t v_begin, int64_t v_count,
                       double *tile, int64_t ld, void *scratch)
{
    const int64_t columns = u->columns;
    const double *a = u->dense + u_begin * columns, *b = v->dense + v_begin * columns;
    if (is_apart(kind))
        dense_apart(kernels, kind, a, u_count, b, v_count, columns, tile, ld, scratch);
    else
        sti_gemm_f64(u_count, v_count, columns, (sti_view_f64){a, columns, 1},
                     (sti_view_f64){b, 1, columns}, false, tile, ld, scratch);
}

/* ---- sparse rows ---- */

/* Eight rows of u are spread out, met by every row of v, and swept up again. */
static void sparse_tile(const sti_gram_kernels *kernels, sti_gram_kind kind,
                        const sti_gram_rows *u, int64_t u_begin, int64_t u_count,
                        const sti_csr *v, int64_t v_begin, int64_t v_count,
                        double *tile, int64_t ld, double *out)
{
    double *spread = out + STI_GRAM_SPREAD * STI_GRAM_TILE;
    for (int64_t i = 0; i < u_count; i += STI_GRAM_SPREAD) {
        const int64_t left = u_count - i;
        const int64_t count = left < STI_GRAM_SPREAD ? left : STI_GRAM_SPREAD;
        const int64_t *start = u->sparse.start + u_begin + i;
        double begin[STI_GRAM_SPREAD] = {0};
        for (int64_t r = 0; r < count; r++) {
            begin[r] = is_apart(kind) ? u->term[u_begin + i + r] : 0;
            for (int64_t e = start[r]; e < start[r + 1]; e++)
                spread[u->sparse.column[e] * STI_GRAM_SPREAD + r] = u->sparse.value[e];
        }
        kernels->spread(kind, v, v_begin, v_count, spread, begin, out);
        for (int64_t r = 0; r < count; r++) {
            for (int64_t j = 0; j < v_count; j++)
                tile[(i + r) * ld + j] = out[j * STI_GRAM_SPREAD + r];
            for (int64_t e = start[r]; e < start[r + 1]; e++)
                spread[u->sparse.column[e] * STI_GRAM_SPREAD + r] = 0;
        }
    }
}

/* ---- values that are there already ---- */

static double sparse_value(const sti_csr *x, int64_t row, int64_t column)
{
    int64_t low = x->start[row], high = x->start[row + 1];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (x->column[middle] == column)
            return x->value[middle];
        if (x->column[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static void read_tile(const sti_gram_rows *u, int64_t u_begin, int64_t u_count,
                      const double *number, int64_t v_count, double *tile, int64_t ld)
{
    for (int64_t i = 0; i < u_count; i++)
        for (int64_t j = 0; j < v_count; j++) {
            const int64_t column = (int64_t)number[j];
            tile[i * ld + j] = u->dense ? u->dense[(u_begin + i) * u->columns + column]
                                        : sparse_value(&u->sparse, u_begin + i, column);
        }
}

/* ---- what is called ---- */

static double term_of(sti_gram_kind kind, const sti_gram_rows *rows, int64_t i)
{
    const int64_t from = rows->dense ? 0 : rows->sparse.start[i];
    const int64_t to = rows->dense ? rows->columns : rows->sparse.start[i + 1];
    const double *x =
        rows->dense ? rows->dense + i * rows->columns : rows->sparse.value;
    double sum = 0;
    for (int64_t e = from; e < to; e++)
        sum = is_apart(kind) ? sum + fabs(x[e]) : fma(x[e], x[e], sum);
    return sum;
}

void sti_gram_terms(const sti_gram_function *function, const sti_gram_rows *rows,
                    double *term_out)
{
    for (int64_t i = 0; i < rows->rows; i++)
        if (function->kind != STI_GRAM_PRECOMPUTED)
            term_out[i] = term_of(function->kind, rows, i);
        else
            term_out[i] = rows->dense ? rows->dense[i * rows->columns]
                                      : sparse_value(&rows->sparse, i, 0);
}

void sti_gram_tile(const sti_gram_function *function, const sti_gram_rows *u,
                   int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                   int64_t v_begin, int64_t v_count, double *tile_out, int64_t ld,
                   void *scratch)
{
    const sti_gram_kernels *kernels = STI_KERNELS_NOW(sti_gram_kernels);
    const sti_gram_kind kind = function->kind;
    if (sti_gram_read(false, u, u_begin, u_count, v, v_begin, v_count, tile_out, ld))
        return;
    if (kind == STI_GRAM_PRECOMPUTED) {
        read_tile(u, u_begin, u_count, v->term + v_begin, v_count, tile_out, ld);
        return;
    }
    if (u->dense)
        dense_tile(kernels, kind, u, u_begin, u_count, v, v_begin, v_count, tile_out,
                   ld, scratch);
    else
        sparse_tile(kernels, kind, u, u_begin, u_count, &v->sparse, v_begin, v_count,
                    tile_out, ld, scratch);
    if (kind != STI_GRAM_LINEAR)
        for (int64_t i = 0; i < u_count; i++)
            kernels->finish(function, v_count, u->term[u_begin + i], v->term + v_begin,
                            tile_out + i * ld);
}

void sti_gram_diagonal(const sti_gram_function *function, const sti_gram_rows *u,
                       int64_t u_begin, int64_t u_count, double *diagonal_out)
{
    const sti_gram_kernels *kernels = STI_KERNELS_NOW(sti_gram_kernels);
    const sti_gram_kind kind = function->kind;
    for (int64_t i = 0; i < u_count; i++) {
        const double term = u->term[u_begin + i];
        double *value = diagonal_out + i;
        if (kind == STI_GRAM_PRECOMPUTED) {
            read_tile(u, u_begin + i, 1, &term, 1, value, 1);
            continue;
        }
        *value = is_apart(kind) ? 0 : term;
        if (kind != STI_GRAM_LINEAR)
            kernels->finish(function, 1, term, &term, value);
    }
}

void sti_gram_apply(const double *tile, int64_t ld, int64_t u_count, int64_t v_count,
                    int64_t columns, const double *const *x, double *const *y_out,
                    const double *const *across, double *const *down)
{
    STI_KERNELS_NOW(sti_gram_kernels)
        ->apply(tile, ld, u_count, v_count, columns, x, y_out, across, down);
}

double sti_gram_dot(int64_t count, const double *a, const double *b)
{
    return STI_KERNELS_NOW(sti_gram_kernels)->dot(count, a, b);
}

void sti_gram_add_products(int64_t count, const double *a, const double *b, double *y)
{
    STI_KERNELS_NOW(sti_gram_kernels)->add_products(count, a, b, y);
}

void sti_gram_axpy(int64_t count, double factor, const double *x, double *y)
{
    STI_KERNELS_NOW(sti_gram_kernels)->axpy(count, factor, x, y);
}

void sti_gram_axpby(int64_t count, double factor, const double *x, double scale,
                    double *y)
{
    STI_KERNELS_NOW(sti_gram_kernels)->axpby(count, factor, x, scale, y);
}

void sti_gram_xpay(int64_t count, const double *x, double factor, double *y)
{
    STI_KERNELS_NOW(sti_gram_kernels)->xpay(count, x, factor, y);
}
