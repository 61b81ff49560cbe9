/* Register tiles in plain C: the definition that the fast ones
 * must equal bit for bit. */
#include <math.h>

#include "kernel/gemm/gemm_tile.h"

/* Operands of step k of run i for row r and column j of a line. */
typedef float operand_fn(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                         int64_t r, int64_t j);

/* p + floats, perhaps in another array than p. */
static const float *far(const float *p, int64_t floats)
{
    return (const float *)((uintptr_t)p + (uintptr_t)floats * sizeof(float));
}

static const float *run_b(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                          int64_t step, int64_t j)
{
    return far(t->b + line * t->b_line,
               (t->b_run ? t->b_run[i] : i * t->run_k * step) + k * step + j);
}

static float nn_a(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k, int64_t r,
                  int64_t j)
{
    (void)j;
    return *far(t->a, line * t->a_line + t->a_run[i] + r * t->a_row + k);
}

static float quads_a(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                     int64_t r, int64_t j)
{
    (void)i, (void)j;
    return t->a[line * t->a_line + (k / STI_GEMM_QUAD * t->rows + r) * STI_GEMM_QUAD +
                k % STI_GEMM_QUAD];
}

static float nn_b(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k, int64_t r,
                  int64_t j)
{
    (void)r;
    return *run_b(t, line, i, k, t->b_step ? t->b_step : (int64_t)STI_PANEL * t->nv, j);
}

static float tn_a(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k, int64_t r,
                  int64_t j)
{
    (void)j;
    return *far(t->a, line * t->a_line + t->a_run[i] + k * t->a_step + r);
}

static float tn_b(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k, int64_t r,
                  int64_t j)
{
    (void)r;
    return *run_b(t, line, i, k, t->b_step, j);
}

enum { TAPS = 3 };

static float taps_a(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                    int64_t r, int64_t j)
{
    return nn_a(t, line, i, k / TAPS, r + k % TAPS, j);
}

static float taps_b(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                    int64_t r, int64_t j)
{
    (void)r;
    return t->b[line * t->b_line + (i * t->run_k * TAPS + k) * STI_PANEL + j];
}

static void tile_element(const sti_gemm_tile *t, operand_fn *a, operand_fn *b,
                         int64_t run_k, int64_t line, int64_t r, int64_t j)
{
    float *c = t->c + line * t->c_line + r * t->c_row + j;
    float acc = t->load ? *c : 0.0F;
    for (int64_t i = 0; i < t->runs; i++)
        for (int64_t k = 0; k < run_k; k++)
            acc = fmaf(a(t, line, i, k, r, j), b(t, line, i, k, r, j), acc);
    if (t->bias)
        acc += t->bias[j];
    if (t->relu)
        acc = 0.0F > acc ? 0.0F : acc;
    *c = acc;
}

static void tile_elements(const sti_gemm_tile *t, operand_fn *a, operand_fn *b,
                          int64_t run_k)
{
    for (int64_t line = 0; line < t->lines; line++)
        for (int64_t r = 0; r < t->rows; r++)
            for (int64_t j = 0; j < t->cols; j++)
                tile_element(t, a, b, run_k, line, r, j);
}

static void tile_nn(const sti_gemm_tile *t)
{
    tile_elements(t, nn_a, nn_b, t->run_k);
}

static void tile_tn(const sti_gemm_tile *t)
{
    tile_elements(t, tn_a, tn_b, t->run_k);
}

static void tile_quads(const sti_gemm_tile *t)
{
    tile_elements(t, quads_a, tn_b, t->run_k);
}

static void tile_taps(const sti_gemm_tile *t)
{
    tile_elements(t, taps_a, taps_b, t->run_k * TAPS);
}

static float stream_a_at(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                         int64_t r, int64_t j)
{
    (void)line, (void)i, (void)j;
    return t->a[r * t->a_row + k * t->a_step];
}

static float stream_b_at(const sti_gemm_tile *t, int64_t line, int64_t i, int64_t k,
                         int64_t r, int64_t j)
{
    (void)line, (void)i, (void)r;
    return t->b[k * t->b_step + j];
}

static float stream_columns_b_at(const sti_gemm_tile *t, int64_t line, int64_t i,
                                 int64_t k, int64_t r, int64_t j)
{
    (void)line, (void)i, (void)r;
    return t->b[j * t->b_step + k];
}

static void stream_elements(const sti_gemm_tile *t, operand_fn *b)
{
    sti_gemm_tile one = *t;
    one.lines = one.runs = 1;
    tile_elements(&one, stream_a_at, b, t->run_k);
}

static void tile_stream_b(const sti_gemm_tile *t)
{
    stream_elements(t, stream_b_at);
}

static void tile_stream_b_columns(const sti_gemm_tile *t)
{
    stream_elements(t, stream_columns_b_at);
}

static sti_gemm_tile lanes_rows(const sti_gemm_tile *t)
{
    sti_gemm_tile all = *t;
    all.lines = 1;
    all.rows = (int)t->lines * STI_GEMM_LANES_ROWS;
    return all;
}

static void tile_rows_as_lanes(const sti_gemm_tile *t)
{
    const sti_gemm_tile all = lanes_rows(t);
    tile_nn(&all);
}

static void tile_rows_as_lanes_k_major(const sti_gemm_tile *t)
{
    const sti_gemm_tile all = lanes_rows(t);
    tile_tn(&all);
}

/* Column j of step i. */
static float *packed(float *dst, int64_t k, int64_t width, int64_t i, int64_t j)
{
    return dst + j / width * width * k + i * width + j % width;
}

static void pack_rows(const float *src, int64_t ld, int64_t k, int64_t cols,
                      int64_t width, float *dst)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < (cols + width - 1) / width * width; j++)
            *packed(dst, k, width, i, j) = j < cols ? src[i * ld + j] : 0.0F;
}

static void pack_columns(const float *src, int64_t ld, int64_t k, int64_t cols,
                         int64_t width, float *dst)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < (cols + width - 1) / width * width; j++)
            *packed(dst, k, width, i, j) = j < cols ? src[j * ld + i] : 0.0F;
}

static void pack_quads(const float *src, int64_t ld, int64_t k, int64_t rows,
                       float *dst)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++)
            dst[(i / STI_GEMM_QUAD * rows + r) * STI_GEMM_QUAD + i % STI_GEMM_QUAD] =
                src[r * ld + i];
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
    .quads = tile_quads,
    .taps = tile_taps,
    .max_rows_taps = 8,
    .stream_b = tile_stream_b,
    .stream_b_columns = tile_stream_b_columns,
    .rows_as_lanes = tile_rows_as_lanes,
    .rows_as_lanes_k_major = tile_rows_as_lanes_k_major,
    .pack = pack_rows,
    .pack_transposed = pack_columns,
    .pack_quads = pack_quads,
    .mask = mask_positive,
};
