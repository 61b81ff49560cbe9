/* What tests of top-k share: the oracle, a full sort that knows no keys but values;
 * inputs of every order; and calls between guard bytes. */
#ifndef TESTS_KERNEL_TOPK_ORACLE_H
#define TESTS_KERNEL_TOPK_ORACLE_H

#include "stint/topk.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"

static const size_t type_bytes[STINT_TOPK_TYPES] = {4, 2, 2, 4, 1, 4, 1, 8, 8, 8, 2, 2};

static inline bool is_float(stint_topk_type type)
{
    return type == STINT_TOPK_F32 || type == STINT_TOPK_F16 ||
           type == STINT_TOPK_BF16 || type == STINT_TOPK_F64;
}

/* ---- oracle: ranks by value, from first principles ---- */

typedef struct ranked {
    int nan_rank;    /* 1 before numbers, -1 behind */
    long double key; /* holds integers of 64 bits */
    int sign;        /* of zeros: 1 ranks first */
    int64_t index;
} ranked;

static inline double half_value(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 0    ? ldexp(m, -24)
                     : e == 31 ? (double)(m ? NAN : INFINITY)
                               : ldexp(1024 + m, e - 25);
    return h >> 15 ? -v : v;
}

static inline long double value_at(stint_topk_type type, const unsigned char *x,
                                   int64_t i)
{
    union {
        float f;
        double d;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        uint32_t u32;
        int16_t i16;
        uint16_t u16;
        int8_t i8;
        uint8_t u8;
    } v;
    memcpy(&v, x + type_bytes[type] * (size_t)i, type_bytes[type]);
    switch (type) {
    case STINT_TOPK_F32:
        return (long double)v.f;
    case STINT_TOPK_F16:
        return (long double)half_value(v.u16);
    case STINT_TOPK_BF16:
        v.u32 = (uint32_t)v.u16 << 16;
        return (long double)v.f;
    case STINT_TOPK_I32:
        return v.i32;
    case STINT_TOPK_U32:
        return v.u32;
    case STINT_TOPK_U8:
        return v.u8;
    case STINT_TOPK_F64:
        return (long double)v.d;
    case STINT_TOPK_I64:
        return v.i64;
    case STINT_TOPK_U64:
        return v.u64;
    case STINT_TOPK_I16:
        return v.i16;
    case STINT_TOPK_U16:
        return v.u16;
    case STINT_TOPK_I8:
    case STINT_TOPK_TYPES:
        break;
    }
    return v.i8;
}

static inline ranked rank_of(const stint_topk_desc *d, long double v, int64_t index)
{
    ranked r = {.index = index};
    if (isnan(v)) {
        r.nan_rank = d->nan == STINT_TOPK_NAN_LAST ? -1 : 1;
        return r;
    }
    r.key = d->key == STINT_TOPK_MAX ? v : d->key == STINT_TOPK_MIN ? -v : fabsl(v);
    if (v == 0 && !d->zeros_equal && is_float(d->type))
        r.sign = signbit(r.key) ? 0 : 1;
    return r;
}

