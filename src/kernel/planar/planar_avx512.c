/* Planar convolutions for AVX-512. */
#if defined(__x86_64__)
#define STI_LANES      16
#define PLANAR_AT_ONCE 16
#define PLANAR_HELD    4
#define PLANAR_KERNELS sti_planar_kernels_avx512
#include "kernel/lane/lane.h"

typedef float planar_four __attribute__((vector_size(16), aligned(4), may_alias));

static inline lane_f planar_fma(lane_f a, lane_f b, lane_f c)
{
    return (lane_f)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

static inline planar_four planar_fma_four(planar_four a, planar_four b, planar_four c)
{
    return (planar_four)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
}

static inline lane_f planar_load_some(const float *p, uint32_t set)
{
    return (lane_f)_mm512_maskz_loadu_ps((__mmask16)set, p);
}

#include "kernel/planar/planar_body.h"
#endif
