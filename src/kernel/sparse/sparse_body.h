/* The loops of sparse.h in one type, with the vectors of one instruction set: included
 * by the file of each, once a type. */
#include <string.h>

#include "kernel/sparse/sparse_priv.h"

/* ---- triangles in an order of their own ---- */

static void NAME(rows)(const sti_sparse_triangle *t, int64_t first, int64_t end,
                       const void *b_any, void *own_any, void *x_any)
{
    const int32_t *restrict column = t->column;
    const REAL *restrict value = t->value;
    const REAL *diagonal = t->diagonal, *b = b_any;
    REAL *own = own_any, *x = x_any;
    int32_t e = t->start[first];
    for (int64_t i = first; i < end; i++) {
        const int32_t stop = t->start[i + 1];
        REAL sum = b[t->place[i]];
        for (; e < stop; e++)
            sum = REAL_FMA(value[e], own[column[e]], sum);
        if (diagonal)
            sum /= diagonal[i];
        own[i] = sum;
        x[t->place[i]] = sum;
    }
}

static inline VEC NAME(pick)(const REAL *x, const int32_t *index)
{
    REAL got[STI_SPARSE_LANES];
    for (int r = 0; r < STI_SPARSE_LANES; r++)
        got[r] = x[index[r]];
    return VEC_OP(load)(got);
}

static void NAME(groups)(const sti_sparse_triangle *t, int64_t first, int64_t end,
                         const void *b_any, void *own_any, void *x_any)
{
    const REAL *diagonal = t->diagonal, *b = b_any;
    REAL *own = own_any, *x = x_any;
    for (int64_t i = first; i < end; i += STI_SPARSE_LANES) {
        const int32_t length = t->start[i + 1] - t->start[i];
        const int32_t *place = t->place + i, *column = t->column + t->start[i];
        const REAL *value = (const REAL *)t->value + t->start[i];
        VEC sum = NAME(pick)(b, place);
        for (int32_t k = 0; k < length; k++, column += STI_SPARSE_LANES)
            sum = VEC_OP(fma)(VEC_OP(load)(value + k * STI_SPARSE_LANES),
                              NAME(pick)(own, column), sum);
        if (diagonal)
            sum = VEC_OP(div)(sum, VEC_OP(load)(diagonal + i));
        VEC_OP(store)(own + i, sum);
        for (int r = 0; r < STI_SPARSE_LANES; r++)
            x[place[r]] = own[i + r];
    }
}

/* sum (+)= factor * x of a block, in vectors of eight. */
#define BLOCK_VECTORS (BLOCK / STI_SPARSE_LANES)

static inline void NAME(block_load)(VEC sum[BLOCK_VECTORS], const REAL *from)
{
    for (int v = 0; v < BLOCK_VECTORS; v++)
        sum[v] = VEC_OP(load)(from + v * STI_SPARSE_LANES);
}

static inline void NAME(block_store)(REAL *to, const VEC sum[BLOCK_VECTORS])
{
    for (int v = 0; v < BLOCK_VECTORS; v++)
        VEC_OP(store)(to + v * STI_SPARSE_LANES, sum[v]);
}

static inline void NAME(block_add)(VEC sum[BLOCK_VECTORS], REAL factor, const REAL *x)
{
    const VEC all = VEC_OP(all)(factor);
    for (int v = 0; v < BLOCK_VECTORS; v++)
        sum[v] = VEC_OP(fma)(all, VEC_OP(load)(x + v * STI_SPARSE_LANES), sum[v]);
}

static inline void NAME(block_divide)(VEC sum[BLOCK_VECTORS], REAL divisor)
{
    for (int v = 0; v < BLOCK_VECTORS; v++)
        sum[v] = VEC_OP(div)(sum[v], VEC_OP(all)(divisor));
}

