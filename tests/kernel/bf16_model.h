/* The order of sums that gemm_bf16.h promises, written as plainly as can be, and the
 * instruction sets that tests go through. */
#ifndef STI_TESTS_BF16_MODEL_H
#define STI_TESTS_BF16_MODEL_H

#include <float.h>

#include "gemm_model.h"
#include "kernel/bf16.h"

/* a b + c with denormals as zeros, and results that are denormal before the last
 * rounding too. */
static inline float model_bf16_fma(float a, float b, float c)
{
    a = fabsf(a) < FLT_MIN ? copysignf(0.0F, a) : a;
    b = fabsf(b) < FLT_MIN ? copysignf(0.0F, b) : b;
    c = fabsf(c) < FLT_MIN ? copysignf(0.0F, c) : c;
    const float r = fmaf(a, b, c);
    if (fabsf(r) > FLT_MIN || isnan(r))
        return r;
    /* Tiny if a result of 24 bits and any exponent were below FLT_MIN. The sum of the
     * exact product and c, both near FLT_MIN, has an error that a second sum shows. */
    const double p = (double)a * (double)b, d = p + (double)c;
    const double t = d - p, rest = (p - (d - t)) + ((double)c - t);
    const double limit = 0x1p-126 - 0x1p-151, size = fabs(d) - limit;
    const bool tiny = size < 0 || (size == 0 && (d > 0 ? rest < 0 : rest > 0));
    return tiny ? copysignf(0.0F, r) : r;
}

/* Operand k of one output; zero beyond its k. */
typedef float model_bf16_operand(const void *arg, int64_t k);

/* One chain over [k0, k1). */
static inline float model_bf16_chain(model_bf16_operand *a, model_bf16_operand *b,
                                     const void *arg, int64_t k0, int64_t k1)
{
    float acc = 0.0F;
    for (int64_t k = k0; k < k1; k += 2) {
        const bool odd = k + 1 < k1;
        acc =
            model_bf16_fma(odd ? a(arg, k + 1) : 0.0F, odd ? b(arg, k + 1) : 0.0F, acc);
        acc = model_bf16_fma(a(arg, k), b(arg, k), acc);
    }
    return acc;
}

/* Chunks low .. high of `step` k each. */
static inline float model_bf16_sum(model_bf16_operand *a, model_bf16_operand *b,
                                   const void *arg, int64_t low, int64_t high,
                                   int64_t step, int64_t k)
{
    if (high - low <= 1) {
        const int64_t end = (low + 1) * step < k ? (low + 1) * step : k;
        return model_bf16_chain(a, b, arg, low * step, end);
    }
    int64_t half = 1;
    while (2 * half < high - low)
        half *= 2;
    return model_bf16_sum(a, b, arg, low, low + half, step, k) +
           model_bf16_sum(a, b, arg, low + half, high, step, k);
}

/* Never 0; bfloat16 numbers of a few units. */
static inline void model_bf16_fill(model_rng *r, sti_bf16 *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = sti_bf16_from_f32(((float)(model_random(r) % 4001) - 2000.5F) / 1024.0F);
}

/* The four ways: ref, avx2, avx512 without and with AVX512_BF16; false where the CPU
 * lacks one. */
enum { MODEL_BF16_WAYS = 4 };
static inline bool model_bf16_force(int way)
{
    static const sti_isa isa[MODEL_BF16_WAYS] = {STI_ISA_REF, STI_ISA_AVX2,
                                                 STI_ISA_AVX512, STI_ISA_AVX512};
    sti_cpu_hide_bf16(way == 2);
    return sti_isa_force(isa[way]) && (way < 3 || sti_cpu_has_bf16());
}

#endif
