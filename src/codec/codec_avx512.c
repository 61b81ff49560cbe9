/* The codec's loops for AVX-512: 16 values a step. What they mean is in codec_body.h;
 * the bits are the same. */
#include "codec/codec_priv.h"

#if defined(__AVX512F__)
#include "base/rng.h"
#include "codec/codec_checksum.h"
#include "codec/codec_sums.h"
#include "codec/philox_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    DITHER_VALUES = 256, /* that 32 Philox blocks serve */
    DITHER_VECTORS = DITHER_VALUES / 16
};

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

/* ---- quantiser ---- */

INLINE __m512 dither_of(__m512i bits, __m512 unit)
{
    const __m512 f = _mm512_cvtepi32_ps(bits);
    return _mm512_mul_ps(_mm512_sub_ps(f, _mm512_set1_ps(32767.5f)), unit);
}

/* Of values [begin, begin + DITHER_VALUES). */
INLINE void make_dither(const sti_codec_quant *quant, const philox_keys *keys,
                        int64_t begin, __m512 *u)
{
    const __m512 unit = _mm512_set1_ps(quant->dither_unit);
    __m512i word[DITHER_VECTORS / 2];
    philox_32(keys, quant->id,
              (uint64_t)quant->shard << 40 | ((uint64_t)begin / 128 * 16), word);
    for (int k = 0; k < DITHER_VECTORS / 2; k++) {
        u[2 * k] = dither_of(_mm512_and_si512(word[k], splat(0xffff)), unit);
        u[2 * k + 1] = dither_of(_mm512_srli_epi32(word[k], 16), unit);
    }
}

typedef struct quantiser {
    __m512 step, inverse, limit, max_error;
    __m512i zeros; /* of each lane */
    __mmask16 unmasked;
    bool positive;
} quantiser;

/* What q leaves of x. */
INLINE __m512 left_by(const quantiser *z, __m512 x, __m512i q, __m512 u,
                      const bool dither)
{
    const __m512 f = _mm512_cvtepi32_ps(q);
    return _mm512_sub_ps(x, dither ? _mm512_fmsub_ps(f, z->step, u)
                                   : _mm512_mul_ps(f, z->step));
}

