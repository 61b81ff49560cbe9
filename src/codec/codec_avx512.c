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
    DITHER_VALUES = 512, /* that 32 Philox blocks serve */
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
    return _mm512_mul_ps(_mm512_sub_ps(f, _mm512_set1_ps(127.5f)), unit);
}

/* Of values [begin, begin + DITHER_VALUES). */
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

/* A form with its constants in registers. */
typedef struct look {
    const sti_codec_form *form;
    const uint32_t *constants;
    __m512i map[2]; /* contexts, 16 bits each, of buckets 0..31 and 32..63 */
    int64_t phase_step;
} look;

INLINE look look_of(const sti_codec_form *form)
{
    const __m256i *map = (const __m256i *)(const void *)form->map;
    const uint32_t *c = constants;
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
    const look k = look_of(form);
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

/* Of which[0], [2], [4] and [6]. */
INLINE __m256i four_entries(const uint64_t *e, const uint32_t *which)
{
    const __m256i a = _mm256_set1_epi64x((int64_t)e[which[0]]);
    const __m256i b = _mm256_set1_epi64x((int64_t)e[which[2]]);
    const __m256i c = _mm256_set1_epi64x((int64_t)e[which[4]]);
    const __m256i d = _mm256_set1_epi64x((int64_t)e[which[6]]);
    return _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x0c),
                              _mm256_blend_epi32(c, d, 0xc0), 0xf0);
}

/* By loads of their own, which go to every lane and are blended: on many processors two
 * gathers take longer. */
INLINE entries entries_of(const sti_codec_coder *coder, const uint32_t *which)
{
    const uint64_t *e = coder->entry;
    return (entries){
        _mm512_inserti64x4(_mm512_castsi256_si512(four_entries(e, which)),
                           four_entries(e, which + 8), 1),
        _mm512_inserti64x4(_mm512_castsi256_si512(four_entries(e, which + 1)),
                           four_entries(e, which + 9), 1)};
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
              _mm512_mask_cmpge_epu32_mask(
                  lanes,
                  _mm512_srli_epi32(x, STI_CODEC_STATE_BITS - STI_CODEC_SCALE_LOG2),
                  frequency),
              at);
    const __m512i even = _mm512_mul_epu32(x, e->even);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), e->odd);
    const __m512i high =
        _mm512_srlv_epi32(join_high(even, odd), _mm512_srli_epi32(parts, 25));
    return _mm512_mask_add_epi32(x, lanes, _mm512_add_epi32(x, bias),
                                 _mm512_mullo_epi32(high, rest));
}

/* Values made ready for coding. Places of entries are numbers in memory then, written
 * long before they are read: taken out of a vector just made they cost more than the
 * entries. */
enum { READY = 512 };

typedef struct ready_values {
    uint32_t which[READY]; /* context * STI_CODEC_TOKENS + token */
    int32_t v[READY];
    __mmask16 wanted[READY / 16];
} ready_values;

INLINE void prepare_16(const look *k, int64_t begin, const int32_t *w, int64_t i,
                       int64_t phase, __mmask16 lanes, __mmask16 wanted,
                       const stint_codec_predictor predictor, const bool edge,
                       ready_values *ready, int64_t to)
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
    const __m512i token = large ? large_tokens(v) : v;
    /* Others may have no token at all. */
    _mm512_storeu_si512(ready->which + to,
                        _mm512_maskz_add_epi32(wanted, context, token));
    _mm512_storeu_si512(ready->v + to, v);
    ready->wanted[to / 16] = wanted;
}

/* Values [from, to) of a chunk of n; from a multiple of 16. */
INLINE void prepare(const look *k, int64_t begin, const int32_t *w, const uint8_t *mask,
                    int64_t from, int64_t to, int64_t n,
                    const stint_codec_predictor predictor, ready_values *ready)
{
    const int64_t reach = k->form->left + k->form->up;
    int64_t phase = (begin + from) % k->form->channels;
    for (int64_t i = from; i < to; i += 16) {
        const __mmask16 lanes = lanes_below(n - i);
        if (lanes != 0xffff || i < reach || mask)
            prepare_16(k, begin, w, i, phase, lanes, mask_at(mask, begin + i, lanes),
                       predictor, true, ready, i - from);
        else
            prepare_16(k, begin, w, i, phase, 0xffff, 0xffff, predictor, false, ready,
                       i - from);
        phase = phase_next(k, phase);
    }
}

