/* Body of the loops of row_update.h: included once by each instruction set's file,
 * which defines ROW_KERNELS (the table's name). */
#include <math.h>
#include <string.h>

#include "kernel/row/row_update.h"

static void sum(int64_t width, const float *gradient, int64_t count,
                const uint32_t *index, float scale, float *restrict g)
{
    memcpy(g, gradient + index[0] * width, (size_t)width * sizeof *g);
    for (int64_t k = 1; k < count; k++) {
        const float *from = gradient + index[k] * width;
        for (int64_t i = 0; i < width; i++)
            g[i] += from[i];
    }
    for (int64_t i = 0; i < width; i++)
        g[i] *= scale;
}

static void step_sgd(const sti_row_update *u, const float *restrict g,
                     float *restrict w)
{
    const float lr = u->lr;
    for (int64_t i = 0; i < u->width; i++)
        w[i] -= lr * g[i];
}

static void step_adagrad(const sti_row_update *u, const float *restrict g,
                         float *restrict w, float *restrict s)
{
    const float lr = u->lr, epsilon = u->epsilon;
    for (int64_t i = 0; i < u->width; i++) {
        s[i] += g[i] * g[i];
        w[i] -= lr * (g[i] / (sqrtf(s[i]) + epsilon));
    }
}

/* Sixteen chains of elements that are sixteen apart, joined by halves. */
static float squares(int64_t n, const float *restrict g)
{
    float chain[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            chain[k] += g[i + k] * g[i + k];
    for (int k = 0; i < n; i++, k++)
        chain[k] += g[i] * g[i];
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            chain[k] += chain[k + half];
    return chain[0];
}

static void step_rowwise(const sti_row_update *u, const float *restrict g,
                         float *restrict w, float *restrict s)
{
    *s += squares(u->width, g) / (float)u->width;
    const float rate = u->lr / (sqrtf(*s) + u->epsilon);
    for (int64_t i = 0; i < u->width; i++)
        w[i] -= rate * g[i];
}

static void step_adam(const sti_row_update *u, const float *restrict g,
                      float *restrict w, float *restrict m, float *restrict v)
{
    const sti_row_update k = *u;
    for (int64_t i = 0; i < k.width; i++) {
        m[i] += (g[i] - m[i]) * k.rest1;
        v[i] += (g[i] * g[i] - v[i]) * k.rest2;
        w[i] -= k.step * (m[i] / (sqrtf(v[i]) + k.epsilon));
    }
}

static void step(const sti_row_update *u, const float *g, float *record)
{
    float *state = record + u->width;
    switch (u->rule) {
    case STI_ROW_SGD:
        step_sgd(u, g, record);
        break;
    case STI_ROW_ADAGRAD:
        step_adagrad(u, g, record, state);
        break;
    case STI_ROW_ROWWISE_ADAGRAD:
        step_rowwise(u, g, record, state);
        break;
    case STI_ROW_LAZY_ADAM:
        step_adam(u, g, record, state, state + u->width);
        break;
    }
}

const sti_row_kernels ROW_KERNELS = {.sum = sum, .step = step};
