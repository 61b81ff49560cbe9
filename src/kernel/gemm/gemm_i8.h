/* Matrix products of 8-bit integers with 32-bit sums: C = A B or C += A B, A unsigned
 * or signed, B signed. Integer sums are exact (modulo 2^32, which k <= 65000 never
 * reaches), so order is free and all instruction sets agree.
 *
 * Where A is signed, 128 is added to it and 128 times B's column sums are taken off
 * again, since the machine multiplies unsigned by signed. */
#ifndef STI_KERNEL_GEMM_I8_H
#define STI_KERNEL_GEMM_I8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"

/* Row-major. A is [m, k] (trans_a: stored [k, m]), B is [k, n] (trans_b: stored [n,
 * k]), C is [m, n]; lda, ldb, ldc are elements between stored rows. m, n, k >= 0. */
typedef struct sti_gemm_i8_shape {
    int64_t m, n, k, lda, ldb, ldc;
    bool trans_a, trans_b;
    bool a_signed;   /* A holds int8_t, else uint8_t */
    bool accumulate; /* start from C instead of 0; not with an epilogue */
} sti_gemm_i8_shape;

/* y = scale[j] * (float)sum + bias[j] as one fused multiply-add (no bias: one product),
 * then ReLU as 0 > y ? 0 : y. */
typedef struct sti_dequantize {
    const float *scale; /* [n] */
    const float *bias;  /* [n], or NULL */
    bool relu;
} sti_dequantize;

enum { STI_GEMM_I8_BLOCK_K = 1536 }; /* k of a pass: 384 words */

/* All that is decided about a call before it has operands. A plain value; words are of
 * four steps of k. */
typedef struct sti_gemm_i8_plan {
    sti_gemm_i8_shape shape;
    int threads;
    bool by_columns;      /* pieces are columns of C, else rows */
    int64_t pieces, part; /* pieces, and columns or rows of one */
    int64_t block_rows, block_cols;
    int64_t b_cols; /* columns of B packed side by side */
    bool keeps_b;   /* they serve all blocks of rows of a piece */
    int64_t words;  /* of k in a pass */
    int64_t a_ld;   /* words between copied rows or steps of A */
    size_t a_words, b_words, worker_words; /* scratch of a thread: A, B, all of it */
    /* Per thread a block of A (0.3 MiB and less for more threads) and some panels of B
     * (0.13 MiB). Any alignment will do. */
    size_t scratch_bytes;
} sti_gemm_i8_plan;

void sti_gemm_plan_i8(const sti_gemm_i8_shape *shape, int threads,
                      sti_gemm_i8_plan *plan_out);

/* Run a plan; the team may be smaller than the plan's. No array may overlap c_out.
 * 2 m n k operations. */
void sti_gemm_run_i8(const sti_team *team, const sti_gemm_i8_plan *plan, const void *a,
                     const int8_t *b, int32_t *c_out, void *scratch);

/* The same with sums turned into y_out [m, n] (rows ldc apart) while they are hot. */
void sti_gemm_run_i8_dequantize(const sti_team *team, const sti_gemm_i8_plan *plan,
                                const void *a, const int8_t *b,
                                const sti_dequantize *epilogue, float *y_out,
                                void *scratch);

/* For callers that keep no plan: calls that make one on the spot, and the most scratch
 * that their plans take for a team of so many threads or fewer. */
size_t sti_gemm_i8_scratch_bytes(const sti_gemm_i8_shape *shape, int threads);
void sti_gemm_i8(const sti_team *team, const sti_gemm_i8_shape *shape, const void *a,
                 const int8_t *b, int32_t *c_out, void *scratch);
void sti_gemm_i8_dequantize(const sti_team *team, const sti_gemm_i8_shape *shape,
                            const void *a, const int8_t *b,
                            const sti_dequantize *epilogue, float *y_out,
                            void *scratch);

#endif
