#include "kernel/gram/gram.h"

#include <math.h>
#include <string.h>

#include "kernel/gram/gram_priv.h"
#include "kernel/lane/dispatch.h"

size_t sti_gram_scratch_bytes(const sti_gram_rows *rows)
{
    const int64_t packed = STI_GRAM_TILE * STI_GRAM_DEPTH;
    return sizeof(double) * (size_t)(rows->dense ? packed : rows->columns);
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

static void dense_products(const sti_gram_kernels *kernels, const double *u,
                           int64_t u_count, const double *v, int64_t v_count,
                           int64_t columns, double *tile, double *packed)
{
    int64_t k = 0;
    do { /* once also for no columns at all, whose products are 0 */
        const int64_t left = columns - k;
        const int64_t depth = left < STI_GRAM_DEPTH ? left : STI_GRAM_DEPTH;
        pack_panels(v + k, v_count, columns, depth, packed);
        for (int64_t j = 0; j < v_count; j += STI_GRAM_PANEL)
            kernels->panel(u_count, depth, u + k, columns, packed + j * depth, tile + j,
                           STI_GRAM_TILE, k == 0);
        k += depth;
    } while (k < columns);
}

/* ---- sparse rows ---- */

/* A row of u is spread out, met by every row of v, and swept up again. */
static void sparse_products(const sti_csr *u, int64_t u_begin, int64_t u_count,
                            const sti_csr *v, int64_t v_begin, int64_t v_count,
                            double *tile, double *spread)
{
    for (int64_t i = 0; i < u_count; i++) {
        const int64_t from = u->start[u_begin + i], to = u->start[u_begin + i + 1];
        for (int64_t e = from; e < to; e++)
            spread[u->column[e]] = u->value[e];
        for (int64_t j = 0; j < v_count; j++) {
            double sum = 0;
            const int64_t end = v->start[v_begin + j + 1];
            for (int64_t e = v->start[v_begin + j]; e < end; e++)
                sum = fma(spread[v->column[e]], v->value[e], sum);
            tile[i * STI_GRAM_TILE + j] = sum;
        }
        for (int64_t e = from; e < to; e++)
            spread[u->column[e]] = 0;
    }
}

/* ---- what is called ---- */

void sti_gram_squares(const sti_gram_rows *rows, double *square_out)
{
    for (int64_t i = 0; i < rows->rows; i++) {
        const int64_t from = rows->dense ? 0 : rows->sparse.start[i];
        const int64_t to = rows->dense ? rows->columns : rows->sparse.start[i + 1];
        const double *x =
            rows->dense ? rows->dense + i * rows->columns : rows->sparse.value;
        double sum = 0;
        for (int64_t e = from; e < to; e++)
            sum = fma(x[e], x[e], sum);
        square_out[i] = sum;
    }
}

void sti_gram_tile(const sti_gram_function *function, const sti_gram_rows *u,
                   int64_t u_begin, int64_t u_count, const sti_gram_rows *v,
                   int64_t v_begin, int64_t v_count, double *tile_out, void *scratch)
{
    const sti_gram_kernels *kernels = STI_KERNELS_NOW(sti_gram_kernels);
    if (u->dense)
        dense_products(kernels, u->dense + u_begin * u->columns, u_count,
                       v->dense + v_begin * v->columns, v_count, u->columns, tile_out,
                       scratch);
    else
        sparse_products(&u->sparse, u_begin, u_count, &v->sparse, v_begin, v_count,
                        tile_out, scratch);
    for (int64_t i = 0; i < u_count; i++)
        kernels->finish(function, v_count, u->square[u_begin + i], v->square + v_begin,
                        tile_out + i * STI_GRAM_TILE);
}

void sti_gram_apply(const double *tile, int64_t u_count, int64_t v_count,
                    const double *x, double *y_out, const double *across, double *down)
{
    STI_KERNELS_NOW(sti_gram_kernels)
        ->apply(tile, u_count, v_count, x, y_out, across, down);
}

double sti_gram_dot(int64_t count, const double *a, const double *b)
{
    return STI_KERNELS_NOW(sti_gram_kernels)->dot(count, a, b);
}
