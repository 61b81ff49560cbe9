/* Top-k for AVX-512 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX512BW__)
#include "kernel/topk/topk_scalar.h"
#include "kernel/topk/topk_tiny_avx512.h"
#include "kernel/topk/topk_vec_avx512.h"

#define FORM keys
#define BITS 32
#define KIND KEYS
#include "kernel/topk/topk_body.h"

#define FORM f32
#define BITS 32
#define KIND FLOATS
#include "kernel/topk/topk_body.h"

#define FORM f16
#define BITS 16
#define KIND FLOATS
#include "kernel/topk/topk_body.h"

#define FORM i32
#define BITS 32
#define KIND INTEGERS
#include "kernel/topk/topk_body.h"

#define FORM i8
#define BITS 8
#define KIND INTEGERS
#include "kernel/topk/topk_body.h"

#define FORM sum
#define BITS 32
#define KIND SUMS
#include "kernel/topk/topk_body.h"

#include "kernel/topk/topk_straight_avx512.h"

/* bf16 differs from f16 in the map's constants alone. */
const sti_topk_ops *const sti_topk_avx512[STI_TOPK_FORMS] = {
    &ops_f32, &ops_f16, &ops_f16, &ops_i32, &ops_i8, &ops_sum, &ops_keys};

#else
typedef int topk_avx512_is_for_x86;
#endif
