/* Steps of sequential minimal optimisation for AVX-512 (flags by file, see
 * src/CMakeLists.txt). */
#if defined(__AVX512F__)
#include <immintrin.h>

#define TABLE sti_pair_kernels_avx512

typedef __m512d lanes;

static inline lanes lanes_load(const double *from)
{
    return _mm512_loadu_pd(from);
}

static inline void lanes_store(double *to, lanes a)
{
    _mm512_storeu_pd(to, a);
}

static inline lanes lanes_all(double x)
{
    return _mm512_set1_pd(x);
}

static inline lanes lanes_floats(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return _mm512_fmadd_pd(a, b, c);
}

static inline lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_pd(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b)
{
    return _mm512_sub_pd(a, b);
}

static inline lanes lanes_mul(lanes a, lanes b)
{
    return _mm512_mul_pd(a, b);
}

static inline lanes lanes_div(lanes a, lanes b)
{
    return _mm512_div_pd(a, b);
}

static inline lanes lanes_over(lanes a, lanes b, lanes c, lanes d)
{
    return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), d, c);
}

static inline lanes lanes_least(lanes a, lanes b)
{
    return _mm512_min_pd(a, b);
}

#include "kernel/pair/pair_body.h"
#else
typedef int pair_avx512_is_for_x86;
#endif
