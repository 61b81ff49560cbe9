/* A second codec, the slow way, from docs/codec.md: quantises by division in double,
 * decodes a block value by value with linear searches, and adds up the entropy of what
 * it met. Shares no code with the first; Philox is base's. */
#ifndef STI_TESTS_CODEC_ORACLE_H
#define STI_TESTS_CODEC_ORACLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "stint/codec.h"

typedef struct oracle {
    const uint8_t *block;
    int rank;
    int64_t dim[4], count, chunk, chunks, left, up, channels;
    float step;
    bool dither, positive;
    int predictor, contexts;
    uint64_t seed, id;
    uint32_t shard;
    size_t front, entries; /* offsets */
    int32_t *usual;        /* [channels] */
    int map[64];
    int frequency[32][256];
    double counts[32][256]; /* met */
    double below_bits;      /* stored as they are below tokens */
    double total_bits;      /* of coded chunks: entropy of counts, below_bits */
} oracle;

static uint64_t oracle_get(const uint8_t *at, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << 8 * i;
    return v;
}

static int oracle_bit(const uint8_t *bytes, size_t *at)
{
    const int bit = bytes[*at / 8] >> *at % 8 & 1;
    ++*at;
    return bit;
}

static uint32_t oracle_bits(const uint8_t *bytes, size_t *at, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint32_t)oracle_bit(bytes, at) << i;
    return v;
}

static void oracle_frequencies(oracle *o, const uint8_t *model)
{
    size_t at = 0;
    int context = 0;
    for (int i = 0; i < 64; i++)
        o->map[i] = context += oracle_bit(model, &at);
    for (int c = 0; c < o->contexts; c++) {
        const int last = (int)oracle_bits(model, &at, 8);
        uint32_t mean = 1024;
        int sum = 0, *f = o->frequency[c];
        memset(f, 0, sizeof o->frequency[c]);
        for (int t = 0; t <= last; t++) {
            int k = 0, ones = 0;
            while (k < 11 && (16u << k) <= mean)
                k++;
            while (ones < 12 && oracle_bit(model, &at))
                ones++;
            const int r = ones == 12 ? (int)oracle_bits(model, &at, 13)
                                     : (ones << k) + (int)oracle_bits(model, &at, k);
            mean = mean - mean / 4 + 4 * (uint32_t)r;
            const int guess = t == 0   ? 0
                              : t == 1 ? f[0]
                                       : (f[t - 1] + f[t - 2] + 1) / 2;
            f[t] = guess + (r % 2 ? -(r + 1) / 2 : r / 2);
            sum += f[t];
        }
        f[255] = 2048 - sum;
    }
}

static bool oracle_open(oracle *o, const uint8_t *block)
{
    memset(o, 0, sizeof *o);
    o->block = block;
    o->count = 1;
    o->rank = block[128];
    for (int i = 0; i < 4; i++)
        o->dim[i] = (int64_t)oracle_get(block + 24 + 8 * i, 8);
    for (int i = 0; i < o->rank; i++)
        o->count *= o->dim[i];
    o->seed = oracle_get(block + 72, 8);
    o->id = oracle_get(block + 80, 8);
    memcpy(&o->step, block + 112, 4);
    o->shard = (uint32_t)oracle_get(block + 116, 4);
    o->front = oracle_get(block + 120, 4);
    o->dither = block[129] & 1;
    o->positive = block[129] & 4;
    o->predictor = block[130];
    o->contexts = block[131];
    o->chunk = o->count >= 524288 ? 65536 : 16384;
    o->chunks = (o->count + o->chunk - 1) / o->chunk;
    o->entries = o->front - 12 * (size_t)o->chunks;
    const int64_t c = o->dim[o->rank - 1];
    o->channels = 1;
    o->left = 16;
    o->up = 32;
    if (o->rank > 1 && o->count > 0 && o->count / c >= 16 && c <= o->chunk / 4) {
        o->channels = c;
        for (o->left = c; o->left < 16;)
            o->left += c;
        o->up = o->rank > 2 ? o->dim[o->rank - 2] * c : 0;
        if (o->up <= o->left || o->up > o->chunk / 2)
            o->up = 2 * o->left;
    }
    o->usual = calloc((size_t)o->channels, sizeof *o->usual);
    const uint8_t *at = block + 136;
    for (int64_t i = 0; i < o->channels && o->channels > 1 && o->contexts; i++) {
        const int code = *at++;
        o->usual[i] = code < 8 ? code : (4 + code % 4) << (code / 4 - 1);
    }
    if (o->contexts)
        oracle_frequencies(o, at);
    return o->usual != NULL;
}

static void oracle_close(oracle *o)
{
    free(o->usual);
}

/* The dither of value i. */
static float oracle_dither(const oracle *o, int64_t i)
{
    uint32_t word[4];
    if (!o->dither)
        return 0.0f;
    sti_random4(o->seed, STI_STREAM_CODEC, o->id,
                (uint64_t)o->shard << 40 | (uint64_t)(i / 256 * 16 + i % 16), word);
    const int part = (int)(i / 16 % 16);
    const uint32_t bits = word[part / 4] >> part % 4 * 8 & 0xff;
    return ((float)bits - 127.5f) * (o->step * 0x1p-8f);
}

typedef struct oracle_stream {
    uint32_t state[16];
    const uint8_t *word;
} oracle_stream;

static void oracle_refill(oracle_stream *s, int lane)
{
    if (s->state[lane] < 32768) {
        s->state[lane] = s->state[lane] * 65536 + (uint32_t)oracle_get(s->word, 2);
        s->word += 2;
    }
}

