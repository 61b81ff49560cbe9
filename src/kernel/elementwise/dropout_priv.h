/* The loop of dropout for AVX-512. Private to the family. */
#ifndef STI_KERNEL_DROPOUT_PRIV_H
#define STI_KERNEL_DROPOUT_PRIV_H

#include "kernel/elementwise/dropout.h"

/* Elements of a step of the loop: 32 blocks of random words. */
enum { STI_DROPOUT_STEP = 128 };

#if defined(__x86_64__)
/* n elements, a multiple of the step, whose first block has the counter (a, b), b a
 * multiple of 32. y = x * factor where the uniform number is >= rate, else +0. */
void sti_dropout_avx512(uint64_t seed, uint64_t a, uint64_t b, float rate, float factor,
                        int64_t n, const float *x, float *y);
#endif

#endif
