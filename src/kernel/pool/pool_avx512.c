#if defined(__x86_64__)
#define POOL_KERNELS sti_pool_kernels_avx512
#include "kernel/pool/pool_body.h"
#endif
