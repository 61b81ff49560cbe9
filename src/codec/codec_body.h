/* The codec's loops, a value at a time: the meaning of the format. Included by the
 * files of instruction sets that have no faster form; they define CODEC_KERNELS (the
 * table's name) and may define CODEC_CHECKSUM. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "codec/codec_priv.h"
#include "codec/codec_sums.h"

enum { DITHER_RUN = 256 }; /* values that 16 Philox blocks serve, 8 bits each */

/* Dither of values [begin, begin + 256): value i takes 8 bits of block
 * 16 (i / 256) + i % 16. */
static void make_dither(const sti_codec_quant *quant, int64_t begin, float *u)
{
    for (int lane = 0; lane < 16; lane++) {
        uint32_t word[4];
        const uint64_t block = (uint64_t)begin / DITHER_RUN * 16 + (uint64_t)lane;
        sti_random4(quant->seed, STI_STREAM_CODEC, quant->id,
                    (uint64_t)quant->shard << 40 | block, word);
        for (int v = 0; v < 16; v++) {
            const uint32_t bits = word[v / 4] >> 8 * (v & 3) & 0xffu;
            u[16 * v + lane] = ((float)(int32_t)bits - 127.5f) * quant->dither_unit;
        }
    }
}

static bool mask_bit(const uint8_t *mask, int64_t i)
{
    return !mask || (mask[i >> 3] >> (i & 7) & 1);
}

/* To the nearest integer, ties to even; |t| < 2^22. */
static float round_even(float t)
{
    const float magic = 0x1.8p23f;
    return (t + magic) - magic;
}

static float restored(const sti_codec_quant *quant, float q, float u)
{
    return quant->dither ? fmaf(q, quant->step, -u) : q * quant->step;
}

/* w of x; *exact_out: the bound cannot be shown to hold. */
static int32_t quantise_one(const sti_codec_quant *quant, float x, float u,
                            float *error_out, bool *exact_out)
{
    const float t = (quant->dither ? x + u : x) * quant->inverse;
    *exact_out = true;
    *error_out = 0.0f;
    if (!(fabsf(t) < 0x1p21f))
        return 0;
    float q = round_even(t);
    q += round_even((x - restored(quant, q, u)) * quant->inverse);
    const float error = fabsf(x - restored(quant, q, u));
    const int32_t whole = (int32_t)q;
    const int32_t w = quant->dither && whole >= 0 ? whole + 1 : whole;
    if (!(error <= quant->limit) || (quant->positive && w < 0))
        return 0;
    *exact_out = false;
    *error_out = error;
    return w;
}

static void keep_outlier(int64_t i, float x, uint8_t *list, int64_t room,
                         sti_codec_found *found)
{
    if (list && found->outliers < room) {
        const uint16_t position = (uint16_t)i;
        uint8_t *at = list + found->outliers * STI_CODEC_OUTLIER_BYTES;
        memcpy(at, &position, 2);
        memcpy(at + 2, &x, 4);
    }
    found->outliers++;
}

static void quantise(const sti_codec_quant *quant, const sti_codec_span *span,
                     int32_t *w_out, uint8_t *list, int64_t room,
                     sti_codec_found *found)
{
    float u[DITHER_RUN] = {0};
    for (int64_t i = 0; i < span->n; i++) {
        const float x = span->x[i];
        float error;
        bool exact;
        if (quant->dither && i % DITHER_RUN == 0)
            make_dither(quant, span->begin + i, u);
        w_out[i] = 0;
        if (x == 0.0f) {
            found->zeros++;
            continue;
        }
        if (!mask_bit(span->mask, span->begin + i)) {
            found->unmasked = true;
            continue;
        }
        w_out[i] = quantise_one(quant, x, u[i % DITHER_RUN], &error, &exact);
        if (exact)
            keep_outlier(span->place + i, x, list, room, found);
        else if (error > found->max_error)
            found->max_error = error;
    }
}

