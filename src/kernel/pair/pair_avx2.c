/* Steps of sequential minimal optimisation for AVX2 and FMA (flags by file, see
 * src/CMakeLists.txt). */
#if defined(__AVX2__)
#include <immintrin.h>

#define TABLE sti_pair_kernels_avx2

typedef struct lanes {
    __m256d low, high;
} lanes;

static inline lanes lanes_load(const double *from)
{
    return (lanes){_mm256_loadu_pd(from), _mm256_loadu_pd(from + 4)};
}

static inline void lanes_store(double *to, lanes a)
{
    _mm256_storeu_pd(to, a.low);
    _mm256_storeu_pd(to + 4, a.high);
}

static inline lanes lanes_all(double x)
{
    return (lanes){_mm256_set1_pd(x), _mm256_set1_pd(x)};
}

static inline lanes lanes_floats(const float *from)
{
    return (lanes){_mm256_cvtps_pd(_mm_loadu_ps(from)),
                   _mm256_cvtps_pd(_mm_loadu_ps(from + 4))};
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_pd(a.low, b.low, c.low),
                   _mm256_fmadd_pd(a.high, b.high, c.high)};
}

static inline lanes lanes_add(lanes a, lanes b)
{
    return (lanes){_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
}

static inline lanes lanes_sub(lanes a, lanes b)
{
    return (lanes){_mm256_sub_pd(a.low, b.low), _mm256_sub_pd(a.high, b.high)};
}

static inline lanes lanes_mul(lanes a, lanes b)
{
    return (lanes){_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)};
}

static inline lanes lanes_div(lanes a, lanes b)
{
    return (lanes){_mm256_div_pd(a.low, b.low), _mm256_div_pd(a.high, b.high)};
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
