/* For codec_avx512.c alone: what neighbours say of values, and tokens. */
#ifndef STI_CODEC_CODEC_LOOK_AVX512_H
#define STI_CODEC_CODEC_LOOK_AVX512_H

#include "codec/codec_quantise_avx512.h"

/* Numbers that loops need in every step. The compiler makes each anew where it is used,
 * by the port that shuffles and masks want; hidden from its sight (look_of) it is read
 * from memory, for which there are ports with time left. */
enum {
    C_1,
    C_4,
    C_32,
    C_63,
    C_OCTAVE, /* of activity 1, in quarters */
    C_PLAIN,
    C_BYTE,
    C_PART, /* of a frequency */
    C_BIAS,
    C_SCALE,
    C_STATE_MIN,
    CONSTANTS
};

static const uint32_t constants[CONSTANTS] = {
    [C_1] = 1,
    [C_4] = 4,
    [C_32] = 32,
    [C_63] = 63,
    [C_OCTAVE] = 129u << 2,
    [C_PLAIN] = STI_CODEC_PLAIN,
    [C_BYTE] = 0xff,
    [C_PART] = STI_CODEC_SCALE - 1,
    [C_BIAS] = 0x1fff,
    [C_SCALE] = STI_CODEC_SCALE,
    [C_STATE_MIN] = STI_CODEC_STATE_MIN,
};

_Static_assert(STI_CODEC_CONTEXTS *STI_CODEC_SCALE <= 1 << 16, "rows are 16 bits");

/* A form with its constants in registers; contexts are made to begin at their rows of a
 * table of 2^shift entries a row. */
typedef struct look {
    const sti_codec_form *form;
    const uint32_t *constants;
    __m512i map[2]; /* rows, 16 bits each, of buckets 0..31 and 32..63 */
    int64_t phase_step;
} look;

INLINE look look_of(const sti_codec_form *form, const int shift)
{
    const __m256i *map = (const __m256i *)(const void *)form->map;
    const uint32_t *c = constants;
    __asm__("" : "+r"(c));
    return (look){
        .form = form,
        .constants = c,
        .map = {_mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(map)), shift),
                _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(map + 1)),
                                  shift)},
        .phase_step = 16 % form->channels};
}

INLINE __m512i constant(const look *k, int which)
{
    return _mm512_set1_epi32((int)k->constants[which]);
}

/* Where `usual` is to be read for the next 16 values. */
INLINE int64_t phase_next(const look *k, int64_t phase)
{
    if (k->form->channels > 16)
        phase += 16;
    else
        phase += k->phase_step;
    return phase >= k->form->channels ? phase - k->form->channels : phase;
}

/* w of 16 values `back` before i; those before the chunk are 0. */
INLINE __m512i before(const void *w, int64_t i, int64_t back, const bool edge)
{
    const char *at = (const char *)w + 4 * (i - back);
    if (!edge || i >= back)
        return _mm512_loadu_si512(at);
    if (i + 16 <= back)
        return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi32((__mmask16)(0xffffu << (back - i)), at);
}

/* Where 16 values stand: i of the chunk at w, which begins at `begin` of the array. */
typedef struct place {
    const void *w;
    int64_t begin, i, phase;
} place;

/* Buckets and guesses of `side` places. edge: neighbours may lie before the chunk, and
 * only `lanes` are there. */
INLINE void look_around(const look *k, const place *p, const int side, __mmask16 lanes,
                        const stint_codec_predictor predictor, const bool edge,
                        __m512i *bucket_out, __m512i *guess_out)
{
    const sti_codec_form *form = k->form;
    __m512i l[SIDE], u[SIDE], lu[SIDE], a[SIDE];
    EACH l[j] = before(p[j].w, p[j].i, form->left, edge);
    EACH u[j] = before(p[j].w, p[j].i, form->up, edge);
    EACH guess_out[j] = _mm512_setzero_si512();
    if (predictor == STINT_CODEC_LEFT || predictor == STINT_CODEC_PLANE)
        EACH lu[j] = before(p[j].w, p[j].i, form->left + form->up, edge);
    if (predictor == STINT_CODEC_LEFT) {
        EACH guess_out[j] = l[j];
        EACH a[j] = _mm512_abs_epi32(_mm512_sub_epi32(u[j], lu[j]));
        EACH a[j] = _mm512_slli_epi32(a[j], 2);
    } else if (predictor == STINT_CODEC_PLANE) {
        EACH guess_out[j] = _mm512_sub_epi32(_mm512_add_epi32(l[j], u[j]), lu[j]);
        EACH a[j] = _mm512_add_epi32(_mm512_abs_epi32(_mm512_sub_epi32(l[j], lu[j])),
                                     _mm512_abs_epi32(_mm512_sub_epi32(u[j], lu[j])));
        EACH a[j] = _mm512_slli_epi32(a[j], 2);
    } else if (predictor == STINT_CODEC_MEAN) {
        EACH guess_out[j] = _mm512_srai_epi32(_mm512_add_epi32(l[j], u[j]), 1);
        EACH a[j] = _mm512_abs_epi32(_mm512_sub_epi32(l[j], u[j]));
        EACH a[j] = _mm512_slli_epi32(a[j], 2);
        EACH a[j] = _mm512_add_epi32(
            a[j], _mm512_add_epi32(_mm512_abs_epi32(l[j]), _mm512_abs_epi32(u[j])));
    } else {
        EACH a[j] = _mm512_add_epi32(_mm512_abs_epi32(l[j]), _mm512_abs_epi32(u[j]));
        EACH a[j] = _mm512_slli_epi32(a[j], 2);
    }
    /* At least 4 and far from 2^31, unless a damaged stream is decoded. */
    EACH a[j] = _mm512_add_epi32(a[j], _mm512_loadu_si512(form->usual + p[j].phase));
    EACH a[j] = _mm512_add_epi32(a[j], constant(k, C_4));
    EACH a[j] = _mm512_castps_si512(_mm512_cvtepi32_ps(a[j]));
    EACH a[j] = _mm512_srli_epi32(a[j], 21);
    EACH a[j] = _mm512_sub_epi32(a[j], constant(k, C_OCTAVE));
    EACH bucket_out[j] = _mm512_min_epu32(a[j], constant(k, C_63));
    if (!form->kind)
        return;
    EACH
    {
        const __mmask16 kind = mask_at(form->kind, p[j].begin + p[j].i, lanes);
        bucket_out[j] = _mm512_srli_epi32(bucket_out[j], 1);
        bucket_out[j] = _mm512_mask_add_epi32(bucket_out[j], kind, bucket_out[j],
                                              constant(k, C_32));
    }
}

