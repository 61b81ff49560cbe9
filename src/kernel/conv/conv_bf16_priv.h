/* Shared by the files of the bfloat16 convolution. */
#ifndef STI_KERNEL_CONV_BF16_PRIV_H
#define STI_KERNEL_CONV_BF16_PRIV_H

#include "kernel/conv/conv_bf16.h"
#include "kernel/conv/conv_priv.h"
#include "kernel/gemm/gemm_bf16_tile.h"

/* Planners of the directions, for sti_conv_plan_bf16. */
void sti_conv_plan_bf16_forward(sti_conv_plan *plan);
void sti_conv_plan_bf16_data(sti_conv_plan *plan);
void sti_conv_plan_bf16_weight(sti_conv_plan *plan);

#endif
