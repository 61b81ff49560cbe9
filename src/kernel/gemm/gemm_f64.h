/* Products of matrices in double: C [m, n] (+)= A [m, k] B [k, n].
 *
 * An output is one chain of fused multiply-adds in ascending order of k, whatever the
 * blocking and the instruction set; it begins at 0, or at what C holds. A and B lie in
 * memory with any strides, so a transpose is another pair of strides and no copy. The
 * calls are serial and pure: threads may run them at once on different outputs and
 * scratch. */
#ifndef STI_KERNEL_GEMM_F64_H
#define STI_KERNEL_GEMM_F64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix in memory: element (i, j) is at[i * row + j * column], in doubles. */
typedef struct sti_view_f64 {
    const double *at;
    int64_t row, column;
} sti_view_f64;

/* Columns of B and steps of k that are packed at a time. */
enum { STI_GEMM_F64_COLUMNS = 256, STI_GEMM_F64_DEPTH = 256 };
#define STI_GEMM_F64_SCRATCH_BYTES \
    (sizeof(double) * STI_GEMM_F64_COLUMNS * STI_GEMM_F64_DEPTH)

/* c [m, n] with ldc doubles from row to row; scratch of STI_GEMM_F64_SCRATCH_BYTES,
 * aligned to 64 bytes. accumulate: C is added to, else overwritten, by zeros where k
 * is 0. */
void sti_gemm_f64(int64_t m, int64_t n, int64_t k, sti_view_f64 a, sti_view_f64 b,
                  bool accumulate, double *c, int64_t ldc, void *scratch);

#endif
