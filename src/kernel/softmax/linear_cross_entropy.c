#include "kernel/softmax/linear_cross_entropy.h"

#include "base/memory.h"
#include "kernel/elementwise/elementwise_bf16.h"
#include "kernel/gemm/gemm.h"
#include "kernel/gemm/gemm_bf16.h"
#include "kernel/softmax/linear_classifier.h"
#include "kernel/softmax/softmax.h"

#define BLOCK_BYTES   (INT64_C(128) << 20) /* of logits; part of the numerics */
#define SMALL_BYTES   (INT64_C(72) << 20)  /* where the sums are one chain either way */
#define FORWARD_BYTES (INT64_C(16) << 20)  /* shown by no sum */

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
    const int64_t rows = rows_within(a, a->forward ? FORWARD_BYTES : BLOCK_BYTES);
    if (a->forward)
        return rows;
    return rows <= STI_GEMM_CHUNK ? rows_within(a, SMALL_BYTES) : rows;
}

double sti_linear_cross_entropy_flop(const sti_linear_cross_entropy *a, int gradients)
{
    const double product = 2.0 * (double)a->rows * (double)a->n * (double)a->classes;
    return product * (1 + gradients);
}

static sti_gemm_bf16_shape bf16_shape(const sti_gemm_shape *s)
{
    return (sti_gemm_bf16_shape){.m = s->m,
                                 .n = s->n,
                                 .k = s->k,
                                 .lda = s->lda,
                                 .ldb = s->ldb,
                                 .ldc = s->ldc,
                                 .trans_a = s->trans_a,
                                 .trans_b = s->trans_b,
                                 .accumulate = s->accumulate};
}

static size_t one_product_bytes(const sti_linear_cross_entropy *a,
                                const sti_gemm_shape *shape, int threads)
{
    const sti_gemm_bf16_shape narrow = bf16_shape(shape);
    return a->bf16 ? sti_gemm_bf16_scratch_bytes(&narrow, threads)
                   : sti_gemm_scratch_bytes(shape, threads);
}

static size_t product_bytes(const sti_linear_cross_entropy *a, int64_t rows,
                            int threads)
{
    const sti_gemm_shape shape[3] = {sti_classifier_logits(rows, a->n, a->classes),
                                     sti_classifier_dx(rows, a->n, a->classes),
                                     sti_classifier_dtable(rows, a->n, a->classes)};
    size_t bytes = 0;
    for (int i = 0; i < (a->forward ? 1 : 3); i++) {
        const size_t one = one_product_bytes(a, &shape[i], threads);
        bytes = one > bytes ? one : bytes;
    }
    return bytes;
}

/* c = a b, both of the type of x and table. */
static void product(const sti_team *team, const sti_linear_cross_entropy *args,
                    const sti_gemm_shape *shape, const void *a, const void *b, float *c,
                    void *scratch)
{
    const sti_gemm_bf16_shape narrow = bf16_shape(shape);
    if (args->bf16)
        sti_gemm_bf16(team, &narrow, a, b, NULL, c, scratch);
    else
        sti_gemm_f32(team, shape, a, b, NULL, c, scratch);
}

static size_t logits_bytes(const sti_linear_cross_entropy *a)
{
    return STI_ALIGN_UP((size_t)(rows_a_block(a) * a->classes) * sizeof(float), 64);
}

static size_t narrow_bytes(const sti_linear_cross_entropy *a)
{
    const size_t values = (size_t)(rows_a_block(a) * a->classes);
    return a->bf16 && !a->forward ? STI_ALIGN_UP(values * sizeof(sti_bf16), 64) : 0;
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
    return logits_bytes(a) + narrow_bytes(a) + losses_bytes(a) + products;
}

void sti_linear_cross_entropy_f32(const sti_team *team,
                                  const sti_linear_cross_entropy *a, float *loss,
                                  float *dx, float *dtable, void *scratch)
{
    char *at = scratch;
    float *logits = (float *)(void *)at;
    sti_bf16 *narrow = (sti_bf16 *)(void *)(at += logits_bytes(a));
    float *losses = (float *)(void *)(at += narrow_bytes(a));
    void *more = at + losses_bytes(a);
    const void *dlogits = a->bf16 ? (const void *)narrow : logits;
    const int64_t most = rows_a_block(a);
    const int64_t row_bytes = a->n * (int64_t)(a->bf16 ? sizeof *narrow : sizeof *dx);
    for (int64_t r = 0; r < a->rows; r += most) {
        const int64_t rows = a->rows - r < most ? a->rows - r : most;
        const void *x = (const char *)a->x + r * row_bytes;
        const sti_gemm_shape forward = sti_classifier_logits(rows, a->n, a->classes),
                             of_x = sti_classifier_dx(rows, a->n, a->classes);
        sti_gemm_shape of_table = sti_classifier_dtable(rows, a->n, a->classes);
        const sti_cross_entropy entropy = {.rows = rows,
                                           .n = a->classes,
                                           .smoothing = a->smoothing,
                                           .x = logits,
                                           .label = a->label + r};
        product(team, a, &forward, x, a->table, logits, more);
        if (dx || dtable)
            sti_cross_entropy_both_f32(team, &entropy, 1.0f / (float)a->rows,
                                       losses + r, logits);
        else
            sti_cross_entropy_f32(team, &entropy, losses + r);
        if (a->bf16 && (dx || dtable))
            sti_bf16_round(team, rows * a->classes, logits, narrow);
        if (dx)
            product(team, a, &of_x, dlogits, a->table, dx + r * a->n, more);
        of_table.accumulate = r > 0;
        if (dtable)
            product(team, a, &of_table, dlogits, x, dtable, more);
    }
    *loss = sti_sum_short_f32(a->rows, losses) / (float)a->rows;
}
