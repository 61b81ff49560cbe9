/* Loops over jets for AVX2 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX2__)
#define STI_LANES 8
#define TABLE     sti_jet_kernels_avx2
#include "kernel/jet/jet_body.h"
#else
typedef int jet_avx2_is_for_x86;
#endif
