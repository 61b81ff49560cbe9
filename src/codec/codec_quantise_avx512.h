/* For codec_avx512.c alone: what its loops share, and those between values and numbers
 * of steps, dither included. */
#ifndef STI_CODEC_CODEC_QUANTISE_AVX512_H
#define STI_CODEC_CODEC_QUANTISE_AVX512_H

#include "base/rng.h"
#include "codec/codec_priv.h"
#include "kernel/lane/philox_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    DITHER_VALUES = 512, /* that 32 Philox blocks serve */
    DITHER_VECTORS = DITHER_VALUES / 16
};

/* Vectors that go side by side, stage by stage: one after another, what each waits for
 * fills the processor's window before three are under way. */
enum { SIDE = 4 };
#define EACH _Pragma("GCC unroll 4") for (int j = 0; j < side; j++)

INLINE __m512i splat(uint32_t a)
{
    return _mm512_set1_epi32((int)a);
}

INLINE __mmask16 lanes_below(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1);
}

/* Bits of values [i, i + 16) of the array, i a multiple of 8, `lanes` of them there. */
INLINE __mmask16 mask_at(const uint8_t *mask, int64_t i, __mmask16 lanes)
{
    if (!mask)
        return lanes;
    const uint8_t *at = mask + (i >> 3);
    const unsigned high = lanes >> 8 ? at[1] : 0;
    return (__mmask16)((at[0] | high << 8) & lanes);
}

INLINE __m512 dither_of(__m512i bits, __m512 unit)
{
    const __m512 f = _mm512_cvtepi32_ps(bits);
    return _mm512_mul_ps(_mm512_sub_ps(f, _mm512_set1_ps(127.5f)), unit);
}

/* The dither of values [begin, begin + DITHER_VALUES). */
INLINE void make_dither(const sti_codec_quant *quant, const philox_keys *keys,
                        int64_t begin, __m512 *u)
{
    const __m512 unit = _mm512_set1_ps(quant->dither_unit);
    __m512i word[DITHER_VECTORS / 4];
    philox_32(keys, quant->id,
              (uint64_t)quant->shard << 40 | ((uint64_t)begin / 256 * 16), word);
    for (int k = 0; k < DITHER_VECTORS / 4; k++) {
        const __m512i low = _mm512_set1_epi32(0xff);
        u[4 * k] = dither_of(_mm512_and_si512(word[k], low), unit);
        u[4 * k + 1] =
            dither_of(_mm512_and_si512(_mm512_srli_epi32(word[k], 8), low), unit);
        u[4 * k + 2] =
            dither_of(_mm512_and_si512(_mm512_srli_epi32(word[k], 16), low), unit);
        u[4 * k + 3] = dither_of(_mm512_srli_epi32(word[k], 24), unit);
    }
}

typedef struct quantiser {
    __m512 step, inverse, limit, max_error;
    __m512i others;  /* than zeros, of each lane */
    __mmask16 signs; /* all ones: of any sign; 0: w < 0 is not to be had */
    __mmask16 unmasked;
} quantiser;

/* What q leaves of x. */
INLINE __m512 left_by(const quantiser *z, __m512 x, __m512i q, __m512 u,
                      const bool dither)
{
    const __m512 f = _mm512_cvtepi32_ps(q);
    return _mm512_sub_ps(x, dither ? _mm512_fmsub_ps(f, z->step, u)
                                   : _mm512_mul_ps(f, z->step));
}

typedef struct quantised {
    __m512i w[SIDE];
    __mmask16 outliers[SIDE];
} quantised;

