/* The register tile of every bfloat16 product: up to 16 x 16 or 14 x 32 outputs kept in
 * registers over a run of pairs of k; see gemm_bf16.h for the arithmetic. Private to
 * the kernel room. Lengths are in pairs (32 bits, the even k in the lower half) unless
 * they concern C.
 *
 * Row r of the tile reads A at a + a_run[i] + r * a_row + p * a_step, p < run_k, for
 * the runs i in order, one of a_row and a_step being 1 (a_row may also be 1 with
 * a_step 1). B is packed: [runs * run_k][16 * nv] pairs. Only `cols` columns of C are
 * touched. */
#ifndef STI_KERNEL_GEMM_BF16_TILE_H
#define STI_KERNEL_GEMM_BF16_TILE_H

#include <stdbool.h>

#include "kernel/bf16_kernels.h"

enum {
    STI_BF16_PANEL = 16, /* columns */
    STI_BF16_ROWS_1 = 16,
    STI_BF16_ROWS_2 = 14
};

typedef uint32_t sti_bf16_pair __attribute__((may_alias, aligned(2)));

typedef struct sti_bf16_tile {
    const sti_bf16_pair *a, *b;
    int64_t a_row, a_step;
    const int64_t *a_run; /* [runs] */
    int64_t runs, run_k;
    void *c; /* float, or sti_bf16 when c_bf16 */
    int64_t c_row;
    int64_t cols; /* 1 .. 16 nv */
    int rows;     /* 1 .. STI_BF16_ROWS_1 (nv 1) or STI_BF16_ROWS_2 (nv 2) */
    int nv;       /* panels side by side: 1 or 2 */
    int64_t lines;
    int64_t a_line, c_line; /* tiles of these rows, so far apart in A and C */
    bool load;              /* start from C (float) instead of 0 */
    bool relu;
    bool c_bf16;
    const float *bias; /* [cols] or NULL; added when the tile is stored */
} sti_bf16_tile;

typedef struct sti_bf16_tile_kernels {
    void (*rows)(const sti_bf16_tile *tile);  /* a_step = 1 */
    void (*steps)(const sti_bf16_tile *tile); /* a_row = 1 */
} sti_bf16_tile_kernels;

extern const sti_bf16_tile_kernels sti_bf16_tiles_ref;
#if defined(__x86_64__)
extern const sti_bf16_tile_kernels sti_bf16_tiles_avx2, sti_bf16_tiles_avx512,
    sti_bf16_tiles_avx512bf16;
#endif

static inline const sti_bf16_tile_kernels *sti_bf16_tiles_now(void)
{
    return STI_BF16_KERNELS_NOW(sti_bf16_tiles);
}

/* Rows are cut in the fewest tiles, as equal as can be: rows of the next tile. */
static inline int sti_bf16_next_rows(int64_t rows_left, int nv)
{
    const int64_t most = nv == 1 ? STI_BF16_ROWS_1 : STI_BF16_ROWS_2;
    const int64_t tiles = (rows_left + most - 1) / most;
    return (int)((rows_left + tiles - 1) / tiles);
}

static inline int sti_bf16_panels(int64_t cols)
{
    return cols > STI_BF16_PANEL ? 2 : 1;
}

#endif
