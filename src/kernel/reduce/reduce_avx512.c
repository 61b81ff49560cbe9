/* Reductions for AVX-512 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX512F__)
#define TABLE sti_reduce_avx512
#include "kernel/reduce/reduce_body.h"
#else
typedef int reduce_avx512_is_for_x86;
#endif
