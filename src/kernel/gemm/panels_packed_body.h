/* The loops of panels_packed.h, included once by each vector instruction set's file
 * after its gemm_vec_*.h; the file defines PACKED_KERNELS (the table's name),
 * packed_wide() (bfloat16 as a vector), packed_bytes() (signed bytes) and
 * packed_halves() (low and high halves of bytes, less 8).
 */
#include "kernel/gemm/panels_packed.h"

enum {
    PACKED_VECS = STI_PANEL_COLUMNS / VEC_WIDTH,
    PACKED_LINE = 64,
    PACKED_AHEAD = 24 * PACKED_LINE /* bytes that are fetched ahead */
};

static inline void packed_fetch(const uint8_t *at)
{
    __builtin_prefetch((const void *)((uintptr_t)at + PACKED_AHEAD));
}

/* acc += x w for every row, of the columns of vector v. */
static inline __attribute__((always_inline)) void
packed_add(int rows, const float *x, int64_t ldx, vec w, int v, vec *acc)
{
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        acc[r * PACKED_VECS + v] =
            vec_fma(vec_splat(x[r * ldx]), w, acc[r * PACKED_VECS + v]);
}

/* A block of 32 steps of k. */
static inline __attribute__((always_inline)) void
packed_block8(int rows, const float *x, int64_t ldx, const uint8_t *q, vec *acc)
{
    for (int i = 0; i < STI_PACKED_BLOCK; i++, q += STI_PANEL_COLUMNS) {
        packed_fetch(q);
#pragma GCC unroll 8
        for (int v = 0; v < PACKED_VECS; v++)
            packed_add(rows, x + i, ldx, packed_bytes(q + v * VEC_WIDTH), v, acc);
    }
}

static inline __attribute__((always_inline)) void
packed_block16(int rows, const float *x, int64_t ldx, const uint8_t *q, vec *acc)
{
    for (int i = 0; i < STI_PACKED_BLOCK; i++, q += 2 * STI_PANEL_COLUMNS) {
        packed_fetch(q);
        packed_fetch(q + PACKED_LINE);
#pragma GCC unroll 8
        for (int v = 0; v < PACKED_VECS; v++)
            packed_add(rows, x + i, ldx, packed_wide(q + 2 * v * VEC_WIDTH), v, acc);
    }
}

static inline __attribute__((always_inline)) void
packed_block4(int rows, const float *x, int64_t ldx, const uint8_t *q, vec *acc)
{
    for (int i = 0; i < STI_PACKED_BLOCK / 2; i++, q += STI_PANEL_COLUMNS) {
        packed_fetch(q);
#pragma GCC unroll 8
        for (int v = 0; v < PACKED_VECS; v++) {
            vec low, high;
            packed_halves(q + v * VEC_WIDTH, &low, &high);
            packed_add(rows, x + i, ldx, low, v, acc);
            packed_add(rows, x + i + STI_PACKED_BLOCK / 2, ldx, high, v, acc);
        }
    }
}

static inline __attribute__((always_inline)) void
packed_panel(int bits, int64_t blocks, int rows, const float *x, int64_t ldx,
             const uint8_t *panel, float *y)
{
    vec sum[STI_PACKED_ROWS * PACKED_VECS], part[STI_PACKED_ROWS * PACKED_VECS];
    for (int i = 0; i < rows * PACKED_VECS; i++)
        sum[i] = vec_zero();
    for (int64_t b = 0; b < blocks; b++, x += STI_PACKED_BLOCK) {
        const float *scale = (const float *)(const void *)panel;
        const uint8_t *q = panel + STI_PANEL_COLUMNS * sizeof(float);
        for (int i = 0; i < rows * PACKED_VECS; i++)
            part[i] = vec_zero();
        if (bits == 8)
            packed_block8(rows, x, ldx, q, part);
        else
            packed_block4(rows, x, ldx, q, part);
        for (int i = 0; i < rows * PACKED_VECS; i++)
            sum[i] =
                vec_fma(vec_load(scale + i % PACKED_VECS * VEC_WIDTH), part[i], sum[i]);
        panel += sti_packed_block_bytes(bits);
    }
    for (int i = 0; i < rows * PACKED_VECS; i++)
        vec_store(y + i * VEC_WIDTH, sum[i]);
}

static inline __attribute__((always_inline)) void
packed_panel16(int64_t blocks, int rows, const float *x, int64_t ldx,
               const uint8_t *panel, float *y)
{
    vec sum[STI_PACKED_ROWS * PACKED_VECS];
    for (int i = 0; i < rows * PACKED_VECS; i++)
        sum[i] = vec_zero();
    for (int64_t b = 0; b < blocks; b++, x += STI_PACKED_BLOCK) {
        packed_block16(rows, x, ldx, panel, sum);
        panel += sti_packed_block_bytes(16);
    }
    for (int i = 0; i < rows * PACKED_VECS; i++)
        vec_store(y + i * VEC_WIDTH, sum[i]);
}

static void packed_rows16(int64_t blocks, int rows, const float *x, int64_t ldx,
                          const uint8_t *panel, float *y)
{
    if (rows == 1)
        packed_panel16(blocks, 1, x, ldx, panel, y);
    else
        packed_panel16(blocks, STI_PACKED_ROWS, x, ldx, panel, y);
}

static void packed_rows8(int64_t blocks, int rows, const float *x, int64_t ldx,
                         const uint8_t *panel, float *y)
{
    if (rows == 1)
        packed_panel(8, blocks, 1, x, ldx, panel, y);
    else
        packed_panel(8, blocks, STI_PACKED_ROWS, x, ldx, panel, y);
}

static void packed_rows4(int64_t blocks, int rows, const float *x, int64_t ldx,
                         const uint8_t *panel, float *y)
{
    if (rows == 1)
        packed_panel(4, blocks, 1, x, ldx, panel, y);
    else
        packed_panel(4, blocks, STI_PACKED_ROWS, x, ldx, panel, y);
}

const sti_packed_kernels PACKED_KERNELS = {
    .rows16 = packed_rows16, .rows8 = packed_rows8, .rows4 = packed_rows4};