static void NAME(block)(const sti_sparse_triangle *t, int64_t first, int64_t end,
                        bool interleaved, const void *b_any, int64_t ld, void *own_any,
                        void *x_any)
{
    const int step = interleaved ? STI_SPARSE_LANES : 1;
    const REAL *value = t->value, *diagonal = t->diagonal, *b = b_any;
    REAL *own = own_any, *x = x_any;
    for (int64_t i = first; i < end; i++) {
        const int32_t length = t->start[i + 1] - t->start[i];
        const int64_t lane = interleaved ? (i - first) % STI_SPARSE_LANES : 0;
        int64_t e = t->start[i - lane] + lane;
        VEC sum[BLOCK_VECTORS];
        NAME(block_load)(sum, b + t->place[i] * ld);
        for (int32_t k = 0; k < length; k++, e += step)
            NAME(block_add)(sum, value[e], own + (int64_t)t->column[e] * BLOCK);
        if (diagonal)
            NAME(block_divide)(sum, diagonal[i]);
        NAME(block_store)(own + i * BLOCK, sum);
        NAME(block_store)(x + t->place[i] * ld, sum);
    }
}

/* ---- triangles as they lie ---- */

static void NAME(natural_lower)(const sti_sparse_natural *t, const REAL *b, REAL *x)
{
    const int32_t *restrict column = t->column;
    const REAL *restrict value = t->value;
    for (int64_t i = 0; i < t->n; i++) {
        int64_t e = t->start[i];
        const int64_t stop = e + t->count[i];
        REAL sum = b[i];
        for (; e < stop; e++)
            sum = REAL_FMA(-value[e], x[column[e]], sum);
        x[i] = t->unit ? sum : sum / value[stop];
    }
}

static void NAME(natural_upper)(const sti_sparse_natural *t, const REAL *b, REAL *x)
{
    const int32_t *restrict column = t->column;
    const REAL *restrict value = t->value;
    for (int64_t i = t->n; i-- > 0;) {
        int64_t e = t->start[i + 1];
        const int64_t stop = e - t->count[i];
        REAL sum = b[i];
        while (e-- > stop)
            sum = REAL_FMA(-value[e], x[column[e]], sum);
        x[i] = t->unit ? sum : sum / value[stop - 1];
    }
}

static void NAME(natural)(const sti_sparse_natural *t, const void *b, void *x)
{
    if (t->upper)
        NAME(natural_upper)(t, b, x);
    else
        NAME(natural_lower)(t, b, x);
}

static void NAME(natural_block)(const sti_sparse_natural *t, const void *b_any,
                                int64_t ld, void *x_any)
{
    const REAL *value = t->value, *b = b_any;
    REAL *x = x_any;
    for (int64_t k = 0; k < t->n; k++) {
        const int64_t i = t->upper ? t->n - 1 - k : k;
        const int64_t step = t->upper ? -1 : 1;
        const int64_t diagonal =
            t->upper ? t->start[i + 1] - t->count[i] - 1 : t->start[i] + t->count[i];
        int64_t e = t->upper ? t->start[i + 1] - 1 : t->start[i];
        VEC sum[BLOCK_VECTORS];
        NAME(block_load)(sum, b + i * ld);
        for (int32_t c = 0; c < t->count[i]; c++, e += step)
            NAME(block_add)(sum, -value[e], x + t->column[e] * ld);
        if (!t->unit)
            NAME(block_divide)(sum, value[diagonal]);
        NAME(block_store)(x + i * ld, sum);
    }
}

/* Rows of a lower triangle are columns of an upper one, whose substitution begins at
 * the end: unknown i is ready when all rows after it have been pushed. */
static void NAME(push)(const sti_sparse_natural *t, void *x_any, int64_t ld)
{
    const REAL *value = t->value;
    REAL *x = x_any;
    for (int64_t k = 0; k < t->n; k++) {
        const int64_t i = t->upper ? k : t->n - 1 - k;
        const int64_t from = t->upper ? t->start[i + 1] - t->count[i] : t->start[i];
        const int64_t diagonal = t->upper ? from - 1 : from + t->count[i];
        for (int64_t c = 0; c < ld; c++) {
            if (!t->unit)
                x[i * ld + c] /= value[diagonal];
            for (int64_t e = from; e < from + t->count[i]; e++) {
                REAL *to = x + t->column[e] * ld + c;
                *to = REAL_FMA(-value[e], x[i * ld + c], *to);
            }
        }
    }
}

