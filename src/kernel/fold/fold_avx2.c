#if defined(__x86_64__)
#define STI_LANES    8
#define FOLD_KERNELS sti_fold_kernels_avx2
#include "kernel/fold/fold_body.h"
#endif
