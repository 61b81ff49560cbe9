/* The codec's loops for AVX-512: 16 values a step. What they mean is in codec_body.h;
 * the bits are the same. */
#include "codec/codec_priv.h"

#if defined(__AVX512F__)
#include "codec/codec_checksum.h"
#include "codec/codec_look_avx512.h"
#include "codec/codec_quantise_avx512.h"
#include "codec/codec_sums.h"

/* ---- counting ---- */

/* `side` vectors from i on. edge: see look_around; side is 1 then, else all of them are
 * wanted. The result is the phase behind them. */
INLINE int64_t count_side(const look *k, int64_t begin, const int32_t *w,
                          const uint8_t *mask, int64_t i, int64_t phase, const int side,
                          __mmask16 lanes, const stint_codec_predictor predictor,
                          const bool edge, uint32_t *counts)
{
    uint32_t which[16 * SIDE] __attribute__((aligned(64)));
    place p[SIDE];
    __m512i bucket[SIDE], guess[SIDE], v[SIDE];
    EACH
    {
        p[j] = (place){w, begin, i + 16 * j, phase};
        phase = phase_next(k, phase);
    }
    look_around(k, p, side, lanes, predictor, edge, bucket, guess);
    EACH v[j] = _mm512_maskz_loadu_epi32(lanes, w + i + 16 * j);
    EACH v[j] = large_tokens(fold(k->form, v[j], guess[j]));
    EACH _mm512_store_si512(which + 16 * j,
                            _mm512_add_epi32(_mm512_slli_epi32(bucket[j], 8), v[j]));
    unsigned wanted = edge ? mask_at(mask, begin + i, lanes) : 0;
    for (int j = 0; !edge && j < 16 * side; j++)
        counts[which[j]]++;
    for (; wanted; wanted &= wanted - 1)
        counts[which[__builtin_ctz(wanted)]]++;
    return phase;
}

INLINE void count_from(const look *k, int64_t begin, const int32_t *w,
                       const uint8_t *mask, int64_t from, int64_t n, uint32_t *counts,
                       const stint_codec_predictor predictor)
{
    const int64_t reach = k->form->left + k->form->up;
    int64_t i = from, phase = (begin + from) % k->form->channels;
    while (i < n)
        if (i >= reach && n - i >= 16 * SIDE && !mask) {
            phase = count_side(k, begin, w, mask, i, phase, SIDE, 0xffff, predictor,
                               false, counts);
            i += 16 * SIDE;
        } else {
            phase = count_side(k, begin, w, mask, i, phase, 1, lanes_below(n - i),
                               predictor, true, counts);
            i += 16;
        }
}

static void count(const sti_codec_form *form, int64_t begin, const int32_t *w,
                  const uint8_t *mask, int64_t from, int64_t n, uint32_t *counts)
{
    const look k = look_of(form, 0);
#define COUNT(p) count_from(&k, begin, w, mask, from, n, counts, p)
    BY_PREDICTOR(COUNT)
#undef COUNT
}

/* ---- rANS ---- */

/* Lanes of `full` write their low word, in lane order, downwards. */
INLINE __m512i spill(__m512i x, __mmask16 full, uint8_t **at)
{
    const unsigned words = (unsigned)__builtin_popcount(full);
    __m256i low = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, x));
    __asm__("" : "+v"(low));
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

/* States, and the place of the words after them. */
typedef struct pushed {
    __m512i x;
    uint8_t *at;
} pushed;

/* What lies below tokens: high part, then low part. */
static pushed push_below(__m512i x, __m512i v, __m512i token, __mmask16 lanes,
                         uint8_t *at)
{
    const __m512i bits = token_bits(token), most = splat(STI_CODEC_PART_BITS);
    const __m512i below = _mm512_sub_epi32(v, token_base(token, bits));
    const __m512i low = _mm512_min_epu32(bits, most);
    const __m512i high = _mm512_sub_epi32(bits, low);
    if (_mm512_test_epi32_mask(high, high))
        x = push_bits(x, _mm512_srli_epi32(below, STI_CODEC_PART_BITS), high, lanes,
                      &at);
    const __m512i ones = _mm512_sub_epi32(_mm512_sllv_epi32(splat(1), low), splat(1));
    x = push_bits(x, _mm512_and_si512(below, ones), low, lanes, &at);
    return (pushed){x, at};
}

