#if defined(__x86_64__)
#define OPTIMIZER_KERNELS sti_optimizer_kernels_avx2
#include "kernel/optimizer/optimizer_body.h"
#endif
