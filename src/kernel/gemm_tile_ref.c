/* Register tiles in plain C: the definition that the fast ones must equal bit for bit.
 */
#include <math.h>

#include "kernel/gemm_tile.h"

static void tile_element(const sti_gemm_tile *t, bool nn, int64_t r, int64_t j)
{
    float *c = t->c + r * t->c_row + j;
    float acc = t->load ? *c : 0.0F;
    for (int64_t i = 0; i < t->runs; i++)
        for (int64_t k = 0; k < t->run_k; k++) {
            const float a = nn ? t->a[t->a_run[i] + r * t->a_row + k]
                               : t->a[t->a_run[i] + k * t->a_step + r];
            const float b = nn ? t->b[(i * t->run_k + k) * STI_PANEL * t->nv + j]
                               : t->b[(i * t->run_k + k) * t->b_step + j];
            acc = fmaf(a, b, acc);
        }
    if (t->bias)
        acc += t->bias[j];
    if (t->relu)
        acc = 0.0F > acc ? 0.0F : acc;
    *c = acc;
}

static void tile_nn(const sti_gemm_tile *t)
{
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t j = 0; j < t->cols; j++)
            tile_element(t, true, r, j);
}

static void tile_tn(const sti_gemm_tile *t)
{
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t j = 0; j < t->cols; j++)
            tile_element(t, false, r, j);
}

static void pack_rows(const float *src, int64_t ld, int64_t k, int64_t cols,
                      int64_t width, float *dst)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < width; j++)
            dst[i * width + j] = j < cols ? src[i * ld + j] : 0.0F;
}

static void pack_columns(const float *src, int64_t ld, int64_t k, int64_t cols,
                         int64_t width, float *dst)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < width; j++)
            dst[i * width + j] = j < cols ? src[j * ld + i] : 0.0F;
}

static void mask_positive(const float *y, int64_t count, uint8_t *mask)
{
    for (int64_t i = 0; i < count; i += 8) {
        unsigned byte = 0;
        for (int64_t j = i; j < count && j < i + 8; j++)
            byte |= (unsigned)(y[j] > 0.0F) << (j - i);
        mask[i / 8] = (uint8_t)byte;
    }
}

const sti_gemm_kernels sti_gemm_kernels_ref = {
    .max_rows = {0, 8, 4, 0, 0},
    .nn = tile_nn,
    .tn = tile_tn,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .mask = mask_positive,
};
