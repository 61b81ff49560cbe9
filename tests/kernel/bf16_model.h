/* The order of sums that gemm_bf16.h promises, written as plainly as can be, and the
 * instruction sets that tests go through. */
#ifndef STI_TESTS_BF16_MODEL_H
#define STI_TESTS_BF16_MODEL_H

#include <float.h>

#include "gemm_model.h"
#include "kernel/lane/bf16.h"

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

static inline float model_bf16_add(float a, float b)
{
    return model_bf16_fma(a, 1.0F, b);
}

/* Operand k of one output. */
typedef float model_bf16_operand(const void *arg, int64_t k);

/* S + the sums of blocks of 32 over [k0, k1), with zeros up to a whole block. */
static inline float model_bf16_sum(model_bf16_operand *a, model_bf16_operand *b,
                                   const void *arg, int64_t k0, int64_t k1, float sum)
{
    for (int64_t block = k0; block < k1; block += 32) {
        float half[2] = {0.0F, 0.0F}; /* even, odd */
        for (int64_t k = block; k < block + 32; k++) {
            const bool there = k < k1;
            half[(k - block) % 2] =
                model_bf16_fma(there ? a(arg, k) : 0.0F, there ? b(arg, k) : 0.0F,
                               half[(k - block) % 2]);
        }
        sum = model_bf16_add(sum, model_bf16_add(half[0], half[1]));
    }
    return sum;
}

/* Never 0; bfloat16 numbers of a few units. */
static inline void model_bf16_fill(model_rng *r, sti_bf16 *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = sti_bf16_from_f32(((float)(model_random(r) % 4001) - 2000.5F) / 1024.0F);
}

/* The five ways: ref, avx2, avx512, its dot products, and the matrix unit; false where
 * the CPU lacks one. */
enum { MODEL_BF16_WAYS = 5 };
static inline bool model_bf16_force(int way)
{
    const sti_isa isa = way < (int)STI_ISA_AVX512 ? (sti_isa)way : STI_ISA_AVX512;
    const int unit = way - (int)isa;
    sti_bf16_unit_limit((sti_bf16_unit)unit);
    return sti_isa_force(isa) && (int)sti_bf16_unit_now() == unit;
}

#endif
