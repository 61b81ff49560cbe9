/* Loops on bfloat16 for the CPUs that have AMX: AVX-512 with its bfloat16 conversion.
 */
#if defined(__x86_64__)
#define STI_LANES      16
#define BF16_KERNELS   sti_bf16_kernels_amx
#define LANE_NARROW(x) _mm512_cvtneps_pbh((__m512)(x))
#include "kernel/bf16_body.h"
#else
typedef int sti_bf16_amx_unused;
#endif