INLINE __m512i encode_16(const look *k, const sti_codec_coder *coder,
                         ready_values *ready, int64_t at, __m512i x, uint8_t **to)
{
    const __mmask16 wanted = ready->wanted[at / 16];
    uint32_t *which = ready->which + at;
    entries e = entries_of(coder, which);
    __m512i parts = parts_of(&e);
    const __m512i v = _mm512_loadu_si512(ready->v + at);
    const __mmask16 large =
        _mm512_mask_cmpge_epu32_mask(wanted, v, constant(k, C_PLAIN));
    const __mmask16 none =
        _mm512_mask_cmpeq_epi32_mask(wanted, parts, splat(UINT32_MAX));
    if (large | none) {
        __m512i all = _mm512_loadu_si512(which);
        all = _mm512_mask_or_epi32(all, none, all, constant(k, C_BYTE));
        _mm512_storeu_si512(which, all);
        e = entries_of(coder, which);
        parts = parts_of(&e);
        x = push_below(x, v, _mm512_and_si512(all, constant(k, C_BYTE)), wanted, to);
    }
    return push_tokens(k, &e, x, parts, wanted, to);
}

INLINE uint8_t *encode_from(const look *k, const sti_codec_coder *coder, int64_t begin,
                            const int32_t *w, const uint8_t *mask, int64_t n,
                            uint8_t *floor, uint8_t *top,
                            const stint_codec_predictor predictor)
{
    ready_values ready;
    __m512i x = splat(STI_CODEC_STATE_MIN);
    uint8_t *at = top;
    for (int64_t from = (n - 1) / READY * READY, to = n; from >= 0;
         to = from, from -= READY) {
        prepare(k, begin, w, mask, from, to, n, predictor, &ready);
        for (int64_t i = (to - from - 1) & ~INT64_C(15); i >= 0; i -= 16) {
            if (at - floor < STI_CODEC_STATES_BYTES + 96)
                return NULL;
            x = encode_16(k, coder, &ready, i, x, &at);
        }
    }
    at -= STI_CODEC_STATES_BYTES;
    _mm512_storeu_si512(at, x);
    return at;
}

