/* The quantiser's loops, vectorised by the compiler: included once by the file of each
 * instruction set, which defines GRADIENT_KERNELS (the table's name). Every loop is
 * over a number of values known when compiling, so that a vector of any width does the
 * same to each. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "codec/gradient_codec_priv.h"

enum {
    RUN = STI_GRADIENT_RUN,
    LANES = 16,
    WORDS = RUN / 8,
    AT_ONCE = 4 /* runs whose random numbers are made together */
};

/* One bit pattern to another, in the order of the values; its own inverse. */
static inline int32_t ordered(int32_t bits)
{
    return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1);
}

#ifndef GRADIENT_VECTORS
/* The largest of the first values, as signed and as unsigned numbers; how many those
 * are. */
static int64_t largest_bits(int64_t n, const float *x, int32_t *most_out,
                            uint32_t *least_out)
{
    int64_t i = 0;
    for (; i + RUN <= n; i += RUN) {
        for (int line = 0; line < RUN / 2; line += 16)
            sti_gradient_ahead(x + n + i / 2 + line);
        for (int64_t k = 0; k < RUN; k++) {
            int32_t bits;
            memcpy(&bits, x + i + k, sizeof bits);
            *most_out = bits > *most_out ? bits : *most_out;
            *least_out = (uint32_t)bits > *least_out ? (uint32_t)bits : *least_out;
        }
    }
    return i;
}
#endif

/* The bit patterns of floats are ordered: the largest as a signed number is the largest
 * value if any is positive, and the largest as an unsigned number is the least value if
 * any is negative. Only a bucket of one sign is looked through again, for its smallest
 * magnitude.
 *
 * Half of the next bucket is fetched here and the other half by encode(), so that
 * memory never rests. With random numbers encode() takes longer than memory does and
 * fetches the whole bucket after the next. */
static void range(int64_t n, const float *x, int32_t *lo_out, int32_t *hi_out)
{
    int32_t most = INT32_MIN;
    uint32_t least = 0, smallest = UINT32_MAX;
    const int64_t whole = largest_bits(n, x, &most, &least);
    for (int64_t i = whole; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        most = bits > most ? bits : most;
        least = (uint32_t)bits > least ? (uint32_t)bits : least;
    }
    if (most < 0 || least <= INT32_MAX)
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            smallest = bits < smallest ? bits : smallest;
        }
    *hi_out = ordered(most < 0 ? (int32_t)smallest : most);
    *lo_out = ordered((int32_t)(least <= INT32_MAX ? smallest : least));
}

static void moments(int64_t n, const float *x, double *sum_out, double *squares_out)
{
    double sum[LANES] = {0}, squares[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const double v = (double)x[i + k];
            sum[k] += v;
            squares[k] += v * v;
        }
    for (int k = 0; i < n; i++, k++) {
        const double v = (double)x[i];
        sum[k] += v;
        squares[k] += v * v;
    }
    *sum_out = *squares_out = 0;
    for (int k = 0; k < LANES; k++) {
        *sum_out += sum[k];
        *squares_out += squares[k];
    }
}

static inline float squared_error(const sti_gradient_grid *g, bool unbiased, float x)
{
    const float top = (float)g->top;
    float t = (x - g->lo) * g->inverse;
    t = t > 0.0f ? t : 0.0f;
    t = t < top ? t : top;
    const float whole = (float)(int32_t)(unbiased ? t : t + 0.5f);
    const float part = t - whole;
    const float d = x - (g->lo + g->u * (unbiased ? t : whole));
    return d * d + (unbiased ? part * (1.0f - part) * (g->u * g->u) : 0.0f);
}

static inline float error_sum(const sti_gradient_grid *g, bool unbiased, int64_t n,
                              const float *x)
{
    const sti_gradient_grid grid = *g;
    float acc[LANES] = {0}, all = 0.0f;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            acc[k] += squared_error(&grid, unbiased, x[i + k]);
    for (int k = 0; i < n; i++, k++)
        acc[k] += squared_error(&grid, unbiased, x[i]);
    for (int k = 0; k < LANES; k++)
        all += acc[k];
    return all;
}

static float error(const sti_gradient_grid *g, bool unbiased, int64_t n, const float *x)
{
    return unbiased ? error_sum(g, true, n, x) : error_sum(g, false, n, x);
}

/* ---- eight codes, a byte each, to 8 b bits and back ---- */

static inline uint64_t fold_codes(uint64_t v, int b)
{
    v = (v & UINT64_C(0x00ff00ff00ff00ff)) |
        (v & UINT64_C(0xff00ff00ff00ff00)) >> (8 - b);
    v = (v & UINT64_C(0x0000ffff0000ffff)) |
        (v & UINT64_C(0xffff0000ffff0000)) >> (16 - 2 * b);
    return (v & UINT64_C(0x00000000ffffffff)) |
           (v & UINT64_C(0xffffffff00000000)) >> (32 - 4 * b);
}

