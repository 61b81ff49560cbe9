/* Register tiles for AVX-512: 28 accumulators of 16 lanes. */
#include "kernel/gemm/gemm_tile.h"

#if defined(__x86_64__) && !defined(STI_NARROW_TILES)
#include "kernel/gemm/gemm_vec_avx512.h"

#include "kernel/gemm/gemm_pack_body.h"
#include "kernel/gemm/gemm_tile_body.h"

#include "kernel/gemm/gemm_b_in_registers_body.h"
#include "kernel/gemm/gemm_rows_as_lanes_body.h"
#include "kernel/gemm/gemm_stream_b_body.h"

/* Every walk in every form, at all heights that registers allow. */
#define ALL(X, WALK, MOST) \
    MOST(X, WALK, 1) TILES_14(X, WALK, 2) TILES_9(X, WALK, 3) TILES_6(X, WALK, 4)
#define FORMS(WALK, MOST) ALL(PART_TILE, WALK, MOST) ALL(TILE, WALK, MOST)
FORMS(nn, TILES_28)
FORMS(tn, TILES_28)
FORMS(quads, TILES_14)
/* Half a panel, by itself or beside two or three whole ones. (Beside one it would be
 * slower than after it.) */
#define HALVES(WALK) \
    TILES_14(HALF_TILE, WALK, 1) TILES_9(HALF_TILE, WALK, 3) TILES_6(HALF_TILE, WALK, 4)
HALVES(nn)
HALVES(tn)
TILES_14(HALF_TILE, quads, 1)
TILES_16(TILE, taps, 1)

/* By form, panels and rows. */
enum { FORMS_OF_TILES = 3, MOST_PANELS = 4, MOST_ROWS = 28 };
typedef tile_fn *const tile_table[FORMS_OF_TILES][MOST_PANELS][MOST_ROWS];
#define NAMES(NAME, WALK, MOST)                                                     \
    {                                                                               \
        {MOST(NAME, WALK, 1)}, {TILES_14(NAME, WALK, 2)}, {TILES_9(NAME, WALK, 3)}, \
        {                                                                           \
            TILES_6(NAME, WALK, 4)                                                  \
        }                                                                           \
    }
#define TABLE(WALK, MOST, HALF_TABLE)                                                  \
    {                                                                                  \
        [PART] = NAMES(PART_NAME, WALK, MOST), [WHOLE] = NAMES(TILE_NAME, WALK, MOST), \
        [HALF] = HALF_TABLE                                                            \
    }
#define HALF_NAMES(WALK)                                                       \
    {                                                                          \
        {TILES_14(HALF_NAME, WALK, 1)}, {NULL}, {TILES_9(HALF_NAME, WALK, 3)}, \
        {                                                                      \
            TILES_6(HALF_NAME, WALK, 4)                                        \
        }                                                                      \
    }
static tile_table nn = TABLE(nn, TILES_28, HALF_NAMES(nn));
static tile_table tn = TABLE(tn, TILES_28, HALF_NAMES(tn));
static tile_table quads = TABLE(quads, TILES_14, {{TILES_14(HALF_NAME, quads, 1)}});

static tile_fn *const taps1[] = {TILES_16(TILE_NAME, taps, 1)};

enum { HALF_ROWS = 14 };

static void run(tile_table table, const sti_gemm_tile *t)
{
    const int64_t rest = t->cols - (t->nv - 1) * STI_PANEL;
    const bool half = rest > 0 && rest <= STI_PANEL / 2;
    tile_fn *const fast = half ? table[HALF][t->nv - 1][t->rows - 1] : NULL;
    if (fast)
        fast(t);
    else
        table[tile_form(t)][t->nv - 1][t->rows - 1](t);
}

static void run_nn(const sti_gemm_tile *t)
{
    run(nn, t);
}

static void run_tn(const sti_gemm_tile *t)
{
    run(tn, t);
}

static void run_quads(const sti_gemm_tile *t)
{
    run(quads, t);
}

static void run_taps(const sti_gemm_tile *t)
{
    taps1[t->rows - 1](t);
}

const sti_gemm_kernels sti_gemm_kernels_avx512 = {
    .max_rows = {0, 28, 14, 9, 6},
    .max_rows_half = HALF_ROWS,
    .nn = run_nn,
    .tn = run_tn,
    .quads = run_quads,
    .taps = run_taps,
    .max_rows_taps = 16,
    .stream_b = run_stream_b,
    .stream_b_columns = run_stream_b_columns,
    .rows_as_lanes = run_rows_as_lanes,
    .rows_as_lanes_k_major = run_rows_as_lanes_k_major,
    .b_in_registers = run_b_in_registers,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .pack_quads = pack_quads,
    .mask = mask_positive,
};
#else
typedef int sti_gemm_tile_avx512_unused;
#endif