static uint8_t *encode(const sti_codec_form *form, const sti_codec_coder *coder,
                       int64_t begin, const int32_t *w, const uint8_t *mask, int64_t n,
                       uint8_t *floor, uint8_t *top)
{
    const look k = look_of(form);
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

/* What lies below tokens, and the states and words after it. */
typedef struct pulled {
    __m512i x, v;
    const uint8_t *at;
} pulled;

/* Low part, then high part. */
static pulled pull_below(__m512i x, __m512i token, __mmask16 lanes, const uint8_t *at)
{
    const __m512i bits = token_bits(token), most = splat(STI_CODEC_PART_BITS);
    const __m512i low = _mm512_min_epu32(bits, most);
    const __m512i high = _mm512_sub_epi32(bits, low);
    const __m512i one = splat(1), least = splat(STI_CODEC_STATE_MIN);
    __m512i v = token_base(token, bits);
    __mmask16 m = _mm512_mask_test_epi32_mask(lanes, low, low);
    __m512i ones = _mm512_sub_epi32(_mm512_sllv_epi32(one, low), one);
    v = _mm512_mask_add_epi32(v, m, v, _mm512_and_si512(x, ones));
    x = refill(_mm512_mask_srlv_epi32(x, m, x, low), least, m, &at);
    m = _mm512_mask_test_epi32_mask(lanes, high, high);
    if (m) {
        ones = _mm512_sub_epi32(_mm512_sllv_epi32(one, high), one);
        v = _mm512_mask_add_epi32(
            v, m, v, _mm512_slli_epi32(_mm512_and_si512(x, ones), STI_CODEC_PART_BITS));
        x = refill(_mm512_mask_srlv_epi32(x, m, x, high), least, m, &at);
    }
    return (pulled){x, v, at};
}

/* One of the streams decoded side by side. */
typedef struct runner {
    __m512i x;
    const uint8_t *at;
    int64_t phase;
} runner;

/* A step of a stream between its look-up and the rest. */
typedef struct found_16 {
    __m512i entry, guess;
    __mmask16 wanted;
} found_16;

INLINE found_16 find_16(const look *k, const uint32_t *table, const sti_codec_stream *s,
                        const runner *r, int64_t i, __mmask16 lanes,
                        const stint_codec_predictor predictor, const bool edge)
{
    found_16 f = {.wanted = edge ? mask_at(s->mask, s->begin + i, lanes) : 0xffff};
    const __m512i bucket =
        look_around(k, s->begin, s->w, i, lanes, r->phase, predictor, edge, &f.guess);
    const __m512i slot = _mm512_and_si512(r->x, constant(k, C_PART));
    const __m512i which = _mm512_add_epi32(
        _mm512_slli_epi32(contexts_of(k, bucket), STI_CODEC_SCALE_LOG2), slot);
    f.entry = _mm512_i32gather_epi32(which, table, 4);
    return f;
}

INLINE void take_16(const look *k, const found_16 *f, const sti_codec_stream *s,
                    runner *r, int64_t i, __mmask16 lanes, const bool edge)
{
    const __m512i token = _mm512_and_si512(f->entry, constant(k, C_BYTE));
    const __m512i frequency =
        _mm512_add_epi32(_mm512_srli_epi32(f->entry, 20), constant(k, C_1));
    const __m512i bias =
        _mm512_and_si512(_mm512_srli_epi32(f->entry, 8), constant(k, C_PART));
    const __m512i high = _mm512_srli_epi32(r->x, STI_CODEC_SCALE_LOG2);
    const __m512i x = _mm512_mask_add_epi32(r->x, f->wanted,
                                            _mm512_mullo_epi32(frequency, high), bias);
    r->x = refill(x, constant(k, C_STATE_MIN), f->wanted, &r->at);
    __m512i v = token;
    if (_mm512_mask_cmpge_epu32_mask(f->wanted, token, constant(k, C_PLAIN))) {
        const pulled p = pull_below(r->x, token, f->wanted, r->at);
        r->x = p.x;
        r->at = p.at;
        v = p.v;
    }
    const __m512i w = _mm512_maskz_mov_epi32(f->wanted, unfold(k, v, f->guess));
    char *to = (char *)s->w + 4 * i;
    if (edge)
        _mm512_mask_storeu_epi32(to, lanes, w);
    else
        _mm512_storeu_si512(to, w);
    r->phase = phase_next(k, r->phase);
}

/* All look-ups first, so that none is waited for while others could be under way. */
INLINE void decode_step(const look *k, const uint32_t *table, const sti_codec_stream *s,
                        runner *r, const int streams, int64_t i, __mmask16 lanes,
                        const stint_codec_predictor predictor, const bool edge)
{
    found_16 f[STI_CODEC_GROUP];
#pragma GCC unroll 4
    for (int j = 0; j < streams; j++)
        f[j] = find_16(k, table, &s[j], &r[j], i, lanes, predictor, edge);
#pragma GCC unroll 4
    for (int j = 0; j < streams; j++)
        take_16(k, &f[j], &s[j], &r[j], i, lanes, edge);
}

/* `streams` of them in step. */
INLINE bool decode_in_step(const look *k, const uint32_t *table, sti_codec_stream *s,
                           const int streams, int64_t from, int64_t to,
                           const stint_codec_predictor predictor)
{
    const int64_t reach = k->form->left + k->form->up;
    runner r[STI_CODEC_GROUP];
    bool past = false;
#pragma GCC unroll 4
    for (int j = 0; j < streams; j++) {
        r[j].x = _mm512_loadu_si512(s[j].state);
        r[j].at = s[j].words;
        r[j].phase = (s[j].begin + from) % k->form->channels;
    }
    for (int64_t i = from; i < to && !past; i += 16) {
        const __mmask16 lanes = lanes_below(to - i);
#pragma GCC unroll 4
        for (int j = 0; j < streams; j++)
            past |= r[j].at > s[j].end;
        if (past)
            break;
        if (lanes != 0xffff || i < reach || s[0].mask)
            decode_step(k, table, s, r, streams, i, lanes, predictor, true);
        else
            decode_step(k, table, s, r, streams, i, 0xffff, predictor, false);
    }
#pragma GCC unroll 4
    for (int j = 0; j < streams; j++) {
        _mm512_storeu_si512(s[j].state, r[j].x);
        s[j].words = r[j].at;
    }
    return !past;
}

INLINE bool decode_with(const look *k, const uint32_t *table, int streams,
                        sti_codec_stream *s, int64_t from, int64_t to,
                        const stint_codec_predictor predictor)
{
    if (streams == STI_CODEC_GROUP)
        return decode_in_step(k, table, s, STI_CODEC_GROUP, from, to, predictor);
    return decode_in_step(k, table, s, 1, from, to, predictor);
}

static bool decode(const sti_codec_form *form, const uint32_t *table, int streams,
                   sti_codec_stream *stream, int64_t from, int64_t to)
{
    const look k = look_of(form);
    bool good = false;
#define DECODE(p) good = decode_with(&k, table, streams, stream, from, to, p)
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
