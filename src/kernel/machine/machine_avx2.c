/* Rates of AVX2 with FMA. */
#include "kernel/machine/machine_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { CHAINS = 12 };

static double rate_f32(int64_t rounds)
{
    volatile float sink;
    const __m256 half = _mm256_set1_ps(0.5F);
    const __m256 one = _mm256_set1_ps(1.0F);
    __m256 acc[CHAINS];
#pragma GCC unroll 16
    for (int c = 0; c < CHAINS; c++)
        acc[c] = _mm256_set1_ps((float)c);
    for (int64_t i = 0; i < rounds; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            acc[c] = _mm256_fmadd_ps(acc[c], half, one);
#pragma GCC unroll 16
    for (int c = 1; c < CHAINS; c++)
        acc[0] = _mm256_add_ps(acc[0], acc[c]);
    sink = _mm256_cvtss_f32(acc[0]);
    (void)sink;
    return 2.0 * 8 * CHAINS * (double)rounds;
}

static double rate_none(int64_t rounds)
{
    (void)rounds;
    return 0;
}

static uint64_t read_words(const void *x, int64_t bytes)
{
    const char *p = x;
    __m256i all[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        all[j] = _mm256_setzero_si256();
    for (int64_t i = 0; i < bytes; i += 256, p += 256)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            all[j % 4] = _mm256_or_si256(
                all[j % 4], _mm256_load_si256((const __m256i *)(const void *)p + j));
    all[0] = _mm256_or_si256(_mm256_or_si256(all[0], all[1]),
                             _mm256_or_si256(all[2], all[3]));
    return (uint64_t)_mm256_extract_epi64(all[0], 0) |
           (uint64_t)_mm256_extract_epi64(all[0], 3);
}

const sti_machine_kernels sti_machine_kernels_avx2 = {
    .f32 = rate_f32, .bf16 = rate_none, .int8 = rate_none, .read = read_words};
#else
typedef int sti_machine_avx2_unused;
#endif
