/* Sparse loops in plain C. */
#include "kernel/sparse/sparse_floats.h"

#include "kernel/lane/eight_ref.h"

#define REAL       double
#define REAL_FMA   fma
#define BLOCK      STI_SPARSE_F64_BLOCK
#define NAME(verb) verb##_f64
#define VEC        lanes
#define VEC_OP(op) lanes_##op
#define TABLE      sti_sparse_f64_ref
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
#define TABLE      sti_sparse_f32_ref
#include "kernel/sparse/sparse_body.h"
