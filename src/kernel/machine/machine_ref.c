/* Rates of plain C: the products of this instruction set call fmaf. */
#include <math.h>

#include "kernel/machine/machine_priv.h"

enum { CHAINS = 8 };

static double rate_f32(int64_t rounds)
{
    volatile float sink;
    float acc[CHAINS] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (int64_t i = 0; i < rounds; i++)
        for (int c = 0; c < CHAINS; c++)
            acc[c] = fmaf(acc[c], 0.5F, 1.0F);
    float sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += acc[c];
    sink = sum;
    (void)sink;
    return 2.0 * CHAINS * (double)rounds;
}

static double rate_none(int64_t rounds)
{
    (void)rounds;
    return 0;
}

static uint64_t read_words(const void *x, int64_t bytes)
{
    const uint64_t *word = x;
    uint64_t all[4] = {0, 0, 0, 0};
    for (int64_t i = 0; i < bytes / 8; i += 4)
        for (int j = 0; j < 4; j++)
            all[j] |= word[i + j];
    return all[0] | all[1] | all[2] | all[3];
}

const sti_machine_kernels sti_machine_kernels_ref = {
    .f32 = rate_f32, .bf16 = rate_none, .int8 = rate_none, .read = read_words};