/* w of 16 values; *outliers_out: those that are to be kept as they are. */
INLINE __m512i quantise_16(quantiser *z, __m512 x, __mmask16 some, __m512 u,
                           const bool dither, __mmask16 *outliers_out)
{
    const __m512 t = _mm512_mul_ps(dither ? _mm512_add_ps(x, u) : x, z->inverse);
    __mmask16 good = _mm512_mask_cmp_ps_mask(some, _mm512_abs_ps(t),
                                             _mm512_set1_ps(0x1p21f), _CMP_LT_OQ);
    __m512i q = _mm512_maskz_cvtps_epi32(good, t);
    __m512 left = left_by(z, x, q, u, dither);
    const __m512 off = _mm512_mul_ps(left, z->inverse);
    /* Those that are nearer to another multiple, as rounding goes: few if any. */
    const __mmask16 more = _mm512_mask_cmp_ps_mask(good, _mm512_abs_ps(off),
                                                   _mm512_set1_ps(0.5f), _CMP_NLE_UQ);
    if (more) {
        q = _mm512_mask_add_epi32(q, good, q, _mm512_maskz_cvtps_epi32(good, off));
        left = left_by(z, x, q, u, dither);
    }
    const __m512 error = _mm512_abs_ps(left);
    good = _mm512_mask_cmp_ps_mask(good, error, z->limit, _CMP_LE_OQ);
    if (dither) /* q + 1 for q >= 0 */
        q = _mm512_mask_add_epi32(q, _mm512_cmpge_epi32_mask(q, _mm512_setzero_si512()),
                                  q, splat(1));
    if (z->positive)
        good = _mm512_mask_cmpge_epi32_mask(good, q, _mm512_setzero_si512());
    z->max_error = _mm512_mask_max_ps(z->max_error, good, z->max_error, error);
    *outliers_out = (__mmask16)(some & ~good);
    return _mm512_maskz_mov_epi32(good, q);
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

/* Values [from, to), at most DITHER_VALUES. whole: vectors of 16, and no mask. */
INLINE void quantise_part(const sti_codec_span *span, int64_t from, int64_t to,
                          quantiser *z, const __m512 *u, int32_t *w_out, uint8_t *list,
                          int64_t room, sti_codec_found *found, const bool dither,
                          const bool whole)
{
    for (int64_t i = from; i < to; i += 16, u++) {
        const __mmask16 lanes = whole ? 0xffff : lanes_below(to - i);
        const __m512 x = _mm512_maskz_loadu_ps(lanes, span->x + i);
        const __mmask16 some =
            _mm512_mask_cmp_ps_mask(lanes, x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        const __mmask16 wanted =
            whole ? lanes : mask_at(span->mask, span->begin + i, lanes);
        __mmask16 outliers;
        z->zeros = _mm512_mask_add_epi32(z->zeros, (__mmask16)(lanes & ~some), z->zeros,
                                         splat(1));
        z->unmasked |= (__mmask16)(some & ~wanted);
        const __m512i w = quantise_16(z, x, some & wanted, *u, dither, &outliers);
        _mm512_mask_storeu_epi32(w_out + i, lanes, w);
        if (outliers)
            keep_outliers(span, i, outliers, list, room, found);
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
                   .zeros = _mm512_setzero_si512(),
                   .positive = quant->positive};
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
    found->zeros += _mm512_reduce_add_epi32(z.zeros);
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

/* ---- guess, activity, token ---- */

/* Numbers that loops need in every step. The compiler makes each anew where it is used,
 * by the port that shuffles and masks want; hidden from its sight (look_of) it is read
 * from memory, which costs nothing where the ports of loads have time left. */
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

/* A form with its constants in registers. */
typedef struct look {
    const sti_codec_form *form;
    const uint32_t *constants;
    __m512i map[2]; /* contexts, 16 bits each, of buckets 0..31 and 32..63 */
    int64_t phase_step;
} look;

INLINE look look_of(const sti_codec_form *form, const bool hidden)
{
    const __m256i *map = (const __m256i *)(const void *)form->map;
    const uint32_t *c = constants;
    if (hidden)
        __asm__("" : "+r"(c));
    return (look){.form = form,
                  .constants = c,
                  .map = {_mm512_cvtepu8_epi16(_mm256_loadu_si256(map)),
                          _mm512_cvtepu8_epi16(_mm256_loadu_si256(map + 1))},
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

INLINE int64_t phase_before(const look *k, int64_t phase)
{
    phase -= k->form->channels > 16 ? 16 : k->phase_step;
    return phase < 0 ? phase + k->form->channels : phase;
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

/* Buckets, and the guess. edge: neighbours may lie before the chunk. */
INLINE __m512i look_around(const look *k, int64_t begin, const void *w, int64_t i,
                           __mmask16 lanes, int64_t phase,
                           const stint_codec_predictor predictor, const bool edge,
                           __m512i *guess_out)
{
    const sti_codec_form *form = k->form;
    const __m512i usual = _mm512_loadu_si512(form->usual + phase);
    const __m512i l = before(w, i, form->left, edge);
    const __m512i u = before(w, i, form->up, edge);
    __m512i lu = _mm512_setzero_si512(), a;
    *guess_out = _mm512_setzero_si512();
    if (predictor == STINT_CODEC_LEFT || predictor == STINT_CODEC_PLANE)
        lu = before(w, i, form->left + form->up, edge);
    if (predictor == STINT_CODEC_LEFT) {
        *guess_out = l;
        a = _mm512_slli_epi32(_mm512_abs_epi32(_mm512_sub_epi32(u, lu)), 2);
    } else if (predictor == STINT_CODEC_PLANE) {
        *guess_out = _mm512_sub_epi32(_mm512_add_epi32(l, u), lu);
        a = _mm512_add_epi32(_mm512_abs_epi32(_mm512_sub_epi32(l, lu)),
                             _mm512_abs_epi32(_mm512_sub_epi32(u, lu)));
        a = _mm512_slli_epi32(a, 2);
    } else if (predictor == STINT_CODEC_MEAN) {
        *guess_out = _mm512_srai_epi32(_mm512_add_epi32(l, u), 1);
        a = _mm512_slli_epi32(_mm512_abs_epi32(_mm512_sub_epi32(l, u)), 2);
        a = _mm512_add_epi32(
            a, _mm512_add_epi32(_mm512_abs_epi32(l), _mm512_abs_epi32(u)));
    } else {
        a = _mm512_add_epi32(_mm512_abs_epi32(l), _mm512_abs_epi32(u));
        a = _mm512_slli_epi32(a, 2);
    }
    /* At least 4 and far from 2^31, unless a damaged stream is decoded. */
    a = _mm512_add_epi32(_mm512_add_epi32(a, usual), constant(k, C_4));
    const __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(a));
    const __m512i quarter =
        _mm512_sub_epi32(_mm512_srli_epi32(bits, 21), constant(k, C_OCTAVE));
    const __m512i bucket = _mm512_min_epu32(quarter, constant(k, C_63));
    if (!form->kind)
        return bucket;
    const __m512i half = _mm512_srli_epi32(bucket, 1);
    return _mm512_mask_add_epi32(half, mask_at(form->kind, begin + i, lanes), half,
                                 constant(k, C_32));
}

/* The upper halves of lanes get the context of bucket 0, which is 0. */
INLINE __m512i contexts_of(const look *k, __m512i buckets)
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

INLINE void count_from(const look *k, int64_t begin, const int32_t *w,
                       const uint8_t *mask, int64_t from, int64_t n, uint32_t *counts,
                       const stint_codec_predictor predictor)
{
    int64_t phase = (begin + from) % k->form->channels;
    for (int64_t i = from; i < n; i += 16) {
        uint32_t which[16] __attribute__((aligned(64)));
        const __mmask16 lanes = lanes_below(n - i);
        unsigned wanted = mask_at(mask, begin + i, lanes);
        __m512i guess;
        const __m512i bucket =
            look_around(k, begin, w, i, lanes, phase, predictor, true, &guess);
        const __m512i v = fold(k->form, _mm512_maskz_loadu_epi32(lanes, w + i), guess);
        _mm512_store_si512(
            which, _mm512_add_epi32(_mm512_slli_epi32(bucket, 8), large_tokens(v)));
        if (wanted == 0xffff)
            for (int j = 0; j < 16; j++)
                counts[which[j]]++;
        else
            for (; wanted; wanted &= wanted - 1)
                counts[which[__builtin_ctz(wanted)]]++;
        phase = phase_next(k, phase);
    }
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

static void count(const sti_codec_form *form, int64_t begin, const int32_t *w,
                  const uint8_t *mask, int64_t from, int64_t n, uint32_t *counts)
{
    const look k = look_of(form, true);
#define COUNT(p) count_from(&k, begin, w, mask, from, n, counts, p)
    BY_PREDICTOR(COUNT)
#undef COUNT
}

/* ---- rANS ---- */

/* Lanes of `full` write their low word, in lane order, downwards. */
INLINE __m512i spill(__m512i x, __mmask16 full, uint8_t **at)
{
    const unsigned words = (unsigned)__builtin_popcount(full);
    const __m256i low = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, x));
    *at -= 2 * words;
    _mm256_mask_storeu_epi16(*at, (__mmask16)((1u << words) - 1), low);
    return _mm512_mask_srli_epi32(x, full, x, 16);
}

INLINE __m512i push_bits(__m512i x, __m512i value, __m512i bits, __mmask16 lanes,
                         uint8_t **at)
{
    const __m512i room = _mm512_srlv_epi32(x, _mm512_sub_epi32(splat(31), bits));
    lanes = _mm512_mask_test_epi32_mask(lanes, bits, bits);
    x = spill(x, _mm512_mask_test_epi32_mask(lanes, room, room), at);
    return _mm512_mask_or_epi32(x, lanes, _mm512_sllv_epi32(x, bits), value);
}

/* What lies below tokens: high part, then low part. */
static __m512i push_below(__m512i x, __m512i v, __m512i token, __mmask16 lanes,
                          uint8_t **at)
{
    const __m512i bits = token_bits(token), most = splat(STI_CODEC_PART_BITS);
    const __m512i below = _mm512_sub_epi32(v, token_base(token, bits));
    const __m512i low = _mm512_min_epu32(bits, most);
    const __m512i high = _mm512_sub_epi32(bits, low);
    if (_mm512_test_epi32_mask(high, high))
        x = push_bits(x, _mm512_srli_epi32(below, STI_CODEC_PART_BITS), high, lanes,
                      at);
    const __m512i ones = _mm512_sub_epi32(_mm512_sllv_epi32(splat(1), low), splat(1));
    return push_bits(x, _mm512_and_si512(below, ones), low, lanes, at);
}

/* Of tokens in even lanes and in odd ones: reciprocals below, parts above. */
typedef struct entries {
    __m512i even, odd;
} entries;

INLINE __m128i pair_of(const uint64_t *low, const uint64_t *high)
{
    const __m128i l = _mm_loadl_epi64((const __m128i *)(const void *)low);
    return _mm_castpd_si128(
        _mm_loadh_pd(_mm_castsi128_pd(l), (const double *)(const void *)high));
}

INLINE __m512i four_pairs(__m128i a, __m128i b, __m128i c, __m128i d)
{
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* By loads of their own: on many processors two gathers take longer. */
INLINE entries entries_of(const sti_codec_coder *coder, __m512i which)
{
    uint32_t i[16] __attribute__((aligned(64)));
    const uint64_t *e = coder->entry;
    _mm512_store_si512(i, which);
    return (entries){
        four_pairs(pair_of(e + i[0], e + i[2]), pair_of(e + i[4], e + i[6]),
                   pair_of(e + i[8], e + i[10]), pair_of(e + i[12], e + i[14])),
        four_pairs(pair_of(e + i[1], e + i[3]), pair_of(e + i[5], e + i[7]),
                   pair_of(e + i[9], e + i[11]), pair_of(e + i[13], e + i[15]))};
}

/* Lower halves of lanes of 64 of `even`'s upper halves, upper ones of odd. */
INLINE __m512i join_high(__m512i even, __m512i odd)
{
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
}

INLINE __m512i parts_of(const entries *e)
{
    return join_high(e->even, e->odd);
}

INLINE __m512i push_tokens(const look *k, const entries *e, __m512i x, __m512i parts,
                           __mmask16 lanes, uint8_t **at)
{
    const __m512i rest = _mm512_and_si512(parts, constant(k, C_PART));
    const __m512i frequency = _mm512_sub_epi32(constant(k, C_SCALE), rest);
    const __m512i bias =
        _mm512_and_si512(_mm512_srli_epi32(parts, 12), constant(k, C_BIAS));
    x = spill(x,
              _mm512_mask_cmpge_epu32_mask(lanes, _mm512_srli_epi32(x, 19), frequency),
              at);
    const __m512i even = _mm512_mul_epu32(x, e->even);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), e->odd);
    const __m512i high =
        _mm512_srlv_epi32(join_high(even, odd), _mm512_srli_epi32(parts, 25));
    return _mm512_mask_add_epi32(x, lanes, _mm512_add_epi32(x, bias),
                                 _mm512_mullo_epi32(high, rest));
}

INLINE __m512i encode_16(const look *k, const sti_codec_coder *coder, int64_t begin,
                         const int32_t *w, int64_t i, int64_t phase, __mmask16 lanes,
                         __mmask16 wanted, __m512i x, uint8_t **at,
                         const stint_codec_predictor predictor, const bool edge)
{
    __m512i guess;
    const __m512i bucket =
        look_around(k, begin, w, i, lanes, phase, predictor, edge, &guess);
    const __m512i context = _mm512_slli_epi32(contexts_of(k, bucket), 8);
    const __m512i here =
        edge ? _mm512_maskz_loadu_epi32(lanes, w + i) : _mm512_loadu_si512(w + i);
    const __m512i v = fold(k->form, here, guess);
    const __mmask16 large =
        _mm512_mask_cmpge_epu32_mask(wanted, v, constant(k, C_PLAIN));
    __m512i token = large ? large_tokens(v) : v;
    /* Others may have no token at all. */
    __m512i which = _mm512_maskz_add_epi32(wanted, context, token);
    entries e = entries_of(coder, which);
    __m512i parts = parts_of(&e);
    const __mmask16 none =
        _mm512_mask_cmpeq_epi32_mask(wanted, parts, splat(UINT32_MAX));
    if (none) {
        token = _mm512_mask_mov_epi32(token, none, splat(STI_CODEC_ESCAPE));
        which = _mm512_maskz_add_epi32(wanted, context, token);
        e = entries_of(coder, which);
        parts = parts_of(&e);
    }
    if (large | none)
        x = push_below(x, v, token, wanted, at);
    return push_tokens(k, &e, x, parts, wanted, at);
}

INLINE uint8_t *encode_from(const look *k, const sti_codec_coder *coder, int64_t begin,
                            const int32_t *w, const uint8_t *mask, int64_t n,
                            uint8_t *floor, uint8_t *top,
                            const stint_codec_predictor predictor)
{
    const int64_t last = (n - 1) & ~INT64_C(15), reach = k->form->left + k->form->up;
    int64_t phase = (begin + last) % k->form->channels;
    __m512i x = splat(STI_CODEC_STATE_MIN);
    uint8_t *at = top;
    for (int64_t i = last; i >= 0; i -= 16) {
        const __mmask16 lanes = lanes_below(n - i);
        if (at - floor < STI_CODEC_STATES_BYTES + 96)
            return NULL;
        if (lanes != 0xffff || i < reach || mask)
            x = encode_16(k, coder, begin, w, i, phase, lanes,
                          mask_at(mask, begin + i, lanes), x, &at, predictor, true);
        else
            x = encode_16(k, coder, begin, w, i, phase, 0xffff, 0xffff, x, &at,
                          predictor, false);
        phase = phase_before(k, phase);
    }
    at -= STI_CODEC_STATES_BYTES;
    _mm512_storeu_si512(at, x);
    return at;
}

static uint8_t *encode(const sti_codec_form *form, const sti_codec_coder *coder,
                       int64_t begin, const int32_t *w, const uint8_t *mask, int64_t n,
                       uint8_t *floor, uint8_t *top)
{
    const look k = look_of(form, true);
    uint8_t *at = NULL;
#define ENCODE(p) at = encode_from(&k, coder, begin, w, mask, n, floor, top, p)
    BY_PREDICTOR(ENCODE)
#undef ENCODE
    return at;
}

INLINE __m512i refill(__m512i x, __m512i least, __mmask16 lanes, const uint8_t **at)
{
    const __mmask16 empty = _mm512_mask_cmplt_epu32_mask(lanes, x, least);
    const __m512i words =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)*at));
    const __m512i mine = _mm512_maskz_expand_epi32(empty, words);
    *at += 2 * (unsigned)__builtin_popcount(empty);
    return _mm512_mask_or_epi32(x, empty, _mm512_slli_epi32(x, 16), mine);
}

