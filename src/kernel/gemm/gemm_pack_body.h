/* Packing of panels and ReLU bits, included by each vector instruction set's file after
 * its gemm_vec_*.h. */
#include <string.h>

static inline void pack_store(float *dst, vec x, int64_t room)
{
    if (room >= VEC_WIDTH)
        vec_store(dst, x);
    else
        vec_store_part(dst, x, room);
}

/* One row of a panel. */
static inline void pack_row(const float *src, int64_t cols, int64_t width, float *dst)
{
    int64_t j = 0;
    for (; j + VEC_WIDTH <= cols; j += VEC_WIDTH)
        vec_store(dst + j, vec_load(src + j));
    if (j < cols) {
        pack_store(dst + j, vec_load_part(src + j, cols - j), width - j);
        j += VEC_WIDTH;
    }
    for (; j < width; j += VEC_WIDTH)
        pack_store(dst + j, vec_zero(), width - j);
}

enum { PACK_AHEAD = 3 /* rows: they may lie in pages that no prefetcher follows */ };

/* Steps of a tile: two halves that overlap move a row of any such width. */
enum { HALF_VEC = VEC_WIDTH / 2 };

static void pack_strip(const float *src, int64_t ld, int64_t k, int64_t width,
                       float *dst)
{
    for (; k > 0; k--, src += ld, dst += width) {
        memcpy(dst, src, HALF_VEC * sizeof *dst);
        memcpy(dst + width - HALF_VEC, src + width - HALF_VEC, HALF_VEC * sizeof *dst);
    }
}

/* Row by row through all panels. */
static void pack_rows(const float *src, int64_t ld, int64_t k, int64_t cols,
                      int64_t width, float *dst)
{
    if (cols == width && width >= HALF_VEC && width < VEC_WIDTH) {
        pack_strip(src, ld, k, width, dst);
        return;
    }
    for (int64_t i = 0; i < k; i++, src += ld, dst += width) {
        const float *next = src + (i + PACK_AHEAD < k ? PACK_AHEAD * ld : 0);
        for (int64_t j = 0; j < cols; j += 16)
            __builtin_prefetch(next + j);
        for (int64_t j = 0; j < cols; j += width)
            pack_row(src + j, cols - j < width ? cols - j : width, width, dst + j * k);
    }
}

/* Some steps of as many columns as a vector has lanes. */
static inline __attribute__((always_inline)) void
pack_steps(const vec_rows *rows, const int steps, float *dst, int64_t width)
{
    vec out[STI_GEMM_QUAD];
    vec_load_steps(rows, 0, steps, out);
#pragma GCC unroll 4
    for (int s = 0; s < steps; s++)
        vec_store(dst + s * width, out[s]);
}

/* All steps of them; the last ones, if there are four, with some before them once more.
 */
static inline void pack_lanes(const float *src, int64_t ld, int64_t k, int64_t width,
                              float *dst)
{
    int64_t i = 0;
    for (; i + VEC_WIDTH <= k; i += VEC_WIDTH)
        vec_transpose(src + i, ld, dst + i * width, width);
    for (; i < k && k >= STI_GEMM_QUAD; i += STI_GEMM_QUAD) {
        i = i + STI_GEMM_QUAD <= k ? i : k - STI_GEMM_QUAD;
        const vec_rows rows = vec_rows_at(src + i, ld);
        pack_steps(&rows, STI_GEMM_QUAD, dst + i * width, width);
    }
    for (; i < k; i++) {
        const vec_rows rows = vec_rows_at(src + i, ld);
        pack_steps(&rows, 1, dst + i * width, width);
    }
}

/* The last columns are packed together with some before them once more. */
static void pack_columns_panel(const float *src, int64_t ld, int64_t k, int64_t cols,
                               int64_t width, float *dst)
{
    int64_t j = 0;
    for (; j + VEC_WIDTH <= cols; j += VEC_WIDTH)
        pack_lanes(src + j * ld, ld, k, width, dst + j);
    if (j > 0 && j < cols) {
        j = cols - VEC_WIDTH;
        pack_lanes(src + j * ld, ld, k, width, dst + j);
        j = cols;
    }
    for (; j < width; j++)
        for (int64_t i = 0; i < k; i++)
            dst[i * width + j] = j < cols ? src[j * ld + i] : 0.0F;
}

static void pack_columns(const float *src, int64_t ld, int64_t k, int64_t cols,
                         int64_t width, float *dst)
{
    for (int64_t j = 0; j < cols; j += width)
        pack_columns_panel(src + j * ld, ld, k, cols - j < width ? cols - j : width,
                           width, dst + j * k);
}

static void pack_quads(const float *src, int64_t ld, int64_t k, int64_t rows,
                       float *dst)
{
    const int64_t step = rows * STI_GEMM_QUAD;
    int64_t i = 0;
    for (; i + VEC_WIDTH <= k; i += VEC_WIDTH, dst += VEC_WIDTH * rows) {
        int64_t r = 0;
        for (; r + VEC_WIDTH / STI_GEMM_QUAD <= rows; r += VEC_WIDTH / STI_GEMM_QUAD)
            vec_quads(src + r * ld + i, ld, dst + r * STI_GEMM_QUAD, step);
        for (; r < rows; r++)
            for (int64_t q = 0; q < VEC_WIDTH / STI_GEMM_QUAD; q++)
                memcpy(dst + r * STI_GEMM_QUAD + q * step,
                       src + r * ld + i + q * STI_GEMM_QUAD,
                       STI_GEMM_QUAD * sizeof *dst);
    }
    for (; i + STI_GEMM_QUAD <= k; i += STI_GEMM_QUAD)
        for (int64_t r = 0; r < rows; r++, dst += STI_GEMM_QUAD)
            memcpy(dst, src + r * ld + i, STI_GEMM_QUAD * sizeof *dst);
    for (int64_t r = 0; r < rows; r++, dst += STI_GEMM_QUAD)
        for (int64_t u = 0; u < k - i; u++)
            dst[u] = src[r * ld + i + u];
}

static void mask_positive(const float *y, int64_t count, uint8_t *mask)
{
    int64_t i = 0;
    for (; i + 16 <= count; i += 16)
        vec_mask16(y + i, mask + i / 8);
    for (; i < count; i += 8) {
        unsigned byte = 0;
        for (int64_t j = i; j < count && j < i + 8; j++)
            byte |= (unsigned)(y[j] > 0.0F) << (j - i);
        mask[i / 8] = (uint8_t)byte;
    }
}
