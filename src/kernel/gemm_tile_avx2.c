/* Register tiles for AVX2 with FMA: 12 accumulators of 8 lanes. */
#include "kernel/gemm_tile.h"

#if defined(__x86_64__)
#include "kernel/gemm_vec_avx2.h"

#include "kernel/gemm_pack_body.h"
#include "kernel/gemm_tile_body.h"

TILES_6(TILE, nn, 1)
TILES_6(TILE, tn, 1)
TILES_6(PART, nn, 1)
TILES_6(PART, tn, 1)
TILES_6(TILE, quads, 1)
TILES_6(PART, quads, 1)
TILES_4(TILE, taps, 1)

/* By whether B is read in place. */
static tile_fn *const nn1[2][6] = {{TILES_6(TILE_NAME, nn, 1)},
                                   {TILES_6(PART_NAME, nn, 1)}};
static tile_fn *const tn1[2][6] = {{TILES_6(TILE_NAME, tn, 1)},
                                   {TILES_6(PART_NAME, tn, 1)}};
static tile_fn *const quads1[2][6] = {{TILES_6(TILE_NAME, quads, 1)},
                                      {TILES_6(PART_NAME, quads, 1)}};
static tile_fn *const taps1[] = {TILES_4(TILE_NAME, taps, 1)};

static void run_nn(const sti_gemm_tile *t)
{
    nn1[t->b_part != 0][t->rows - 1](t);
}

static void run_tn(const sti_gemm_tile *t)
{
    tn1[t->b_part != 0][t->rows - 1](t);
}

static void run_quads(const sti_gemm_tile *t)
{
    quads1[t->b_part != 0][t->rows - 1](t);
}

static void run_taps(const sti_gemm_tile *t)
{
    taps1[t->rows - 1](t);
}

const sti_gemm_kernels sti_gemm_kernels_avx2 = {
    .max_rows = {0, 6, 0, 0, 0},
    .nn = run_nn,
    .tn = run_tn,
    .quads = run_quads,
    .taps = run_taps,
    .max_rows_taps = 4,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .pack_quads = pack_quads,
    .mask = mask_positive,
};
#else
typedef int sti_gemm_tile_avx2_unused;
#endif
