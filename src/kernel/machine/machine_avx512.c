/* Rates of AVX-512, with bf16 products of the matrix unit (AMX) or else of its own, and
 * its 8-bit dot products, where the CPU has them. */
#include "base/cpu.h"
#include "kernel/machine/machine_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { CHAINS = 12 };

static double rate_f32(int64_t rounds)
{
    volatile float sink;
    const __m512 half = _mm512_set1_ps(0.5F);
    const __m512 one = _mm512_set1_ps(1.0F);
    __m512 acc[CHAINS];
#pragma GCC unroll 16
    for (int c = 0; c < CHAINS; c++)
        acc[c] = _mm512_set1_ps((float)c);
    for (int64_t i = 0; i < rounds; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            acc[c] = _mm512_fmadd_ps(acc[c], half, one);
#pragma GCC unroll 16
    for (int c = 1; c < CHAINS; c++)
        acc[0] = _mm512_add_ps(acc[0], acc[c]);
    sink = _mm512_cvtss_f32(acc[0]);
    (void)sink;
    return 2.0 * 16 * CHAINS * (double)rounds;
}

__attribute__((target("avx512bf16"))) static double dots_bf16(int64_t rounds)
{
    volatile float sink;
    const __m512i halves = _mm512_set1_epi32(0x3f003f00);
    __m512 acc[CHAINS];
#pragma GCC unroll 16
    for (int c = 0; c < CHAINS; c++)
        acc[c] = _mm512_set1_ps((float)c);
    for (int64_t i = 0; i < rounds; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            acc[c] = _mm512_dpbf16_ps(acc[c], (__m512bh)halves, (__m512bh)halves);
#pragma GCC unroll 16
    for (int c = 1; c < CHAINS; c++)
        acc[0] = _mm512_add_ps(acc[0], acc[c]);
    sink = _mm512_cvtss_f32(acc[0]);
    (void)sink;
    return 2.0 * 32 * CHAINS * (double)rounds;
}

__attribute__((target("avx512vnni"))) static double dots_int8(int64_t rounds)
{
    volatile int sink;
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i acc[CHAINS];
#pragma GCC unroll 16
    for (int c = 0; c < CHAINS; c++)
        acc[c] = _mm512_set1_epi32(c);
    for (int64_t i = 0; i < rounds; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            acc[c] = _mm512_dpbusd_epi32(acc[c], ones, ones);
#pragma GCC unroll 16
    for (int c = 1; c < CHAINS; c++)
        acc[0] = _mm512_add_epi32(acc[0], acc[c]);
    sink = _mm512_cvtsi512_si32(acc[0]);
    (void)sink;
    return 2.0 * 64 * CHAINS * (double)rounds;
}

static double rate_bf16(int64_t rounds)
{
    switch (sti_bf16_unit_now()) {
    case STI_BF16_MATRIX:
        return sti_machine_bf16_amx(rounds);
    case STI_BF16_DOT:
        return dots_bf16(rounds);
    case STI_BF16_NONE:
    default:
        return 0;
    }
}

static double rate_int8(int64_t rounds)
{
    return __builtin_cpu_supports("avx512vnni") ? dots_int8(rounds) : 0;
}

static uint64_t read_words(const void *x, int64_t bytes)
{
    const char *p = x;
    __m512i all[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
        all[j] = _mm512_setzero_si512();
    for (int64_t i = 0; i < bytes; i += 512, p += 512)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++)
            all[j % 4] = _mm512_or_si512(all[j % 4], _mm512_load_si512(p + 64 * j));
    all[0] = _mm512_or_si512(_mm512_or_si512(all[0], all[1]),
                             _mm512_or_si512(all[2], all[3]));
    return (uint64_t)_mm512_reduce_or_epi64(all[0]);
}

const sti_machine_kernels sti_machine_kernels_avx512 = {
    .f32 = rate_f32, .bf16 = rate_bf16, .int8 = rate_int8, .read = read_words};
#else
typedef int sti_machine_avx512_unused;
#endif
