/* Register tiles for AVX2 with FMA: 12 accumulators of 8 lanes. */
#include "kernel/gemm/gemm_tile.h"

#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx2.h"

#include "kernel/gemm/gemm_pack_body.h"
#include "kernel/gemm/gemm_tile_body.h"

#include "kernel/gemm/gemm_rows_as_lanes_body.h"
#include "kernel/gemm/gemm_stream_b_body.h"

#define FORMS(WALK) TILES_6(PART_TILE, WALK, 1) TILES_6(TILE, WALK, 1)
FORMS(nn)
FORMS(tn)
FORMS(quads)
TILES_4(TILE, taps, 1)

/* By form and rows. */
typedef tile_fn *const tile_table[2][6];
#define TABLE(WALK)                     \
    {                                   \
        {TILES_6(PART_NAME, WALK, 1)},  \
        {                               \
            TILES_6(TILE_NAME, WALK, 1) \
        }                               \
    }
static tile_table nn = TABLE(nn);
static tile_table tn = TABLE(tn);
static tile_table quads = TABLE(quads);
static tile_fn *const taps1[] = {TILES_4(TILE_NAME, taps, 1)};

static void run_nn(const sti_gemm_tile *t)
{
    nn[tile_form(t)][t->rows - 1](t);
}

static void run_tn(const sti_gemm_tile *t)
{
    tn[tile_form(t)][t->rows - 1](t);
}

static void run_quads(const sti_gemm_tile *t)
{
    quads[tile_form(t)][t->rows - 1](t);
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
    .stream_b = run_stream_b,
    .stream_b_columns = run_stream_b_columns,
    .rows_as_lanes = run_rows_as_lanes,
    .rows_as_lanes_k_major = run_rows_as_lanes_k_major,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .pack_quads = pack_quads,
    .mask = mask_positive,
};
#else
typedef int sti_gemm_tile_avx2_unused;
#endif
