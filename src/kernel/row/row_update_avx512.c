#if defined(__x86_64__)
#define ROW_KERNELS sti_row_kernels_avx512
#include "kernel/row/row_update_body.h"
#endif