static inline int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->nan_rank != y->nan_rank)
        return x->nan_rank > y->nan_rank ? -1 : 1;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    if (x->sign != y->sign)
        return x->sign > y->sign ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static inline int compare_index(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* min(k, n) indices of one row as the contract says. */
static inline void oracle(const stint_topk_desc *d, const unsigned char *x,
                          int64_t *index)
{
    ranked *r = malloc((size_t)(d->n + 1) * sizeof *r);
    const int64_t k = d->k < d->n ? d->k : d->n;
    for (int64_t i = 0; i < d->n; i++)
        r[i] = rank_of(d, value_at(d->type, x, i), i);
    qsort(r, (size_t)d->n, sizeof *r, compare_ranked);
    for (int64_t i = 0; i < k; i++)
        index[i] = r[i].index;
    if (!d->sorted)
        qsort(index, (size_t)k, sizeof *index, compare_index);
    free(r);
}

/* ---- inputs ---- */

static uint64_t state = 1;

static inline uint32_t word(void)
{
    uint32_t out[4];
    sti_random4(1, STI_STREAM_TEST, 77, state++, out);
    return out[0];
}

static inline int64_t below(int64_t n)
{
    return (int64_t)((uint64_t)word() << 16 ^ word()) % n;
}

static inline void store(stint_topk_type type, unsigned char *x, int64_t i, double v)
{
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    const int32_t whole = (int32_t)(v > 2e9 ? 2e9 : v < -2e9 ? -2e9 : v);
    uint16_t h;
    uint64_t wide;
    switch (type) {
    case STINT_TOPK_F32:
        memcpy(x + 4 * i, &f, 4);
        return;
    case STINT_TOPK_F16: /* any finite half near enough */
        h = (uint16_t)((bits >> 16 & 0x8000) | ((uint32_t)fabs(v * 64) % 0x7C00));
        memcpy(x + 2 * i, &h, 2);
        return;
    case STINT_TOPK_BF16:
        h = (uint16_t)(bits >> 16);
        memcpy(x + 2 * i, &h, 2);
        return;
    case STINT_TOPK_I32:
        memcpy(x + 4 * i, &whole, 4);
        return;
    case STINT_TOPK_I8:
    case STINT_TOPK_U8:
        x[i] = (unsigned char)whole;
        return;
    case STINT_TOPK_U32:
        memcpy(x + 4 * i, &whole, 4);
        return;
    case STINT_TOPK_I16:
    case STINT_TOPK_U16:
        h = (uint16_t)whole;
        memcpy(x + 2 * i, &h, 2);
        return;
    case STINT_TOPK_F64:
        v = v < 0 ? v * 1e9 : v; /* differences below those of float */
        memcpy(x + 8 * i, &v, 8);
        return;
    case STINT_TOPK_I64:
    case STINT_TOPK_U64:
        wide = (uint64_t)(int64_t)(v * 1e9);
        memcpy(x + 8 * i, &wide, 8);
        return;
    case STINT_TOPK_TYPES:
        return;
    }
}

enum order {
    UNIFORM,
    NORMAL,
    ASCENDING,
    DESCENDING,
    EQUAL,
    TWO_VALUES,
    CLUSTER,   /* all the best in one place */
    SCATTERED, /* one of the best every so often */
    PEAK,      /* N(1e8, 10): few different keys */
    BITS,      /* any bits at all: NaN, infinities, denormals, -0 */
    SPECIAL,   /* only such */
    ORDERS
};

static inline void special_bits(stint_topk_type type, unsigned char *x, int64_t i)
{
    static const uint32_t words[] = {0x7F800000, 0xFF800000, 0x80000000, 0,
                                     0x7FC00000, 0xFFC00001, 0x00000001, 0x80000001,
                                     0x3F800000, 0x7F800001, 0x007FFFFF, 0xFFFFFFFF};
    const uint32_t w = words[below(12)];
    const uint16_t h = type == STINT_TOPK_F16
                           ? (uint16_t)((w >> 16 & 0x8000) | (w >> 13 & 0x7FFF))
                           : (uint16_t)(w >> 16);
    /* The neighbours of NaN and infinity, of zero, and of the ends of integers. */
    const uint64_t wide = (uint64_t)w << 32 | (below(2) ? 0 : (uint64_t)below(3) - 1);
    const uint64_t wide_f = (wide & ~UINT64_C(0x0010000000000000)) |
                            ((w & 0x7F800000) == 0x7F800000 ? 0x7FF0000000000000 : 0);
    if (type_bytes[type] == 8)
        memcpy(x + 8 * i, type == STINT_TOPK_F64 ? &wide_f : &wide, 8);
    else if (type_bytes[type] == 4)
        memcpy(x + 4 * i, &w, 4);
    else if (type_bytes[type] == 2)
        memcpy(x + 2 * i, &h, 2);
    else
        x[i] = (unsigned char)(w >> 24);
}

static inline void fill(stint_topk_type type, enum order order, int64_t n,
                        unsigned char *x)
{
    for (int64_t i = 0; i < n; i++) {
        double u = (double)word() / 4294967296.0 - 0.5, v = u * 200;
        if (order == BITS) {
            const uint32_t w = word();
            const uint64_t wide =
                w | (type_bytes[type] > 4 ? (uint64_t)word() << 32 : 0);
            memcpy(x + (size_t)i * type_bytes[type], &wide, type_bytes[type]);
            continue;
        }
        if (order == SPECIAL) {
            special_bits(type, x, i);
            continue;
        }
        if (order == NORMAL)
            v = 10 * (u + (double)word() / 4294967296.0 - 0.5);
        else if (order == ASCENDING)
            v = (double)i;
        else if (order == DESCENDING)
            v = (double)-i;
        else if (order == EQUAL)
            v = 3;
        else if (order == TWO_VALUES)
            v = u > 0.3 ? 7 : -2;
        else if (order == CLUSTER)
            v = i >= n / 3 && i < n / 3 + 500 ? 100 + u : u;
        else if (order == SCATTERED)
            v = i % 97 == 0 ? 100 + u : u;
        else if (order == PEAK)
            v = 1e8 + 10 * u;
        store(type, x, i, v);
    }
}

/* ---- running ---- */

typedef struct answer {
    stint_status status;
    int64_t *index;
    unsigned char *values;
} answer;

enum { GUARD = 64 };

/* Outputs and workspace lie before guard bytes; x is copied to an odd address. */
static inline answer ask(const stint_topk_desc *d, const unsigned char *x,
                         const float *addend)
{
    const int64_t rows = d->rows ? d->rows : 1, k = d->k < d->n ? d->k : d->n;
    const int64_t stride = d->stride ? d->stride : d->n;
    const size_t bytes = type_bytes[d->type], count = (size_t)(rows * k);
    const size_t x_bytes = (size_t)(stride * (rows - 1) + d->n) * bytes;
    size_t need;
    assert_int_equal(stint_topk_workspace_bytes(d, &need), STINT_OK);
    unsigned char *odd = malloc(x_bytes + 1), *memory = malloc(need + 1 + GUARD);
    answer a = {.index = malloc(count * 8 + GUARD),
                .values = malloc(count * bytes + GUARD)};
    memcpy(odd + 1, x, x_bytes);
    memset(memory, 0xA5, need + 1 + GUARD);
    memset((char *)a.index + count * 8, 0x5A, GUARD);
    memset(a.values + count * bytes, 0x5A, GUARD);
    a.status = stint_topk(d, odd + 1, addend, a.index, a.values, memory + 1, need);
    assert_memory_equal(odd + 1, x, x_bytes);
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(memory[need + 1 + (size_t)i], 0xA5);
        assert_int_equal(((unsigned char *)a.index)[count * 8 + (size_t)i], 0x5A);
        assert_int_equal(a.values[count * bytes + (size_t)i], 0x5A);
    }
    free(odd);
    free(memory);
    return a;
}

