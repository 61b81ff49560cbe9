/* Kernel tiles for AVX2 and FMA (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX2__)
#include "kernel/lane/eight_avx2.h"

#define TABLE sti_gram_kernels_avx2

#include "kernel/gram/gram_body.h"
#else
typedef int gram_avx2_is_for_x86;
#endif
