#if defined(__x86_64__)
#define STI_LANES    16
#define LFSR_KERNELS sti_lfsr_kernels_avx512
#include "kernel/normal/lfsr_body.h"
#endif
