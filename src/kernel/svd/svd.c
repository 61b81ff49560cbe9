#include "kernel/svd/svd.h"

#include <math.h>
#include <stdbool.h>

enum { SWEEPS = 60 };
#define ENOUGH 1e-14

/* The vectors that are turned lie as rows, each contiguous: u [n, long] and what has
 * been done to them, v [n, n]. */
typedef struct work {
    int64_t n, length;
    double *u, *v;
} work;

int64_t sti_svd_scratch(int64_t rows, int64_t columns)
{
    const int64_t n = rows < columns ? rows : columns;
    return rows * columns + n * n + n;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void rotate(double *a, double *b, int64_t n, double c, double s)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* Make vectors p and q orthogonal; false: they were. */
static bool turn(work *w, int64_t p, int64_t q)
{
    double *a = w->u + p * w->length, *b = w->u + q * w->length;
    const double aa = dot(a, a, w->length), bb = dot(b, b, w->length);
    const double ab = dot(a, b, w->length);
    if (fabs(ab) <= ENOUGH * sqrt(aa) * sqrt(bb))
        return false;
    const double zeta = (bb - aa) / (2 * ab);
    const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
    const double c = 1 / sqrt(1 + t * t), s = c * t;
    rotate(a, b, w->length, c, s);
    rotate(w->v + p * w->n, w->v + q * w->n, w->n, c, s);
    return true;
}

static void begin(work *w, const float *a, int64_t columns, bool tall)
{
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t k = 0; k < w->length; k++)
            w->u[i * w->length + k] =
                (double)(tall ? a[k * columns + i] : a[i * columns + k]);
    for (int64_t i = 0; i < w->n * w->n; i++)
        w->v[i] = i % (w->n + 1) == 0;
}

static int64_t next_largest(const double *norm, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (norm[i] > norm[best])
            best = i;
    return best;
}

/* Singular vectors of the long and the short side, in order, to where they belong. */
static void put(const work *w, int64_t from, int64_t to, double value, bool tall,
                int64_t columns, double *left, double *right)
{
    const double *u = w->u + from * w->length, *v = w->v + from * w->n;
    for (int64_t k = 0; k < w->length; k++) {
        const double x = value > 0 ? u[k] / value : 0;
        if (tall)
            left[k * w->n + to] = x;
        else
            right[to * columns + k] = x;
    }
    for (int64_t k = 0; k < w->n; k++) {
        if (tall)
            right[to * columns + k] = v[k];
        else
            left[k * w->n + to] = v[k];
    }
}

void sti_svd(int64_t rows, int64_t columns, const float *a, double *value, double *left,
             double *right, double *scratch)
{
    const bool tall = rows >= columns;
    work w = {.n = tall ? columns : rows, .length = tall ? rows : columns};
    bool turned = true;
    w.u = scratch;
    w.v = w.u + w.n * w.length;
    double *norm = w.v + w.n * w.n;
    begin(&w, a, columns, tall);
    for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
        turned = false;
        for (int64_t p = 0; p < w.n - 1; p++)
            for (int64_t q = p + 1; q < w.n; q++)
                turned = turn(&w, p, q) || turned;
    }
    for (int64_t i = 0; i < w.n; i++)
        norm[i] = sqrt(dot(w.u + i * w.length, w.u + i * w.length, w.length));
    for (int64_t to = 0; to < w.n; to++) {
        const int64_t from = next_largest(norm, w.n);
        value[to] = norm[from];
        norm[from] = -1; /* taken */
        put(&w, from, to, value[to], tall, columns, left, right);
    }
}