/* Table entries of the tokens in even lanes and in odd ones: reciprocals in the lower
 * halves, the other parts in the upper (codec_priv.h). */
typedef struct entries {
    __m512i even, odd;
} entries;

/* The entries of which[0], [2], [4] and [6]. */
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

/* `side` vectors from i on. edge: see look_around; side is 1 then, else all of them are
 * wanted. The result is the phase behind them. */
INLINE int64_t prepare_side(const look *k, int64_t begin, const int32_t *w, int64_t i,
                            int64_t phase, const int side, __mmask16 lanes,
                            __mmask16 wanted, const stint_codec_predictor predictor,
                            const bool edge, ready_values *ready, int64_t to)
{
    place p[SIDE];
    __m512i guess[SIDE], bucket[SIDE], v[SIDE], token[SIDE];
    __mmask16 large = 0;
    EACH
    {
        p[j] = (place){w, begin, i + 16 * j, phase};
        phase = phase_next(k, phase);
    }
    look_around(k, p, side, lanes, predictor, edge, bucket, guess);
    EACH v[j] = edge ? _mm512_maskz_loadu_epi32(lanes, w + i)
                     : _mm512_loadu_si512(w + i + 16 * j);
    EACH v[j] = fold(k->form, v[j], guess[j]);
    EACH large |= _mm512_mask_cmpge_epu32_mask(wanted, v[j], constant(k, C_PLAIN));
    EACH token[j] = v[j];
    if (large)
        EACH token[j] = large_tokens(v[j]);
    EACH bucket[j] = rows_of(k, bucket[j]);
    EACH token[j] = _mm512_maskz_add_epi32(wanted, bucket[j], token[j]);
    /* Others may have no token at all. */
    EACH _mm512_storeu_si512(ready->which + to + 16 * j, token[j]);
    EACH _mm512_storeu_si512(ready->v + to + 16 * j, v[j]);
    EACH ready->wanted[to / 16 + j] = wanted;
    return phase;
}

/* Values [from, to) of a chunk of n; from a multiple of 16. */
INLINE void prepare(const look *k, int64_t begin, const int32_t *w, const uint8_t *mask,
                    int64_t from, int64_t to, int64_t n,
                    const stint_codec_predictor predictor, ready_values *ready)
{
    int64_t phase = (begin + from) % k->form->channels;
    if (to - from == READY && from >= k->form->left + k->form->up && !mask) {
        for (int64_t i = from; i < to; i += 16 * SIDE)
            phase = prepare_side(k, begin, w, i, phase, SIDE, 0xffff, 0xffff, predictor,
                                 false, ready, i - from);
        return;
    }
    for (int64_t i = from; i < to; i += 16) {
        const __mmask16 lanes = lanes_below(n - i);
        phase = prepare_side(k, begin, w, i, phase, 1, lanes,
                             mask_at(mask, begin + i, lanes), predictor, true, ready,
                             i - from);
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
        if (none) {
            all = _mm512_mask_or_epi32(all, none, all, constant(k, C_BYTE));
            _mm512_storeu_si512(which, all);
            e = entries_of(coder, which);
            parts = parts_of(&e);
        }
        const pushed p =
            push_below(x, v, _mm512_and_si512(all, constant(k, C_BYTE)), wanted, *to);
        x = p.x;
        *to = p.at;
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
    const look k = look_of(form, STI_CODEC_TOKENS_LOG2);
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

_Static_assert((int)STI_CODEC_GROUP == (int)SIDE, "streams are decoded side by side");

/* One of the streams. */
typedef struct runner {
    __m512i x;
    const uint8_t *at;
    int64_t phase;
} runner;

/* table at eight places, two of which are read at once. */
INLINE __m256i eight_at(const uint32_t *table, const uint32_t *which)
{
    uint64_t two[4];
    memcpy(two, which, sizeof two);
#define EVEN(i) _mm256_set1_epi32((int)table[(uint32_t)two[i]])
#define ODD(i)  _mm256_set1_epi32((int)table[two[i] >> 32])
    const __m256i a = _mm256_blend_epi32(EVEN(0), ODD(0), 1 << 1);
    const __m256i b = _mm256_blend_epi32(EVEN(1), ODD(1), 1 << 3);
    const __m256i c = _mm256_blend_epi32(EVEN(2), ODD(2), 1 << 5);
    const __m256i d = _mm256_blend_epi32(EVEN(3), ODD(3), 1 << 7);
#undef EVEN
#undef ODD
    return _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x0c),
                              _mm256_blend_epi32(c, d, 0xc0), 0xf0);
}