/* ---- dense panels ---- */

static inline void NAME(panel_narrow_corner)(int32_t width, const REAL *value,
                                             const REAL *diagonal, REAL *x)
{
    for (int32_t j = 0; j < width; j++) {
        if (diagonal)
            x[j] /= diagonal[j];
        for (int32_t i = j + 1; i < width; i++)
            x[i] = REAL_FMA(value[j * width + i], x[j], x[i]);
    }
}

/* Vectors stand at multiples of eight, so that one is read as it was written last. */
static void NAME(panel_wide_corner)(int32_t width, const REAL *value,
                                    const REAL *diagonal, REAL *x)
{
    const int32_t whole = width / STI_SPARSE_LANES * STI_SPARSE_LANES;
    for (int32_t j = 0; j < width; j++, value += width) {
        const int32_t block = (j / STI_SPARSE_LANES + 1) * STI_SPARSE_LANES;
        const int32_t near = block < width ? block : width;
        if (diagonal)
            x[j] /= diagonal[j];
        for (int32_t i = j + 1; i < near; i++)
            x[i] = REAL_FMA(value[i], x[j], x[i]);
        const VEC all = VEC_OP(all)(x[j]);
        for (int32_t i = near; i < whole; i += STI_SPARSE_LANES)
            VEC_OP(store)
        (x + i, VEC_OP(fma)(VEC_OP(load)(value + i), all, VEC_OP(load)(x + i)));
        for (int32_t i = near > whole ? near : whole; i < width; i++)
            x[i] = REAL_FMA(value[i], x[j], x[i]);
    }
}

/* Rows one by one: a row's values follow each other. */
static void NAME(panel_rows)(int32_t width, int32_t count, const int32_t *row,
                             const REAL *value, const REAL *x, REAL *all)
{
    for (int32_t i = 0; i < count; i++, value += width) {
        REAL sum = all[row[i]];
        for (int32_t j = 0; j < width; j++)
            sum = REAL_FMA(value[j], x[j], sum);
        all[row[i]] = sum;
    }
}

static inline void NAME(panel_put)(VEC sum, int32_t count, const int32_t *row,
                                   REAL *all)
{
    REAL out[STI_SPARSE_LANES];
    VEC_OP(store)(out, sum);
    for (int32_t r = 0; r < count; r++)
        all[row[r]] = out[r];
}

/* Sixteen rows: two vectors, so that one's sums need not wait for the last ones. */
static inline void NAME(panel_two_tiles)(int32_t width, const int32_t *row,
                                         const REAL *value, const REAL *x, REAL *all)
{
    const REAL *second = value + (int64_t)width * STI_SPARSE_LANES;
    VEC a = NAME(pick)(all, row), b = NAME(pick)(all, row + STI_SPARSE_LANES);
    for (int32_t j = 0; j < width; j++) {
        const VEC factor = VEC_OP(all)(x[j]);
        a = VEC_OP(fma)(VEC_OP(load)(value + j * STI_SPARSE_LANES), factor, a);
        b = VEC_OP(fma)(VEC_OP(load)(second + j * STI_SPARSE_LANES), factor, b);
    }
    NAME(panel_put)(a, STI_SPARSE_LANES, row, all);
    NAME(panel_put)(b, STI_SPARSE_LANES, row + STI_SPARSE_LANES, all);
}