/* Token of lane by its state, which steps back. */
static int oracle_token(oracle *o, oracle_stream *s, int lane, int context)
{
    const int slot = (int)(s->state[lane] % 2048), *f = o->frequency[context];
    int start = 0, t = 0;
    while (start + f[t] <= slot)
        start += f[t++];
    s->state[lane] =
        (uint32_t)f[t] * (s->state[lane] / 2048) + (uint32_t)(slot - start);
    o->counts[context][t]++;
    return t;
}

static int64_t oracle_w(const int32_t *w, int64_t i)
{
    return i < 0 ? 0 : w[i];
}

static int oracle_context(const oracle *o, const int32_t *w, int64_t begin, int64_t i,
                          int64_t *guess)
{
    const int64_t l = oracle_w(w, i - o->left), u = oracle_w(w, i - o->up);
    const int64_t lu = oracle_w(w, i - o->left - o->up);
    int64_t a = 0;
    switch (o->predictor) {
    case 1:
        *guess = 0;
        a = 4 * (llabs(l) + llabs(u));
        break;
    case 2:
        *guess = l;
        a = 4 * llabs(u - lu);
        break;
    case 3:
        *guess = l + u - lu;
        a = 4 * (llabs(l - lu) + llabs(u - lu));
        break;
    default:
        *guess = (int64_t)floor((double)(l + u) / 2);
        a = 4 * llabs(l - u) + llabs(l) + llabs(u);
        break;
    }
    a += o->usual[(begin + i) % o->channels] + 4;
    int bucket = 0;
    double edge = 4, quarter = 1; /* edges at quarters of octaves */
    while (bucket < 63 && (double)(float)a >= edge + quarter) {
        edge += quarter;
        bucket++;
        if (edge == 8 * quarter)
            quarter *= 2;
    }
    return o->map[bucket];
}

/* w [n] of one coded chunk; false if the stream does not end where it should. */
static bool oracle_chunk(oracle *o, const uint8_t *at, const uint8_t *end,
                         const uint8_t *mask, int64_t begin, int64_t n, int32_t *w)
{
    oracle_stream s = {.word = at + 64};
    for (int i = 0; i < 16; i++)
        s.state[i] = (uint32_t)oracle_get(at + 4 * i, 4);
    for (int64_t i = 0; i < n; i += 16) {
        int token[16];
        int64_t guess[16], v[16];
        const int lanes = n - i < 16 ? (int)(n - i) : 16;
        for (int j = 0; j < lanes; j++) {
            const int64_t k = begin + i + j;
            token[j] = -1;
            if (mask && !(mask[k / 8] >> k % 8 & 1))
                continue;
            token[j] =
                oracle_token(o, &s, j, oracle_context(o, w, begin, i + j, &guess[j]));
            oracle_refill(&s, j);
        }
        for (int part = 0; part < 2; part++)
            for (int j = 0; j < lanes; j++) {
                const int all = token[j] < 128    ? 0
                                : token[j] == 255 ? 24
                                                  : (token[j] - 128) / 8 + 4;
                if (part == 0)
                    v[j] = token[j] < 128    ? token[j]
                           : token[j] == 255 ? 0
                                             : (int64_t)(8 + token[j] % 8) << all;
                const int bits = part ? (all > 12 ? all - 12 : 0) : all > 12 ? 12 : all;
                if (bits == 0)
                    continue;
                v[j] += (int64_t)(s.state[j] % (1u << bits)) << (part ? 12 : 0);
                s.state[j] >>= bits;
                oracle_refill(&s, j);
                o->below_bits += bits;
            }
        for (int j = 0; j < lanes; j++)
            w[i + j] =
                token[j] < 0 ? 0
                : o->positive
                    ? (int32_t)v[j]
                    : (int32_t)(guess[j] + (v[j] % 2 ? -(v[j] + 1) / 2 : v[j] / 2));
    }
    for (int i = 0; i < 16; i++)
        if (s.state[i] != 32768)
            return false;
    return s.word == end;
}

/* All of x' from a block. */
static bool oracle_unpack(oracle *o, const uint8_t *mask, float *x, int32_t *w)
{
    const uint8_t *at = o->block + o->front;
    for (int64_t c = 0; c < o->chunks; c++) {
        const uint8_t *entry = o->block + o->entries + 12 * (size_t)c;
        const size_t bytes = oracle_get(entry, 4);
        const uint32_t outliers = (uint32_t)oracle_get(entry + 4, 4);
        const int64_t begin = c * o->chunk;
        const int64_t n = o->count - begin < o->chunk ? o->count - begin : o->chunk;
        if (outliers == UINT32_MAX) {
            memcpy(x + begin, at, bytes);
            memset(w + begin, 0, (size_t)n * 4);
            at += bytes;
            continue;
        }
        const uint8_t *list = at + bytes - 6 * (size_t)outliers;
        if (!oracle_chunk(o, at, list, mask, begin, n, w + begin))
            return false;
        for (int64_t i = begin; i < begin + n; i++) {
            const int32_t q = o->dither && w[i] > 0 ? w[i] - 1 : w[i];
            x[i] = o->dither && w[i] == 0
                       ? 0.0f
                       : fmaf((float)q, o->step, -oracle_dither(o, i));
        }
        for (uint32_t i = 0; i < outliers; i++)
            memcpy(x + begin + oracle_get(list + 6 * i, 2), list + 6 * i + 2, 4);
        at += bytes;
    }
    o->total_bits = o->below_bits;
    for (int c = 0; c < 32; c++) {
        double sum = 0;
        for (int t = 0; t < 256; t++)
            sum += o->counts[c][t];
        for (int t = 0; t < 256; t++)
            if (o->counts[c][t] > 0)
                o->total_bits += o->counts[c][t] * log2(sum / o->counts[c][t]);
    }
    return true;
}

#endif
