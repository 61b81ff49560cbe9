/* Matrix products with a B that is held in bytes (byte_matrix.h): its elements are
 * widened to float32 while panels of it are packed, so the matrix never exists in
 * float32. The sums are those of gemm.h, so the bits are those of sti_gemm_f32 with the
 * widened matrix, on every instruction set and thread count. */
#ifndef STI_KERNEL_GEMM_BYTE_H
#define STI_KERNEL_GEMM_BYTE_H

#include "kernel/gemm/byte_matrix.h"
#include "kernel/gemm/gemm.h"

/* C [m, columns] = A [m, rows] W, or with trans_b C [m, rows] = A [m, columns] W^T; A
 * and C are dense. */
typedef struct sti_gemm_byte_shape {
    int64_t m, rows, columns; /* the last two are W's */
    bool trans_b;
} sti_gemm_byte_shape;

/* The most that a call takes for a team of so many threads or fewer. */
size_t sti_gemm_byte_scratch_bytes(const sti_gemm_byte_shape *shape, bool bias,
                                   int threads);
/* epilogue may be NULL. No array may overlap c_out. 2 m rows columns flop, and a
 * multiplication for each element of W a block of rows of A. */
void sti_gemm_byte_f32(const sti_team *team, const sti_gemm_byte_shape *shape,
                       const float *a, const sti_byte_matrix *w,
                       const sti_epilogue *epilogue, float *c_out, void *scratch);

#endif