/* w of `side` vectors of 16 values, of which `some` are to be coded; 0 for outliers. */
INLINE void quantise_side(quantiser *z, const __m512 *x, const __mmask16 *some,
                          const __m512 *u, const int side, const bool dither,
                          quantised *out)
{
    __m512 t[SIDE], left[SIDE];
    __m512i q[SIDE];
    __mmask16 good[SIDE], more = 0;
    EACH t[j] = dither ? _mm512_add_ps(x[j], u[j]) : x[j];
    EACH t[j] = _mm512_mul_ps(t[j], z->inverse);
    EACH good[j] = _mm512_mask_cmp_ps_mask(some[j], _mm512_abs_ps(t[j]),
                                           _mm512_set1_ps(0x1p21f), _CMP_LT_OQ);
    EACH q[j] = _mm512_maskz_cvtps_epi32(good[j], t[j]);
    EACH left[j] = left_by(z, x[j], q[j], u[j], dither);
    EACH t[j] = _mm512_mul_ps(left[j], z->inverse);
    /* Those that are nearer to another multiple, as rounding goes: few if any. */
    EACH more |= _mm512_mask_cmp_ps_mask(good[j], _mm512_abs_ps(t[j]),
                                         _mm512_set1_ps(0.5f), _CMP_NLE_UQ);
    if (more) {
        EACH q[j] = _mm512_mask_add_epi32(q[j], good[j], q[j],
                                          _mm512_maskz_cvtps_epi32(good[j], t[j]));
        EACH left[j] = left_by(z, x[j], q[j], u[j], dither);
    }
    EACH left[j] = _mm512_abs_ps(left[j]);
    EACH good[j] = _mm512_mask_cmp_ps_mask(good[j], left[j], z->limit, _CMP_LE_OQ);
    EACH
    {
        const __mmask16 above = _mm512_cmpge_epi32_mask(q[j], _mm512_setzero_si512());
        if (dither) /* q + 1 for q >= 0 */
            q[j] = _mm512_mask_add_epi32(q[j], above, q[j], splat(1));
        good[j] &= above | z->signs;
    }
    EACH z->max_error =
        _mm512_mask_max_ps(z->max_error, good[j], z->max_error, left[j]);
    EACH out->outliers[j] = (__mmask16)(some[j] & ~good[j]);
    EACH out->w[j] = _mm512_maskz_mov_epi32(good[j], q[j]);
}

static void keep_outliers(const sti_codec_span *span, int64_t i, unsigned which,
                          uint8_t *list, int64_t room, sti_codec_found *found)
{
    for (; which; which &= which - 1) {
        if (list && found->outliers < room) {
            const int64_t at = i + __builtin_ctz(which);
            const uint16_t position = (uint16_t)(span->place + at);
            uint8_t *to = list + found->outliers * STI_CODEC_OUTLIER_BYTES;
            memcpy(to, &position, 2);
            memcpy(to + 2, span->x + at, 4);
        }
        found->outliers++;
    }
}

/* Values [from, to), at most DITHER_VALUES. whole: all of these, and no mask. */
INLINE void quantise_part(const sti_codec_span *span, int64_t from, int64_t to,
                          quantiser *z, const __m512 *u, int32_t *w_out, uint8_t *list,
                          int64_t room, sti_codec_found *found, const bool dither,
                          const bool whole)
{
    const int side = whole ? SIDE : 1;
    for (int64_t i = from; i < to; i += 16 * side, u += side) {
        __m512 x[SIDE];
        __mmask16 lanes[SIDE], some[SIDE], outliers = 0;
        quantised out;
#pragma GCC unroll 4
        for (int j = 0; j < side; j++) {
            __builtin_prefetch(span->next + i + 16 * j, 0, 2);
            lanes[j] = whole ? 0xffff : lanes_below(to - i);
            x[j] = _mm512_maskz_loadu_ps(lanes[j], span->x + i + 16 * j);
        }
#pragma GCC unroll 4
        for (int j = 0; j < side; j++) {
            some[j] = _mm512_mask_cmp_ps_mask(lanes[j], x[j], _mm512_setzero_ps(),
                                              _CMP_NEQ_UQ);
            z->others = _mm512_mask_add_epi32(z->others, some[j], z->others, splat(1));
            if (!whole) {
                const __mmask16 wanted = mask_at(span->mask, span->begin + i, lanes[j]);
                z->unmasked |= (__mmask16)(some[j] & ~wanted);
                some[j] &= wanted;
            }
        }
        quantise_side(z, x, some, u, side, dither, &out);
#pragma GCC unroll 4
        for (int j = 0; j < side; j++) {
            _mm512_mask_storeu_epi32(w_out + i + 16 * j, lanes[j], out.w[j]);
            outliers |= out.outliers[j];
        }
        if (outliers)
            for (int j = 0; j < side; j++)
                keep_outliers(span, i + 16 * j, out.outliers[j], list, room, found);
    }
}

