/* The inner loops of batch normalisation over one block: some columns of a chunk of
 * rows. Private to the kernel room. */
#ifndef STI_KERNEL_NORM_BLOCK_H
#define STI_KERNEL_NORM_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* `cols` columns of `rows` rows that are `ld` apart. Arrays of elements begin at the
 * block's first element, whose flat index is a multiple of 8, and those of columns at
 * its first column. Fields that a loop does not use may be NULL. */
typedef struct sti_norm_block {
    int64_t rows, ld, cols;
    int64_t next; /* moments: elements from here to the x that will be read next */
    bool relu;
    /* y, dresidual past the caches: aligned to 64 bytes, ld too. */
    bool stream, stream_dresidual;
    const float *x, *dy, *residual;
    const float *mean;  /* m */
    const float *gain;  /* scale inv */
    const float *shift; /* forward: shift; backward: mean of z */
    const float *slope; /* backward: inv dscale / rows */
    float *y;           /* forward: y; backward: dx or NULL */
    float *dresidual;
    uint8_t *bits_out;
    const uint8_t *bits;
} sti_norm_block;

typedef struct sti_norm_kernels {
    /* s[j] = sum x */
    void (*sum)(const sti_norm_block *b, float *s);
    /* s[j] = sum (x - mean), q[j] = sum (x - mean)^2 */
    void (*moments)(const sti_norm_block *b, float *s, float *q);
    void (*forward)(const sti_norm_block *b);
    /* s[j] = sum z, q[j] = sum z (x - mean) */
    void (*grad_sums)(const sti_norm_block *b, float *s, float *q);
    void (*backward)(const sti_norm_block *b);
} sti_norm_kernels;

/* For ld and cols both multiples of 16. */
extern const sti_norm_kernels sti_norm_kernels_ref;
#if defined(__x86_64__)
extern const sti_norm_kernels sti_norm_kernels_avx2, sti_norm_kernels_avx512;
#endif

/* For any block of at most STI_NORM_ANY columns (norm_any.c); the same order of sums.
 * `forward` leaves the bits to sti_norm_bits. */
enum { STI_NORM_ANY = 512 };
extern const sti_norm_kernels sti_norm_kernels_any;

/* Bits of n elements of y; spare bits of the last byte are 0. */
void sti_norm_bits(int64_t n, const float *y, uint8_t *bits_out);

#endif
