/* Body of the loops of interaction.h: included once by each instruction set's file,
 * which defines INTERACTION_KERNELS (the table's name). A vector of sixteen is one
 * register, two or four: lanes never mix but in the join, so the bits are the same. */
#include <string.h>

#include "kernel/interaction/interaction.h"

#pragma GCC diagnostic ignored "-Wpsabi"

typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));

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

static inline float join(sixteen v)
{
    float a[LANES];
    memcpy(a, &v, sizeof a);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            a[i] += a[i + half];
    return a[0];
}

static float dot(int64_t n, const float *a, const float *b)
{
    sixteen sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum += load(a + i) * load(b + i);
    if (i < n)
        sum += load_tail(a + i, n - i) * load_tail(b + i, n - i);
    return join(sum);
}

static void pairs(int64_t vectors, int64_t width, const float *x, float *y)
{
    for (int64_t i = 0; i < vectors; i++)
        for (int64_t j = i + 1; j < vectors; j++)
            *y++ = dot(width, x + i * width, x + j * width);
}

/* Place of pair (i, j), i < j. */
static inline int64_t place(int64_t vectors, int64_t i, int64_t j)
{
    return i * (2 * vectors - i - 1) / 2 + j - i - 1;
}

static void grad_row(int64_t vectors, int64_t width, int64_t i, const float *x,
                     const float *dy, float *dx)
{
    memset(dx, 0, (size_t)width * sizeof *dx);
    for (int64_t j = 0; j < vectors; j++) {
        if (j == i)
            continue;
        const float *from = x + j * width;
        const float d = dy[i < j ? place(vectors, i, j) : place(vectors, j, i)];
        for (int64_t k = 0; k < width; k++)
            dx[k] += d * from[k];
    }
}

static void grad(int64_t vectors, int64_t width, const float *x, const float *dy,
                 float *dx)
{
    for (int64_t i = 0; i < vectors; i++)
        grad_row(vectors, width, i, x, dy, dx + i * width);
}

const sti_interaction_kernels INTERACTION_KERNELS = {.pairs = pairs, .grad = grad};