static void restore(const sti_codec_quant *quant, int64_t begin, int64_t n, void *w)
{
    float u[DITHER_RUN] = {0};
    for (int64_t i = 0; i < n; i++) {
        int32_t q;
        float x;
        if (quant->dither && i % DITHER_RUN == 0)
            make_dither(quant, begin + i, u);
        memcpy(&q, (char *)w + 4 * i, 4);
        const bool zero = q == 0;
        if (quant->dither && q > 0)
            q--;
        x = zero ? 0.0f : restored(quant, (float)q, u[i % DITHER_RUN]);
        memcpy((char *)w + 4 * i, &x, 4);
    }
}

/* ---- guess, activity, token ---- */

static int32_t w_at(const void *w, int64_t i)
{
    int32_t value = 0;
    if (i >= 0)
        memcpy(&value, (const char *)w + 4 * i, 4);
    return value;
}

static uint32_t magnitude(uint32_t a)
{
    return a >> 31 ? 0u - a : a;
}

/* Bucket of value i and the guess for it. Sums wrap: a damaged stream may give any w.
 */
static int look_around(const sti_codec_form *form, int64_t begin, const void *w,
                       int64_t i, uint32_t *guess_out)
{
    const uint32_t l = (uint32_t)w_at(w, i - form->left);
    const uint32_t u = (uint32_t)w_at(w, i - form->up);
    const uint32_t lu = (uint32_t)w_at(w, i - form->left - form->up);
    uint32_t activity = 0;
    *guess_out = 0;
    switch (form->predictor) {
    case STINT_CODEC_LEFT:
        *guess_out = l;
        activity = 4 * magnitude(u - lu);
        break;
    case STINT_CODEC_PLANE:
        *guess_out = l + u - lu;
        activity = 4 * (magnitude(l - lu) + magnitude(u - lu));
        break;
    case STINT_CODEC_MEAN:
        *guess_out = (uint32_t)((int32_t)(l + u) >> 1);
        activity = 4 * magnitude(l - u) + magnitude(l) + magnitude(u);
        break;
    case STINT_CODEC_DIRECT:
    case STINT_CODEC_AUTO:
    case STINT_CODEC_PREDICTORS:
        activity = 4 * (magnitude(l) + magnitude(u));
        break;
    }
    activity += (uint32_t)form->usual[(begin + i) % form->channels] + 4;
    const float f = (float)(activity & 0x7fffffffu);
    uint32_t bits;
    memcpy(&bits, &f, 4);
    const uint32_t quarter = bits >> 21, first = 129u << 2; /* of 4.0f */
    const uint32_t bucket = quarter < first        ? 0
                            : quarter - first > 63 ? 63
                                                   : quarter - first;
    if (!form->kind)
        return (int)bucket;
    return (int)(bucket / 2 + (mask_bit(form->kind, begin + i) ? 32 : 0));
}

static uint32_t fold(const sti_codec_form *form, uint32_t w, uint32_t guess)
{
    const uint32_t r = w - guess;
    return form->direct_positive ? w : r << 1 ^ (0u - (r >> 31));
}

static uint32_t unfold(const sti_codec_form *form, uint32_t v, uint32_t guess)
{
    return form->direct_positive ? v : guess + (v >> 1 ^ (0u - (v & 1)));
}

/* Token of v; *bits_out: how many bits below it, and *base_out what it stands for. */
static uint32_t token_of(uint32_t v)
{
    if (v < STI_CODEC_PLAIN)
        return v;
    if (v >> 22)
        return STI_CODEC_ESCAPE;
    uint32_t e = 7;
    while (v >> (e + 1))
        e++;
    return STI_CODEC_PLAIN + (e - 7) * 8 + (v >> (e - 3) & 7);
}

