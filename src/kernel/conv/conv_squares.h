/* Sums of dY^2 per output channel beside the weight gradient. Private to the kernel
 * room.
 *
 * The weight gradient's chunks of 4096 output pixels (conv.h) each give four chains of
 * fused multiply-adds, pixel p in chain p % 4; chunks join chain by chain along the
 * weight gradient's own tree, and then the chains as (0 + 1) + (2 + 3). */
#ifndef STI_KERNEL_CONV_SQUARES_H
#define STI_KERNEL_CONV_SQUARES_H

#include "kernel/conv/conv.h"

enum { STI_CONV_SQUARE_CHAINS = 4 };

typedef struct sti_conv_squares_kernels {
    /* sums_out [4][channels] = the four chains over dy [pixels][channels]. */
    void (*chunk)(const float *dy, int64_t pixels, int64_t channels, float *sums_out);
} sti_conv_squares_kernels;

extern const sti_conv_squares_kernels sti_conv_squares_kernels_ref;
#if defined(__x86_64__)
extern const sti_conv_squares_kernels sti_conv_squares_kernels_avx2;
extern const sti_conv_squares_kernels sti_conv_squares_kernels_avx512;
#endif

/* Sums of all chunks, [chunks][4][co]. */
size_t sti_conv_squares_bytes(const sti_conv_shape *shape);

/* The chains of one chunk, into its place in sums: for the thread that has just read
 * that chunk of dy. */
void sti_conv_squares_chunk(const sti_conv_shape *shape, const float *dy, int64_t chunk,
                            float *sums);

/* All chunks, where no thread goes through dy in order. */
void sti_conv_squares_chunks(const sti_team *team, const sti_conv_shape *shape,
                             const float *dy, float *sums);

/* squares_out [co] from all chunks; overwrites sums. */
void sti_conv_squares_join(const sti_team *team, const sti_conv_shape *shape,
                           float *sums, float *squares_out);

#endif
