/* Dropout for AVX-512: 32 blocks of Philox at once, their words put in the order of the
 * elements. */
#if defined(__x86_64__)
#include "kernel/elementwise/dropout_priv.h"

#include "kernel/lane/philox_avx512.h"

#define INLINE static inline __attribute__((always_inline))

/* word[k] holds word k of 16 blocks; out: their 64 words block after block. Within each
 * quarter of a register four words of four blocks change places, then the quarters do.
 */
INLINE void in_order(const __m512i word[4], __m512i out[4])
{
    const __m512i low01 = _mm512_unpacklo_epi32(word[0], word[1]);
    const __m512i low23 = _mm512_unpacklo_epi32(word[2], word[3]);
    const __m512i high01 = _mm512_unpackhi_epi32(word[0], word[1]);
    const __m512i high23 = _mm512_unpackhi_epi32(word[2], word[3]);
    const __m512i block[4] = {
        _mm512_unpacklo_epi64(low01, low23), _mm512_unpackhi_epi64(low01, low23),
        _mm512_unpacklo_epi64(high01, high23), _mm512_unpackhi_epi64(high01, high23)};
    const __m512i even01 = _mm512_shuffle_i32x4(block[0], block[1], 0x88);
    const __m512i even23 = _mm512_shuffle_i32x4(block[2], block[3], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(block[0], block[1], 0xdd);
    const __m512i odd23 = _mm512_shuffle_i32x4(block[2], block[3], 0xdd);
    out[0] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    out[1] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    out[2] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    out[3] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
}

/* sti_uniform(word) >= rate. */
INLINE __mmask16 kept(__m512i word, __m512 rate)
{
    const __m512 whole = _mm512_cvtepi32_ps(_mm512_srli_epi32(word, 8));
    const __m512 uniform = _mm512_mul_ps(whole, _mm512_set1_ps(0x1p-24f));
    return _mm512_cmp_ps_mask(uniform, rate, _CMP_GE_OQ);
}

void sti_dropout_avx512(uint64_t seed, uint64_t a, uint64_t b, float rate, float factor,
                        int64_t n, const float *x, float *y)
{
    const philox_keys keys = philox_keys_of(seed, STI_STREAM_DROPOUT);
    const __m512 rates = _mm512_set1_ps(rate), factors = _mm512_set1_ps(factor);
    for (int64_t i = 0; i < n; i += STI_DROPOUT_STEP, b += STI_DROPOUT_STEP / 4) {
        __m512i word[8], ordered[8];
        philox_32(&keys, a, b, word);
        in_order(word, ordered);
        in_order(word + 4, ordered + 4);
        for (int k = 0; k < 8; k++) {
            const __m512 v = _mm512_loadu_ps(x + i + 16 * k);
            _mm512_storeu_ps(y + i + 16 * k,
                             _mm512_maskz_mul_ps(kept(ordered[k], rates), v, factors));
        }
    }
}
#endif
