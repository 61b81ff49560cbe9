/* Body of the loops of interaction.h: included once by each instruction set's file,
 * which defines INTERACTION_KERNELS (the table's name). A vector of sixteen is one
 * register, two or four: lanes never mix but in the join, so the bits are the same. */
#include <string.h>

#include "kernel/interaction/interaction.h"

#pragma GCC diagnostic ignored "-Wpsabi"

typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(64)));

enum { LANES = 16 };

static inline sixteen load(const float *p)
{
    return *(const sixteen *)(const void *)p;
}

/* Up to fifteen elements, and zeros behind them. */
static inline sixteen load_tail(const float *p, int64_t n)
{
    float part[LANES] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return load(part);
}

/* The sixteen chains of elements of a dot product. */
static inline sixteen chains(int64_t n, const float *a, const float *b)
{
    sixteen sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum += load(a + i) * load(b + i);
    if (i < n)
        sum += load_tail(a + i, n - i) * load_tail(b + i, n - i);
    return sum;
}

#define PICK(a, b, ...) __builtin_shuffle(a, b, (lanes){__VA_ARGS__})

/* Lower halves of the parts of a and b plus their upper halves; parts have 16, 8, 4 or
 * 2 lanes. So two vectors become one, whose parts are half as long and twice as many.
 */
static inline sixteen halves(sixteen a, sixteen b, int part)
{
    switch (part) {
    case 16:
        return PICK(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               PICK(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    case 8:
        return PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
               PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    case 4:
        return PICK(a, b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
               PICK(a, b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
    default:
        return PICK(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
               PICK(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    }
}

/* The sums of the lanes of sixteen vectors, each joined by halves. */
static inline sixteen join(sixteen *v)
{
    for (int k = 0; k < 8; k++)
        v[k] = halves(v[2 * k], v[2 * k + 1], 16);
    for (int k = 0; k < 4; k++)
        v[k] = halves(v[2 * k], v[2 * k + 1], 8);
    for (int k = 0; k < 2; k++)
        v[k] = halves(v[2 * k], v[2 * k + 1], 4);
    return halves(v[0], v[1], 2);
}

static void pairs(int64_t vectors, int64_t width, const float *x, float *y)
{
    sixteen sum[LANES] = {0};
    int n = 0;
    for (int64_t i = 0; i < vectors; i++)
        for (int64_t j = i + 1; j < vectors; j++) {
            sum[n++] = chains(width, x + i * width, x + j * width);
            if (n < LANES)
                continue;
            const sixteen dot = join(sum);
            memcpy(y, &dot, sizeof dot);
            y += LANES;
            n = 0;
        }
    const sixteen dot = join(sum);
    memcpy(y, &dot, (size_t)n * sizeof *y);
}

/* Place of pair (i, j), i < j. */
static inline int64_t place(int64_t vectors, int64_t i, int64_t j)
{
    return i * (2 * vectors - i - 1) / 2 + j - i - 1;
}

enum { BLOCKS = 4 };

/* dx_i from element k on: BLOCKS vectors, which stay in registers, or one. */
static inline void grad_blocks(int64_t vectors, int64_t width, int64_t i, int64_t k,
                               int blocks, const float *x, const float *dy, float *dx)
{
    sixteen sum[BLOCKS] = {0};
    for (int64_t j = 0; j < vectors; j++) {
        if (j == i)
            continue;
        const float *from = x + j * width + k;
        const float d = dy[i < j ? place(vectors, i, j) : place(vectors, j, i)];
        for (int b = 0; b < blocks; b++)
            sum[b] += d * load(from + b * LANES);
    }
    memcpy(dx + k, sum, (size_t)blocks * sizeof *sum);
}

static void grad_tail(int64_t vectors, int64_t width, int64_t i, int64_t k,
                      const float *x, const float *dy, float *dx)
{
    for (; k < width; k++) {
        float sum = 0;
        for (int64_t j = 0; j < vectors; j++)
            if (j != i)
                sum += dy[i < j ? place(vectors, i, j) : place(vectors, j, i)] *
                       x[j * width + k];
        dx[k] = sum;
    }
}

static void grad_row(int64_t vectors, int64_t width, int64_t i, const float *x,
                     const float *dy, float *dx)
{
    int64_t k = 0;
    for (; k + BLOCKS * LANES <= width; k += BLOCKS * LANES)
        grad_blocks(vectors, width, i, k, BLOCKS, x, dy, dx);
    for (; k + LANES <= width; k += LANES)
        grad_blocks(vectors, width, i, k, 1, x, dy, dx);
    grad_tail(vectors, width, i, k, x, dy, dx);
}

static void grad(int64_t vectors, int64_t width, const float *x, const float *dy,
                 float *dx)
{
    for (int64_t i = 0; i < vectors; i++)
        grad_row(vectors, width, i, x, dy, dx + i * width);
}

const sti_interaction_kernels INTERACTION_KERNELS = {.pairs = pairs, .grad = grad};
