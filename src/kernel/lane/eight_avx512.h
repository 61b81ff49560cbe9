/* Eight doubles side by side in a register of AVX-512 (eight_ref.h). */
#ifndef STI_KERNEL_EIGHT_AVX512_H
#define STI_KERNEL_EIGHT_AVX512_H

#include <immintrin.h>

typedef __m512d lanes;

static inline lanes lanes_load(const double *from)
{
    return _mm512_loadu_pd(from);
}

static inline lanes lanes_load_f32(const float *from)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}

static inline void lanes_store(double *to, lanes a)
{
    _mm512_storeu_pd(to, a);
}

static inline lanes lanes_all(double x)
{
    return _mm512_set1_pd(x);
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

static inline lanes lanes_max(lanes a, lanes b)
{
    return _mm512_max_pd(a, b);
}

static inline lanes lanes_abs(lanes a)
{
    return _mm512_abs_pd(a);
}

#endif
