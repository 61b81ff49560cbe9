/* Shared by the files of the bfloat16 convolution. */
#ifndef STI_KERNEL_CONV_BF16_PRIV_H
#define STI_KERNEL_CONV_BF16_PRIV_H

#include "kernel/conv_bf16.h"
#include "kernel/conv_priv.h"
#include "kernel/gemm_bf16_tile.h"

/* Copy a window of an image [h][w][c] whose top left corner is pixel (y0, x0), perhaps
 * outside, to dst [rows][cols][c / 2, rounded up] pairs; what is outside is zero. */
void sti_conv_bf16_window(const sti_bf16 *image, int64_t h, int64_t w, int64_t c,
                          const sti_conv_window *window, sti_bf16_pair *dst);

static inline void *sti_conv_bf16_align(void *p)
{
    return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

#endif
