#include <math.h>

#include "kernel/gemm/panels_packed.h"
#include "kernel/lane/bf16.h"

static float weight_of(int bits, const uint8_t *q, int i, int j)
{
    if (bits == 8)
        return (float)(int8_t)q[i * STI_PANEL_COLUMNS + j];
    const uint8_t byte = q[i % (STI_PACKED_BLOCK / 2) * STI_PANEL_COLUMNS + j];
    return (float)((i < STI_PACKED_BLOCK / 2 ? byte & 15 : byte >> 4) - 8);
}

/* Step o of a block: of 4 bits, those of one byte follow each other. */
static int place_of(int bits, int o)
{
    return bits == 8 ? o : o / 2 + o % 2 * (STI_PACKED_BLOCK / 2);
}

static float block_sum(int bits, const float *x, const uint8_t *q, int j)
{
    float part = 0;
    for (int o = 0; o < STI_PACKED_BLOCK; o++) {
        const int i = place_of(bits, o);
        part = fmaf(x[i], weight_of(bits, q, i, j), part);
    }
    return part;
}

static void panel_rows(int bits, int64_t blocks, int rows, const float *x, int64_t ldx,
                       const uint8_t *panel, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < STI_PANEL_COLUMNS; j++) {
            float sum = 0;
            for (int64_t b = 0; b < blocks; b++) {
                const uint8_t *block = panel + (size_t)b * sti_packed_block_bytes(bits);
                const float *scale = (const float *)(const void *)block;
                const float part =
                    block_sum(bits, x + r * ldx + b * STI_PACKED_BLOCK,
                              block + STI_PANEL_COLUMNS * sizeof(float), j);
                sum = fmaf(scale[j], part, sum);
            }
            y[r * STI_PANEL_COLUMNS + j] = sum;
        }
}

static void rows16(int64_t blocks, int rows, const float *x, int64_t ldx,
                   const uint8_t *panel, float *y)
{
    const sti_bf16 *w = (const sti_bf16 *)(const void *)panel;
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < STI_PANEL_COLUMNS; j++) {
            float sum = 0;
            for (int64_t i = 0; i < blocks * STI_PACKED_BLOCK; i++)
                sum = fmaf(x[r * ldx + i],
                           sti_bf16_to_f32(w[i * STI_PANEL_COLUMNS + j]), sum);
            y[r * STI_PANEL_COLUMNS + j] = sum;
        }
}

static void rows8(int64_t blocks, int rows, const float *x, int64_t ldx,
                  const uint8_t *panel, float *y)
{
    panel_rows(8, blocks, rows, x, ldx, panel, y);
}

static void rows4(int64_t blocks, int rows, const float *x, int64_t ldx,
                  const uint8_t *panel, float *y)
{
    panel_rows(4, blocks, rows, x, ldx, panel, y);
}

const sti_packed_kernels sti_packed_kernels_ref = {
    .rows16 = rows16, .rows8 = rows8, .rows4 = rows4};