/* Where contexts' entries begin. The upper halves of lanes get that of bucket 0, which
 * is 0. */
INLINE __m512i rows_of(const look *k, __m512i buckets)
{
    return _mm512_permutex2var_epi16(k->map[0], buckets, k->map[1]);
}

INLINE __m512i fold(const sti_codec_form *form, __m512i w, __m512i guess)
{
    if (form->direct_positive)
        return w;
    const __m512i r = _mm512_sub_epi32(w, guess);
    return _mm512_xor_si512(_mm512_slli_epi32(r, 1), _mm512_srai_epi32(r, 31));
}

INLINE __m512i unfold(const look *k, __m512i v, __m512i guess)
{
    if (k->form->direct_positive)
        return v;
    const __m512i sign =
        _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(v, constant(k, C_1)));
    return _mm512_add_epi32(guess, _mm512_xor_si512(_mm512_srli_epi32(v, 1), sign));
}

/* Tokens where some v are not below STI_CODEC_PLAIN. */
INLINE __m512i large_tokens(__m512i v)
{
    const __mmask16 large = _mm512_cmpge_epu32_mask(v, splat(STI_CODEC_PLAIN));
    const __mmask16 escape = _mm512_cmpge_epu32_mask(v, splat(1u << 22));
    /* Exponent and three bits of the float, which is exact below 2^24. */
    const __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(v));
    const __m512i token = _mm512_sub_epi32(_mm512_srli_epi32(bits, 20),
                                           splat((127 + 7) * 8 - STI_CODEC_PLAIN));
    return _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(v, large, token), escape,
                                 splat(STI_CODEC_ESCAPE));
}

/* Bits below tokens and what the tokens stand for; 0 bits below STI_CODEC_PLAIN. */
INLINE __m512i token_bits(__m512i token)
{
    const __mmask16 large = _mm512_cmpge_epu32_mask(token, splat(STI_CODEC_PLAIN));
    const __mmask16 escape = _mm512_cmpeq_epi32_mask(token, splat(STI_CODEC_ESCAPE));
    const __m512i octave =
        _mm512_srli_epi32(_mm512_sub_epi32(token, splat(STI_CODEC_PLAIN)), 3);
    const __m512i bits = _mm512_maskz_add_epi32(large, octave, splat(4));
    return _mm512_mask_mov_epi32(bits, escape, splat(STI_CODEC_ESCAPE_BITS));
}

INLINE __m512i token_base(__m512i token, __m512i bits)
{
    const __mmask16 large = _mm512_cmpge_epu32_mask(token, splat(STI_CODEC_PLAIN));
    const __mmask16 escape = _mm512_cmpeq_epi32_mask(token, splat(STI_CODEC_ESCAPE));
    const __m512i top = _mm512_or_si512(_mm512_and_si512(token, splat(7)), splat(8));
    const __m512i base = _mm512_mask_sllv_epi32(token, large, top, bits);
    return _mm512_maskz_mov_epi32((__mmask16)~escape, base);
}

#define BY_PREDICTOR(CALL)        \
    switch (form->predictor) {    \
    case STINT_CODEC_LEFT:        \
        CALL(STINT_CODEC_LEFT);   \
        break;                    \
    case STINT_CODEC_PLANE:       \
        CALL(STINT_CODEC_PLANE);  \
        break;                    \
    case STINT_CODEC_MEAN:        \
        CALL(STINT_CODEC_MEAN);   \
        break;                    \
    case STINT_CODEC_AUTO:        \
    case STINT_CODEC_PREDICTORS:  \
    case STINT_CODEC_DIRECT:      \
        CALL(STINT_CODEC_DIRECT); \
        break;                    \
    }

#endif