/* Adds what lies below tokens to v: low part, then high part. */
static __m512i pull_below(__m512i *x, __m512i token, __mmask16 lanes,
                          const uint8_t **at)
{
    const __m512i bits = token_bits(token), most = splat(STI_CODEC_PART_BITS);
    const __m512i low = _mm512_min_epu32(bits, most);
    const __m512i high = _mm512_sub_epi32(bits, low);
    const __m512i one = splat(1), least = splat(STI_CODEC_STATE_MIN);
    __m512i v = token_base(token, bits);
    __mmask16 m = _mm512_mask_test_epi32_mask(lanes, low, low);
    __m512i ones = _mm512_sub_epi32(_mm512_sllv_epi32(one, low), one);
    v = _mm512_mask_add_epi32(v, m, v, _mm512_and_si512(*x, ones));
    *x = refill(_mm512_mask_srlv_epi32(*x, m, *x, low), least, m, at);
    m = _mm512_mask_test_epi32_mask(lanes, high, high);
    if (m) {
        ones = _mm512_sub_epi32(_mm512_sllv_epi32(one, high), one);
        v = _mm512_mask_add_epi32(
            v, m, v,
            _mm512_slli_epi32(_mm512_and_si512(*x, ones), STI_CODEC_PART_BITS));
        *x = refill(_mm512_mask_srlv_epi32(*x, m, *x, high), least, m, at);
    }
    return v;
}

