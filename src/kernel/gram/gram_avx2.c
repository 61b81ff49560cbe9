/* Kernel tiles for AVX2 and FMA (flags by file, see src/CMakeLists.txt). */
#if defined(__AVX2__)
#include <immintrin.h>

#define TABLE sti_gram_kernels_avx2
#define MR    2

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

static inline lanes lanes_fma(lanes a, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_pd(a.low, b.low, c.low),
                   _mm256_fmadd_pd(a.high, b.high, c.high)};
}

#include "kernel/gram/gram_body.h"
#else
typedef int gram_avx2_is_for_x86;
#endif
