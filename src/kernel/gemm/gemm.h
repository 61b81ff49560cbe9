/* Matrix products in float32, the same bits on every instruction set and thread count.
 *
 * C = A B, or C += A B, with an optional bias, ReLU and ReLU bit mask applied while the
 * result is hot. The order of the sum is part of the contract (one chain of fused
 * multiply-adds an output, in chunks of 4096 joined by a tree):
 *
 *     k is cut into chunks [4096 c, 4096 (c+1));
 *     P_c = 0 (for c = 0: C when accumulating), then for k ascending in the chunk
 *     P_c = fma(a_k, b_k, P_c);
 *     sum(lo, hi) = P_lo                            if hi = lo + 1,
 *                   sum(lo, mid) + sum(mid, hi)     otherwise, with mid = lo +
 *                       the largest power of two below hi - lo;
 *     the output is relu(sum(0, chunks) + bias).
 *
 * Lanes, tiles and threads divide outputs only, and a sum that is stored and taken up
 * again keeps its bits, so blocking never shows. k = 0 gives 0 (or C). */
#ifndef STI_KERNEL_GEMM_H
#define STI_KERNEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/team.h"
#include "kernel/gemm/gemm_plan.h"

#define STI_GEMM_CHUNK 4096

/* Row-major. A is [m, k] (trans_a: stored [k, m]), B is [k, n] (trans_b: stored
 * [n, k]), C is [m, n]; lda, ldb, ldc are floats between stored rows. m, n, k >= 0. */
typedef struct sti_gemm_shape {
    int64_t m, n, k, lda, ldb, ldc;
    bool trans_a, trans_b;
    bool accumulate; /* start from C instead of 0 */
} sti_gemm_shape;

/* What happens to an output before it is stored: y = sum + bias[j], then ReLU as
 * 0 > y ? 0 : y (a NaN stays a NaN). relu_mask: bit i (least significant bit of a byte
 * first) of the flat output is set where the output is > 0; it takes (count + 7) / 8
 * bytes, spare bits of the last byte are 0, and ldc must equal n. sine, where it is not
 * 0, makes sin(sine y) of that while a block of outputs is in the cache; there is no
 * mask then. */
typedef struct sti_epilogue {
    const float *bias; /* [n], or NULL */
    bool relu;
    uint8_t *relu_mask; /* or NULL */
    float sine;
} sti_epilogue;

/* `count` products of one shape; product i uses a + i * a_stride, and so on. A stride
 * of 0 shares an operand (not c). An epilogue's bias is shared; its mask covers the
 * flat [count, m, n], which needs c_stride == m * n. */
typedef struct sti_gemm_batch {
    int64_t count, a_stride, b_stride, c_stride; /* floats */
} sti_gemm_batch;

/* All that is decided about a call before it has operands: the size query is
 * scratch_bytes, and the run obeys the rest. A plain value, to be copied at will. */
typedef struct sti_gemm_plan {
    sti_gemm_shape shape;
    sti_gemm_batch batch;
    bool bias;             /* the epilogue may have one */
    sti_block_plan blocks; /* where its path is STI_GEMM_SMALL: path and threads only */
    /* A block of A, packed columns of B and, for k > 4096, partial sums: at most 5 MiB
     * a thread, 22 MiB for up to 16 threads and 1.4 MiB a thread for more; for k >
     * 8192, 0.3 MiB a thread more for every doubling of k. Never much more than A and B
     * themselves; small products that read them in place take next to nothing. Any
     * alignment will do. */
    size_t scratch_bytes;
} sti_gemm_plan;

/* Plan products for a team of `threads`; batch may be NULL: one product. bias: an
 * epilogue of the calls may bring one. */
void sti_gemm_plan_f32(const sti_gemm_shape *shape, const sti_gemm_batch *batch,
                       bool bias, int threads, sti_gemm_plan *plan_out);

/* Run a plan; the team may be smaller than the plan's. epilogue may be NULL. No array
 * may overlap c_out. 2 m n k flop a product. */
void sti_gemm_run_f32(const sti_team *team, const sti_gemm_plan *plan, const float *a,
                      const float *b, const sti_epilogue *epilogue, float *c_out,
                      void *scratch);

/* For callers that keep no plan: calls that make one on the spot, and the most scratch
 * that any of their plans takes, for a team of so many threads or fewer and with a bias
 * or without. */
size_t sti_gemm_scratch_bytes(const sti_gemm_shape *shape, int threads);
size_t sti_gemm_batched_scratch_bytes(const sti_gemm_shape *shape, int64_t count,
                                      int threads);
void sti_gemm_f32(const sti_team *team, const sti_gemm_shape *shape, const float *a,
                  const float *b, const sti_epilogue *epilogue, float *c_out,
                  void *scratch);
void sti_gemm_batched_f32(const sti_team *team, const sti_gemm_shape *shape,
                          const sti_gemm_batch *batch, const float *a, const float *b,
                          const sti_epilogue *epilogue, float *c_out, void *scratch);

#endif