/* One of the streams decoded side by side. */
typedef struct runner {
    __m512i x;
    const uint8_t *at;
    int64_t phase;
} runner;

INLINE void decode_16(const look *k, const uint32_t *table, const sti_codec_stream *s,
                      runner *r, int64_t i, __mmask16 lanes,
                      const stint_codec_predictor predictor, const bool edge)
{
    const __mmask16 wanted = edge ? mask_at(s->mask, s->begin + i, lanes) : 0xffff;
    __m512i guess;
    const __m512i bucket =
        look_around(k, s->begin, s->w, i, lanes, r->phase, predictor, edge, &guess);
    const __m512i slot = _mm512_and_si512(r->x, constant(k, C_PART));
    const __m512i which = _mm512_add_epi32(
        _mm512_slli_epi32(contexts_of(k, bucket), STI_CODEC_SCALE_LOG2), slot);
    const __m512i e = _mm512_i32gather_epi32(which, table, 4);
    const __m512i token = _mm512_and_si512(e, constant(k, C_BYTE));
    const __m512i frequency =
        _mm512_add_epi32(_mm512_srli_epi32(e, 20), constant(k, C_1));
    const __m512i bias = _mm512_and_si512(_mm512_srli_epi32(e, 8), constant(k, C_PART));
    const __m512i high = _mm512_srli_epi32(r->x, STI_CODEC_SCALE_LOG2);
    r->x =
        _mm512_mask_add_epi32(r->x, wanted, _mm512_mullo_epi32(frequency, high), bias);
    r->x = refill(r->x, constant(k, C_STATE_MIN), wanted, &r->at);
    __m512i v = token;
    if (_mm512_mask_cmpge_epu32_mask(wanted, token, constant(k, C_PLAIN)))
        v = pull_below(&r->x, token, wanted, &r->at);
    const __m512i w = _mm512_maskz_mov_epi32(wanted, unfold(k, v, guess));
    char *to = (char *)s->w + 4 * i;
    if (edge)
        _mm512_mask_storeu_epi32(to, lanes, w);
    else
        _mm512_storeu_si512(to, w);
    r->phase = phase_next(k, r->phase);
}

