/* Samples of a rate and their median, the peak of the multiply-add units at the clock
 * speed of the moment, and a wait for other libraries' threads. Only for gemm_bench.c.
 */
#ifndef STI_BENCH_GEMM_TIMING_H
#define STI_BENCH_GEMM_TIMING_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/team.h"

enum { SAMPLES = 4000 };

typedef void work_fn(void *user);

typedef struct samples {
    double flop_per_ns[SAMPLES];
    int count;
} samples;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(samples *s)
{
    if (s->count == 0)
        return 0;
    qsort(s->flop_per_ns, (size_t)s->count, sizeof(double), by_value);
    return s->flop_per_ns[s->count / 2];
}

static int64_t repeat(work_fn *work, void *user, int64_t times)
{
    const int64_t start = sti_clock_ns();
    for (int64_t i = 0; i < times; i++)
        work(user);
    return sti_clock_ns() - start;
}

/* ---- the peak ---- */

#if defined(__x86_64__)
enum { PEAK_STEPS = 16000, PEAK_FLOP = PEAK_STEPS * 24 * 32 };

/* 24 chains of multiply-adds in registers. */
__attribute__((target("avx512f"))) static void peak_piece(void *arg, int64_t piece,
                                                          int worker)
{
    (void)arg, (void)piece, (void)worker;
#define FMA(I) "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #I "\n\t"
    __asm__ volatile("mov %0, %%eax\n"
                     "1:\n\t" FMA(0) FMA(1) FMA(2) FMA(3) FMA(4) FMA(5) FMA(6) FMA(7)
                         FMA(8) FMA(9) FMA(10) FMA(11) FMA(12) FMA(13) FMA(14) FMA(15)
                             FMA(16) FMA(17) FMA(18) FMA(19) FMA(20) FMA(21) FMA(22)
                                 FMA(23) "dec %%eax\n\t"
                                         "jnz 1b\n"
                     :
                     : "i"(PEAK_STEPS)
                     : "eax", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                       "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
                       "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19",
                       "xmm20", "xmm21", "xmm22", "xmm23", "xmm30", "xmm31");
#undef FMA
}

static void peak_work(void *user)
{
    const sti_team *team = user;
    sti_team_run(team, team->threads, peak_piece, NULL);
}
#endif

/* Multiply-adds in flop/ns at the clock speed of this moment; 0 samples without
 * AVX-512. */
static void sample_peak(const sti_team *team, samples *s)
{
#if defined(__x86_64__)
    if (sti_isa_now() != STI_ISA_AVX512 || s->count == SAMPLES)
        return;
    const int64_t ns = repeat(peak_work, (void *)(uintptr_t)team, 1);
    s->flop_per_ns[s->count++] = (double)PEAK_FLOP * team->threads / (double)ns;
#else
    (void)team, (void)s;
#endif
}

static double process_ms(void)
{
    return 1e3 * (double)clock() / CLOCKS_PER_SEC;
}

/* Other libraries' threads spin on after their work, OpenBLAS's for 100 ms, also after
 * it is loaded: until then what comes next has but a part of the CPUs. */
static void wait_for_quiet(void)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    double before = process_ms(), spent = 1;
    for (int i = 0; i < 200 && spent > 0.5; i++) {
        nanosleep(&pause, NULL);
        const double now = process_ms();
        spent = now - before;
        before = now;
    }
}

#endif
