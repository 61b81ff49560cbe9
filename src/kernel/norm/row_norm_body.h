/* The loops of row_norm_row.h, included once by the file of each instruction set, which
 * defines TABLE. Plain loops over 16 lanes, which the compiler vectorises: the order of
 * every sum is in the source. */
#include <math.h>
#include <string.h>

#include "kernel/norm/row_norm_row.h"

enum { LANES = 16, STEP = 4 * LANES };

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

static inline float join(float acc[4][LANES])
{
    float a[LANES];
    for (int l = 0; l < LANES; l++)
        a[l] = (acc[0][l] + acc[1][l]) + (acc[2][l] + acc[3][l]);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            a[l] += a[l + half];
    return a[0];
}

/* acc += value(i) for the elements of a row, each in its lane. */
#define SUM_LOOP(n, acc, value)                                   \
    do {                                                          \
        int64_t at = 0;                                           \
        for (; at + STEP <= (n); at += STEP)                      \
            for (int k = 0; k < 4; k++)                           \
                for (int l = 0; l < LANES; l++) {                 \
                    const int64_t i = at + k * LANES + l;         \
                    (acc)[k][l] += (value);                       \
                }                                                 \
        for (int64_t i = at; i < (n); i++)                        \
            (acc)[(i - at) / LANES][(i - at) % LANES] += (value); \
    } while (0)

static float row_sum(int64_t n, const float *x)
{
    float acc[4][LANES] = {{0}};
    SUM_LOOP(n, acc, x[i]);
    return join(acc);
}

static float row_squares(int64_t n, const float *x, float m)
{
    float acc[4][LANES] = {{0}};
    SUM_LOOP(n, acc, (x[i] - m) * (x[i] - m));
    return join(acc);
}

static void row_apply(int64_t n, const float *x, float mean, float inv,
                      const float *scale, const float *shift, float *y)
{
    if (shift) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * inv * scale[i] + shift[i];
        return;
    }
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * inv * scale[i];
}

static void row_moments(int64_t n, const float *dy, const float *x, const float *scale,
                        float mean, float inv, float sum[2])
{
    float g[4][LANES] = {{0}}, gh[4][LANES] = {{0}};
    SUM_LOOP(n, g, dy[i] * scale[i]);
    SUM_LOOP(n, gh, dy[i] * scale[i] * ((x[i] - mean) * inv));
    sum[0] = join(g);
    sum[1] = join(gh);
}

static void row_grad(int64_t n, const float *dy, const float *x, const float *scale,
                     float mean, float inv, float a, float b, float *dscale,
                     float *dshift, float *dx)
{
    if (dshift) {
        INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            dshift[i] += dy[i];
    }
    INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float d = dy[i], h = (x[i] - mean) * inv;
        dscale[i] += d * h;
        dx[i] = inv * (d * scale[i] - a - h * b);
    }
}

static void row_add(int64_t n, const float *x, float *y)
{
    INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

const sti_row_norm_kernels TABLE = {
    .sum = row_sum,
    .squares = row_squares,
    .apply = row_apply,
    .moments = row_moments,
    .grad = row_grad,
    .add = row_add,
};
