#if defined(__x86_64__)
#define STI_LANES    16
#define NORM_KERNELS sti_norm_kernels_avx512
#include "kernel/norm/norm_body.h"
#endif