static uint32_t token_bits(uint32_t token)
{
    if (token < STI_CODEC_PLAIN)
        return 0;
    if (token == STI_CODEC_ESCAPE)
        return STI_CODEC_ESCAPE_BITS;
    return 4 + (token - STI_CODEC_PLAIN) / 8;
}

static uint32_t token_base(uint32_t token)
{
    if (token < STI_CODEC_PLAIN)
        return token;
    if (token == STI_CODEC_ESCAPE)
        return 0;
    return (8 | (token & 7)) << token_bits(token);
}

static void count(const sti_codec_form *form, int64_t begin, const int32_t *w,
                  const uint8_t *mask, int64_t from, int64_t n, uint32_t *counts)
{
    for (int64_t i = from; i < n; i++) {
        uint32_t guess;
        if (!mask_bit(mask, begin + i))
            continue;
        const int bucket = look_around(form, begin, w, i, &guess);
        const uint32_t token = token_of(fold(form, (uint32_t)w[i], guess));
        counts[bucket * STI_CODEC_TOKENS + (int)token]++;
    }
}

/* ---- rANS ---- */

/* Word out if x would pass 2^31 by the next step. */
static uint32_t spill(uint32_t x, bool full, uint8_t **at)
{
    if (!full)
        return x;
    const uint16_t word = (uint16_t)x;
    *at -= 2;
    memcpy(*at, &word, 2);
    return x >> 16;
}

static uint32_t push_bits(uint32_t x, uint32_t value, uint32_t bits, uint8_t **at)
{
    if (bits == 0)
        return x;
    x = spill(x, x >> (31 - bits) != 0, at);
    return x << bits | value;
}

static uint32_t push_token(const sti_codec_coder *coder, uint32_t x, uint32_t which,
                           uint8_t **at)
{
    const uint32_t parts = (uint32_t)(coder->entry[which] >> 32), rest = parts & 0xfff;
    const uint32_t reciprocal = (uint32_t)coder->entry[which];
    x = spill(
        x, x >> (STI_CODEC_STATE_BITS - STI_CODEC_SCALE_LOG2) >= STI_CODEC_SCALE - rest,
        at);
    const uint32_t high = (uint32_t)((uint64_t)x * reciprocal >> 32);
    return x + (parts >> 12 & 0x1fff) + (high >> (parts >> 25)) * rest;
}

/* The 16 values of one step, last lane first, so that the decoder meets lane 0 first;
 * what lies below tokens goes in before them: high part, low part, token. */
static void encode_step(const sti_codec_form *form, const sti_codec_coder *coder,
                        int64_t begin, const int32_t *w, const uint8_t *mask, int64_t i,
                        int lanes, uint32_t *x, uint8_t **at)
{
    uint32_t which[16], below[16], bits[16];
    for (int j = 0; j < lanes; j++) {
        uint32_t guess;
        bits[j] = UINT32_MAX;
        if (!mask_bit(mask, begin + i + j))
            continue;
        const int bucket = look_around(form, begin, w, i + j, &guess);
        const uint32_t context = form->map[bucket] * (uint32_t)STI_CODEC_TOKENS;
        const uint32_t v = fold(form, (uint32_t)w[i + j], guess);
        uint32_t token = token_of(v);
        if (coder->entry[context + token] >> 32 == UINT32_MAX)
            token = STI_CODEC_ESCAPE;
        which[j] = context + token;
        bits[j] = token_bits(token);
        below[j] = v - token_base(token);
    }
    for (int j = lanes - 1; j >= 0; j--)
        if (bits[j] != UINT32_MAX && bits[j] > STI_CODEC_PART_BITS)
            x[j] = push_bits(x[j], below[j] >> STI_CODEC_PART_BITS,
                             bits[j] - STI_CODEC_PART_BITS, at);
    for (int j = lanes - 1; j >= 0; j--)
        if (bits[j] != UINT32_MAX) {
            const uint32_t low =
                bits[j] < STI_CODEC_PART_BITS ? bits[j] : STI_CODEC_PART_BITS;
            x[j] = push_bits(x[j], below[j] & ((1u << low) - 1), low, at);
        }
    for (int j = lanes - 1; j >= 0; j--)
        if (bits[j] != UINT32_MAX)
            x[j] = push_token(coder, x[j], which[j], at);
}

