/* Loops on bfloat16 for any machine. */
#define STI_LANES    8
#define BF16_KERNELS sti_bf16_kernels_ref
#include "kernel/lane/bf16_body.h"
