/* Normal numbers a second of each generator, forward and back, on one thread, into a
 * block of 16384 that stays in the caches. Least time of the runs. Started in turns
 * with C++'s by normal_bench.sh.
 *
 *   normal_bench [RUNS]
 *
 * CSV: who, millions of numbers a second. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "kernel/normal/lfsr.h"

enum { N = 1 << 14 };

static _Alignas(64) float block[N];
static _Alignas(64) uint8_t state[STI_LFSR_BYTES];

static void run(const sti_normal_key *key, const sti_lfsr_taps *taps, int back)
{
    if (key->generator == STI_NORMAL_ARS || key->generator == STI_NORMAL_PHILOX) {
        sti_normal_fill(key, 0, N, block);
        return;
    }
    for (int i = 0; i < N; i += STI_LFSR_LANES)
        (back ? sti_lfsr_back : sti_lfsr_next)(taps, state, block + i);
}

static void measure(const char *name, sti_normal_generator generator, const char *text,
                    int back, int runs)
{
    sti_normal_key key = {.generator = generator, .seed = 1};
    sti_lfsr_taps taps;
    int64_t least = INT64_MAX;
    if (sti_lfsr_taps_parse(text, generator, &taps) != STINT_OK)
        exit(1);
    sti_lfsr_seed(&key, state);
    for (int r = 0; r < runs; r++, key.step++) {
        const int64_t start = sti_clock_ns();
        run(&key, &taps, back);
        const int64_t ns = sti_clock_ns() - start;
        least = ns < least ? ns : least;
    }
    printf("%s,%.0f\n", name, N * 1e3 / (double)least);
}

int main(int argc, char **argv)
{
    const int runs = argc > 1 ? atoi(argv[1]) : 2000;
    measure("ars", STI_NORMAL_ARS, NULL, 0, runs);
    measure("philox", STI_NORMAL_PHILOX, NULL, 0, runs);
    measure("lfsr256", STI_NORMAL_LFSR256, NULL, 0, runs);
    measure("lfsr256 back", STI_NORMAL_LFSR256, NULL, 1, runs);
    measure("lfsr256 other taps", STI_NORMAL_LFSR256, "256,162,127,91", 0, runs);
    measure("lfsr64", STI_NORMAL_LFSR64, NULL, 0, runs);
    measure("lfsr64 back", STI_NORMAL_LFSR64, NULL, 1, runs);
    return 0;
}
