/* Sparse loops for AVX2 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX2__)
#include "kernel/sparse/sparse_floats.h"

#include "kernel/lane/eight_avx2.h"

#define REAL       double
#define REAL_FMA   fma
#define BLOCK      STI_SPARSE_F64_BLOCK
#define NAME(verb) verb##_f64
#define VEC        lanes
#define VEC_OP(op) lanes_##op
#define TABLE      sti_sparse_f64_avx2
#include "kernel/sparse/sparse_body.h"

#undef REAL
#undef REAL_FMA
#undef BLOCK
#undef NAME
#undef VEC
#undef VEC_OP
#undef TABLE

#define REAL       float
#define REAL_FMA   fmaf
#define BLOCK      STI_SPARSE_F32_BLOCK
#define NAME(verb) verb##_f32
#define VEC        floats
#define VEC_OP(op) floats_##op
#define TABLE      sti_sparse_f32_avx2
#include "kernel/sparse/sparse_body.h"
#else
typedef int sparse_avx2_is_for_x86;
#endif