static inline void answer_free(answer *a)
{
    free(a->index);
    free(a->values);
}

static inline const char *describe(const stint_topk_desc *d, int order)
{
    static char text[256];
    snprintf(text, sizeof text,
             "%s type %d key %d nan %d zeros %d sorted %d n %" PRId64 " k %" PRId64
             " method %s a %d threads %d part %" PRId64 " order %d",
             sti_isa_name(sti_isa_now()), d->type, d->key, d->nan, d->zeros_equal,
             d->sorted, d->n, d->k, stint_topk_method_name(d->method), d->exponent,
             d->threads, d->part, order);
    return text;
}

static inline void check_row(const stint_topk_desc *d, const unsigned char *x,
                             int order, const int64_t *want)
{
    answer a = ask(d, x, NULL);
    const int64_t k = d->k < d->n ? d->k : d->n;
    const size_t bytes = type_bytes[d->type];
    if (a.status != STINT_OK)
        fail_msg("%s: %s", describe(d, order), stint_last_error());
    for (int64_t i = 0; i < k; i++) {
        if (a.index[i] != want[i])
            fail_msg("%s: winner %" PRId64 " is %" PRId64 ", want %" PRId64,
                     describe(d, order), i, a.index[i], want[i]);
        if (memcmp(a.values + (size_t)i * bytes, x + (size_t)want[i] * bytes, bytes))
            fail_msg("%s: value %" PRId64, describe(d, order), i);
    }
    answer_free(&a);
}

/* All methods, two block sizes and more threads, for one problem. */
static inline void check_methods(stint_topk_desc d, const unsigned char *x, int order)
{
    const int64_t k = d.k < d.n ? d.k : d.n;
    int64_t *want = malloc((size_t)(k + 1) * sizeof *want);
    oracle(&d, x, want);
    for (int m = 0; m < STINT_TOPK_METHODS; m++) {
        d.method = (stint_topk_method)m;
        d.threads = 1 + (int)below(3);
        d.exponent = below(2) ? 0 : 4 + (int)below(4);
        d.part = below(4) ? 0 : 1 + d.n / (1 + below(5));
        check_row(&d, x, order, want);
    }
    free(want);
}

#endif
