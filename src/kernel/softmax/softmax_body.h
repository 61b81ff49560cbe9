/* Body of the loops of softmax_row.h, vectorised by the compiler: included once by each
 * instruction set's file, which defines SOFTMAX_KERNELS (the table's name). Entry i of
 * a row goes to accumulator i % 16 on every instruction set. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernel/maths/maths.h"
#include "kernel/softmax/softmax_row.h"

enum { LANES = 16 };

static inline float join(const float *acc)
{
    float a[LANES / 2];
    for (int i = 0; i < 8; i++)
        a[i] = acc[i] + acc[i + 8];
    for (int i = 0; i < 4; i++)
        a[i] += a[i + 4];
    return (a[0] + a[2]) + (a[1] + a[3]);
}

static float row_max(int64_t n, const float *x)
{
    float acc[LANES], m = -INFINITY;
    for (int l = 0; l < LANES; l++)
        acc[l] = -INFINITY;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            acc[l] = x[i + l] > acc[l] ? x[i + l] : acc[l];
    for (; i < n; i++)
        m = x[i] > m ? x[i] : m;
    for (int l = 0; l < 8; l++)
        acc[l] = acc[l + 8] > acc[l] ? acc[l + 8] : acc[l];
    for (int l = 0; l < 4; l++)
        acc[l] = acc[l + 4] > acc[l] ? acc[l + 4] : acc[l];
    for (int l = 0; l < 4; l++)
        m = acc[l] > m ? acc[l] : m;
    return m;
}

/* The last terms, fewer than LANES; missing ones are 0. */
static inline void exp_tail(int64_t n, float m, const float *x, float *e)
{
    float d[LANES];
    for (int l = 0; l < LANES; l++)
        d[l] = l < n ? x[l] - m : -INFINITY;
    for (int l = 0; l < LANES; l++)
        e[l] = sti_exp_f32(d[l]);
}

static inline float exp_sum(int64_t n, float m, const float *x, float *y, bool keep)
{
    float acc[LANES] = {0}, e[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < LANES; l++)
            e[l] = sti_exp_f32(x[i + l] - m);
        for (int l = 0; l < LANES; l++)
            acc[l] += e[l];
        for (int l = 0; l < LANES && keep; l++)
            y[i + l] = e[l];
    }
    if (i < n) {
        exp_tail(n - i, m, x + i, e);
        for (int l = 0; l < LANES; l++)
            acc[l] += e[l];
        for (int64_t l = 0; l < n - i && keep; l++)
            y[i + l] = e[l];
    }
    return join(acc);
}

static float row_exp_sum(int64_t n, float m, const float *x, float *y)
{
    return y ? exp_sum(n, m, x, y, true) : exp_sum(n, m, x, NULL, false);
}

static float row_shifted_sum(int64_t n, float m, const float *x)
{
    float acc[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            acc[l] += x[i + l] - m;
    for (int l = 0; i + l < n; l++)
        acc[l] += x[i + l] - m;
    return join(acc);
}

static void row_finish(int64_t n, float sum, float base, float factor, float *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = factor * (y[i] / sum - base);
}

static void row_join(int64_t n, float *s, float *stats, int64_t size, float *out)
{
    const float largest = row_max(n, s);
    const float top = largest > stats[0] ? largest : stats[0];
    const float shrink = sti_exp_f32(stats[0] - top);
    stats[1] = stats[1] * shrink + exp_sum(n, top, s, s, true);
    stats[0] = top;
    for (int64_t c = 0; c < size; c++)
        out[c] *= shrink;
}

static void row_weights(int64_t n, float m, float inverse, float d, float factor,
                        float *restrict s, float *restrict ds)
{
    for (int64_t i = 0; i < n; i++) {
        const float weight = sti_exp_f32(s[i] - m) * inverse;
        s[i] = weight;
        ds[i] = weight * (ds[i] - d) * factor;
    }
}

/* Sixteen entries, of which those from n on count nothing. */
static inline void distil_lanes(int64_t n, const sti_distil_row *d, const float *u,
                                const float *v, float acc[STI_DISTIL_SUMS][LANES])
{
    float a[LANES], b[LANES], apart[LANES], q[LANES];
    for (int l = 0; l < LANES; l++) {
        a[l] = l < n ? u[l] - d->max_u : -INFINITY;
        b[l] =
            l < n && !(v[l] < d->least_v) ? (v[l] - d->max_v) * d->inverse : -INFINITY;
        apart[l] = l < n ? u[l] - v[l] : 0.0f;
    }
    for (int l = 0; l < LANES; l++) {
        q[l] = sti_exp_f32(b[l]);
        acc[STI_DISTIL_SUM_U][l] += sti_exp_f32(a[l]);
        acc[STI_DISTIL_SUM_SOFT_U][l] += sti_exp_f32(a[l] * d->inverse);
        acc[STI_DISTIL_SUM_SOFT_V][l] += q[l];
        acc[STI_DISTIL_SUM_PRODUCT][l] += l < n ? q[l] * (a[l] * d->inverse) : 0.0f;
        acc[STI_DISTIL_SUM_SQUARES][l] += apart[l] * apart[l];
    }
}

static void row_distil_sums(int64_t n, const sti_distil_row *d, const float *u,
                            const float *v, float *sums)
{
    float acc[STI_DISTIL_SUMS][LANES] = {{0}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        distil_lanes(LANES, d, u + i, v + i, acc);
    if (i < n)
        distil_lanes(n - i, d, u + i, v + i, acc);
    for (int s = 0; s < STI_DISTIL_SUMS; s++)
        sums[s] = join(acc[s]);
}

static void row_distil_gradient(int64_t n, const sti_distil_row *d, float *restrict u,
                                const float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        const float a = u[i] - d->max_u, b = (v[i] - d->max_v) * d->inverse;
        const float q = sti_exp_f32(v[i] < d->least_v ? -INFINITY : b);
        u[i] = d->by_u * sti_exp_f32(a) + d->by_soft_u * sti_exp_f32(a * d->inverse) -
               d->by_soft_v * q + d->by_apart * (u[i] - v[i]);
    }
}

const sti_softmax_kernels SOFTMAX_KERNELS = {
    .max = row_max,
    .exp_sum = row_exp_sum,
    .shifted_sum = row_shifted_sum,
    .finish = row_finish,
    .join = row_join,
    .weights = row_weights,
    .distil_sums = row_distil_sums,
    .distil_gradient = row_distil_gradient,
};
