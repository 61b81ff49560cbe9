/* Partial sums of batch normalisation, a chunk of rows each, joined along a binary tree
 * over the chunk index in float64: for both types of activations. Private to the kernel
 * room. */
#ifndef STI_KERNEL_NORM_JOIN_H
#define STI_KERNEL_NORM_JOIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct sti_norm_sums {
    int64_t rows, c, rows_a_chunk, chunks;
    double *at; /* [chunks][2][c]: mean and squared deviation, or sums of z and of
                   z (x - mean); joined in place */
} sti_norm_sums;

/* Bytes of the partial sums, 64-byte aligned. */
size_t sti_norm_sums_bytes(int64_t chunks, int64_t c);

/* Rows of some chunks. */
static inline int64_t sti_norm_span_rows(const sti_norm_sums *s, int64_t chunk,
                                         int64_t chunks)
{
    const int64_t last = (chunk + chunks) * s->rows_a_chunk;
    return (last < s->rows ? last : s->rows) - chunk * s->rows_a_chunk;
}

/* Mean, 1 / sqrt(variance + epsilon) and, unless NULL, unbiased variance of columns
 * first .. last - 1, by the formula of Chan, Golub and LeVeque. */
void sti_norm_join_moments(const sti_norm_sums *s, int64_t first, int64_t last,
                           float epsilon, float *mean_out, float *inv_out,
                           float *unbiased_out);

/* What the gradient needs of those columns; dscale and dshift may be NULL. */
typedef struct sti_norm_slopes {
    const float *scale, *inv;
    float *gain;   /* scale inv */
    float *mean_z; /* dshift / rows */
    float *slope;  /* inv dscale / rows */
    float *dscale, *dshift;
} sti_norm_slopes;
void sti_norm_join_slopes(const sti_norm_sums *s, int64_t first, int64_t last,
                          const sti_norm_slopes *out);

#endif
