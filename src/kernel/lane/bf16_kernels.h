/* The inner loops on bfloat16 arrays, a table an instruction set. Private to the kernel
 * room. `_avx512bf16` is AVX-512 with AVX512_BF16. All tables give the same bits. */
#ifndef STI_KERNEL_BF16_KERNELS_H
#define STI_KERNEL_BF16_KERNELS_H

#include <stdbool.h>

#include "base/cpu.h"
#include "kernel/lane/bf16.h"
#include "kernel/lane/dispatch.h"

/* `cols` columns of `rows` rows that are `ld` apart; cols is a multiple of 16. Arrays
 * of elements begin at the block's first element, whose flat index is a multiple of 16,
 * those of columns at its first column. Fields that a loop does not use may be NULL. */
typedef struct sti_norm_bf16_block {
    int64_t rows, ld, cols;
    bool relu;
    const sti_bf16 *x, *dy, *residual;
    const float *mean, *gain, *shift, *slope;
    sti_bf16 *y; /* forward: y; backward: dx or NULL */
    sti_bf16 *dresidual;
    uint8_t *bits_out;
    const uint8_t *bits;
} sti_norm_bf16_block;

/* The order of dot products (gemm_bf16_tile.h) if turned: which k is element i. */
static inline int64_t sti_bf16_turned(bool turned, int64_t i)
{
    static const int8_t k[4] = {2, 0, 3, 1};
    return turned ? (i & ~(int64_t)3) + k[i & 3] : i;
}

typedef struct sti_bf16_kernels {
    void (*to_f32)(int64_t n, const sti_bf16 *x, float *y_out);
    void (*from_f32)(int64_t n, const float *x, sti_bf16 *y_out);
    /* y may be a or b. */
    void (*add)(int64_t n, const sti_bf16 *a, const sti_bf16 *b, sti_bf16 *y_out);
    /* Bit i = y[i] > 0; spare bits of the last byte are 0. */
    void (*mask)(int64_t n, const sti_bf16 *y, uint8_t *bits_out);
    void (*mask_f32)(int64_t n, const float *y, uint8_t *bits_out);
    /* y = x where x > 0 or NaN, else 0; bits may be NULL. y may be x. */
    void (*relu)(int64_t n, const sti_bf16 *x, sti_bf16 *y_out, uint8_t *bits_out);
    void (*relu_grad)(int64_t n, const sti_bf16 *dy, const uint8_t *bits,
                      sti_bf16 *dx_out);
    /* Pairs out[j] = (even[j], odd[j]), the even one in the lower half; odd NULL:
     * zeros.
     */
    void (*interleave)(int64_t n, const sti_bf16 *even, const sti_bf16 *odd,
                       uint32_t *out);
    /* y [rows][cols] = relu(sum + bias), rounded; cols <= 16. sum [rows][16], bias
     * [16].
     */
    void (*finish)(int64_t rows, int64_t cols, const float *sum, const float *bias,
                   bool relu, sti_bf16 *y_out, int64_t ld);
    /* out[c] [32], ld apart = column first + c, c < 16, of the rows src[0..31] (if
     * turned in the order of sti_bf16_turned); beyond `cols` columns: zeros. */
    void (*transpose32)(const sti_bf16 *const *src, bool turned, int64_t first,
                        int64_t cols, sti_bf16 *out, int64_t ld);
    /* out[i][j] [16] = pairs (lower[j][16 i + ..], upper[j][16 i + ..]) for j < n and
     * all `cols` columns, zeros beyond; out[i] are `block` apart. Whether all are
     * finite. */
    bool (*pair_pixels)(int64_t n, const sti_bf16 *const *lower,
                        const sti_bf16 *const *upper, int64_t cols, uint32_t *out,
                        int64_t block);
    /* out [cols][ld] = transpose of x [rows][16]; rows, cols <= 16. */
    void (*transpose_f32)(int64_t rows, int64_t cols, const float *x, float *out,
                          int64_t ld);
    /* Rows of pairs (x[j], x[next + j]); rows of x are ld apart, those of out out_ld.
     */
    void (*interleave_rows)(int64_t rows, int64_t n, const sti_bf16 *x, int64_t next,
                            int64_t ld, uint32_t *out, int64_t out_ld);
    /* With x0 the block's first row: s[j] = sum (x - x0), q[j] = sum (x - x0)^2. */
    void (*moments)(const sti_norm_bf16_block *b, float *s, float *q);
    void (*forward)(const sti_norm_bf16_block *b);
    /* s[j] = sum z, q[j] = sum z (x - mean) */
    void (*grad_sums)(const sti_norm_bf16_block *b, float *s, float *q);
    void (*backward)(const sti_norm_bf16_block *b);
} sti_bf16_kernels;

extern const sti_bf16_kernels sti_bf16_kernels_ref;
#if defined(__x86_64__)
extern const sti_bf16_kernels sti_bf16_kernels_avx2, sti_bf16_kernels_avx512,
    sti_bf16_kernels_avx512bf16;
#endif

static inline const sti_bf16_kernels *sti_bf16_kernels_now(void)
{
#if defined(__x86_64__)
    if (sti_bf16_unit_now() >= STI_BF16_DOT)
        return &sti_bf16_kernels_avx512bf16;
#endif
    return STI_KERNELS_NOW(sti_bf16_kernels);
}

#endif
