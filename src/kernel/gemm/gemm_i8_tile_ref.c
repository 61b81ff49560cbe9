/* Register tiles of 8-bit products in plain C. */
#include <math.h>
#include <string.h>

#include "kernel/gemm/gemm_i8_tile.h"

static uint32_t word_at(const float *p, int64_t i)
{
    uint32_t word;
    memcpy(&word, p + i, sizeof word);
    return word;
}

/* Four products; unsigned arithmetic wraps. */
static uint32_t dot(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += (uint32_t)((int32_t)(a >> i & 255) * (int8_t)(b >> i & 255));
    return sum;
}

static void tile_words(const sti_gemm_tile *t, int64_t a_row, int64_t a_step)
{
    for (int64_t line = 0; line < t->lines; line++)
        for (int64_t r = 0; r < t->rows; r++)
            for (int64_t j = 0; j < t->cols; j++) {
                const float *a = t->a + line * t->a_line + t->a_run[0] + r * a_row;
                float *c = t->c + line * t->c_line + r * t->c_row + j;
                uint32_t sum = t->load ? word_at(c, 0) : 0;
                for (int64_t k = 0; k < t->run_k; k++)
                    sum +=
                        dot(word_at(a, k * a_step), word_at(t->b, k * t->b_step + j));
                if (t->bias)
                    sum += word_at(t->bias, j);
                memcpy(c, &sum, sizeof sum);
            }
}

static void tile_nn(const sti_gemm_tile *t)
{
    tile_words(t, t->a_row, 1);
}

static void tile_tn(const sti_gemm_tile *t)
{
    tile_words(t, 1, t->a_step);
}

#include "kernel/gemm/gemm_i8_pack_body.h"

static void offsets(const uint32_t *panel, int64_t words, int64_t width, int32_t *sums)
{
    for (int64_t i = 0; i < words; i++)
        for (int64_t j = 0; j < width; j++)
            sums[j] -= 128 * (int32_t)dot(0x01010101, panel[i * width + j]);
}

static void dequantize(const sti_dequantize *e, int64_t rows, int64_t cols, int64_t ld,
                       void *c)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++) {
            char *at = (char *)c + (size_t)(r * ld + j) * sizeof(float);
            int32_t sum;
            memcpy(&sum, at, sizeof sum);
            float y = e->bias ? fmaf(e->scale[j], (float)sum, e->bias[j])
                              : e->scale[j] * (float)sum;
            if (e->relu)
                y = 0.0F > y ? 0.0F : y;
            memcpy(at, &y, sizeof y);
        }
}

const sti_gemm_i8_kernels sti_gemm_i8_kernels_ref = {
    .max_rows = {0, 8, 4},
    .nn = tile_nn,
    .tn = tile_tn,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .offsets = offsets,
    .dequantize = dequantize,
};