INLINE void quantise_span(const sti_codec_quant *quant, const sti_codec_span *span,
                          int32_t *w_out, uint8_t *list, int64_t room,
                          sti_codec_found *found, const bool dither)
{
    quantiser z = {.step = _mm512_set1_ps(quant->step),
                   .inverse = _mm512_set1_ps(quant->inverse),
                   .limit = _mm512_set1_ps(quant->limit),
                   .max_error = _mm512_setzero_ps(),
                   .others = _mm512_setzero_si512(),
                   .signs = quant->positive ? 0 : 0xffff};
    __m512 u[DITHER_VECTORS];
    for (int k = 0; k < DITHER_VECTORS; k++)
        u[k] = _mm512_setzero_ps();
    const philox_keys keys = philox_keys_of(quant->seed, STI_STREAM_CODEC);
    for (int64_t i = 0; i < span->n; i += DITHER_VALUES) {
        if (dither)
            make_dither(quant, &keys, span->begin + i, u);
        if (span->n - i >= DITHER_VALUES && !span->mask)
            quantise_part(span, i, i + DITHER_VALUES, &z, u, w_out, list, room, found,
                          dither, true);
        else
            quantise_part(span, i,
                          span->n - i < DITHER_VALUES ? span->n : i + DITHER_VALUES, &z,
                          u, w_out, list, room, found, dither, false);
    }
    const float most = _mm512_reduce_max_ps(z.max_error);
    found->max_error = most > found->max_error ? most : found->max_error;
    found->zeros += span->n - _mm512_reduce_add_epi32(z.others);
    found->unmasked |= z.unmasked != 0;
}

static void quantise(const sti_codec_quant *quant, const sti_codec_span *span,
                     int32_t *w_out, uint8_t *list, int64_t room,
                     sti_codec_found *found)
{
    if (quant->dither)
        quantise_span(quant, span, w_out, list, room, found, true);
    else
        quantise_span(quant, span, w_out, list, room, found, false);
}

/* x' of values [from, to), at most DITHER_VALUES. */
INLINE void restore_part(char *w, int64_t from, int64_t to, __m512 step,
                         const __m512 *u, const bool dither, const bool whole)
{
    for (int64_t i = from; i < to; i += 16, u++) {
        const __mmask16 lanes = whole ? 0xffff : lanes_below(to - i);
        char *at = w + 4 * i;
        __m512i q = _mm512_maskz_loadu_epi32(lanes, at);
        __m512 x;
        if (dither) {
            const __mmask16 some = _mm512_test_epi32_mask(q, q);
            const __mmask16 above = _mm512_cmpgt_epi32_mask(q, _mm512_setzero_si512());
            q = _mm512_mask_sub_epi32(q, above, q, splat(1));
            x = _mm512_maskz_fmsub_ps(some, _mm512_cvtepi32_ps(q), step, *u);
        } else {
            x = _mm512_mul_ps(_mm512_cvtepi32_ps(q), step);
        }
        _mm512_mask_storeu_ps(at, lanes, x);
    }
}

INLINE void restore_span(const sti_codec_quant *quant, int64_t begin, int64_t n,
                         char *w, const bool dither)
{
    const __m512 step = _mm512_set1_ps(quant->step);
    const philox_keys keys = philox_keys_of(quant->seed, STI_STREAM_CODEC);
    __m512 u[DITHER_VECTORS];
    for (int64_t i = 0; i < n; i += DITHER_VALUES) {
        if (dither)
            make_dither(quant, &keys, begin + i, u);
        if (n - i >= DITHER_VALUES)
            restore_part(w, i, i + DITHER_VALUES, step, u, dither, true);
        else
            restore_part(w, i, n, step, u, dither, false);
    }
}

static void restore(const sti_codec_quant *quant, int64_t begin, int64_t n, void *w)
{
    if (quant->dither)
        restore_span(quant, begin, n, w, true);
    else
        restore_span(quant, begin, n, w, false);
}

#endif