static inline uint64_t spread_codes(uint64_t v, int b)
{
    const uint64_t m4 = (UINT64_C(1) << 4 * b) - 1;
    const uint64_t m2 = ((UINT64_C(1) << 2 * b) - 1) * UINT64_C(0x0000000100000001);
    const uint64_t m1 = ((UINT64_C(1) << b) - 1) * UINT64_C(0x0001000100010001);
    v = (v & m4) | ((v >> 4 * b) & m4) << 32;
    v = (v & m2) | ((v >> 2 * b) & m2) << 16;
    return (v & m1) | ((v >> b) & m1) << 8;
}

static inline __attribute__((always_inline)) void pack_fixed(const uint8_t *code,
                                                             const int b, uint8_t *out)
{
    uint64_t word[WORDS];
    uint8_t packed[8 * WORDS + 8];
    memcpy(word, code, sizeof word);
    for (int i = 0; i < WORDS; i++)
        word[i] = fold_codes(word[i], b);
    for (int i = 0; i < WORDS; i++)
        memcpy(packed + i * b, &word[i], 8);
    memcpy(out, packed, (size_t)(WORDS * b));
}

static inline __attribute__((always_inline)) void
unpack_fixed(const uint8_t *in, const int b, uint8_t *code)
{
    uint64_t word[WORDS];
    uint8_t packed[8 * WORDS + 8] = {0};
    memcpy(packed, in, (size_t)(WORDS * b));
    for (int i = 0; i < WORDS; i++)
        memcpy(&word[i], packed + i * b, 8);
    for (int i = 0; i < WORDS; i++)
        word[i] = spread_codes(word[i], b);
    memcpy(code, word, sizeof word);
}

/* The number of bits known when compiling: shifts, strides and sizes become constants.
 */
#define BY_BITS(bits, call) \
    switch (bits) {         \
    case 1:                 \
        call(1);            \
        break;              \
    case 2:                 \
        call(2);            \
        break;              \
    case 3:                 \
        call(3);            \
        break;              \
    case 4:                 \
        call(4);            \
        break;              \
    case 5:                 \
        call(5);            \
        break;              \
    case 6:                 \
        call(6);            \
        break;              \
    case 7:                 \
        call(7);            \
        break;              \
    default:                \
        call(8);            \
        break;              \
    }

/* A run of codes to and from RUN / 8 * bits bytes. */
static void pack_run(const uint8_t *code, int bits, uint8_t *out)
{
#define CALL(b) pack_fixed(code, b, out)
    BY_BITS(bits, CALL)
#undef CALL
}

static void unpack_run(const uint8_t *in, int bits, uint8_t *code)
{
#define CALL(b) unpack_fixed(in, b, code)
    BY_BITS(bits, CALL)
#undef CALL
}

/* ---- runs ---- */

#ifdef GRADIENT_VECTORS /* the file has make_random, run_codes, run_values and more */

static void encode_run(const sti_gradient_grid *g, const uint16_t *r, const float *x,
                       uint8_t *out)
{
    uint8_t code[RUN];
    if (encode_run_fast(g, r, x, out))
        return;
    run_codes(g, r, x, code);
    pack_run(code, g->bits, out);
}

static void decode_run(const sti_gradient_grid *g, sti_gradient_into into,
                       const uint8_t *in, float *y)
{
    uint8_t code[RUN];
    if (decode_run_fast(g, into, in, y))
        return;
    unpack_run(in, g->bits, code);
    run_values(g, into, code, y);
}

#else

/* Word k of block i serves two values, as halves of vectors of 8 find them. */
static void make_random(const sti_gradient_dither *d, uint64_t run, int runs,
                        uint16_t *r)
{
    for (uint64_t block = 0; block < (uint64_t)runs * LANES; block++) {
        uint16_t *of_run = r + block / LANES * RUN;
        const uint64_t i = block % LANES;
        uint32_t w[4];
        sti_random4(d->seed, STI_STREAM_GRADIENT, d->a, d->b + run * LANES + block, w);
        for (int k = 0; k < 4; k++) {
            uint16_t *two = of_run + 32 * k + i / 2 % 2 * 16 + i / 4 * 4 + i % 2 * 2;
            two[0] = (uint16_t)(w[k] + d->shift);
            two[1] = (uint16_t)((w[k] >> 16) + d->shift);
        }
    }
}

/* To nearest, ties to even, |t| < 2^22. */
static inline int32_t nearest(float t)
{
    return (int32_t)((t + 0x1.8p23f) - 0x1.8p23f);
}

static inline uint8_t signed_code(const sti_gradient_grid *g, float x, int32_t level)
{
    return (uint8_t)(x < 0.0f ? g->zero - level : g->zero + level);
}

