/* The inner loops of optimizer.h: a piece of a segment, with every factor made
 * beforehand. Private to the kernel room. */
#ifndef STI_KERNEL_OPTIMIZER_SEGMENT_H
#define STI_KERNEL_OPTIMIZER_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sti_sgd_factors {
    float lr, momentum, gradient_scale;
    float keep;  /* p *= keep: 1 - lr decay, or 1 */
    float decay; /* g += decay p, or 0 */
    bool nesterov;
} sti_sgd_factors;

typedef struct sti_adam_factors {
    float gradient_scale, keep, decay; /* as above */
    float beta1, rest1, beta2, rest2;  /* rest = 1 - beta */
    float step, root2, epsilon;        /* lr / correction1, sqrt(correction2) */
} sti_adam_factors;

typedef struct sti_rmsprop_factors {
    float lr, gradient_scale, keep, decay; /* as above */
    float alpha, rest, epsilon;            /* rest = 1 - alpha */
} sti_rmsprop_factors;

typedef struct sti_optimizer_kernels {
    void (*sgd)(const sti_sgd_factors *f, int64_t n, float *restrict p,
                const float *restrict g);
    void (*sgd_momentum)(const sti_sgd_factors *f, int64_t n, float *restrict p,
                         const float *restrict g, float *restrict m);
    void (*adam)(const sti_adam_factors *f, int64_t n, float *restrict p,
                 const float *restrict g, float *restrict m, float *restrict v);
    void (*rmsprop)(const sti_rmsprop_factors *f, int64_t n, float *restrict p,
                    const float *restrict g, float *restrict v);
} sti_optimizer_kernels;

extern const sti_optimizer_kernels sti_optimizer_kernels_ref;
#if defined(__x86_64__)
extern const sti_optimizer_kernels sti_optimizer_kernels_avx2,
    sti_optimizer_kernels_avx512;
#endif

#endif
