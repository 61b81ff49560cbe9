/* Depthwise convolution: one input and one output channel a group, so vectors lie along
 * the channels and no operand is packed. Private to the kernel room. */
#ifndef STI_KERNEL_CONV_DEPTHWISE_H
#define STI_KERNEL_CONV_DEPTHWISE_H

#include <stdbool.h>
#include <stdint.h>

/* c[p * c_row + j] = chain over runs i of a[a_run[i] + p * a_row + j] * b[b_run[i] +
 * j], then bias[j] and ReLU, for p < pixels, j < channels. */
typedef struct sti_depthwise_line {
    const float *a;
    int64_t a_row;
    const int64_t *a_run;
    const float *b;
    const int64_t *b_run;
    int64_t runs;
    float *c;
    int64_t c_row;
    int64_t pixels, channels;
    const float *bias; /* or NULL */
    bool relu;
} sti_depthwise_line;

/* c[t * channels + j] = chain over runs i and steps k of a[a_run[i] + k * a_step +
 * t * channels + j] * dy[(i * run_k + k) * channels + j], starting from c if load. */
typedef struct sti_depthwise_grad {
    const float *a;
    int64_t a_step;
    const int64_t *a_run;
    const float *dy;
    int64_t runs, run_k;
    int64_t taps, channels;
    float *c;
    bool load;
} sti_depthwise_grad;

typedef struct sti_depthwise_kernels {
    void (*line)(const sti_depthwise_line *line);
    void (*grad)(const sti_depthwise_grad *grad);
} sti_depthwise_kernels;

extern const sti_depthwise_kernels sti_depthwise_kernels_ref;
#if defined(__x86_64__)
extern const sti_depthwise_kernels sti_depthwise_kernels_avx2;
extern const sti_depthwise_kernels sti_depthwise_kernels_avx512;
#endif

/* Those of sti_isa_now(). */
const sti_depthwise_kernels *sti_depthwise_kernels_now(void);

#endif
