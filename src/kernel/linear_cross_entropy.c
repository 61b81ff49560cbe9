#include "kernel/linear_cross_entropy.h"

#include "base/memory.h"
#include "kernel/gemm.h"
#include "kernel/softmax.h"

#define BLOCK_BYTES (INT64_C(128) << 20) /* of logits; part of the numerics */
#define SMALL_BYTES (INT64_C(72) << 20)  /* where the sums are one chain either way */

static int64_t rows_within(const sti_linear_cross_entropy *a, int64_t bytes)
{
    const int64_t row_bytes = a->classes * (int64_t)sizeof(float);
    int64_t most = row_bytes > 0 ? bytes / row_bytes : a->rows;
    most = most > 64 ? most : 64;
    const int64_t blocks = (a->rows + most - 1) / most;
    return blocks > 0 ? (a->rows + blocks - 1) / blocks : 1;
}

/* Up to a chunk of the product, rows are one chain of sums however they are cut. */
static int64_t rows_a_block(const sti_linear_cross_entropy *a)
{
    const int64_t rows = rows_within(a, BLOCK_BYTES);
    return rows <= STI_GEMM_CHUNK ? rows_within(a, SMALL_BYTES) : rows;
}

static sti_gemm_shape logits_shape(const sti_linear_cross_entropy *a, int64_t rows)
{
    return (sti_gemm_shape){.m = rows,
                            .n = a->classes,
                            .k = a->n,
                            .lda = a->n,
                            .ldb = a->n,
                            .ldc = a->classes,
                            .trans_b = true};
}

static sti_gemm_shape dx_shape(const sti_linear_cross_entropy *a, int64_t rows)
{
    return (sti_gemm_shape){.m = rows,
                            .n = a->n,
                            .k = a->classes,
                            .lda = a->classes,
                            .ldb = a->n,
                            .ldc = a->n};
}

static sti_gemm_shape dtable_shape(const sti_linear_cross_entropy *a, int64_t rows)
{
    return (sti_gemm_shape){.m = a->classes,
                            .n = a->n,
                            .k = rows,
                            .lda = a->classes,
                            .ldb = a->n,
                            .ldc = a->n,
                            .trans_a = true};
}

double sti_linear_cross_entropy_flop(const sti_linear_cross_entropy *a, int gradients)
{
    const double product = 2.0 * (double)a->rows * (double)a->n * (double)a->classes;
    return product * (1 + gradients);
}

static size_t product_bytes(const sti_linear_cross_entropy *a, int64_t rows,
                            int threads)
{
    const sti_gemm_shape shape[3] = {logits_shape(a, rows), dx_shape(a, rows),
                                     dtable_shape(a, rows)};
    size_t bytes = 0;
    for (int i = 0; i < 3; i++) {
        const size_t one = sti_gemm_scratch_bytes(&shape[i], threads);
        bytes = one > bytes ? one : bytes;
    }
    return bytes;
}

static size_t logits_bytes(const sti_linear_cross_entropy *a)
{
    return STI_ALIGN_UP((size_t)(rows_a_block(a) * a->classes) * sizeof(float), 64);
}

static size_t losses_bytes(const sti_linear_cross_entropy *a)
{
    return STI_ALIGN_UP((size_t)a->rows * sizeof(float), 64);
}

/* The last block may be shorter, and its products need less. */
size_t sti_linear_cross_entropy_scratch_bytes(const sti_linear_cross_entropy *a,
                                              int threads)
{
    const int64_t rows = rows_a_block(a), rest = a->rows % rows;
    size_t products = product_bytes(a, rows, threads);
    if (rest > 0) {
        const size_t last = product_bytes(a, rest, threads);
        products = last > products ? last : products;
    }
    return logits_bytes(a) + losses_bytes(a) + products;
}

void sti_linear_cross_entropy_f32(const sti_team *team,
                                  const sti_linear_cross_entropy *a, float *loss,
                                  float *dx, float *dtable, void *scratch)
{
    char *at = scratch;
    float *logits = (float *)(void *)at;
    float *losses = (float *)(void *)(at + logits_bytes(a));
    void *more = at + logits_bytes(a) + losses_bytes(a);
    const int64_t most = rows_a_block(a);
    for (int64_t r = 0; r < a->rows; r += most) {
        const int64_t rows = a->rows - r < most ? a->rows - r : most;
        const float *x = a->x + r * a->n;
        const sti_gemm_shape forward = logits_shape(a, rows), of_x = dx_shape(a, rows);
        sti_gemm_shape of_table = dtable_shape(a, rows);
        const sti_cross_entropy entropy = {.rows = rows,
                                           .n = a->classes,
                                           .smoothing = a->smoothing,
                                           .x = logits,
                                           .label = a->label + r};
        sti_gemm_f32(team, &forward, x, a->table, NULL, logits, more);
        if (dx || dtable)
            sti_cross_entropy_both_f32(team, &entropy, 1.0f / (float)a->rows,
                                       losses + r, logits);
        else
            sti_cross_entropy_f32(team, &entropy, losses + r);
        if (dx)
            sti_gemm_f32(team, &of_x, logits, a->table, NULL, dx + r * a->n, more);
        of_table.accumulate = r > 0;
        if (dtable)
            sti_gemm_f32(team, &of_table, logits, x, NULL, dtable, more);
    }
    *loss = sti_sum_short_f32(a->rows, losses) / (float)a->rows;
}
