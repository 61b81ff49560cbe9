/* Element-wise loops for AVX-512 (flags by file, see src/CMakeLists.txt). */
#include <stdint.h>

#if defined(__AVX512F__)
#include <immintrin.h>

static inline unsigned sign_bits_8(const float *x)
{
    return _mm256_cmp_ps_mask(_mm256_loadu_ps(x), _mm256_setzero_ps(), _CMP_GT_OQ);
}

static inline void relu_grad_8(float slope, const float *dy, unsigned bits, float *dx)
{
    __m256 g = _mm256_loadu_ps(dy);
    __m256 off =
        slope == 0.0f ? _mm256_setzero_ps() : _mm256_mul_ps(_mm256_set1_ps(slope), g);
    _mm256_storeu_ps(dx, _mm256_mask_blend_ps((__mmask8)bits, off, g));
}

#define SIGN_BITS_8 sign_bits_8
#define RELU_GRAD_8 relu_grad_8
#define TABLE       sti_elementwise_avx512
#include "kernel/elementwise/elementwise_body.h"
#else
typedef int elementwise_avx512_is_for_x86;
#endif
