/* The quantiser for AVX-512: codes and values 16 at a time, the rest as everywhere. */
#if defined(__x86_64__)
#include "codec/gradient_codec_priv.h"
#include "kernel/lane/philox_avx512.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* One value of a vector is waited for at the end of a bucket alone. */
static int64_t largest_bits(int64_t n, const float *x, int32_t *most_out,
                            uint32_t *least_out)
{
    __m512i most[2] = {_mm512_set1_epi32(INT32_MIN), _mm512_set1_epi32(INT32_MIN)};
    __m512i least[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        sti_gradient_ahead(x + n + i / 2);
        for (int k = 0; k < 2; k++) {
            const __m512i bits = _mm512_loadu_si512(x + i + 16 * k);
            most[k] = _mm512_max_epi32(most[k], bits);
            least[k] = _mm512_max_epu32(least[k], bits);
        }
    }
    *most_out = _mm512_reduce_max_epi32(_mm512_max_epi32(most[0], most[1]));
    *least_out = _mm512_reduce_max_epu32(_mm512_max_epu32(least[0], least[1]));
    return i;
}

/* Two runs at a time; numbers lie in the order in which levels_64() has the values. */
static void make_random(const sti_gradient_dither *d, uint64_t run, int runs,
                        uint16_t *r)
{
    const philox_keys keys = philox_keys_of(d->seed, STI_STREAM_GRADIENT);
    const __m512i shift = _mm512_set1_epi16((short)d->shift);
    for (int i = 0; i < runs; i += 2) {
        __m512i word[8];
        philox_32(&keys, d->a, d->b + (run + (uint64_t)i) * 16, word);
        for (int k = 0; k < 8; k++, r += 32)
            _mm512_storeu_si512(r, _mm512_add_epi16(word[k], shift));
    }
}

typedef struct levels {
    __m512 lo, inverse;
    __m512i top, zero;
    __m512i random, whole; /* of unbiased rounding: bits of a level, of its parts */
} levels;

INLINE levels levels_of(const sti_gradient_grid *g, const bool dither)
{
    const float parts = dither ? (float)(1 << (16 - g->bits)) : 1.0f;
    return (levels){_mm512_set1_ps(g->lo),
                    _mm512_set1_ps(g->inverse * parts),
                    _mm512_set1_epi8((char)g->top),
                    _mm512_set1_epi8((char)g->zero),
                    _mm512_set1_epi16((short)g->bits),
                    _mm512_set1_epi16((short)(16 - g->bits))};
}

/* (x - lo) / u of 16 values to nearest, in parts of a level if rounding is unbiased. */
INLINE __m512i place_16(const levels *k, const bool sign, const float *x)
{
    const __m512 v = _mm512_loadu_ps(x);
    return _mm512_cvtps_epi32(
        _mm512_mul_ps(sign ? _mm512_abs_ps(v) : _mm512_sub_ps(v, k->lo), k->inverse));
}

/* Levels of 32 values whose places come side by side: 4 of the first, 4 of the second
 * 16 in each lane of 128 bits. */
INLINE __m512i level_32(const levels *k, __m512i first, __m512i second,
                        const uint16_t *r)
{
    const __m512i place = _mm512_packus_epi32(first, second);
    const __m512i random = _mm512_srlv_epi16(_mm512_loadu_si512(r), k->random);
    return _mm512_srlv_epi16(_mm512_adds_epu16(place, random), k->whole);
}

/* Codes of 64 values. r NULL: to nearest. */
INLINE __m512i code_64(const levels *k, const bool sign, const uint16_t *r,
                       const float *x)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = place_16(k, sign, x), b = place_16(k, sign, x + 16);
    const __m512i c = place_16(k, sign, x + 32), d = place_16(k, sign, x + 48);
    __m512i code;
    if (r)
        code = _mm512_packus_epi16(level_32(k, a, b, r), level_32(k, c, d, r + 32));
    else
        code = _mm512_min_epu8(
            _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d)),
            k->top);
    code = _mm512_permutexvar_epi32(order, code);
    if (sign) {
        uint64_t below = 0;
        for (int i = 0; i < 4; i++)
            below |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(x + 16 * i),
                                                  _mm512_setzero_ps(), _CMP_LT_OQ)
                     << 16 * i;
        code =
            _mm512_mask_sub_epi8(_mm512_add_epi8(k->zero, code), below, k->zero, code);
    }
    return code;
}

/* Sixty-four codes to 8 b bytes, b one of 1, 2, 4, 8. */
INLINE void put_codes(__m512i code, const int b, uint8_t *out)
{
    if (b == 8) {
        _mm512_storeu_si512(out, code);
    } else if (b == 4) {
        code = _mm512_maddubs_epi16(code, _mm512_set1_epi16(0x1001));
        _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi16_epi8(code));
    } else if (b == 2) {
        code = _mm512_maddubs_epi16(code, _mm512_set1_epi16(0x0401));
        code = _mm512_madd_epi16(code, _mm512_set1_epi32(0x00100001));
        _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(code));
    } else {
        const uint64_t bits = _mm512_test_epi8_mask(code, code);
        memcpy(out, &bits, sizeof bits);
    }
}

INLINE void codes_of(const sti_gradient_grid *g, const bool sign, const int b,
                     const uint16_t *r, const float *x, uint8_t *out)
{
    const levels k = levels_of(g, r != NULL);
    for (int i = 0; i < STI_GRADIENT_RUN; i += 64)
        put_codes(code_64(&k, sign, r ? r + i : NULL, x + i), b, out + i / 8 * b);
}

INLINE void encode_fixed(const sti_gradient_grid *g, const int b, const uint16_t *r,
                         const float *x, uint8_t *out)
{
    if (r)
        codes_of(g, false, b, r, x, out);
    else
        codes_of(g, false, b, NULL, x, out);
}

static void run_codes(const sti_gradient_grid *g, const uint16_t *r, const float *x,
                      uint8_t *code)
{
    if (!g->sign)
        encode_fixed(g, 8, r, x, code);
    else if (r)
        codes_of(g, true, 8, r, x, code);
    else
        codes_of(g, true, 8, NULL, x, code);
}

/* Widths whose codes never lie across bytes; max-min only. False: another. */
static bool encode_run_fast(const sti_gradient_grid *g, const uint16_t *r,
                            const float *x, uint8_t *out)
{
    if (g->sign)
        return false;
    switch (g->bits) {
    case 1:
        encode_fixed(g, 1, r, x, out);
        return true;
    case 2:
        encode_fixed(g, 2, r, x, out);
        return true;
    case 4:
        encode_fixed(g, 4, r, x, out);
        return true;
    case 8:
        encode_fixed(g, 8, r, x, out);
        return true;
    default:
        return false;
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
