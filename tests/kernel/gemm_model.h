/* The order of sums that gemm.h promises, written as plainly as can be, and random
 * numbers for the tests of products. */
#ifndef STI_TESTS_GEMM_MODEL_H
#define STI_TESTS_GEMM_MODEL_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "guarded.h"
#include "kernel/gemm/gemm.h"
#include "test_size.h"

/* All random cases are tried by the full tests, and every second one by quick tests. A
 * sanitizer makes everything ten times as long and looks for accesses, not values:
 * there it is an eighth, models compute only one element in MODEL_STEP, and what tries
 * kernels on all thread counts tries fewer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MODEL_ROUNDS(n) (((n) + 7) / 8)
enum { MODEL_STEP = 17, MODEL_SANITIZED = true };
#else
#define MODEL_ROUNDS(n) (test_is_full() ? (n) : ((n) + 1) / 2)
enum { MODEL_STEP = 1, MODEL_SANITIZED = false };
#endif

typedef struct model_rng {
    uint64_t state;
} model_rng;

static inline uint32_t model_random(model_rng *r)
{
    r->state = r->state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(r->state >> 33);
}

/* low .. high */
static inline int64_t model_between(model_rng *r, int64_t low, int64_t high)
{
    return low + model_random(r) % (uint32_t)(high - low + 1);
}

/* Never 0, so that a tap too many or too few always shows. */
static inline void model_fill(model_rng *r, float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = ((float)(model_random(r) % 4001) - 2000.5F) / 1024.0F;
}

/* Operand k of one output. */
typedef float model_operand(const void *arg, int64_t k);

/* Operands of an output of two matrices. */
typedef struct model_strided {
    const float *a, *b;
    int64_t a_step, b_step;
} model_strided;

static inline float model_strided_a(const void *arg, int64_t k)
{
    const model_strided *s = arg;
    return s->a[k * s->a_step];
}

static inline float model_strided_b(const void *arg, int64_t k)
{
    const model_strided *s = arg;
    return s->b[k * s->b_step];
}

static inline float model_chain(model_operand *a, model_operand *b, const void *arg,
                                int64_t k0, int64_t k1, float acc)
{
    for (int64_t k = k0; k < k1; k++)
        acc = fmaf(a(arg, k), b(arg, k), acc);
    return acc;
}

/* sum(low, high) over chunks. */
static inline float model_tree(model_operand *a, model_operand *b, const void *arg,
                               int64_t low, int64_t high, int64_t k, float start)
{
    if (high - low <= 1) {
        const int64_t k1 =
            (low + 1) * STI_GEMM_CHUNK < k ? (low + 1) * STI_GEMM_CHUNK : k;
        return model_chain(a, b, arg, low * STI_GEMM_CHUNK, k1,
                           low == 0 ? start : 0.0F);
    }
    int64_t half = 1;
    while (2 * half < high - low)
        half *= 2;
    return model_tree(a, b, arg, low, low + half, k, start) +
           model_tree(a, b, arg, low + half, high, k, start);
}

static inline float model_sum(model_operand *a, model_operand *b, const void *arg,
                              int64_t k, float start)
{
    return model_tree(a, b, arg, 0, (k + STI_GEMM_CHUNK - 1) / STI_GEMM_CHUNK, k,
                      start);
}

static inline double model_sum_double(model_operand *a, model_operand *b,
                                      const void *arg, int64_t k, double *magnitude_out)
{
    double sum = 0.0, magnitude = 0.0;
    for (int64_t i = 0; i < k; i++) {
        const double term = (double)a(arg, i) * (double)b(arg, i);
        sum += term;
        magnitude += fabs(term);
    }
    *magnitude_out = magnitude;
    return sum;
}

static inline float model_epilogue(float v, const float *bias, bool relu)
{
    if (bias)
        v += *bias;
    return relu && 0.0F > v ? 0.0F : v;
}

/* Index of the first float whose bits differ, or -1. */
static inline int64_t model_differ(const float *x, const float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(x + i, y + i, sizeof *x) != 0)
            return i;
    return -1;
}

/* The same of those that the model has computed. */
static inline int64_t model_differ_sampled(const float *x, const float *y,
                                           int64_t count)
{
    for (int64_t i = 0; i < count; i += MODEL_STEP)
        if (memcmp(x + i, y + i, sizeof *x) != 0)
            return i;
    return -1;
}

/* Exactly `count` floats, and no kernel may count on alignment. Free with model_free.
 */
static inline float *model_floats(int64_t count)
{
    return guarded_alloc((size_t)count * sizeof(float));
}

static inline void model_free(float *x)
{
    guarded_free(x);
}

#endif