/* `streams` of them in step, their chunks equally long; the rest of a shorter last one
 * is looked after by the caller. */
INLINE bool decode_side_by_side(const look *k, const uint32_t *table,
                                const sti_codec_stream *s, const int streams,
                                const stint_codec_predictor predictor)
{
    const int64_t n = s[0].n, reach = k->form->left + k->form->up;
    runner r[STI_CODEC_GROUP];
#pragma GCC unroll 4
    for (int j = 0; j < streams; j++) {
        r[j].x = _mm512_loadu_si512(s[j].states);
        r[j].at = s[j].words;
        r[j].phase = s[j].begin % k->form->channels;
    }
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 lanes = lanes_below(n - i);
        bool past = false;
#pragma GCC unroll 4
        for (int j = 0; j < streams; j++)
            past |= r[j].at > s[j].end;
        if (past)
            return false;
        if (lanes != 0xffff || i < reach || s[0].mask) {
#pragma GCC unroll 4
            for (int j = 0; j < streams; j++)
                decode_16(k, table, &s[j], &r[j], i, lanes, predictor, true);
        } else {
#pragma GCC unroll 4
            for (int j = 0; j < streams; j++)
                decode_16(k, table, &s[j], &r[j], i, 0xffff, predictor, false);
        }
    }
    bool good = true;
