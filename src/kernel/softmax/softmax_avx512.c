#if defined(__x86_64__)
#define SOFTMAX_KERNELS sti_softmax_kernels_avx512
#include "kernel/softmax/softmax_body.h"
#endif
