/* The register tile of wide convolutions: up to 14 pixels by 32 channels, where the
 * instruction set has the registers for it (AVX-512); elsewhere, and for 16 channels or
 * fewer, gemm_tile.h does. Private to the kernel room.
 *
 * What it has beyond gemm_tile.h's nn: the pixels lie in two or three rows, so that
 * small maps fill a tile; the lines of C, and others that will be read soon, are
 * fetched while the sum runs, because most layers are wider than the second-level cache
 * and a tile would otherwise wait for its stores; and C may be added to a finished sum
 * (the next chunk of k). Steps go in twos, which leaves B's panel enough time to come
 * from the second-level cache: it need not fit the first.
 */
#ifndef STI_KERNEL_CONV_TILE_H
#define STI_KERNEL_CONV_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/gemm/gemm_tile.h"

enum {
    STI_CONV_TILE_COLS = 32,
    STI_CONV_TILE_ROWS = 14,
    STI_CONV_TILE_QUAD = 4, /* pixels of a part, where there are three */
    STI_CONV_TILE_PARTS = 3
};

typedef struct sti_conv_tile {
    /* Two parts, pixels [0, half) and [half, rows), half = (rows + 1) / 2; or three of
     * 4 pixels (rows = 12). */
    const float *a[STI_CONV_TILE_PARTS];
    bool three;
    int64_t a_row; /* floats between pixels */
    const int64_t *a_run;
    int64_t runs, run_k;
    const float *b; /* [runs * run_k][32] */
    float *c[STI_CONV_TILE_PARTS];
    int64_t c_row;
    int64_t cols; /* 1 .. 32 */
    int rows;     /* 1 .. 14 */
    bool sum;     /* C + product instead of the product */
    bool relu;
    const float *bias;    /* [cols] or NULL */
    const char *prefetch; /* first line of what is read soon: two lines every two steps,
                          once C's are fetched, a row every two steps */
    ptrdiff_t prefetch_line; /* 64, or 0 where nothing is left to fetch */
} sti_conv_tile;

typedef void sti_conv_tile_fn(const sti_conv_tile *tile);

/* Memory that will be read soon: `lines` lines of 64 bytes, then `skip` bytes on, and
 * so forth; `left` of the current ones are still to come. */
typedef struct sti_conv_stream {
    const char *at;
    int64_t left, lines, skip;
} sti_conv_stream;

/* tn of gemm_tile.h (nv = 2, b_run given) that fetches a line of the stream every step.
 */
typedef void sti_conv_grad_tile_fn(const sti_gemm_tile *tile,
                                   sti_conv_stream *prefetch);

/* NULL where sti_isa_now() has no such tile. */
sti_conv_tile_fn *sti_conv_tile_now(void);
sti_conv_grad_tile_fn *sti_conv_grad_tile_now(void);

#if defined(__x86_64__)
void sti_conv_tile_avx512(const sti_conv_tile *tile);
void sti_conv_grad_tile_avx512(const sti_gemm_tile *tile, sti_conv_stream *prefetch);
#endif

#endif