#pragma GCC unroll 4
    for (int j = 0; j < streams; j++)
        good &= r[j].at == s[j].end &&
                _mm512_cmpneq_epi32_mask(r[j].x, splat(STI_CODEC_STATE_MIN)) == 0;
    return good;
}

INLINE bool decode_with(const look *k, const uint32_t *table, int streams,
                        const sti_codec_stream *s,
                        const stint_codec_predictor predictor)
{
    bool good = true;
    if (streams == STI_CODEC_GROUP && s[streams - 1].n == s[0].n)
        return decode_side_by_side(k, table, s, STI_CODEC_GROUP, predictor);
    for (int j = 0; j < streams; j++)
        good &= decode_side_by_side(k, table, &s[j], 1, predictor);
    return good;
}

static bool decode(const sti_codec_form *form, const uint32_t *table, int streams,
                   const sti_codec_stream *stream)
{
    const look k = look_of(form, false); /* gathers load enough */
    bool good = false;
#define DECODE(p) good = decode_with(&k, table, streams, stream, p)
    BY_PREDICTOR(DECODE)
#undef DECODE
    return good;
}

const sti_codec_kernels sti_codec_kernels_avx512 = {.quantise = quantise,
                                                    .restore = restore,
                                                    .add_residuals = add_residuals,
                                                    .count = count,
                                                    .encode = encode,
                                                    .decode = decode,
                                                    .checksum = checksum};
#else
typedef int codec_avx512_is_for_x86;
#endif
