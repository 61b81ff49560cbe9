/* Body of the transforms: included once by each instruction set's file, which defines
 * NEGACYCLIC_KERNELS (the table's name). */
#include <math.h>
#include <string.h>

#include "kernel/fft/negacyclic_priv.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi"

typedef double eight __attribute__((vector_size(64), may_alias));
typedef double four __attribute__((vector_size(32), may_alias));
typedef int64_t four_i64 __attribute__((vector_size(32), may_alias));
typedef int64_t eight_i64 __attribute__((vector_size(64), may_alias));
typedef int32_t eight_i32 __attribute__((vector_size(32), may_alias));
typedef uint32_t eight_u32 __attribute__((vector_size(32), may_alias));

static inline eight splat(double s)
{
    return (eight){s, s, s, s, s, s, s, s};
}

/* a * b + c, rounded once. */
static inline eight fused(eight a, eight b, eight c)
{
#if defined(__AVX512F__)
    return (eight)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__)
    __m256d x[2], y[2], z[2];
    memcpy(x, &a, 64);
    memcpy(y, &b, 64);
    memcpy(z, &c, 64);
    for (int i = 0; i < 2; i++)
        z[i] = _mm256_fmadd_pd(x[i], y[i], z[i]);
    memcpy(&c, z, 64);
    return c;
#else
    for (int i = 0; i < 8; i++)
        c[i] = fma(a[i], b[i], c[i]);
    return c;
#endif
}

static inline four fused_four(four a, four b, four c)
{
#if defined(__AVX2__)
    return (four)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    for (int i = 0; i < 4; i++)
        c[i] = fma(a[i], b[i], c[i]);
    return c;
#endif
}

/* A complex number a lane. */
typedef struct number {
    eight re, im;
} number;

static inline number load(const double *z)
{
    return (number){*(const eight *)(const void *)z,
                    *(const eight *)(const void *)(z + 8)};
}

static inline void store(double *z, number a)
{
    *(eight *)(void *)z = a.re;
    *(eight *)(void *)(z + 8) = a.im;
}

static inline number add(number a, number b)
{
    return (number){a.re + b.re, a.im + b.im};
}

static inline number subtract(number a, number b)
{
    return (number){a.re - b.re, a.im - b.im};
}

static inline number times_i(number a)
{
    return (number){-a.im, a.re};
}

/* a times the factor w[0] + i w[1], and times its conjugate. */
static inline number times(number a, const double *w)
{
    const eight re = splat(w[0]), im = splat(w[1]);
    return (number){fused(a.re, re, -(a.im * im)), fused(a.re, im, a.im * re)};
}

static inline number times_conjugate(number a, const double *w)
{
    const eight re = splat(w[0]), im = splat(w[1]);
    return (number){fused(a.re, re, a.im * im), fused(a.im, re, -(a.re * im))};
}

/* ---- forward ---- */

static void fold(int64_t n, const int32_t *x, double *z)
{
    const int64_t m = n / 2;
    for (int64_t j = 0; j < m; j++) {
        const eight_i32 re = *(const eight_i32 *)(const void *)(x + 8 * j);
        const eight_i32 im = *(const eight_i32 *)(const void *)(x + 8 * (j + m));
        store(z + 16 * j, (number){__builtin_convertvector(re, eight),
                                   __builtin_convertvector(im, eight)});
    }
}

static inline void split2(int64_t half, const double *w, double *z)
{
    for (int64_t j = 0; j < half; j++) {
        double *low = z + 16 * j, *high = low + 16 * half;
        const number a = load(low), b = times(load(high), w);
        store(low, add(a, b));
        store(high, subtract(a, b));
    }
}

