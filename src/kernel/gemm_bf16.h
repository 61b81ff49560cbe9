/* Matrix products of bfloat16 with float32 sums, the same bits on every instruction set
 * and thread count.
 *
 * C = A B with an optional bias and ReLU, C in float32 or rounded to bfloat16 (bf16.h).
 * The order of the sum is what the AVX512_BF16 instruction vdpbf16ps does, step by step
 * (measured against it on random, denormal, overflowing and cancelling operands):
 *
 *     k is padded with zeros to an even number and cut into chunks
 *     [4096 c, 4096 (c+1)); P_c = 0, then for pairs (k, k+1) ascending in the chunk
 *         P_c = fma(a_k, b_k, fma(a_{k+1}, b_{k+1}, P_c)),
 *     the odd member of a pair first; each fma rounds once to nearest even; denormal
 *     operands count as zeros and denormal results become zeros (tininess is detected
 *     after rounding), whatever the mode of the caller;
 *     chunks join along the tree of gemm.h; the output is relu(sum + bias), rounded
 *     once more where C is bfloat16.
 *
 * The product of two bfloat16 is exact in float32, so one fma is all the arithmetic an
 * emulation needs: float32 code with denormals flushed gives the same bits. Which bits
 * a NaN has is not part of this. */
#ifndef STI_KERNEL_GEMM_BF16_H
#define STI_KERNEL_GEMM_BF16_H

#include "base/team.h"
#include "kernel/bf16.h"
#include "kernel/gemm.h"

/* Row-major. A is [m, k] (trans_a: stored [k, m]), B is [k, n] (trans_b: stored
 * [n, k]), C is [m, n]; lda, ldb, ldc are elements between stored rows. */
typedef struct sti_gemm_bf16_shape {
    int64_t m, n, k, lda, ldb, ldc;
    bool trans_a, trans_b;
    bool c_bf16; /* C is sti_bf16, else float */
} sti_gemm_bf16_shape;

/* Scratch of a call: A and B packed a block at a time, at most 1.5 MiB a thread. Any
 * alignment will do. */
size_t sti_gemm_bf16_scratch_bytes(const sti_gemm_bf16_shape *shape, int threads);

/* epilogue may be NULL; bits of its mask are set where the stored output is > 0, and
 * ldc must then equal n. No array may overlap c_out. 2 m n k flop. */
void sti_gemm_bf16(const sti_team *team, const sti_gemm_bf16_shape *shape,
                   const sti_bf16 *a, const sti_bf16 *b, const sti_epilogue *epilogue,
                   void *c_out, void *scratch);

#endif
