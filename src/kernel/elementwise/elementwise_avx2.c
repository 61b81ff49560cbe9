/* Element-wise loops for AVX2 and FMA (flags by file, see src/CMakeLists.txt). */
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>

static inline unsigned sign_bits_8(const float *x)
{
    __m256 above = _mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_setzero_ps(), _CMP_GT_OQ);
    return (unsigned)_mm256_movemask_ps(above);
}

static inline void relu_grad_8(float slope, const float *dy, unsigned bits, float *dx)
{
    const __m256i place = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i hit = _mm256_and_si256(_mm256_set1_epi32((int)bits), place);
    __m256 on = _mm256_castsi256_ps(_mm256_cmpeq_epi32(hit, place));
    __m256 g = _mm256_loadu_ps(dy);
    __m256 off =
        slope == 0.0f ? _mm256_setzero_ps() : _mm256_mul_ps(_mm256_set1_ps(slope), g);
    _mm256_storeu_ps(dx, _mm256_blendv_ps(off, g, on));
}

#define SIGN_BITS_8 sign_bits_8
#define RELU_GRAD_8 relu_grad_8
#define TABLE       sti_elementwise_avx2
#include "kernel/elementwise/elementwise_body.h"
#else
typedef int elementwise_avx2_is_for_x86;
#endif
