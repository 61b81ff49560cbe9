/* Loops over jets for AVX-512 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX512F__)
#define STI_LANES 16
#define TABLE     sti_jet_kernels_avx512
#include "kernel/jet/jet_body.h"
#else
typedef int jet_avx512_is_for_x86;
#endif
