/* Kernel tiles for AVX-512 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX512F__)
#include "kernel/lane/eight_avx512.h"

#define TABLE sti_gram_kernels_avx512

#include "kernel/gram/gram_body.h"
#else
typedef int gram_avx512_is_for_x86;
#endif
