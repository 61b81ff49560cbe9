#if defined(__x86_64__)
#define TORUS_KERNELS sti_torus_kernels_avx2
#include "kernel/torus/torus_body.h"
#endif
