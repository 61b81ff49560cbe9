/* Steps of sequential minimal optimisation for AVX2 and FMA (flags by file, see
 * src/CMakeLists.txt). */
#if defined(__AVX2__)
#include "kernel/lane/eight_avx2.h"

#define TABLE sti_pair_kernels_avx2

static inline lanes lanes_floats(const float *from)
{
    return (lanes){_mm256_cvtps_pd(_mm_loadu_ps(from)),
                   _mm256_cvtps_pd(_mm_loadu_ps(from + 4))};
}

static inline lanes lanes_over(lanes a, lanes b, lanes c, lanes d)
{
    return (lanes){
        _mm256_blendv_pd(d.low, c.low, _mm256_cmp_pd(a.low, b.low, _CMP_GT_OQ)),
        _mm256_blendv_pd(d.high, c.high, _mm256_cmp_pd(a.high, b.high, _CMP_GT_OQ))};
}

static inline lanes lanes_least(lanes a, lanes b)
{
    return (lanes){_mm256_min_pd(a.low, b.low), _mm256_min_pd(a.high, b.high)};
}

#include "kernel/pair/pair_body.h"
#else
typedef int pair_avx2_is_for_x86;
#endif