/* Two steps at once: w is v1, v2 and v1 v2 (the other half has i v2). */
static inline __attribute__((always_inline)) void split4(int64_t quarter,
                                                         const double *w, double *z)
{
    for (int64_t j = 0; j < quarter; j++) {
        double *at[4];
        for (int64_t q = 0; q < 4; q++)
            at[q] = z + 16 * (j + q * quarter);
        const number a0 = load(at[0]), a1 = times(load(at[1]), w + 2);
        const number a2 = times(load(at[2]), w), a3 = times(load(at[3]), w + 4);
        const number b0 = add(a0, a2), b1 = add(a1, a3);
        const number b2 = subtract(a0, a2), b3 = times_i(subtract(a1, a3));
        store(at[0], add(b0, b1));
        store(at[1], subtract(b0, b1));
        store(at[2], add(b2, b3));
        store(at[3], subtract(b2, b3));
    }
}

/* Numbers that stay in the first cache while all passes that are left go over them. */
enum { NEAR = 64 };

/* How the passes begin: blocks of a size, after the single step if there is one. */
typedef struct passes {
    int64_t blocks, size, first; /* first: blocks of the first pass of radix 4 */
} passes;

static passes passes_of(int64_t m)
{
    const int64_t first = __builtin_ctzll((unsigned long long)m) % 2 ? 2 : 1;
    return (passes){.blocks = first, .size = m / first, .first = first};
}

/* Factors of block b of the pass with that many blocks. */
static const double *factors_of(const double *factors, const passes *p, int64_t blocks,
                                int64_t b)
{
    return factors + (p->first == 2 ? 2 : 0) + 2 * (blocks - p->first) + 6 * b;
}

static void forward(int64_t n, const double *factors, const int32_t *x, double *z)
{
    const int64_t m = n / 2;
    passes p = passes_of(m);
    fold(n, x, z);
    if (p.first == 2)
        split2(m / 2, factors, z);
    for (; p.size > NEAR; p.size /= 4, p.blocks *= 4)
        for (int64_t b = 0; b < p.blocks; b++)
            split4(p.size / 4, factors_of(factors, &p, p.blocks, b),
                   z + 16 * b * p.size);
    for (int64_t b = 0; b < p.blocks; b++)
        for (int64_t size = p.size, parts = 1; size > 1; size /= 4, parts *= 4)
            for (int64_t i = b * parts; i < (b + 1) * parts; i++)
                split4(size / 4, factors_of(factors, &p, p.blocks * parts, i),
                       z + 16 * i * size);
}

/* ---- inverse ---- */

static inline void join2(int64_t half, const double *w, double *z)
{
    for (int64_t j = 0; j < half; j++) {
        double *low = z + 16 * j, *high = low + 16 * half;
        const number a = load(low), b = load(high);
        store(low, add(a, b));
        store(high, times_conjugate(subtract(a, b), w));
    }
}

static inline __attribute__((always_inline)) void join4(int64_t quarter,
                                                        const double *w, double *z)
{
    for (int64_t j = 0; j < quarter; j++) {
        double *at[4];
        for (int64_t q = 0; q < 4; q++)
            at[q] = z + 16 * (j + q * quarter);
        const number c0 = load(at[0]), c1 = load(at[1]);
        const number c2 = load(at[2]), c3 = load(at[3]);
        const number b0 = add(c0, c1), b1 = subtract(c0, c1);
        const number b2 = add(c2, c3), b3 = times_i(subtract(c3, c2));
        store(at[0], add(b0, b2));
        store(at[1], times_conjugate(add(b1, b3), w + 2));
        store(at[2], times_conjugate(subtract(b0, b2), w));
        store(at[3], times_conjugate(subtract(b1, b3), w + 4));
    }
}

/* Added to a double below 2^51 in size, 1.5 2^52 leaves its whole part, rounded, in the
 * low bits. Multiples of 2^32, which do not count, are taken away before. */
static inline eight_u32 rounded(eight x)
{
    const eight magic = splat(0x1.8p52);
    const eight turns = fused(x, splat(0x1p-32), magic) - magic;
    const eight moved = fused(turns, splat(-0x1p32), x) + magic;
    eight_i64 bits;
    memcpy(&bits, &moved, 64);
    return __builtin_convertvector(bits, eight_u32);
}

