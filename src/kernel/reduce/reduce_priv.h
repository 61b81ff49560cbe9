/* The serial parts of reductions, one table an instruction set. */
#ifndef STI_KERNEL_REDUCE_PRIV_H
#define STI_KERNEL_REDUCE_PRIV_H

#include "kernel/reduce/reduce.h"

typedef struct sti_reduce_table {
    /* Sum and maximum of one chunk, 1 <= n <= STI_REDUCE_CHUNK. */
    float (*sum)(int64_t n, const float *x);
    float (*max)(int64_t n, const float *x);
    /* out[j] over 1 <= rows <= STI_REDUCE_ROW_CHUNK of x[row * stride + j], j < n. */
    void (*column_sum)(int64_t rows, int64_t n, int64_t stride, const float *x,
                       float *out);
    void (*column_max)(int64_t rows, int64_t n, int64_t stride, const float *x,
                       float *out);
} sti_reduce_table;

extern const sti_reduce_table sti_reduce_ref, sti_reduce_avx2, sti_reduce_avx512;

#endif
