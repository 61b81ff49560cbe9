#if defined(__x86_64__)
#define TABLE sti_row_norm_kernels_avx2
#include "kernel/norm/row_norm_body.h"
#endif
