#if defined(__x86_64__)
#define INTERACTION_KERNELS sti_interaction_kernels_avx512
#include "kernel/interaction/interaction_body.h"
#endif
