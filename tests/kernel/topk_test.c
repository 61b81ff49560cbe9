/* Top-k against a full sort: every type, key, order, method, instruction set and thread
 * count gives the one result that the contract allows. */
#include "stint/topk.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/memory.h"
#include "base/rng.h"

static const size_t type_bytes[] = {4, 2, 2, 4, 1};

/* ---- oracle: ranks by value, from first principles ---- */

typedef struct ranked {
    int nan_rank; /* 1 before numbers, -1 behind */
    double key;
    int sign; /* of zeros: 1 ranks first */
    int64_t index;
} ranked;

static double half_value(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double v = e == 0    ? ldexp(m, -24)
                     : e == 31 ? (double)(m ? NAN : INFINITY)
                               : ldexp(1024 + m, e - 25);
    return h >> 15 ? -v : v;
}

static double value_at(stint_topk_type type, const unsigned char *x, int64_t i)
{
    float f;
    int32_t n;
    uint16_t h;
    uint32_t wide;
    switch (type) {
    case STINT_TOPK_F32:
        memcpy(&f, x + 4 * i, 4);
        return (double)f;
    case STINT_TOPK_F16:
        memcpy(&h, x + 2 * i, 2);
        return half_value(h);
    case STINT_TOPK_BF16:
        memcpy(&h, x + 2 * i, 2);
        wide = (uint32_t)h << 16;
        memcpy(&f, &wide, 4);
        return (double)f;
    case STINT_TOPK_I32:
        memcpy(&n, x + 4 * i, 4);
        return n;
    case STINT_TOPK_I8:
        break;
    }
    return (int8_t)x[i];
}

static ranked rank_of(const stint_topk_desc *d, double v, int64_t index)
{
    ranked r = {.index = index};
    if (isnan(v)) {
        r.nan_rank = d->nan == STINT_TOPK_NAN_LAST ? -1 : 1;
        return r;
    }
    r.key = d->key == STINT_TOPK_MAX ? v : d->key == STINT_TOPK_MIN ? -v : fabs(v);
    if (v == 0 && !d->zeros_equal && d->type != STINT_TOPK_I32 &&
        d->type != STINT_TOPK_I8)
        r.sign = signbit(r.key) ? 0 : 1;
    return r;
}

static int compare_ranked(const void *a, const void *b)
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

