/* The quantiser written again from the layout in codec/gradient_codec.h: a value at a
 * time, a bit at a time, in double where the result does not depend on it. Shares no
 * code with the first; Philox is base's. */
#ifndef STI_TESTS_GRADIENT_CODEC_ORACLE_H
#define STI_TESTS_GRADIENT_CODEC_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "codec/gradient_codec.h"

typedef struct oracle_bucket {
    float lo, u;
} oracle_bucket;

static inline int oracle_levels(const sti_gradient_form *f)
{
    return f->method == STI_GRADIENT_MAXMIN ? (1 << f->bits) - 1
                                            : (1 << (f->bits - 1)) - 1;
}

static inline size_t oracle_headers(const sti_gradient_form *f, int64_t n)
{
    const size_t buckets = (size_t)((n + f->bucket - 1) / f->bucket);
    return buckets * (f->method == STI_GRADIENT_MAXMIN ? 8 : 4);
}

static inline size_t oracle_bytes(const sti_gradient_form *f, int64_t n)
{
    size_t payload = (size_t)(n * f->bits);
    while (payload % 64)
        payload++;
    return oracle_headers(f, n) + payload / 8;
}

/* The 16 random bits of value i of bucket k. */
static inline uint32_t oracle_random(const sti_gradient_form *f,
                                     const sti_gradient_key *key, int64_t k, int64_t i)
{
    /* Bits of a value's number in its run, from the lowest: which half of the word;
     * bits 0, 2, 3, 1 of the block; which word. */
    uint32_t w[4];
    const uint64_t runs = ((uint64_t)f->bucket + 127) / 128;
    const bool shared = f->rounding == STI_GRADIENT_CORRELATED;
    const int v = (int)(i % 128);
    const int of_run = (v >> 1 & 1) | (v >> 4 & 1) << 1 | (v >> 2 & 3) << 2;
    const uint64_t block =
        ((uint64_t)k * runs + (uint64_t)i / 128) * 16 + (uint64_t)of_run;
    sti_random4(key->seed, STI_STREAM_GRADIENT, (uint64_t)key->layer << 40 | key->step,
                ((uint64_t)(shared ? 65535 : key->rank) << 48) +
                    ((uint64_t)key->phase << 32) + block,
                w);
    const uint32_t half = v % 2 ? w[v / 32] >> 16 : w[v / 32] & 65535;
    return shared && key->parts
               ? (half + (uint32_t)((uint64_t)key->part * 65536 / key->parts)) & 65535
               : half;
}

static inline oracle_bucket oracle_scale(const sti_gradient_form *f, int64_t n,
                                         const float *x)
{
    float lo = INFINITY, hi = -INFINITY, most = 0;
    double lane[16] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
        most = fmaxf(most, fabsf(x[i]));
        lane[i % 16] += (double)x[i] * (double)x[i];
    }
    for (int k = 0; k < 16; k++)
        sum += lane[k];
    if (f->method == STI_GRADIENT_MAXMIN) {
        lo += 0.0f;
        return (oracle_bucket){
            lo, hi - lo < 0x1p-100f ? 0.0f : (hi - lo) / (float)oracle_levels(f)};
    }
    if (f->method == STI_GRADIENT_QSGD_L2)
        most = (float)sqrt(sum);
    return (oracle_bucket){0.0f,
                           most < 0x1p-100f ? 0.0f : most / (float)oracle_levels(f)};
}

/* A number of levels, or of 2^(16 - b)-ths of a level to which the random
 * bits are added before what is below a level is dropped. */
static inline int oracle_code(const sti_gradient_form *f, float range, float lo,
                              const sti_gradient_key *key, int64_t k, int64_t i,
                              float x)
{
    const int top = oracle_levels(f), parts = 65536 >> f->bits;
    const float inverse = range < 0x1p-100f ? 0.0f : (float)top / range;
    const double t = (double)(f->method == STI_GRADIENT_MAXMIN ? (x - lo) * inverse
                                                               : fabsf(x) * inverse);
    int level;
    if (f->rounding == STI_GRADIENT_NEAREST)
        level = (int)nearbyint(t);
    else
        level = ((int)nearbyint(t * parts) +
                 (int)(oracle_random(f, key, k, i) / (65536 / (uint32_t)parts))) /
                parts;
    level = level > top ? top : level;
    return f->method == STI_GRADIENT_MAXMIN ? level : x < 0 ? top - level : top + level;
}

/* No clip. */
static inline void oracle_encode(const sti_gradient_form *f,
                                 const sti_gradient_key *key, int64_t n, const float *x,
                                 uint8_t *out)
{
    const size_t front = oracle_headers(f, n);
    memset(out, 0, oracle_bytes(f, n));
    for (int64_t at = 0, k = 0; at < n; at += f->bucket, k++) {
        const int64_t count = n - at < f->bucket ? n - at : f->bucket;
        const oracle_bucket b = oracle_scale(f, count, x + at);
        float lo = INFINITY, hi = -INFINITY;
        for (int64_t i = 0; i < count; i++) {
            lo = fminf(lo, x[at + i]);
            hi = fmaxf(hi, x[at + i]);
        }
        float range = hi - (lo + 0.0f);
        if (f->method == STI_GRADIENT_MAXMIN) {
            memcpy(out + 8 * k, &b.u, 4);
            memcpy(out + 8 * k + 4, &b.lo, 4);
        } else {
            memcpy(out + 4 * k, &b.u, 4);
            range = fmaxf(-lo, hi);
            if (f->method == STI_GRADIENT_QSGD_L2) {
                double lane[16] = {0}, sum = 0;
                for (int64_t i = 0; i < count; i++)
                    lane[i % 16] += (double)x[at + i] * (double)x[at + i];
                for (int l = 0; l < 16; l++)
                    sum += lane[l];
                range = (float)sqrt(sum);
            }
        }
        for (int64_t i = 0; i < count; i++) {
            const int code = oracle_code(f, range, b.lo, key, k, i, x[at + i]);
            for (int bit = 0; bit < f->bits; bit++) {
                const size_t to = (size_t)((at + i) * f->bits + bit);
                out[front + to / 8] |= (uint8_t)((code >> bit & 1) << to % 8);
            }
        }
    }
}

static inline void oracle_decode(const sti_gradient_form *f, int64_t n,
                                 const uint8_t *in, float *y)
{
    const size_t front = oracle_headers(f, n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i / f->bucket;
        int code = 0;
        float u, lo = 0;
        for (int bit = 0; bit < f->bits; bit++) {
            const size_t from = (size_t)(i * f->bits + bit);
            code |= (in[front + from / 8] >> from % 8 & 1) << bit;
        }
        if (f->method == STI_GRADIENT_MAXMIN) {
            memcpy(&u, in + 8 * k, 4);
            memcpy(&lo, in + 8 * k + 4, 4);
        } else {
            memcpy(&u, in + 4 * k, 4);
            code -= oracle_levels(f);
        }
        y[i] = u * (float)code + lo;
    }
}

#endif
