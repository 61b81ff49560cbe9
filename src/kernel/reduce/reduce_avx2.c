/* Reductions for AVX2 and FMA (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX2__)
#define TABLE sti_reduce_avx2
#include "kernel/reduce/reduce_body.h"
#else
typedef int reduce_avx2_is_for_x86;
#endif
