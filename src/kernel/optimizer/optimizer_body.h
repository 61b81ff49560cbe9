/* Body of the loops of optimizer_segment.h, vectorised by the compiler: included once
 * by each instruction set's file, which defines OPTIMIZER_KERNELS (the table's name).
 */
#include <math.h>

#include "kernel/optimizer/optimizer_segment.h"

/* A factor of 1 or 0 changes no bits (but for the sign of a zero), so that decay needs
 * no loops of its own. */
static void segment_sgd(const sti_sgd_factors *f, int64_t n, float *restrict p,
                        const float *restrict g)
{
    const sti_sgd_factors k = *f;
    for (int64_t i = 0; i < n; i++) {
        const float d = g[i] * k.gradient_scale + k.decay * p[i];
        p[i] = p[i] * k.keep - k.lr * d;
    }
}

static void segment_sgd_momentum(const sti_sgd_factors *f, int64_t n, float *restrict p,
                                 const float *restrict g, float *restrict m)
{
    const sti_sgd_factors k = *f;
    for (int64_t i = 0; i < n; i++) {
        const float d = g[i] * k.gradient_scale + k.decay * p[i];
        const float v = k.momentum * m[i] + d;
        const float step = k.nesterov ? d + k.momentum * v : v;
        m[i] = v;
        p[i] = p[i] * k.keep - k.lr * step;
    }
}

static void segment_adam(const sti_adam_factors *f, int64_t n, float *restrict p,
                         const float *restrict g, float *restrict m, float *restrict v)
{
    const sti_adam_factors k = *f;
    for (int64_t i = 0; i < n; i++) {
        const float d = g[i] * k.gradient_scale + k.decay * p[i];
        const float first = k.beta1 * m[i] + k.rest1 * d;
        const float second = k.beta2 * v[i] + k.rest2 * (d * d);
        const float root = sqrtf(second) / k.root2 + k.epsilon;
        m[i] = first;
        v[i] = second;
        p[i] = p[i] * k.keep - k.step * (first / root);
    }
}

static void segment_rmsprop(const sti_rmsprop_factors *f, int64_t n, float *restrict p,
                            const float *restrict g, float *restrict v)
{
    const sti_rmsprop_factors k = *f;
    for (int64_t i = 0; i < n; i++) {
        const float d = g[i] * k.gradient_scale + k.decay * p[i];
        const float square = k.alpha * v[i] + k.rest * (d * d);
        v[i] = square;
        p[i] = p[i] * k.keep - k.lr * (d / (sqrtf(square) + k.epsilon));
    }
}

const sti_optimizer_kernels OPTIMIZER_KERNELS = {
    .sgd = segment_sgd,
    .sgd_momentum = segment_sgd_momentum,
    .adam = segment_adam,
    .rmsprop = segment_rmsprop,
};
