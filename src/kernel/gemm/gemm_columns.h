/* A product of any size by register tiles that read A and B in place: what BRGEMM and
 * small products share. Inline, and no more than it takes: between two products of a
 * few tiles a core has room for some hundred instructions before it waits. */
#ifndef STI_KERNEL_GEMM_COLUMNS_H
#define STI_KERNEL_GEMM_COLUMNS_H

#include "kernel/gemm/gemm_tile.h"

/* Columns to choose panels for: half a panel goes beside two or three others, or after
 * all. */
static inline int64_t sti_gemm_beside(const sti_gemm_kernels *kernels, int64_t cols)
{
    const bool few = cols > 2 * STI_PANEL && cols <= 4 * STI_PANEL;
    return few ? cols : sti_gemm_whole_cols(kernels, cols);
}

/* Rows of C in few tiles: some of a height and the others one lower. */
static inline __attribute__((always_inline)) void
sti_gemm_column(const sti_gemm_kernels *kernels, sti_gemm_tile *t, const float *a,
                float *c, int64_t m, bool steps)
{
    void (*const tile)(const sti_gemm_tile *) = steps ? kernels->tn : kernels->nn;
    const int64_t a_row = steps ? 1 : t->a_row;
    const int most = sti_gemm_most_rows(kernels, t->nv, t->cols);
    int64_t tiles = m > most ? (m + most - 1) / most : 1;
    if (m % tiles != 0 && m % (tiles + 1) == 0)
        tiles++; /* one call for all */
    const int64_t rows = m / tiles, higher = m - tiles * rows;
    if (higher > 0) {
        t->rows = (int)rows + 1;
        t->lines = higher;
        t->a_line = (rows + 1) * a_row;
        t->c_line = (rows + 1) * t->c_row;
        t->a = a;
        t->c = c;
        tile(t);
        a += higher * t->a_line;
        c += higher * t->c_line;
    }
    t->rows = (int)rows;
    t->lines = tiles - higher;
    t->a_line = rows * a_row;
    t->c_line = rows * t->c_row;
    t->a = a;
    t->c = c;
    tile(t);
}

/* The last columns of C, too few to fill lanes of a vector: rows are the lanes, but for
 * the last ones. */
static inline void sti_gemm_last_columns(const sti_gemm_kernels *kernels,
                                         sti_gemm_tile *t, const float *a, float *c,
                                         int64_t m, int64_t cols, bool steps)
{
    void (*const lanes_tile)(const sti_gemm_tile *) =
        steps ? kernels->rows_as_lanes_k_major : kernels->rows_as_lanes;
    const int64_t a_row = steps ? 1 : t->a_row;
    const int64_t rows = m % STI_GEMM_LANES_ROWS, in_lanes = m - rows;
    t->nv = 1;
    t->cols = cols;
    t->b_part = true;
    t->rows = STI_GEMM_LANES_ROWS;
    t->lines = in_lanes / STI_GEMM_LANES_ROWS;
    t->a = a;
    t->c = c;
    lanes_tile(t);
    if (rows > 0)
        sti_gemm_column(kernels, t, a + in_lanes * a_row, c + in_lanes * t->c_row, rows,
                        steps);
}

/* All tiles of C [m, n] at t->c, A in rows or steps at t->a and B at t->b. What says
 * how those lie, the runs of k and what is done to sums is set in t. */
static inline __attribute__((always_inline)) void
sti_gemm_columns(const sti_gemm_kernels *kernels, sti_gemm_tile *t, int64_t m,
                 int64_t n, bool steps)
{
    const float *const a = t->a;
    float *c = t->c;
    t->b_line = 0;
    t->c_next = t->next = NULL;
    t->next_row = t->next_cols = t->next_rows = 0;
    const int64_t rest = n % STI_PANEL;
    const bool lanes = rest > 0 && sti_gemm_takes_lanes(m, rest, t->run_k, steps);
    for (int64_t left = m > 0 ? n - lanes * rest : 0; left > 0;) {
        t->nv = sti_gemm_wide_panels(kernels, sti_gemm_beside(kernels, left));
        t->cols = (int64_t)t->nv * STI_PANEL;
        t->b_part = left < t->cols;
        if (t->b_part)
            t->cols = left;
        sti_gemm_column(kernels, t, a, c, m, steps);
        left -= t->cols;
        if (left == 0 && !lanes)
            return;
        c += t->cols;
        t->b += t->cols;
        if (t->bias)
            t->bias += t->cols;
    }
    if (lanes)
        sti_gemm_last_columns(kernels, t, a, c, m, rest, steps);
}

#endif