static inline int32_t level_nearest(const sti_gradient_grid *g, float t)
{
    int32_t level = nearest(t * g->inverse);
    level = level > 0 ? level : 0;
    return level < g->top ? level : g->top;
}

static inline int32_t level_unbiased(const sti_gradient_grid *g, float t, uint16_t r)
{
    const int parts = 16 - g->bits;
    float place = t * (g->inverse * (float)(1 << parts));
    place = place > 0.0f ? place : 0.0f;
    place = place < 65535.0f ? place : 65535.0f;
    const int32_t sum = nearest(place) + (r >> g->bits);
    return (sum < 65535 ? sum : 65535) >> parts;
}

/* r NULL: to nearest. */
static inline __attribute__((always_inline)) void
codes_of(const sti_gradient_grid *g, const bool sign, const uint16_t *r, const float *x,
         uint8_t *code)
{
    const sti_gradient_grid grid = *g;
    for (int i = 0; i < RUN; i++) {
        const float t = sign ? fabsf(x[i]) : x[i] - grid.lo;
        const int32_t level =
            r ? level_unbiased(&grid, t, r[i]) : level_nearest(&grid, t);
        code[i] = sign ? signed_code(&grid, x[i], level) : (uint8_t)level;
    }
}

static void encode_run(const sti_gradient_grid *g, const uint16_t *r, const float *x,
                       uint8_t *out)
{
    uint8_t code[RUN];
    if (g->sign)
        codes_of(g, true, r, x, code);
    else if (r)
        codes_of(g, false, r, x, code);
    else
        codes_of(g, false, NULL, x, code);
    pack_run(code, g->bits, out);
}

static void decode_run(const sti_gradient_grid *g, sti_gradient_into into,
                       const uint8_t *in, float *y)
{
    uint8_t code[RUN];
    unpack_run(in, g->bits, code);
    const sti_gradient_grid grid = *g;
    for (int i = 0; i < RUN; i++) {
        const float v = grid.u * (float)((int32_t)code[i] - grid.zero) + grid.lo;
        y[i] = into == STI_GRADIENT_SET   ? v
               : into == STI_GRADIENT_ADD ? y[i] + v
                                          : y[i] - v;
    }
}

#endif

static void encode(const sti_gradient_grid *grid, const sti_gradient_dither *dither,
                   int64_t n, const float *x, uint8_t *out)
{
    uint16_t random[AT_ONCE * RUN];
    float tail[RUN];
    uint8_t packed[8 * WORDS];
    for (int64_t i = 0; i < n; i += RUN, out += RUN / 8 * grid->bits) {
        const int64_t left = n - i, run = i / RUN, runs = (left + RUN - 1) / RUN;
        const uint16_t *r = dither ? random + run % AT_ONCE * RUN : NULL;
        for (int line = 0; line < (dither ? RUN : RUN / 2); line += 16)
            sti_gradient_ahead(dither ? x + 2 * n + i + line
                                      : x + n + n / 2 + i / 2 + line);
        if (dither && run % AT_ONCE == 0)
            make_random(dither, (uint64_t)run, (int)(runs < AT_ONCE ? runs : AT_ONCE),
                        random);
        if (left >= RUN) {
            encode_run(grid, r, x + i, out);
            continue;
        }
        memset(tail, 0, sizeof tail);
        memcpy(tail, x + i, (size_t)left * sizeof *tail);
        encode_run(grid, r, tail, packed);
        const int64_t bits = left * grid->bits;
        if (bits % 8) /* those past the end are zero */
            packed[bits / 8] &= (uint8_t)((1 << bits % 8) - 1);
        memcpy(out, packed, (size_t)((bits + 7) / 8));
    }
}

static void decode(const sti_gradient_grid *grid, int64_t n, const uint8_t *in,
                   sti_gradient_into into, float *y)
{
    uint8_t packed[8 * WORDS] = {0};
    float tail[RUN] = {0};
    for (int64_t i = 0; i < n; i += RUN, in += RUN / 8 * grid->bits) {
        const int64_t left = n - i;
        for (int line = 0; line < RUN; line += 16)
            sti_gradient_ahead(y + i + 8 * RUN + line);
        if (left >= RUN) {
            decode_run(grid, into, in, y + i);
            continue;
        }
        memcpy(packed, in, (size_t)((left * grid->bits + 7) / 8));
        memcpy(tail, y + i, (size_t)left * sizeof *tail);
        decode_run(grid, into, packed, tail);
        memcpy(y + i, tail, (size_t)left * sizeof *tail);
    }
}

static void add(int64_t n, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

const sti_gradient_kernels GRADIENT_KERNELS = {
    .add = add,
    .range = range,
    .moments = moments,
    .error = error,
    .encode = encode,
    .decode = decode,
};