static int compare_index(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* min(k, n) indices of one row as the contract says. */
static void oracle(const stint_topk_desc *d, const unsigned char *x, int64_t *index)
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

static uint32_t word(void)
{
    uint32_t out[4];
    sti_random4(1, STI_STREAM_TEST, 77, state++, out);
    return out[0];
}

static int64_t below(int64_t n)
{
    return (int64_t)((uint64_t)word() << 16 ^ word()) % n;
}

static void store(stint_topk_type type, unsigned char *x, int64_t i, double v)
{
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    const int32_t whole = (int32_t)(v > 2e9 ? 2e9 : v < -2e9 ? -2e9 : v);
    uint16_t h;
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
        x[i] = (unsigned char)whole;
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

static void special_bits(stint_topk_type type, unsigned char *x, int64_t i)
{
    static const uint32_t words[] = {0x7F800000, 0xFF800000, 0x80000000, 0,
                                     0x7FC00000, 0xFFC00001, 0x00000001, 0x80000001,
                                     0x3F800000, 0x7F800001, 0x007FFFFF, 0xFFFFFFFF};
    const uint32_t w = words[below(12)];
    const uint16_t h = type == STINT_TOPK_F16
                           ? (uint16_t)((w >> 16 & 0x8000) | (w >> 13 & 0x7FFF))
                           : (uint16_t)(w >> 16);
    if (type_bytes[type] == 4)
        memcpy(x + 4 * i, &w, 4);
    else if (type_bytes[type] == 2)
        memcpy(x + 2 * i, &h, 2);
    else
        x[i] = (unsigned char)(w >> 24);
}

static void fill(stint_topk_type type, enum order order, int64_t n, unsigned char *x)
{
    for (int64_t i = 0; i < n; i++) {
        double u = (double)word() / 4294967296.0 - 0.5, v = u * 200;
        if (order == BITS) {
            const uint32_t w = word();
            memcpy(x + (size_t)i * type_bytes[type], &w, type_bytes[type]);
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
static answer ask(const stint_topk_desc *d, const unsigned char *x, const float *addend)
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

static void answer_free(answer *a)
{
    free(a->index);
    free(a->values);
}

static const char *describe(const stint_topk_desc *d, int order)
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

static void check_row(const stint_topk_desc *d, const unsigned char *x, int order,
                      const int64_t *want)
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
static void check_methods(stint_topk_desc d, const unsigned char *x, int order)
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

static int64_t random_n(int round)
{
    const int64_t around = INT64_C(1) << (3 + below(9));
    return round % 3 == 0 ? around + below(3) - 1 : 1 + below(3000);
}

static void any_problem(void **unused)
{
    (void)unused;
    unsigned char *x = malloc(4 * 8192);
    for (int isa = 0; isa < STI_ISA_COUNT; isa++) {
        if (!sti_isa_force((sti_isa)isa))
            continue;
        for (int round = 0; round < 330; round++) {
            stint_topk_desc d = {.type = (stint_topk_type)below(5),
                                 .key = (stint_topk_key)below(3),
                                 .nan = 1 + (stint_topk_nan)below(2),
                                 .zeros_equal = below(2),
                                 .sorted = below(2),
                                 .n = random_n(round)};
            d.k = round % 5 == 0 ? 1 : round % 7 == 0 ? d.n : below(d.n + 2);
            if (round % 4 == 0)
                d.k = d.k % 30;
            fill(d.type, (enum order)(round % ORDERS), d.n, x);
            check_methods(d, x, round % ORDERS);
        }
    }
    sti_isa_force(STI_ISA_AVX512);
    free(x);
}

/* Whole registers and parts of them, every k that has a way of its own, all of the best
 * in one lane, and ties at the edge. */
static void short_rows(void **unused)
{
    (void)unused;
    static const int64_t n[] = {1,  2,  3,  15, 16,  17,  31,  33,  47,   48,
                                63, 64, 65, 96, 127, 128, 130, 257, 1000, 4096};
    static const int64_t k[] = {1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 33, 63};
    static const enum order order[] = {NORMAL, TWO_VALUES, SPECIAL, PEAK, BITS};
    unsigned char *x = malloc(4 * 4096);
    int64_t want[64];
    for (int isa = 0; isa < STI_ISA_COUNT; isa++)
        for (int i = 0; i < 20 * 12 && sti_isa_force((sti_isa)isa); i++) {
            const enum order o = order[below(5)];
            stint_topk_desc d = {.type = (stint_topk_type)below(5),
                                 .key = (stint_topk_key)below(3),
                                 .nan = 1 + (stint_topk_nan)below(2),
                                 .zeros_equal = below(2),
                                 .sorted = below(2),
                                 .n = n[i / 12],
                                 .k = k[i % 12]};
            fill(d.type, o, d.n, x);
            for (int64_t j = 5; i % 3 == 0 && j < d.n; j += 64)
                store(d.type, x, j, 100 + (double)(j / 64 % 20));
            oracle(&d, x, want);
            check_row(&d, x, o, want);
        }
    sti_isa_force(STI_ISA_AVX512);
    free(x);
}

/* The shortest way, from the public call: each n and k that it takes and the next ones,
 * every place of a NaN, and no byte read behind a row at the end of its page. */
static void straight_rows(void **unused)
{
    (void)unused;
    enum { MOST = 258, BASE = 1000 };
    static const int64_t k[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 64};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
    static unsigned char workspace[16384];
    for (int64_t n = 1; n <= MOST; n++)
        for (int i = 0; i < 12 && k[i] <= n; i++) {
            const enum order o = (enum order)((n + i) % ORDERS);
            const stint_topk_desc d = {.key = (stint_topk_key)below(3),
                                       .nan = 1 + (stint_topk_nan)below(2),
                                       .index_base = BASE,
                                       .n = n,
                                       .k = k[i]};
            unsigned char *x = two + page - (size_t)n * sizeof(float);
            int64_t want[MOST], index[MOST];
            float values[MOST];
            fill(STINT_TOPK_F32, o, n, x);
            if (below(4) == 0)
                special_bits(STINT_TOPK_F32, x, below(n));
            oracle(&d, x, want);
            assert_int_equal(stint_topk(&d, x, NULL, index, below(3) ? values : NULL,
                                        workspace, sizeof workspace),
                             STINT_OK);
            for (int64_t j = 0; j < d.k; j++)
                if (index[j] != BASE + want[j])
                    fail_msg("%s: winner %" PRId64 " is %" PRId64 ", want %" PRId64,
                             describe(&d, o), j, index[j] - BASE, want[j]);
            check_row(&(stint_topk_desc){.key = d.key, .nan = d.nan, .n = n, .k = d.k},
                      x, o, want);
        }
    munmap(two, 2 * page);
}

/* Long enough for several pieces, and for samples and histograms to narrow. */
static void long_rows(void **unused)
{
    (void)unused;
    const int64_t n = 300007;
    unsigned char *x = malloc((size_t)n * 4);
    for (int order = 0; order < ORDERS; order++) {
        stint_topk_desc d = {.type = (stint_topk_type)(order % 3 == 2 ? order % 5 : 0),
                             .key = (stint_topk_key)(order % 3),
                             .nan = STINT_TOPK_NAN_LAST,
                             .sorted = order % 2,
                             .n = n,
                             .k = order % 4 == 0   ? 70
                                  : order % 4 == 1 ? 2500
                                                   : 90000};
        fill(d.type, (enum order)order, n, x);
        check_methods(d, x, order);
    }
    free(x);
}

/* Where the best value is often and k is about its number, a sample cannot tell whether
 * the k-th is that value or the next. */
static void ties_at_the_edge(void **unused)
{
    (void)unused;
    const int64_t n = 300007;
    float *x = malloc((size_t)n * sizeof *x);
    int64_t *want = malloc((size_t)n * sizeof *want);
    for (int round = 0; round < 24; round++) {
        int64_t top = 0, held = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] = below(200) == 0 ? 3.0F : below(2) ? 2.0F : 1.0F;
            top += x[i] > 2;
        }
        const int64_t k = top + (round - 12) * (round % 2 ? 5 : 60);
        int64_t of_top = k < top ? k : top, of_next = k - of_top;
        for (int64_t i = 0; i < n && held < k; i++) {
            if (x[i] > 2 && of_top > 0)
                of_top--;
            else if (x[i] == 2 && of_next > 0)
                of_next--;
            else
                continue;
            want[held++] = i;
        }
        const stint_topk_desc d = {
            .n = n, .k = k, .method = STINT_TOPK_THRESHOLD, .threads = 1 + round % 2};
        check_row(&d, (const unsigned char *)x, TWO_VALUES, want);
    }
    free(x);
    free(want);
}

/* Beyond the caches of a core, where delegates are made at several places at once. */
static void far_rows(void **unused)
{
    (void)unused;
    static const int64_t n[] = {270001, 530003, 530003, 270001, 1100009};
    unsigned char *x = malloc(1100009 * sizeof(float));
    for (int type = 0; type <= STINT_TOPK_I8; type++) {
        stint_topk_desc d = {.type = (stint_topk_type)type,
                             .key = (stint_topk_key)(type % 3),
                             .nan = STINT_TOPK_NAN_FIRST,
                             .n = n[type],
                             .k = 300};
        fill(d.type, type % 2 ? BITS : NORMAL, d.n, x);
        check_methods(d, x, type % 2 ? BITS : NORMAL);
    }
    free(x);
}

/* Many blocks that are full of large values, of which few win: a line of each is a
 * sample that bounds them. Deceived, all winners and many more are in those lines, and
 * the bound that the sample gives is too high. */
static void fill_blocks(float *x, int64_t n, int64_t blocks, uint32_t entries,
                        bool deceived)
{
    for (int64_t i = 0; i < n; i++) {
        const float u = (float)(word() >> 8) * 0x1p-24F;
        const uint32_t line =
            ((uint32_t)(i / 256) * entries * UINT32_C(2654435761) >> 8) % 16;
        x[i] = i / 256 >= blocks                  ? u
               : deceived && i % 256 / 16 == line ? 3 + u
                                                  : 2 + u / 2;
    }
}

static void blocks_of_winners(void **unused)
{
    (void)unused;
    const int64_t n = (1 << 19) + 77;
    float *x = malloc((size_t)n * sizeof *x);
    for (int way = 0; way < 4; way++) {
        const bool two_best = way % 2;
        stint_topk_desc d = {.n = n,
                             .k = 1024,
                             .exponent = 8,
                             .method =
                                 two_best ? STINT_TOPK_DELEGATE2 : STINT_TOPK_DELEGATE};
        int64_t *want = malloc((size_t)d.k * sizeof *want);
        fill_blocks(x, n, two_best ? 512 : 1024, two_best ? 2 : 1, way / 2);
        oracle(&d, (unsigned char *)x, want);
        for (int isa = 0; isa < STI_ISA_COUNT; isa++)
            for (d.threads = 1; d.threads <= 3 && sti_isa_force((sti_isa)isa);
                 d.threads += 2)
                check_row(&d, (unsigned char *)x, way, want);
        free(want);
    }
    free(x);
}

/* Runs of winners, longer than a block; and a first piece that is unlike the others. */
static void fill_long(float *x, int64_t n, int way)
{
    for (int64_t i = 0; i < n; i++) {
        const float u = (float)(word() >> 8) * 0x1p-24F;
        x[i] = way == 0   ? u + 2 * (float)(i / 4096 % 64 == 5)
               : way == 1 ? u - (float)(i < 1 << 17)
               : way == 2 ? u + (float)(i < 1 << 17)
                          : floorf(u * 1000);
    }
}

/* Only long rows are caught from. A sanitizer makes everything ten times as long and
 * looks for accesses, not values: there are fewer of them, by one number of threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum {
    CATCH_STEP = 4,
    CATCH_THREADS = 2,
    CATCH_MOST = 2,
    CATCH_ISA = STI_ISA_COUNT - 1
};
#else
enum { CATCH_STEP = 1, CATCH_THREADS = 1, CATCH_MOST = 5, CATCH_ISA = 0 };
#endif

/* Winners caught on the way, beside another method. */
static void check_caught(stint_topk_desc d, const float *x, const float *addend,
                         int order)
{
    d.method = STINT_TOPK_RADIX;
    answer want = ask(&d, (const unsigned char *)x, addend);
    assert_int_equal(want.status, STINT_OK);
    d.method = STINT_TOPK_DELEGATE2;
    for (int isa = CATCH_ISA; isa < STI_ISA_COUNT; isa++)
        for (d.threads = CATCH_THREADS;
             d.threads <= CATCH_MOST && sti_isa_force((sti_isa)isa);
             d.threads += d.threads) {
            answer a = ask(&d, (const unsigned char *)x, addend);
            assert_int_equal(a.status, STINT_OK);
            if (memcmp(a.index, want.index, (size_t)d.k * sizeof *a.index) != 0)
                fail_msg("order %d, key %d, k %" PRId64 ", isa %d, %d threads", order,
                         (int)d.key, d.k, isa, d.threads);
            assert_memory_equal(a.values, want.values, (size_t)d.k * sizeof *x);
            answer_free(&a);
        }
    answer_free(&want);
}

static void caught_winners(void **unused)
{
    (void)unused;
    enum { LONG_WAYS = 4 };
    const int64_t n = (1 << 22) + 777;
    float *x = malloc((size_t)n * sizeof *x), *e = malloc((size_t)n * sizeof *e);
    stint_topk_desc d = {.n = n, .exponent = 8, .nan = STINT_TOPK_NAN_FIRST};
    fill(STINT_TOPK_F32, NORMAL, n, (unsigned char *)e);
    for (int o = 0; o < ORDERS + LONG_WAYS; o += CATCH_STEP) {
        if (o < ORDERS)
            fill(STINT_TOPK_F32, (enum order)o, n, (unsigned char *)x);
        else
            fill_long(x, n, o - ORDERS);
        d.key = (stint_topk_key)(o % 3);
        d.k = o % 4 == 3 ? 16387 : 600 + 3000 * (o & 1);
        d.exponent = 8 + o / 2 % 2;
        check_caught(d, x, NULL, o);
        d.key = STINT_TOPK_MAX;
        d.nan = o % 2 ? STINT_TOPK_NAN_LAST : STINT_TOPK_NAN_FIRST;
        check_caught(d, x, NULL, o);
        d.has_addend = true;
        if (o == NORMAL || o == PEAK)
            check_caught(d, x, e, o);
        d.has_addend = false;
    }
    free(x);
    free(e);
}

/* So many delegates, and k of them, that threads share the choice among them. */
static void many_delegates(void **unused)
{
    (void)unused;
    static const enum order orders[] = {NORMAL, ASCENDING, EQUAL,   TWO_VALUES,
                                        PEAK,   CLUSTER,   SPECIAL, EQUAL};
    const int64_t n = 1100009;
    float *x = malloc((size_t)n * sizeof *x);
    stint_topk_desc d = {.n = n, .k = 4100, .exponent = 4, .nan = STINT_TOPK_NAN_FIRST};
    int64_t *want = malloc((size_t)d.k * sizeof *want);
    for (int o = 0; o < 8; o++) {
        fill(STINT_TOPK_F32, orders[o], n, (unsigned char *)x);
        /* The next best value comes after far more than k of one. */
        for (int64_t i = n - 50; o == 7 && i < n; i++)
            x[i] = nextafterf(x[i], 4);
        oracle(&d, (unsigned char *)x, want);
        for (int way = 0; way < 4; way++) {
            d.method = way % 2 ? STINT_TOPK_DELEGATE2 : STINT_TOPK_DELEGATE;
            d.threads = 1 + way;
            check_row(&d, (unsigned char *)x, orders[o], want);
        }
    }
    free(want);
    free(x);
}

static void rows_apart(void **unused)
{
    (void)unused;
    enum { ROWS = 13, N = 700, STRIDE = 711 };
    unsigned char *x = malloc(ROWS * STRIDE * 4);
    fill(STINT_TOPK_F32, NORMAL, ROWS * STRIDE, x);
    for (int threads = 1; threads <= 4; threads++)
        for (int sorted = 0; sorted < 2; sorted++) {
            stint_topk_desc d = {.rows = ROWS,
                                 .n = N,
                                 .stride = STRIDE,
                                 .k = 21,
                                 .index_base = 1000000000000,
                                 .sorted = sorted,
                                 .threads = threads};
            answer a = ask(&d, x, NULL);
            assert_int_equal(a.status, STINT_OK);
            for (int r = 0; r < ROWS; r++) {
                int64_t want[21];
                oracle(&d, x + (size_t)r * STRIDE * 4, want);
                for (int i = 0; i < 21; i++)
                    assert_int_equal(a.index[r * 21 + i], want[i] + d.index_base);
            }
            answer_free(&a);
        }
    free(x);
}

static void sums_of_two(void **unused)
{
    (void)unused;
    enum { N = 5000 };
    float *g = malloc(N * 4), *e = malloc(N * 4), *sum = malloc(N * 4);
    for (int round = 0; round < 6; round++) {
        fill(STINT_TOPK_F32, UNIFORM, N, (unsigned char *)g);
        fill(STINT_TOPK_F32, NORMAL, N, (unsigned char *)e);
        for (int i = 0; i < N; i++)
            sum[i] = g[i] + e[i];
        stint_topk_desc d = {.key = STINT_TOPK_ABS,
                             .n = round < 4 ? N : 65 - round,
                             .k = round < 4 ? 17 + round * 100 : 4 * round - 13,
                             .sorted = round % 2,
                             .part = round % 3 ? 0 : 999};
        int64_t want[1000];
        oracle(&d, (unsigned char *)sum, want);
        d.has_addend = true;
        for (int m = 0; m < STINT_TOPK_METHODS; m++) {
            d.method = (stint_topk_method)m;
            answer a = ask(&d, (unsigned char *)g, e);
            assert_int_equal(a.status, STINT_OK);
            for (int64_t i = 0; i < d.k; i++) {
                assert_int_equal(a.index[i], want[i]);
                assert_memory_equal(a.values + 4 * i, &sum[want[i]], 4);
            }
            answer_free(&a);
        }
    }
    free(g);
    free(e);
    free(sum);
}

static void refuse(stint_topk_desc d, stint_status want, const char *word_in_message)
{
    float x[4] = {1, 2, 3, 4};
    int64_t index[4];
    size_t bytes = 0;
    char memory[16];
    stint_status status = stint_topk_workspace_bytes(&d, &bytes);
    if (status == STINT_OK)
        status = stint_topk(&d, x, NULL, index, NULL, memory, sizeof memory);
    assert_int_equal(status, want);
    if (!strstr(stint_last_error(), word_in_message))
        fail_msg("'%s' does not say '%s'", stint_last_error(), word_in_message);
}

static void bad_input(void **unused)
{
    (void)unused;
    refuse((stint_topk_desc){.n = 4, .k = -1}, STINT_E_USAGE, "k -1");
    refuse((stint_topk_desc){.n = -4, .k = 1}, STINT_E_USAGE, "n -4");
    refuse((stint_topk_desc){.n = INT64_MAX, .k = 1}, STINT_E_USAGE, "address space");
    refuse((stint_topk_desc){.n = 4, .rows = INT64_MAX / 8, .k = 1}, STINT_E_USAGE,
           "address space");
    refuse((stint_topk_desc){.n = 4, .k = 1, .index_base = INT64_MAX}, STINT_E_USAGE,
           "address space");
    refuse((stint_topk_desc){.n = 4, .rows = 2, .stride = 3, .k = 1}, STINT_E_USAGE,
           "overlap");
    refuse((stint_topk_desc){.rows = -2, .n = 4, .k = 1}, STINT_E_USAGE, "rows -2");
    refuse((stint_topk_desc){.part = -3, .n = 4, .k = 1}, STINT_E_USAGE, "part -3");
    refuse((stint_topk_desc){.type = 5, .n = 4, .k = 1}, STINT_E_USAGE,
           "type 5, but stint_topk_type in stint/topk.h goes from 0 to 4");
    refuse((stint_topk_desc){.key = 3, .n = 4, .k = 1}, STINT_E_USAGE,
           "key 3, but stint_topk_key in stint/topk.h goes from 0 to 2");
    refuse((stint_topk_desc){.nan = 3, .n = 4, .k = 1}, STINT_E_USAGE,
           "nan 3, but stint_topk_nan in stint/topk.h goes from 0 to 2");
    refuse((stint_topk_desc){.method = 9, .n = 4, .k = 1}, STINT_E_USAGE,
           "method 9, but stint_topk_method in stint/topk.h goes from 0 to 6");
    refuse((stint_topk_desc){.threads = -1, .n = 4, .k = 1}, STINT_E_USAGE, "threads");
    refuse((stint_topk_desc){.exponent = 16, .n = 4, .k = 1}, STINT_E_USAGE,
           "exponent");
    refuse((stint_topk_desc){.type = STINT_TOPK_I8, .has_addend = true, .n = 4, .k = 1},
           STINT_E_USAGE, "f32");
    refuse((stint_topk_desc){.has_addend = true, .n = 4, .k = 1}, STINT_E_USAGE,
           "addend is NULL");
    refuse((stint_topk_desc){.n = 4, .k = 1}, STINT_E_USAGE, "workspace of 16 bytes");
    refuse((stint_topk_desc){.n = INT64_C(1) << 50, .k = INT64_C(1) << 33},
           STINT_E_UNSUPPORTED, "in parts");
    size_t bytes;
    int64_t index[4];
    stint_topk_desc d = {.n = 4, .k = 2};
    assert_int_equal(stint_topk_workspace_bytes(&d, &bytes), STINT_OK);
    void *memory = malloc(bytes);
    assert_int_equal(stint_topk(&d, NULL, NULL, index, NULL, memory, bytes),
                     STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "x is NULL"));
    const float x[4] = {1, 2, 3, 4};
    assert_int_equal(stint_topk(&d, x, NULL, NULL, NULL, memory, bytes), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "index_out is NULL"));
    assert_int_equal(stint_topk(&d, x, NULL, index, NULL, NULL, bytes), STINT_E_USAGE);
    assert_non_null(strstr(stint_last_error(), "workspace of 0 bytes"));
    d.k = 0;
    assert_int_equal(stint_topk(&d, NULL, NULL, NULL, NULL, NULL, 0), STINT_OK);
    d = (stint_topk_desc){.n = 0, .k = 3};
    assert_int_equal(stint_topk(&d, NULL, NULL, NULL, NULL, NULL, 0), STINT_OK);
    free(memory);
}

/* The first NaN is named, whatever the method and however many there are. */
static void nan_is_named(void **unused)
{
    (void)unused;
    enum { N = 3000, ROWS = 3 };
    float *x = malloc(ROWS * N * 4);
    for (int m = 0; m < STINT_TOPK_METHODS; m++)
        for (int sign = 0; sign < 2; sign++)
            for (int key = 0; key < 3; key++) {
                fill(STINT_TOPK_F32, NORMAL, ROWS * N, (unsigned char *)x);
                for (int i = 2 * N - 7; i < 2 * N + 50; i++)
                    x[i] = sign ? -NAN : NAN;
                stint_topk_desc d = {.rows = ROWS,
                                     .n = N,
                                     .k = 5,
                                     .key = (stint_topk_key)key,
                                     .sorted = sign,
                                     .threads = 1 + m % 3,
                                     .method = (stint_topk_method)m};
                answer a = ask(&d, (unsigned char *)x, NULL);
                assert_int_equal(a.status, STINT_E_INPUT);
                if (!strstr(stint_last_error(), "row 1, index 2993"))
                    fail_msg("%s", stint_last_error());
                answer_free(&a);
            }
    free(x);
}

/* The first of two in short rows, whose keys are looked at by other loops. */
static void nan_of_short_rows(void **unused)
{
    (void)unused;
    enum { MOST = 300 };
    float x[MOST];
    for (int64_t n = 3; n <= MOST; n += 1 + n / 9)
        for (int64_t k = 1; k <= n; k += 1 + k / 2) {
            const int64_t first = below(n - 1),
                          second = first + 1 + below(n - first - 1);
            char words[64];
            stint_topk_desc d = {.n = n,
                                 .k = k,
                                 .key = (stint_topk_key)(k % 3),
                                 .index_base = 1000,
                                 .sorted = n % 2};
            fill(STINT_TOPK_F32, NORMAL, n, (unsigned char *)x);
            x[first] = -NAN;
            x[second] = NAN;
            answer a = ask(&d, (unsigned char *)x, NULL);
            assert_int_equal(a.status, STINT_E_INPUT);
            snprintf(words, sizeof words, "row 0, index %" PRId64 ";", 1000 + first);
            if (!strstr(stint_last_error(), words))
                fail_msg("%s: %s", describe(&d, NORMAL), stint_last_error());
            answer_free(&a);
        }
}

/* ---- several ranks ---- */

typedef struct rank_list {
    int64_t count;
    float values[64];
    int64_t index[64];
} rank_list;

/* A message on the wire: count winners, values then indices. Gives its bytes. */
static size_t send_list(const rank_list *from, unsigned char *wire)
{
    const size_t values = (size_t)from->count * 4, index = (size_t)from->count * 8;
    memcpy(wire, from->values, values);
    memcpy(wire + values, from->index, index);
    return values + index;
}

static void receive_list(const unsigned char *wire, int64_t count, rank_list *to)
{
    to->count = count;
    memcpy(to->values, wire, (size_t)count * 4);
    memcpy(to->index, wire + (size_t)count * 4, (size_t)count * 8);
}

static void join_into(const stint_topk_desc *d, rank_list *into, const rank_list *other)
{
    const rank_list own = *into;
    const stint_topk_list a = {own.count, own.values, own.index};
    const stint_topk_list b = {other->count, other->values, other->index};
    assert_int_equal(
        stint_topk_merge(d, &a, &b, into->index, into->values, &into->count), STINT_OK);
}

/* Contiguous shares of one array, merged to rank 0 by a binomial tree. */
static void ranks_by_a_tree(void **unused)
{
    (void)unused;
    enum { N = 20011, K = 50 };
    float *x = malloc(N * 4);
    for (int order = 0; order < SPECIAL; order++) {
        fill(STINT_TOPK_F32, (enum order)order, N, (unsigned char *)x);
        stint_topk_desc d = {.key = (stint_topk_key)(order % 3),
                             .nan = STINT_TOPK_NAN_FIRST,
                             .sorted = true,
                             .n = N,
                             .k = K};
        answer whole = ask(&d, (unsigned char *)x, NULL);
        for (int ranks = 1; ranks <= 8; ranks++) {
            rank_list list[8];
            size_t wire_bytes = 0;
            for (int r = 0; r < ranks; r++) {
                const int64_t begin = (int64_t)N * r / ranks;
                stint_topk_desc own = d;
                own.n = (int64_t)N * (r + 1) / ranks - begin;
                own.index_base = begin;
                answer a = ask(&own, (unsigned char *)(x + begin), NULL);
                list[r].count = K;
                memcpy(list[r].values, a.values, K * 4);
                memcpy(list[r].index, a.index, K * 8);
                answer_free(&a);
            }
            for (int step = 1; step < ranks; step *= 2)
                for (int r = 0; r + step < ranks; r += 2 * step) {
                    unsigned char wire[64 * 12];
                    rank_list got;
                    wire_bytes += send_list(&list[r + step], wire);
                    receive_list(wire, K, &got);
                    join_into(&d, &list[r], &got);
                }
            assert_memory_equal(list[0].values, whole.values, K * 4);
            assert_memory_equal(list[0].index, whole.index, K * 8);
            assert_int_equal(wire_bytes, (size_t)(ranks - 1) *
                                             stint_topk_list_bytes(STINT_TOPK_F32, K));
            assert_int_equal(stint_topk_list_bytes(STINT_TOPK_F32, K), K * 12);
        }
        answer_free(&whole);
    }
    free(x);
}

static void merge_refuses(void **unused)
{
    (void)unused;
    const stint_topk_desc d = {.k = 2};
    const stint_topk_list none = {0}, bad = {.count = 1};
    int64_t index[2], count = 9;
    float values[2];
    assert_int_equal(stint_topk_merge(&d, &none, &bad, index, values, &count),
                     STINT_E_USAGE);
    assert_int_equal(count, 9);
    assert_int_equal(stint_topk_merge(&d, &none, &none, index, values, &count),
                     STINT_OK);
    assert_int_equal(count, 0);
}

/* The plan adds no memory by the row: delegates and candidates only. */
static void workspace_is_small(void **unused)
{
    (void)unused;
    size_t bytes;
    stint_topk_desc d = {.n = 1 << 26, .k = 1024};
    assert_int_equal(stint_topk_workspace_bytes(&d, &bytes), STINT_OK);
    assert_true(bytes < (size_t)(d.n * 4) / 50);
    d.k = d.n / 4;
    assert_int_equal(stint_topk_workspace_bytes(&d, &bytes), STINT_OK);
    assert_true(bytes < (size_t)(d.n * 4) / 4);
}

/* Seconds that a row takes by these costs. */
static double predicted_s(const stint_topk_costs *costs)
{
    const stint_topk_desc d = {.n = 1 << 20, .k = 1000, .costs = costs};
    stint_topk_method method;
    int exponent;
    double seconds = -1;
    assert_int_equal(stint_topk_explain(&d, &method, &exponent, &seconds), STINT_OK);
    return seconds;
}

/* Whatever the costs, and with a folder that cannot be written, the result is the same;
 * a second look reads what the first one measured. */
static void costs_only_steer(void **unused)
{
    (void)unused;
    char folder[] = "/tmp/stint_topk_XXXXXX", path[128], before[128] = "";
    stint_topk_costs first, second;
    assert_non_null(mkdtemp(folder));
    const char *old = getenv("XDG_CACHE_HOME");
    snprintf(before, sizeof before, "%s", old ? old : "");
    setenv("XDG_CACHE_HOME", folder, 1);
    stint_topk_costs_host(&first);
    stint_topk_costs_host(&second);
    assert_true(predicted_s(&first) > 0 && predicted_s(&first) < 10);
    assert_memory_equal(&first, &second, sizeof first);
    snprintf(path, sizeof path, "%s/stint/topk-costs.txt", folder);
    FILE *file = fopen(path, "w");
    fputs("stint top-k costs 9\nsome other machine\n", file);
    fclose(file);
    stint_topk_costs_host(&second); /* measured again, not believed */
    assert_true(predicted_s(&second) > 0);
    remove(path);
    snprintf(path, sizeof path, "%s/stint", folder);
    remove(path);
    file = fopen(path, "w"); /* a file where the folder should be */
    fclose(file);
    stint_topk_costs_host(&second);
    assert_true(predicted_s(&second) > 0);
    remove(path);
    remove(folder);
    if (before[0])
        setenv("XDG_CACHE_HOME", before, 1);
    else
        unsetenv("XDG_CACHE_HOME");
    unsigned char *x = malloc(20000 * 4);
    int64_t want[900];
    fill(STINT_TOPK_F32, NORMAL, 20000, x);
    for (int i = 0; i < 20; i++) {
        stint_topk_costs odd;
        double *cost = (double *)&odd;
        for (size_t c = 0; c < sizeof odd / sizeof *cost; c++)
            cost[c] = pow(10, (double)below(5) - 2);
        stint_topk_desc d = {.n = 20000, .k = 1 + below(900), .costs = &odd};
        oracle(&d, x, want);
        check_row(&d, x, NORMAL, want);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_problem),        cmocka_unit_test(long_rows),
        cmocka_unit_test(far_rows),           cmocka_unit_test(blocks_of_winners),
        cmocka_unit_test(rows_apart),         cmocka_unit_test(sums_of_two),
        cmocka_unit_test(bad_input),          cmocka_unit_test(short_rows),
        cmocka_unit_test(nan_of_short_rows),  cmocka_unit_test(nan_is_named),
        cmocka_unit_test(ranks_by_a_tree),    cmocka_unit_test(merge_refuses),
        cmocka_unit_test(workspace_is_small), cmocka_unit_test(costs_only_steer),
        cmocka_unit_test(straight_rows),      cmocka_unit_test(ties_at_the_edge),
        cmocka_unit_test(many_delegates),     cmocka_unit_test(caught_winners),
    };
    return cmocka_run_group_tests_name("kernel/topk", tests, NULL, NULL);
}
