/* Batch-reduce product of small blocks (BRGEMM): C = beta C + sum_i A_i B_i, i < br,
 * with beta 0 or 1 and an epilogue applied while C is in registers. The building block
 * of products, convolutions and loop nests: Georganas et al., "Harnessing Deep Learning
 * and HPC Kernels via High-Level Loop and Tensor Abstractions on CPU Architectures",
 * 2023.
 *
 * The sum of an output is one chain of fused multiply-adds, on every instruction set:
 *
 *     P = beta ? C : 0, then for i ascending, for k ascending: P = fma(a_ik, b_ik, P);
 *     the output is relu(P + bias[j]), with relu(y) = 0 > y ? 0 : y.
 *
 * So a product may be cut into several calls (accumulate set on all but the first, the
 * epilogue on the last alone) without a change of bits, and calls in ascending order of
 * k give the bits of sti_gemm_f32 for k <= 4096. That function's tree over chunks of
 * 4096 is the caller's affair. */
#ifndef STI_KERNEL_BRGEMM_H
#define STI_KERNEL_BRGEMM_H

#include <stdbool.h>
#include <stdint.h>

/* A_i is [m, k] (trans_a: stored [k, m]), B_i is [k, n], C is [m, n], all row-major;
 * lda, ldb, ldc are floats between stored rows. Any sizes >= 0, any alignment; m, n, k
 * that divide by no tile are done by masks, and nothing outside the blocks is touched.
 * Fastest where n is a multiple of 64, or of 32 and m of 14, B_i stay in the
 * first-level cache and lda, ldb are no multiples of 1024. */
typedef struct sti_brgemm {
    int64_t m, n, k, lda, ldb, ldc;
    bool trans_a;
    bool accumulate;   /* beta = 1 */
    bool relu;         /* after the bias */
    const float *bias; /* [n], or NULL */
} sti_brgemm;

/* The three ways to name the blocks. br >= 0; with br = 0 only beta and the epilogue
 * are left. No block may overlap c. 2 m n k br flop; no scratch; threads may call them
 * at once on different c. */

/* By addresses a[i], b[i]. */
void sti_brgemm_address_f32(const sti_brgemm *g, int64_t br, const float *const *a,
                            const float *const *b, float *c);
/* At a + a_offset[i], b + b_offset[i] (floats). */
void sti_brgemm_offset_f32(const sti_brgemm *g, int64_t br, const float *a,
                           const float *b, const int64_t *a_offset,
                           const int64_t *b_offset, float *c);
/* At a + i * a_stride, b + i * b_stride (floats). */
void sti_brgemm_stride_f32(const sti_brgemm *g, int64_t br, const float *a,
                           const float *b, int64_t a_stride, int64_t b_stride,
                           float *c);

#endif
