/* The register tiles of gemm_bf16_tile.h from float32 arithmetic, bit-equal to the
 * matrix unit. Included once by each instruction set's file, which defines STI_LANES,
 * EMULATE_ROWS, TILE_KERNELS (the table's name), and EMULATE_FMA(a, b, c) = a b + c and
 * EMULATE_ADD(a, b) on lanes, rounded once with denormals flushed (as the thread's mode
 * says: team.h sets it). */
#include "kernel/gemm/gemm_bf16_tile.h"
#include "kernel/lane/lane_bf16.h"

#define ALWAYS static inline __attribute__((always_inline))
enum { VECS = STI_BF16_COLS / STI_LANES };

/* One block of k: even and odd members have a chain each, which then join. */
ALWAYS void emulate_block(const sti_bf16_pair *a, int64_t a_row, const sti_bf16_pair *b,
                          int64_t b_row, const int rows, lane_f *sum)
{
    lane_f even[EMULATE_ROWS * VECS] = {{0}}, odd[EMULATE_ROWS * VECS] = {{0}};
    for (int p = 0; p < STI_BF16_PAIRS; p++, b += b_row)
#pragma GCC unroll 2
        for (int v = 0; v < VECS; v++) {
            const lane_u pair =
                (lane_u)lane_load((const float *)(const void *)(b + v * STI_LANES));
            const lane_f b0 = (lane_f)(pair << 16), b1 = (lane_f)(pair & 0xffff0000u);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const sti_bf16_pair x = a[r * a_row + p];
                const float a0 = sti_bf16_to_f32((sti_bf16)(x & 0xffffu));
                const float a1 = sti_bf16_to_f32((sti_bf16)(x >> 16));
                lane_f *e = &even[r * VECS + v], *o = &odd[r * VECS + v];
                *e = EMULATE_FMA(lane_splat(a0), b0, *e);
                *o = EMULATE_FMA(lane_splat(a1), b1, *o);
            }
        }
#pragma GCC unroll 8
    for (int i = 0; i < rows * VECS; i++)
        sum[i] = EMULATE_ADD(sum[i], EMULATE_ADD(even[i], odd[i]));
}

/* `rows` rows of tile n, the first being row r. */
ALWAYS void emulate_rows(const sti_bf16_tile *t, int n, int64_t r, const int rows)
{
    lane_f sum[EMULATE_ROWS * VECS] = {{0}};
    const sti_bf16_pair *b = t->b + t->b_tile[n];
    float *c = t->c + t->c_tile[n] + r * t->c_row;
    for (int i = 0; t->load && i < rows * VECS; i++)
        sum[i] = lane_load(c + i / VECS * t->c_row + i % VECS * STI_LANES);
    for (int64_t i = 0; i < t->runs; i++) {
        const sti_bf16_pair *a = t->a + t->a_tile[n] + t->a_run[i] + r * t->a_row;
        for (int64_t j = 0; j < t->blocks; j++) {
            emulate_block(a, t->a_row, b, t->b_row, rows, sum);
            a += t->a_block;
            b += STI_BF16_PAIRS * t->b_row;
        }
    }
    for (int i = 0; i < rows * VECS; i++)
        lane_store(c + i / VECS * t->c_row + i % VECS * STI_LANES, sum[i]);
}

static void emulate(const sti_bf16_tile *t)
{
    for (int n = 0; n < t->count; n++) {
        int64_t r = 0;
        for (; r + EMULATE_ROWS <= t->rows; r += EMULATE_ROWS)
            emulate_rows(t, n, r, EMULATE_ROWS);
        for (; r < t->rows; r++)
            emulate_rows(t, n, r, 1);
    }
}

static void emulate_begin(int rows)
{
    (void)rows;
}

static void emulate_end(void)
{
}

const sti_bf16_tile_kernels TILE_KERNELS = {
    .begin = emulate_begin,
    .end = emulate_end,
    .share_b = emulate,
    .share_a = emulate,
    .square = emulate,
};
