/* Planar convolutions for AVX2 with FMA. */
#if defined(__x86_64__)
#define STI_LANES      8
#define PLANAR_AT_ONCE 12
#define PLANAR_KERNELS sti_planar_kernels_avx2
#include "kernel/lane/lane.h"

static inline lane_f planar_fma(lane_f a, lane_f b, lane_f c)
{
    return (lane_f)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

#include "kernel/planar/planar_body.h"
#endif
