/* The quantiser for AVX-512: codes and values 16 at a time, the rest as everywhere. */
#if defined(__x86_64__)
#include "codec/gradient_codec_priv.h"
#include "codec/philox_avx512.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Midpoints of 2^16 parts of [0, 1); exact, so that the fused product rounds nothing.
 */
INLINE __m512 offsets_of(__m512i bits)
{
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(bits), _mm512_set1_ps(0x1p-16f),
                           _mm512_set1_ps(0x1p-17f));
}

static void make_offsets(const sti_gradient_dither *d, uint64_t run, int runs, float *r)
{
    const philox_keys keys = philox_keys_of(d->seed, STI_STREAM_GRADIENT);
    const __m512i half = _mm512_set1_epi32(0xffff);
    const __m512i low = _mm512_set1_epi32((int)d->shift);
    const __m512i high = _mm512_set1_epi32((int)(d->shift << 16));
    for (int i = 0; i < runs; i += 2, r += 2 * STI_GRADIENT_RUN) {
        __m512i word[8];
        philox_32(&keys, d->a, d->b + (run + (uint64_t)i) * 16, word);
        for (int k = 0; k < 8; k++) {
            const __m512i first =
                _mm512_and_si512(_mm512_add_epi32(word[k], low), half);
            const __m512i second =
                _mm512_srli_epi32(_mm512_add_epi32(word[k], high), 16);
            _mm512_storeu_ps(r + 32 * k, offsets_of(first));
            _mm512_storeu_ps(r + 32 * k + 16, offsets_of(second));
        }
    }
}

typedef struct levels {
    __m512 lo, inverse;
    __m512i top, zero;
} levels;

INLINE levels levels_of(const sti_gradient_grid *g)
{
    return (levels){_mm512_set1_ps(g->lo), _mm512_set1_ps(g->inverse),
                    _mm512_set1_epi32(g->top), _mm512_set1_epi32(g->zero)};
}

/* Codes of 16 values. */
INLINE __m512i code_16(const levels *k, const bool sign, const float *x, __m512 offset)
{
    const __m512 v = _mm512_loadu_ps(x);
    const __m512 t =
        _mm512_mul_ps(sign ? _mm512_abs_ps(v) : _mm512_sub_ps(v, k->lo), k->inverse);
    __m512i level = _mm512_cvttps_epi32(_mm512_add_ps(t, offset));
    level = _mm512_min_epi32(_mm512_max_epi32(level, _mm512_setzero_si512()), k->top);
    if (sign) {
        const __mmask16 below = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ);
        level = _mm512_mask_sub_epi32(_mm512_add_epi32(k->zero, level), below, k->zero,
                                      level);
    }
    return level;
}

/* Sixteen codes to 2 b bytes, b one of 1, 2, 4, 8. */
INLINE void put_codes(__m512i code, const int b, uint8_t *out)
{
    if (b == 8) {
        _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(code));
    } else if (b == 1) {
        const uint16_t bits = _mm512_test_epi32_mask(code, code);
        memcpy(out, &bits, sizeof bits);
    } else {
        /* Two codes a quadword, then (2 bits) two of those. */
        code = _mm512_or_si512(code, _mm512_srli_epi64(code, 32 - (unsigned)b));
        __m128i pairs = _mm512_cvtepi64_epi8(code);
        if (b == 2) {
            pairs = _mm_or_si128(pairs, _mm_srli_epi16(pairs, 4));
            pairs = _mm_cvtepi16_epi8(pairs);
        }
        const uint64_t word = (uint64_t)_mm_cvtsi128_si64(pairs);
        memcpy(out, &word, (size_t)(2 * b));
    }
}

INLINE __m512i get_codes(const uint8_t *in, const int b)
{
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint64_t word = 0;
    if (b == 8)
        return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)in));
    memcpy(&word, in, (size_t)(2 * b));
    if (b == 1)
        return _mm512_maskz_set1_epi32((__mmask16)word, 1);
    if (b == 2)
        return _mm512_and_si512(
            _mm512_srlv_epi32(_mm512_set1_epi32((int)word), _mm512_slli_epi32(lane, 1)),
            _mm512_set1_epi32(3));
    const __m512i pairs = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128((int64_t)word));
    return _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi64(pairs, 28)),
                            _mm512_set1_epi32(15));
}

