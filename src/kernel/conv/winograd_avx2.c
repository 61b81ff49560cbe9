#if defined(__x86_64__)
#define STI_LANES        8
#define WINOGRAD_KERNELS sti_winograd_kernels_avx2
#include "kernel/conv/winograd_body.h"
#else
typedef int sti_winograd_avx2_unused;
#endif
