#if defined(__x86_64__)
#define NEGACYCLIC_KERNELS sti_negacyclic_kernels_avx512
#include "kernel/fft/negacyclic_body.h"
#endif