static void unfold_add(int64_t n, const double *z, uint32_t *sum)
{
    const int64_t m = n / 2;
    for (int64_t j = 0; j < m; j++) {
        const number a = load(z + 16 * j);
        *(eight_u32 *)(void *)(sum + 8 * j) += rounded(a.re);
        *(eight_u32 *)(void *)(sum + 8 * (j + m)) += rounded(a.im);
    }
}

static void inverse_add(int64_t n, const double *factors, double *z, uint32_t *sum)
{
    const int64_t m = n / 2;
    passes p = passes_of(m);
    while (p.size > NEAR) {
        p.size /= 4;
        p.blocks *= 4;
    }
    for (int64_t b = 0; b < p.blocks; b++)
        for (int64_t size = 4, parts = p.size / 4; parts >= 1; size *= 4, parts /= 4)
            for (int64_t i = b * parts; i < (b + 1) * parts; i++)
                join4(size / 4, factors_of(factors, &p, p.blocks * parts, i),
                      z + 16 * i * size);
    while (p.blocks > p.first) {
        p.size *= 4;
        p.blocks /= 4;
        for (int64_t b = 0; b < p.blocks; b++)
            join4(p.size / 4, factors_of(factors, &p, p.blocks, b),
                  z + 16 * b * p.size);
    }
    if (p.first == 2)
        join2(m / 2, factors, z);
    unfold_add(n, z, sum);
}

/* ---- products ---- */

/* Columns that are summed at once, so that their sums stay in registers. */
#define PRODUCT_COLS(count)                                                    \
    static void product_##count(int64_t m, int rows, int cols, int64_t f,      \
                                const double *d, const double *g, double *out) \
    {                                                                          \
        number sum[count];                                                     \
        for (int c = 0; c < (count); c++)                                      \
            sum[c] = (number){splat(0), splat(0)};                             \
        for (int r = 0; r < rows; r++) {                                       \
            const number x = load(d + 16 * (r * m + f));                       \
            const double *w = g + 2 * (r * cols);                              \
            for (int c = 0; c < (count); c++) {                                \
                const eight re = splat(w[2 * c]), im = splat(w[2 * c + 1]);    \
                sum[c].re = fused(x.re, re, sum[c].re);                        \
                sum[c].re = fused(-x.im, im, sum[c].re);                       \
                sum[c].im = fused(x.re, im, sum[c].im);                        \
                sum[c].im = fused(x.im, re, sum[c].im);                        \
            }                                                                  \
        }                                                                      \
        for (int c = 0; c < (count); c++)                                      \
            store(out + 16 * (c * m + f), sum[c]);                             \
    }

PRODUCT_COLS(1)
PRODUCT_COLS(2)
PRODUCT_COLS(3)
PRODUCT_COLS(4)

static void product(int64_t m, int rows, int cols, const double *d, const double *g,
                    double *out)
{
    for (int64_t f = 0; f < m; f++, g += 2 * rows * cols)
        for (int c = 0; c < cols; c += 4) {
            double *to = out + 16 * c * m;
            switch (cols - c) {
            case 1:
                product_1(m, rows, cols, f, d, g + 2 * c, to);
                break;
            case 2:
                product_2(m, rows, cols, f, d, g + 2 * c, to);
                break;
            case 3:
                product_3(m, rows, cols, f, d, g + 2 * c, to);
                break;
            default:
                product_4(m, rows, cols, f, d, g + 2 * c, to);
                break;
            }
        }
}

/* Real and imaginary parts of four columns, or of two, in one vector: x.re w, then
 * x.im i w, as the sums above have it. */
static inline eight add_product(eight sum, double re, double im, const double *w)
{
    const eight_i64 swap = {1, 0, 3, 2, 5, 4, 7, 6};
    const eight imaginary = {-im, im, -im, im, -im, im, -im, im};
    eight factor;
    memcpy(&factor, w, sizeof factor);
    sum = fused(splat(re), factor, sum);
    return fused(imaginary, __builtin_shuffle(factor, swap), sum);
}

