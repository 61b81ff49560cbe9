/* Matrix products of bfloat16 with float32 sums, the same bits on every instruction set
 * and thread count.
 *
 * C = A B with an optional bias and ReLU, C in float32 or rounded to bfloat16 (bf16.h).
 * The order of the sum is that of Intel's matrix unit (tdpbf16ps; measured against it
 * on random, cancelling, overflowing and denormal operands):
 *
 *     k is padded with zeros to a multiple of 32 and cut into blocks of 32. In a block
 *     the even and the odd k have a chain each, ascending from 0,
 *         E = fma(a_k, b_k, E),  O = fma(a_{k+1}, b_{k+1}, O);
 *     then S = S + (E + O), for blocks ascending, S = 0 at first.
 *     The output is sum + bias (0: none), 0 instead with ReLU where not > 0 (a NaN
 *     stays), rounded once more where C is bfloat16; with accumulate it is added to
 *     what C holds.
 *
 * Every operation rounds once to nearest even; denormal operands count as zeros and
 * denormal results become zeros (tininess is detected after rounding), whatever the
 * mode of the caller. A product of two bfloat16 is exact in float32, so an fma is all
 * that an emulation needs. Sums of 32 make chains short: no chunks as in gemm.h are
 * wanted. (vdpbf16ps of AVX512_BF16 adds k + 1 before k to one sum; on pairs of even k
 * and pairs of odd k it gives these bits, see gemm_bf16_tile_avx512bf16.c.)
 * Which bits a NaN has, and the sign of a zero, are not part of this. */
#ifndef STI_KERNEL_GEMM_BF16_H
#define STI_KERNEL_GEMM_BF16_H

#include "base/team.h"
#include "kernel/gemm/gemm.h"
#include "kernel/lane/bf16.h"

/* Row-major. A is [m, k] (trans_a: stored [k, m]), B is [k, n] (trans_b: stored
 * [n, k]), C is [m, n]; lda, ldb, ldc are elements between stored rows. */
typedef struct sti_gemm_bf16_shape {
    int64_t m, n, k, lda, ldb, ldc;
    bool trans_a, trans_b;
    bool c_bf16;     /* C is sti_bf16, else float */
    bool accumulate; /* C += the product; of float C */
} sti_gemm_bf16_shape;

enum { STI_GEMM_BF16_BLOCK_COLS = 512 }; /* of C at most, whose sums wait at once */

/* All that is decided about a call before it has operands: how C is cut, what is
 * packed, and how much scratch that takes. A plain value. Lengths in pairs of k are of
 * 32 bits. */
typedef struct sti_gemm_bf16_plan {
    sti_gemm_bf16_shape shape;
    int threads;
    /* Whether k is so short that B is packed once for all blocks of rows, a group of
     * columns at a time, and A once for all columns; else both are, a run of k at a
     * time, for each block of C. */
    bool once;
    int64_t group_cols;             /* columns of B packed at once */
    int64_t block_rows, row_blocks; /* rows of a piece, and pieces along them */
    int64_t part_cols, col_parts;   /* columns of a piece, and pieces along them */
    int64_t block_cols;             /* of C whose sums wait at once */
    int64_t run_pairs, runs;        /* pairs of k in a run, and runs */
    /* Scratch of a thread: A, B, sums of C; all of them; and B packed once for all. */
    int64_t a_pairs, b_pairs, c_floats, worker_pairs, once_pairs;
    /* Blocks of A and C, at most 3 MiB a thread, and of B, 4 MiB for all (for k above
     * 4096 of A, B and C, 1.5 MiB a thread), less for small products. Any alignment
     * will do. */
    size_t scratch_bytes;
} sti_gemm_bf16_plan;

void sti_gemm_plan_bf16(const sti_gemm_bf16_shape *shape, int threads,
                        sti_gemm_bf16_plan *plan_out);

/* Run a plan; the team may be smaller than the plan's. epilogue may be NULL; bits of
 * its mask are set where the stored output is > 0, and ldc must then equal n. No array
 * may overlap c_out. 2 m n k flop. */
void sti_gemm_run_bf16(const sti_team *team, const sti_gemm_bf16_plan *plan,
                       const sti_bf16 *a, const sti_bf16 *b,
                       const sti_epilogue *epilogue, void *c_out, void *scratch);

/* For callers that keep no plan: a call that makes one on the spot, and the most
 * scratch that its plan takes for a team of so many threads or fewer. */
size_t sti_gemm_bf16_scratch_bytes(const sti_gemm_bf16_shape *shape, int threads);
void sti_gemm_bf16(const sti_team *team, const sti_gemm_bf16_shape *shape,
                   const sti_bf16 *a, const sti_bf16 *b, const sti_epilogue *epilogue,
                   void *c_out, void *scratch);

#endif
