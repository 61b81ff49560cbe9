/* Eight doubles side by side in two registers of AVX2 (eight_ref.h). */
#ifndef STI_KERNEL_EIGHT_AVX2_H
#define STI_KERNEL_EIGHT_AVX2_H

#include <immintrin.h>

typedef struct lanes {
    __m256d low, high;
} lanes;

static inline lanes lanes_load(const double *from)
{
    return (lanes){_mm256_loadu_pd(from), _mm256_loadu_pd(from + 4)};
}

static inline lanes lanes_load_f32(const float *from)
{
    return (lanes){_mm256_cvtps_pd(_mm_loadu_ps(from)),
                   _mm256_cvtps_pd(_mm_loadu_ps(from + 4))};
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

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_pd(a.low, b.low, c.low),
                   _mm256_fmadd_pd(a.high, b.high, c.high)};
}

#define LANES_AVX2_OF_TWO(name)                             \
    static inline lanes lanes_##name(lanes a, lanes b)      \
    {                                                       \
        return (lanes){_mm256_##name##_pd(a.low, b.low),    \
                       _mm256_##name##_pd(a.high, b.high)}; \
    }
LANES_AVX2_OF_TWO(add)
LANES_AVX2_OF_TWO(sub)
LANES_AVX2_OF_TWO(mul)
LANES_AVX2_OF_TWO(div)
LANES_AVX2_OF_TWO(max)

static inline lanes lanes_abs(lanes a)
{
    const __m256d sign = _mm256_set1_pd(-0.0);
    return (lanes){_mm256_andnot_pd(sign, a.low), _mm256_andnot_pd(sign, a.high)};
}

#endif