INLINE void encode_fixed(const sti_gradient_grid *g, const bool sign, const int b,
                         const float *r, const float *x, uint8_t *out)
{
    const levels k = levels_of(g);
    for (int i = 0; i < STI_GRADIENT_RUN; i += 16)
        put_codes(
            code_16(&k, sign, x + i, r ? _mm512_loadu_ps(r + i) : _mm512_set1_ps(0.5f)),
            b, out + i / 8 * b);
}

INLINE void codes_of(const sti_gradient_grid *g, const bool sign, const float *r,
                     const float *x, uint8_t *code)
{
    const levels k = levels_of(g);
    for (int i = 0; i < STI_GRADIENT_RUN; i += 16) {
        const __m512i level =
            code_16(&k, sign, x + i, r ? _mm512_loadu_ps(r + i) : _mm512_set1_ps(0.5f));
        _mm_storeu_si128((__m128i *)(void *)(code + i), _mm512_cvtepi32_epi8(level));
    }
}

static void run_codes(const sti_gradient_grid *g, const float *r, const float *x,
                      uint8_t *code)
{
    if (g->sign)
        codes_of(g, true, r, x, code);
    else if (r)
        codes_of(g, false, r, x, code);
    else
        codes_of(g, false, NULL, x, code);
}

/* Widths whose codes never lie across 2 b bytes; max-min only. False: another. */
static bool encode_run_fast(const sti_gradient_grid *g, const float *r, const float *x,
                            uint8_t *out)
{
    if (g->sign)
        return false;
    switch (g->bits) {
    case 1:
        encode_fixed(g, false, 1, r, x, out);
        return true;
    case 2:
        encode_fixed(g, false, 2, r, x, out);
        return true;
    case 4:
        encode_fixed(g, false, 4, r, x, out);
        return true;
    case 8:
        encode_fixed(g, false, 8, r, x, out);
        return true;
    default:
        return false;
    }
}

INLINE void put_values(const sti_gradient_grid *g, const sti_gradient_into into,
                       __m512i code, float *y)
{
    const __m512i q = _mm512_sub_epi32(code, _mm512_set1_epi32(g->zero));
    const __m512 v =
        _mm512_add_ps(_mm512_mul_ps(_mm512_set1_ps(g->u), _mm512_cvtepi32_ps(q)),
                      _mm512_set1_ps(g->lo));
    const __m512 old = _mm512_loadu_ps(y);
    _mm512_storeu_ps(y, into == STI_GRADIENT_SET   ? v
                        : into == STI_GRADIENT_ADD ? _mm512_add_ps(old, v)
                                                   : _mm512_sub_ps(old, v));
}

INLINE void values_of(const sti_gradient_grid *g, const sti_gradient_into into,
                      const int b, const uint8_t *in, float *y)
{
    const sti_gradient_grid grid = *g;
    for (int i = 0; i < STI_GRADIENT_RUN; i += 16)
        put_values(&grid, into, get_codes(in + i / 8 * b, b), y + i);
}

INLINE void values_into(const sti_gradient_grid *g, const sti_gradient_into into,
                        const int b, const uint8_t *in, float *y)
{
    if (into == STI_GRADIENT_SET)
        values_of(g, STI_GRADIENT_SET, b, in, y);
    else if (into == STI_GRADIENT_ADD)
        values_of(g, STI_GRADIENT_ADD, b, in, y);
    else
        values_of(g, STI_GRADIENT_TAKE, b, in, y);
}

static void run_values(const sti_gradient_grid *g, sti_gradient_into into,
                       const uint8_t *code, float *y)
{
    values_into(g, into, 8, code, y);
}

static bool decode_run_fast(const sti_gradient_grid *g, sti_gradient_into into,
                            const uint8_t *in, float *y)
{
    switch (g->bits) {
    case 1:
        values_into(g, into, 1, in, y);
        return true;
    case 2:
        values_into(g, into, 2, in, y);
        return true;
    case 4:
        values_into(g, into, 4, in, y);
        return true;
    case 8:
        values_into(g, into, 8, in, y);
        return true;
    default:
        return false;
    }
}

#define GRADIENT_VECTORS
#define GRADIENT_KERNELS sti_gradient_kernels_avx512
#include "codec/gradient_codec_body.h"
#endif