static inline four add_product_of_two(four sum, double re, double im, const double *w)
{
    const four_i64 swap = {1, 0, 3, 2};
    const four real = {re, re, re, re}, imaginary = {-im, im, -im, im};
    four factor;
    memcpy(&factor, w, sizeof factor);
    sum = fused_four(real, factor, sum);
    return fused_four(imaginary, __builtin_shuffle(factor, swap), sum);
}

/* Sums of four columns, and of those from the fifth on. */
typedef struct column_sums {
    eight low, high;
    four two; /* in the place of low (2 columns) or high (6) */
} column_sums;

static inline __attribute__((always_inline)) void
add_columns(column_sums *s, const int cols, double re, double im, const double *w)
{
    if (cols >= 4)
        s->low = add_product(s->low, re, im, w);
    if (cols == 8)
        s->high = add_product(s->high, re, im, w + 8);
    if (cols % 4 == 2)
        s->two = add_product_of_two(s->two, re, im, w + (cols == 6 ? 8 : 0));
}

static inline __attribute__((always_inline)) void
store_columns(const column_sums *s, const int cols, double *out)
{
    const eight_i64 even = {0, 2, 4, 6, 8, 10, 12, 14};
    const eight_i64 odd = {1, 3, 5, 7, 9, 11, 13, 15};
    const eight two = {s->two[0], s->two[1], s->two[2], s->two[3], 0, 0, 0, 0};
    const eight low = cols == 2 ? two : s->low;
    const eight high = cols == 6 ? two : s->high;
    store(out, (number){__builtin_shuffle(low, high, even),
                        __builtin_shuffle(low, high, odd)});
}

/* Numbers whose sums go on side by side, so that none waits for its last addition. */
enum { APART = 4 };

/* The next part of the key comes while this one is worked on: nothing else would keep
 * memory busy through the transforms. */
static inline __attribute__((always_inline)) void
product_one_of(int64_t m, int levels, const int cols, const double *d, const double *g,
               double *out)
{
    const int64_t each = 2 * cols * cols * levels;
    for (int64_t f = 0; f < m; f += APART, g += APART * each) {
        column_sums sum[APART];
        for (int i = 0; i < APART; i++)
            sum[i] = (column_sums){splat(0), splat(0), {0, 0, 0, 0}};
        const double *w = g;
        for (int c = 0; c < cols; c++)
            for (int l = 0; l < levels; l++, w += 2 * cols) {
                const double *x = d + 16 * (sti_negacyclic_group(cols, l) * m + f) +
                                  sti_negacyclic_lane(cols, l) + c;
                for (int i = 0; i < APART; i++) {
                    __builtin_prefetch(w + i * each + m * each, 0, 2);
                    add_columns(&sum[i], cols, x[16 * i], x[16 * i + 8], w + i * each);
                }
            }
        for (int i = 0; i < APART; i++)
            store_columns(&sum[i], cols, out + 16 * (f + i));
    }
}

static void product_one(int64_t m, int levels, int cols, const double *d,
                        const double *g, double *out)
{
    switch (cols) {
    case 2:
        product_one_of(m, levels, 2, d, g, out);
        break;
    case 4:
        product_one_of(m, levels, 4, d, g, out);
        break;
    case 6:
        product_one_of(m, levels, 6, d, g, out);
        break;
    default:
        product_one_of(m, levels, 8, d, g, out);
        break;
    }
}

/* X^j a is n neighbours of -a and a, one after the other. */
static void binary_add(int64_t n, const uint32_t *a, const uint32_t *bit,
                       uint32_t *a_twice, uint32_t *sum)
{
    for (int64_t i = 0; i < n; i++) {
        a_twice[i] = 0 - a[i];
        a_twice[n + i] = a[i];
    }
    for (int64_t j = 0; j < n; j++) {
        const uint32_t mask = bit[j];
        const uint32_t *from = a_twice + n - j;
        for (int64_t i = 0; i < n; i++)
            sum[i] += from[i] & mask;
    }
}

const sti_negacyclic_kernels NEGACYCLIC_KERNELS = {
    .forward = forward,
    .inverse_add = inverse_add,
    .product = product,
    .product_one = product_one,
    .binary_add = binary_add,
};