static uint8_t *encode(const sti_codec_form *form, const sti_codec_coder *coder,
                       int64_t begin, const int32_t *w, const uint8_t *mask, int64_t n,
                       uint8_t *floor, uint8_t *top)
{
    uint32_t x[16];
    uint8_t *at = top;
    for (int j = 0; j < 16; j++)
        x[j] = STI_CODEC_STATE_MIN;
    for (int64_t i = (n - 1) & ~INT64_C(15); i >= 0; i -= 16) {
        if (at - floor < STI_CODEC_STATES_BYTES + 96)
            return NULL;
        encode_step(form, coder, begin, w, mask, i, n - i < 16 ? (int)(n - i) : 16, x,
                    &at);
    }
    at -= STI_CODEC_STATES_BYTES;
    memcpy(at, x, STI_CODEC_STATES_BYTES);
    return at;
}

static uint32_t refill(uint32_t x, const uint8_t **at)
{
    uint16_t word;
    if (x >= STI_CODEC_STATE_MIN)
        return x;
    memcpy(&word, *at, 2);
    *at += 2;
    return x << 16 | word;
}

static void decode_step(const sti_codec_form *form, const uint32_t *table,
                        sti_codec_stream *s, int64_t i, int lanes)
{
    uint32_t guess[16], token[16], v[16], *x = s->state;
    for (int j = 0; j < lanes; j++) {
        token[j] = UINT32_MAX;
        if (!mask_bit(s->mask, s->begin + i + j))
            continue;
        const int bucket = look_around(form, s->begin, s->w, i + j, &guess[j]);
        const uint32_t slot = x[j] & (STI_CODEC_SCALE - 1);
        const uint32_t e = table[form->map[bucket] * (uint32_t)STI_CODEC_SCALE + slot];
        token[j] = e & 0xff;
        v[j] = token_base(token[j]);
        x[j] = ((e >> 20) + 1) * (x[j] >> STI_CODEC_SCALE_LOG2) + (e >> 8 & 0xfff);
        x[j] = refill(x[j], &s->words);
    }
    for (int part = 0; part < 2; part++)
        for (int j = 0; j < lanes; j++) {
            if (token[j] == UINT32_MAX)
                continue;
            const uint32_t all = token_bits(token[j]), most = STI_CODEC_PART_BITS;
            const uint32_t bits = part == 0    ? (all < most ? all : most)
                                  : all > most ? all - most
                                               : 0;
            if (bits == 0)
                continue;
            v[j] += (x[j] & ((1u << bits) - 1)) << (part == 0 ? 0 : most);
            x[j] = refill(x[j] >> bits, &s->words);
        }
    for (int j = 0; j < lanes; j++) {
        const uint32_t w = token[j] == UINT32_MAX ? 0 : unfold(form, v[j], guess[j]);
        memcpy((char *)s->w + 4 * (i + j), &w, 4);
    }
}

static bool decode(const sti_codec_form *form, const uint32_t *table, int streams,
                   sti_codec_stream *stream, int64_t from, int64_t to)
{
    for (int k = 0; k < streams; k++)
        for (int64_t i = from; i < to; i += 16) {
            if (stream[k].words > stream[k].end)
                return false;
            decode_step(form, table, &stream[k], i, to - i < 16 ? (int)(to - i) : 16);
        }
    return true;
}

const sti_codec_kernels CODEC_KERNELS = {.quantise = quantise,
                                         .restore = restore,
                                         .add_residuals = add_residuals,
                                         .count = count,
                                         .encode = encode,
                                         .decode = decode,
                                         .checksum = checksum};
