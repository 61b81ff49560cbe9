#if defined(__x86_64__)
#include "kernel/gemm/gemm_vec_avx512.h"

#define PANELS_KERNELS sti_panels_kernels_avx512
#include "kernel/gemm/panels_body.h"
#else
typedef int sti_panels_avx512_unused;
#endif
