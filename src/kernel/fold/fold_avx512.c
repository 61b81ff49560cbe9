#if defined(__x86_64__)
#define STI_LANES    16
#define FOLD_KERNELS sti_fold_kernels_avx512
#include "kernel/fold/fold_body.h"
#endif