/* Up to eight rows; lanes beyond them are of nobody. */
static inline void NAME(panel_tile)(int32_t width, int32_t count, const int32_t *row,
                                    const REAL *value, const REAL *x, REAL *all)
{
    REAL got[STI_SPARSE_LANES] = {0};
    for (int32_t r = 0; r < count; r++)
        got[r] = all[row[r]];
    VEC sum = VEC_OP(load)(got);
    for (int32_t j = 0; j < width; j++)
        sum = VEC_OP(fma)(VEC_OP(load)(value + j * STI_SPARSE_LANES), VEC_OP(all)(x[j]),
                          sum);
    NAME(panel_put)(sum, count, row, all);
}

static void NAME(panel_tiles)(int32_t width, int32_t count, const int32_t *row,
                              const REAL *value, const REAL *x, REAL *all)
{
    const int64_t tile = (int64_t)width * STI_SPARSE_LANES;
    int32_t i = 0;
    for (; i + 2 * STI_SPARSE_LANES <= count;
         i += 2 * STI_SPARSE_LANES, value += 2 * tile)
        NAME(panel_two_tiles)(width, row + i, value, x, all);
    for (; i + STI_SPARSE_LANES <= count; i += STI_SPARSE_LANES, value += tile)
        NAME(panel_tile)(width, STI_SPARSE_LANES, row + i, value, x, all);
    if (i < count)
        NAME(panel_tile)(width, count - i, row + i, value, x, all);
}

/* Most panels of sparse factors are one column: nothing but its rows. */
static inline void NAME(panel_column)(const sti_sparse_panel *p, const int32_t *row,
                                      const REAL *value, const REAL *diagonal, REAL *x,
                                      REAL *all)
{
    if (diagonal)
        x[0] /= diagonal[0];
    const REAL own = x[0];
    for (int32_t i = 0; i < p->count; i++)
        all[row[i]] = REAL_FMA(value[i], own, all[row[i]]);
}

static void NAME(panel)(const sti_sparse_panel *p, const int32_t *row,
                        const REAL *value, const REAL *diagonal, REAL *x, REAL *all)
{
    const int32_t tiled = sti_sparse_panel_tiled(p), width = p->width;
    if (width <= STI_SPARSE_LANES)
        NAME(panel_narrow_corner)(width, value, diagonal, x);
    else
        NAME(panel_wide_corner)(width, value, diagonal, x);
    value += sti_sparse_panel_corner(p);
    NAME(panel_tiles)(width, tiled, row, value, x, all);
    value += (int64_t)width * sti_sparse_up_to_lanes(tiled);
    NAME(panel_rows)(width, p->count - tiled, row + tiled, value, x, all);
}

static void NAME(panels)(int64_t count, const sti_sparse_panel *panel,
                         const int32_t *row, const void *value, const void *diagonal,
                         void *x)
{
    for (const sti_sparse_panel *p = panel; p < panel + count; p++) {
        const REAL *values = (const REAL *)value + p->value;
        const REAL *divisor = diagonal ? (const REAL *)diagonal + p->first : NULL;
        REAL *own = (REAL *)x + p->first;
        if (p->width == 1)
            NAME(panel_column)(p, row + p->row, values, divisor, own, x);
        else
            NAME(panel)(p, row + p->row, values, divisor, own, x);
    }
}

/* ---- products ---- */

static void NAME(product)(const int64_t *start, const int32_t *restrict column,
                          const void *value_any, int64_t first, int64_t end,
                          const void *x_any, void *y_any)
{
    const REAL *restrict value = value_any;
    const REAL *restrict x = x_any;
    REAL *restrict y = y_any;
    for (int64_t i = first; i < end; i++) {
        REAL sum = 0;
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            sum = REAL_FMA(value[e], x[column[e]], sum);
        y[i] = sum;
    }
}

const sti_sparse_kernels TABLE = {
    .rows = NAME(rows),
    .groups = NAME(groups),
    .block = NAME(block),
    .natural = NAME(natural),
    .natural_block = NAME(natural_block),
    .push = NAME(push),
    .panels = NAME(panels),
    .product = NAME(product),
};
#undef BLOCK_VECTORS
