/* Kernel tiles for AVX-512 (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX512F__)
#include <immintrin.h>

#define TABLE sti_gram_kernels_avx512
#define MR    8

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

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return _mm512_fmadd_pd(a, b, c);
}

#include "kernel/gram/gram_body.h"
#else
typedef int gram_avx512_is_for_x86;
#endif
