/* Eight floats side by side, as kernel/lane/eight_ref.h has eight doubles: the same
 * bits in registers of AVX2 and in plain C. */
#ifndef STI_KERNEL_SPARSE_FLOATS_H
#define STI_KERNEL_SPARSE_FLOATS_H

#include <math.h>

#if defined(__AVX2__)
#include <immintrin.h>

typedef __m256 floats;

static inline floats floats_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

static inline void floats_store(float *to, floats a)
{
    _mm256_storeu_ps(to, a);
}

static inline floats floats_all(float x)
{
    return _mm256_set1_ps(x);
}

static inline floats floats_fma(floats a, floats b, floats c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline floats floats_div(floats a, floats b)
{
    return _mm256_div_ps(a, b);
}

#else

typedef struct floats {
    float x[8];
} floats;

static inline floats floats_load(const float *from)
{
    floats r;
    for (int i = 0; i < 8; i++)
        r.x[i] = from[i];
    return r;
}

static inline void floats_store(float *to, floats a)
{
    for (int i = 0; i < 8; i++)
        to[i] = a.x[i];
}

static inline floats floats_all(float x)
{
    floats r;
    for (int i = 0; i < 8; i++)
        r.x[i] = x;
    return r;
}

static inline floats floats_fma(floats a, floats b, floats c)
{
    for (int i = 0; i < 8; i++)
        c.x[i] = fmaf(a.x[i], b.x[i], c.x[i]);
    return c;
}

static inline floats floats_div(floats a, floats b)
{
    for (int i = 0; i < 8; i++)
        a.x[i] = a.x[i] / b.x[i];
    return a;
}

#endif
#endif
