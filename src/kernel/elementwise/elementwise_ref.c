/* Element-wise loops, portable form. */
#include <stdint.h>

static inline unsigned sign_bits_8(const float *x)
{
    unsigned bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (unsigned)(x[i] > 0.0f) << i;
    return bits;
}

static inline void relu_grad_8(float slope, const float *dy, unsigned bits, float *dx)
{
    for (int i = 0; i < 8; i++) {
        float off = slope == 0.0f ? 0.0f : slope * dy[i];
        dx[i] = bits >> i & 1 ? dy[i] : off;
    }
}

#define SIGN_BITS_8 sign_bits_8
#define RELU_GRAD_8 relu_grad_8
#define TABLE       sti_elementwise_ref
#include "kernel/elementwise/elementwise_body.h"
