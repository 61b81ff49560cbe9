/* Planar convolutions for AVX-512. */
#if defined(__x86_64__)
#define STI_LANES      16
#define PLANAR_AT_ONCE 16
#define PLANAR_KERNELS sti_planar_kernels_avx512
#include "kernel/lane/lane.h"

static inline lane_f planar_fma(lane_f a, lane_f b, lane_f c)
{
    return (lane_f)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

#include "kernel/planar/planar_body.h"
#endif
