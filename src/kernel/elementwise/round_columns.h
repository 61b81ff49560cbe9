/* Columns of a matrix as signed integers of few bits and one scale a column hold them.
 * x [rows, columns] with `stride` floats from row to row. */
#ifndef STI_KERNEL_ROUND_COLUMNS_H
#define STI_KERNEL_ROUND_COLUMNS_H

#include <stdint.h>

/* largest [columns] becomes the largest magnitude of it and of each column, so that a
 * matrix may come in slices of rows; 0 at first. */
void sti_columns_largest_f32(int64_t rows, int64_t columns, int64_t stride,
                             const float *x, float *largest);
/* y = round(x / s) s, to even on ties, with s = largest / (2^(bits - 1) - 1) of the
 * column; 0 where that is. bits 2 to 8. y has x's stride and may be x. */
void sti_columns_round_f32(int64_t rows, int64_t columns, int64_t stride, int bits,
                           const float *largest, const float *x, float *y);

#endif
