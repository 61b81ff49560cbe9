#if defined(__x86_64__)
#define STI_LANES        16
#define WINOGRAD_KERNELS sti_winograd_kernels_avx512
#include "kernel/conv/winograd_body.h"
#else
typedef int sti_winograd_avx512_unused;
#endif
