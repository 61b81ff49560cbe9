/* Shared by the files of the bfloat16 convolution. */
#ifndef STI_KERNEL_CONV_BF16_PRIV_H
#define STI_KERNEL_CONV_BF16_PRIV_H

#include "kernel/conv/conv_bf16.h"
#include "kernel/conv/conv_priv.h"
#include "kernel/gemm/gemm_bf16_tile.h"

static inline void *sti_conv_bf16_align(void *p)
{
    return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63);
}

#endif
