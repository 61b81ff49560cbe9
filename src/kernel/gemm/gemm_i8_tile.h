/* Register tiles of 8-bit products: those of gemm_tile.h over 32-bit words that each
 * hold four steps of k (u8 from A, s8 from B), with integer sums; `bias` is then an
 * int32_t for every column, added when a tile is stored, and there is no relu. Floats
 * in sti_gemm_tile only stand for words and are never read as numbers. Private to the
 * kernel room. */
#ifndef STI_KERNEL_GEMM_I8_TILE_H
#define STI_KERNEL_GEMM_I8_TILE_H

#include "kernel/gemm/gemm_i8.h"
#include "kernel/gemm/gemm_tile.h"

enum { STI_I8_STEPS = 4 }; /* of k in a word */

typedef struct sti_gemm_i8_kernels {
    int max_rows[3];                       /* by nv, 1 or 2; 0: no such tile */
    void (*nn)(const sti_gemm_tile *tile); /* A [rows][words] */
    void (*tn)(const sti_gemm_tile *tile); /* A [words][rows] */
    /* Word i of lane j, dst [words][width]: bytes src[4 i .. 4 i + 3][j], each xor
     * flip, 0 beyond k and cols. */
    void (*pack)(const uint8_t *src, int64_t ld, int64_t k, int64_t cols, int64_t width,
                 uint8_t flip, uint32_t *dst);
    /* The same from src [cols][k]. */
    void (*pack_transposed)(const uint8_t *src, int64_t ld, int64_t k, int64_t cols,
                            int64_t width, uint32_t *dst);
    /* sums[j] -= 128 * the signed bytes of column j of a panel [words][width]. */
    void (*offsets)(const uint32_t *panel, int64_t words, int64_t width, int32_t *sums);
    /* In place: 32-bit sums become floats, as sti_dequantize says (from column 0). */
    void (*dequantize)(const sti_dequantize *e, int64_t rows, int64_t cols, int64_t ld,
                       void *c);
} sti_gemm_i8_kernels;

extern const sti_gemm_i8_kernels sti_gemm_i8_kernels_ref;
#if defined(__x86_64__)
extern const sti_gemm_i8_kernels sti_gemm_i8_kernels_avx2;
extern const sti_gemm_i8_kernels sti_gemm_i8_kernels_avx512vnni;
#endif

#endif
