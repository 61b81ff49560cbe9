/* The loop of panels_row.h, included once by each vector instruction set's file after
 * its gemm_vec_*.h; the file defines PANELS_KERNELS (the table's name). */
#include "kernel/gemm/panels.h"
#include "kernel/gemm/panels_row.h"

enum {
    PANEL_VECS = STI_PANEL_COLUMNS / VEC_WIDTH,
    LINE = 16, /* floats of a cache line */
    /* How far to fetch: 12 steps of k. A core alone reads as fast with 4, two side by
     * side need more (82 to 85 % of what their memory gives, against 90 to 92 %). */
    AHEAD = 48 * LINE
};

static void panel_row(int64_t k, const float *x, const float *panel, float *y)
{
    vec acc[PANEL_VECS];
#pragma GCC unroll 8
    for (int v = 0; v < PANEL_VECS; v++)
        acc[v] = vec_zero();
    for (int64_t i = 0; i < k; i++, panel += STI_PANEL_COLUMNS) {
        const vec xi = vec_splat(x[i]);
#pragma GCC unroll 4
        for (int line = 0; line < STI_PANEL_COLUMNS; line += LINE)
            __builtin_prefetch(
                (const void *)((uintptr_t)panel + (AHEAD + line) * sizeof *panel));
#pragma GCC unroll 8
        for (int v = 0; v < PANEL_VECS; v++)
            acc[v] = vec_fma(xi, vec_load(panel + v * VEC_WIDTH), acc[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < PANEL_VECS; v++)
        vec_store(y + v * VEC_WIDTH, acc[v]);
}

const sti_panels_kernels PANELS_KERNELS = {.row = panel_row};
