/* Register tiles for AVX-512: 28 accumulators of 16 lanes. */
#include "kernel/gemm_tile.h"

#if defined(__x86_64__)
#include "kernel/gemm_vec_avx512.h"

#include "kernel/gemm_pack_body.h"
#include "kernel/gemm_tile_body.h"

TILES_28(TILE, nn, 1)
TILES_14(TILE, nn, 2)
TILES_6(TILE, nn, 4)
TILES_28(TILE, tn, 1)
TILES_28(PART, nn, 1)
TILES_28(PART, tn, 1)
TILES_14(PART, nn, 2)
TILES_6(PART, nn, 4)
TILES_14(PART, tn, 2)
TILES_6(PART, tn, 4)
TILES_14(TILE, tn, 2)
TILES_6(TILE, tn, 4)
TILES_14(TILE, quads, 1)
TILES_14(TILE, quads, 2)
TILES_6(TILE, quads, 4)
TILES_14(PART, quads, 1)
TILES_14(PART, quads, 2)
TILES_6(PART, quads, 4)
TILES_16(TILE, taps, 1)

/* By whether B is read in place. */
static tile_fn *const nn1[2][28] = {{TILES_28(TILE_NAME, nn, 1)},
                                    {TILES_28(PART_NAME, nn, 1)}};
static tile_fn *const nn2[2][14] = {{TILES_14(TILE_NAME, nn, 2)},
                                    {TILES_14(PART_NAME, nn, 2)}};
static tile_fn *const nn4[2][6] = {{TILES_6(TILE_NAME, nn, 4)},
                                   {TILES_6(PART_NAME, nn, 4)}};
static tile_fn *const tn1[2][28] = {{TILES_28(TILE_NAME, tn, 1)},
                                    {TILES_28(PART_NAME, tn, 1)}};
static tile_fn *const tn2[2][14] = {{TILES_14(TILE_NAME, tn, 2)},
                                    {TILES_14(PART_NAME, tn, 2)}};
static tile_fn *const tn4[2][6] = {{TILES_6(TILE_NAME, tn, 4)},
                                   {TILES_6(PART_NAME, tn, 4)}};
static tile_fn *const quads1[2][14] = {{TILES_14(TILE_NAME, quads, 1)},
                                       {TILES_14(PART_NAME, quads, 1)}};
static tile_fn *const quads2[2][14] = {{TILES_14(TILE_NAME, quads, 2)},
                                       {TILES_14(PART_NAME, quads, 2)}};
static tile_fn *const quads4[2][6] = {{TILES_6(TILE_NAME, quads, 4)},
                                      {TILES_6(PART_NAME, quads, 4)}};
static tile_fn *const taps1[] = {TILES_16(TILE_NAME, taps, 1)};

/* Masks cost nothing here, so one set of tiles serves both. */
static bool in_place(const sti_gemm_tile *t)
{
    return t->b_part || t->b_ahead;
}

static void run_nn(const sti_gemm_tile *t)
{
    if (t->nv == 1)
        nn1[in_place(t)][t->rows - 1](t);
    else if (t->nv == 2)
        nn2[in_place(t)][t->rows - 1](t);
    else
        nn4[in_place(t)][t->rows - 1](t);
}

static void run_tn(const sti_gemm_tile *t)
{
    if (t->nv == 1)
        tn1[in_place(t)][t->rows - 1](t);
    else if (t->nv == 2)
        tn2[in_place(t)][t->rows - 1](t);
    else
        tn4[in_place(t)][t->rows - 1](t);
}

static void run_quads(const sti_gemm_tile *t)
{
    if (t->nv == 1)
        quads1[in_place(t)][t->rows - 1](t);
    else if (t->nv == 2)
        quads2[in_place(t)][t->rows - 1](t);
    else
        quads4[in_place(t)][t->rows - 1](t);
}

static void run_taps(const sti_gemm_tile *t)
{
    taps1[t->rows - 1](t);
}

const sti_gemm_kernels sti_gemm_kernels_avx512 = {
    .max_rows = {0, 28, 14, 0, 6},
    .nn = run_nn,
    .tn = run_tn,
    .quads = run_quads,
    .taps = run_taps,
    .max_rows_taps = 16,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .pack_quads = pack_quads,
    .mask = mask_positive,
};
#else
typedef int sti_gemm_tile_avx512_unused;
#endif