/* table at `which`, through memory and by loads of their own: a gather takes longer on
 * processors whose gathers were made safe (2023), as do places taken out of a vector.
 */
INLINE void look_up(const uint32_t *table, const __m512i *which, const int side,
                    __m512i *entry_out)
{
    uint32_t places[16 * SIDE] __attribute__((aligned(64)));
    const uint32_t *at = places;
    EACH _mm512_store_si512(places + 16 * j, which[j]);
    __asm__("" : "+r"(at) : : "memory"); /* what is there is not known any more */
    EACH entry_out[j] =
        _mm512_inserti64x4(_mm512_castsi256_si512(eight_at(table, at + 16 * j)),
                           eight_at(table, at + 16 * j + 8), 1);
}

enum { WRITE_AHEAD = 512 }; /* bytes */

/* 16 values of each of `side` streams. edge: see look_around. */
INLINE void decode_step(const look *k, const uint32_t *table, const sti_codec_stream *s,
                        runner *r, const int side, int64_t i, __mmask16 lanes,
                        const stint_codec_predictor predictor, const bool edge)
{
    place p[SIDE];
    __m512i guess[SIDE], which[SIDE], v[SIDE], x[SIDE];
    __mmask16 wanted[SIDE], large = 0;
    /* To be written soon. What lies behind the array is not, and nothing is read. */
    EACH
    {
        __builtin_prefetch((const char *)s[j].w + 4 * i + WRITE_AHEAD, 1);
        __builtin_prefetch((const char *)s[j].also + 4 * i, 1);
    }
    EACH wanted[j] = edge ? mask_at(s[j].mask, s[j].begin + i, lanes) : 0xffff;
    EACH
    {
        p[j] = (place){s[j].w, s[j].begin, i, r[j].phase};
        r[j].phase = phase_next(k, r[j].phase);
    }
    look_around(k, p, side, lanes, predictor, edge, which, guess);
    EACH which[j] = rows_of(k, which[j]);
    EACH which[j] =
        _mm512_add_epi32(which[j], _mm512_and_si512(r[j].x, constant(k, C_PART)));
    /* All look-ups before anything that waits for one. */
    look_up(table, which, side, which);
    EACH x[j] = _mm512_mullo_epi32(
        _mm512_add_epi32(_mm512_srli_epi32(which[j], 20), constant(k, C_1)),
        _mm512_srli_epi32(r[j].x, STI_CODEC_SCALE_LOG2));
    EACH v[j] = _mm512_and_si512(_mm512_srli_epi32(which[j], 8), constant(k, C_PART));
    EACH x[j] = _mm512_mask_add_epi32(r[j].x, wanted[j], x[j], v[j]);
    EACH v[j] = _mm512_and_si512(which[j], constant(k, C_BYTE));
    EACH r[j].x = refill(x[j], constant(k, C_STATE_MIN), wanted[j], &r[j].at);
    EACH large |= _mm512_mask_cmpge_epu32_mask(wanted[j], v[j], constant(k, C_PLAIN));
    if (large)
        EACH if (_mm512_mask_cmpge_epu32_mask(wanted[j], v[j], constant(k, C_PLAIN)))
        {
            const pulled below = pull_below(r[j].x, v[j], wanted[j], r[j].at);
            r[j].x = below.x;
            r[j].at = below.at;
            v[j] = below.v;
        }
    EACH v[j] = _mm512_maskz_mov_epi32(wanted[j], unfold(k, v[j], guess[j]));
    EACH if (edge) _mm512_mask_storeu_epi32((char *)s[j].w + 4 * i, lanes, v[j]);
    else _mm512_storeu_si512((char *)s[j].w + 4 * i, v[j]);
}

/* `streams` of them in step. */
INLINE bool decode_in_step(const look *k, const uint32_t *table, sti_codec_stream *s,
                           const int streams, int64_t from, int64_t to,
                           const stint_codec_predictor predictor)
{
    const int64_t reach = k->form->left + k->form->up;
    runner r[SIDE];
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
    const look k = look_of(form, STI_CODEC_SCALE_LOG2);
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
