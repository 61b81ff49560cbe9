#if defined(__x86_64__)
#define STI_LANES    8
#define LFSR_KERNELS sti_lfsr_kernels_avx2
#include "kernel/normal/lfsr_body.h"
#endif
